"""A program's explanation of itself: data, text, a page in a notebook, and advice."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import timetile
from support.catalogue import star, sum_program
from support.command_line import HEAT, run
from support.programs import program_text
from timetile.lowering.pipelines import tile_passes
from timetile.passes.cost.terms import Cost, StepCycles
from timetile.runtime.explain.data import Explanation, LoopSummary
from timetile.runtime.explain.explanation import limit_text
from timetile.runtime.explain.text import HINT
from timetile.runtime.kernels.assembler import assembler_version

# One worker has the shared results of the file's tests.
pytestmark = [pytest.mark.xdist_group("explain"), pytest.mark.usefixtures("chosen_among_kinds")]

DIVIDING = HEAT.replace("%s2 = arith.addf %s1, %m2", "%s2 = arith.divf %s1, %m2")

FAR = program_text(sum_program("f64", [(0, -200), (0, 200)])((9, 37)))
"""Two steps reach farther than any tile."""


@cache
def explained_once(text: str, **options: Any) -> Explanation:
    return timetile.compile(text, executor="cpu", cache=False, **options).explain()


def explained(text: str = HEAT, **options: Any) -> Explanation:
    """The explanation of a program, made once."""
    return explained_once(text, **options)


def advice_of(text: str = HEAT, **options: Any) -> str:
    (loop,) = explained(text, **options).loops
    return "; ".join(loop.advice)


def test_an_explanation_is_data():
    found = explained(depth=4)
    assert found.function == "heat"
    (loop,) = found.loops
    assert isinstance(loop, LoopSummary)
    assert (loop.cells, loop.element, loop.radius) == ((14, 19), "f64", 1)
    assert (loop.bytes_read, loop.bytes_written, loop.flops) == (8, 8, 5)
    assert (loop.kernel, loop.depth, loop.target) == ("heat_d4", 4, "sm_90")
    updates = loop.depth * 14 * 19
    assert loop.gcells_per_second == pytest.approx(updates / loop.launch_seconds / 1e9)
    assert 0 < loop.overhead_seconds < loop.launch_seconds
    assert loop.redundancy >= 1
    assert (loop.resources.registers is None) == (assembler_version() is None)
    assert found.remarks == ()


def test_an_explanation_begins_with_about_ten_lines():
    found = explained()
    lines = str(found).splitlines()
    assert lines[0] == "@heat"
    assert len(lines) <= 15
    labels = [line[2:].partition("  ")[0] for line in lines[1:-2]]
    assert labels[:8] == [
        "A step",
        "GCells/s predicted",
        "Without fusion",
        "Limited by",
        "A tile",
        "A launch",
        "A block",
        "Next best schedule",
    ]
    assert lines[-1] == f"{HINT}."
    assert str(found) in found.full() or found.full().startswith("\n".join(lines[:-2]))
    assert HINT not in found.full()


def test_full_text_has_every_section():
    found = explained()
    text = found.full()
    assert [section.title for section in found.sections][:3] == [
        "Arguments of @heat", "Time loop", "Schedule",
    ]  # fmt: skip
    assert all(f"\n{section.title}\n" in text for section in found.sections)


def test_an_explanation_for_a_number_of_steps_names_the_number():
    program = timetile.compile(HEAT, executor="cpu", depth=4, cache=False)
    assert "30 steps" in program.explain(30).full()
    assert "30 steps" not in explained(depth=4).full()


class Tags(HTMLParser):
    """Checks the order of closing tags, and gathers the text."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def shown_by_a_notebook(found: Explanation) -> str:
    """The page for Jupyter, by the name of a method."""
    name = "_repr_html_"
    return getattr(found, name)()


def test_a_notebook_shows_tables():
    found = explained()
    page = Tags(shown_by_a_notebook(found))
    assert page.open == []
    assert "GCells/s predicted" in page.said
    assert {section.title for section in found.sections} <= set(page.said)
    # `%new <- %old` is text, not a tag.
    assert "%a <- %b, %b <- %a" in page.said


def test_an_explanation_shows_the_remarks_of_the_compiler():
    found = explained(FAR, depth=2)
    assert any("no tile holds 2 steps at once" in remark for remark in found.remarks)
    assert "Not done, and why" in str(found)
    assert found.remarks[0] in Tags(shown_by_a_notebook(found)).said


@pytest.mark.parametrize(
    ("advice", "text", "before", "after"),
    [
        ("--fp-division fast", DIVIDING, {}, {"fp_division": "fast"}),
        ("--halos common", HEAT, {}, {"halos": "common"}),
        ("leave out --halos apart", HEAT, {"halos": "apart"}, {}),
        ("leave out --depth", HEAT, {"depth": 1}, {}),
        (
            "leave out --pipeline",
            HEAT,
            {"passes": tile_passes(2, "sm_90", None)},
            {},
        ),
    ],
)
def test_advice_that_is_followed_is_not_given_again(
    advice: str, text: str, before: dict[str, Any], after: dict[str, Any]
):
    assert advice in advice_of(text, **before)
    assert advice not in advice_of(text, **after)


def test_advice_fits_the_program():
    """
    A program without quotients gets no advice about quotients, nor a large program advice to be
    larger.
    """
    assert "--fp-division" not in advice_of(HEAT)
    large = program_text(sum_program("f64", star(2, 1))((8192, 8192)))
    if assembler_version() is not None:
        assert "larger domain" in advice_of(HEAT)
        assert "larger domain" not in advice_of(large, depth=3)


@pytest.mark.parametrize(
    ("compute", "memory", "waiting", "steps", "limit"),
    [
        (2e-6, 1e-6, 0.0, 10, "the floating-point units"),
        (1e-6, 2e-6, 0.0, 10, "global memory"),
        (2e-6, 1e-6, 1.9e-6, 10, "waits of a tile's warps and blocks for each other, 94% of a "
         "step; then by the floating-point units"),
        (2e-7, 1e-7, 0.0, 1, "launch overhead, 91% of a launch; then by the floating-point units"),
    ],
)  # fmt: skip
def test_the_limit_is_what_takes_most_of_a_launch(
    compute: float, memory: float, waiting: float, steps: int, limit: str
):
    cycles = StepCycles(pipe=3, issue=2, shared=1, unhidden=0)
    cost = Cost(32, 0, steps, cycles, compute, memory, 1000, 1.0, waiting, 4, 2e-6)
    assert limit_text(cost) == limit


@pytest.mark.usefixtures("own_cache")
def test_the_command_prints_the_same_lines(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert run(f"explain {heat} --depth 2") == 0
    short = capsys.readouterr().out
    assert run(f"explain {heat} --depth 2 --all") == 0
    full = capsys.readouterr().out
    program = timetile.compile(heat, depth=2)
    assert short.strip() == str(program.explain())
    assert full.strip() == program.explain().full()
