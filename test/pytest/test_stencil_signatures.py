"""Errors in the arguments, the name or the options of a step come with the line of the function."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.refused_steps import refusal

WRONG_FUNCTIONS: list[tuple[str, str]] = [
    (
        "def step(u): u.next = u[0]",
        "u has no type; write u: timetile.Field or u: timetile.Scalar",
    ),
    (
        "def step(u: float): u.next = u[0]",
        "u has no type; write u: timetile.Field or u: timetile.Scalar",
    ),
    (
        "def step(u: Unknown): u.next = u[0]",
        "u has no type; write u: timetile.Field or u: timetile.Scalar",
    ),
    (
        "def step(self, u: Field): u.next = u[0]",
        "self has no type; decorate a method in the body of its class, or leave out self",
    ),
    ("def step(*u: Field): pass", "u is no plain argument; name each field and scalar"),
    (
        "def step(u: Field, k: Scalar = 1): u.next = u[0]",
        "k has a default value; give the value to advance, or use a number from around the "
        "function",
    ),
    (
        "def step(u: Field, steps: Scalar): u.next = u[0]",
        "steps is an argument of advance; take another name",
    ),
    ("def step(u: Field): u[0]", "the step assigns no new values; write u.next = ..."),
    (
        "def step(u: Field): u.next = 5",
        "no index tells how many axes u has; assign a region of all cells, as u.next[:, :] = ... "
        "for two axes",
    ),
    (
        "def step(u: Field): return u[0]",
        "the step returns a value; assign the value, as u.next = ...",
    ),
    (
        "def step(u: Field, v: Field): u.next = u[0]",
        "v is neither read nor assigned; remove the argument",
    ),
    (
        "def step(u: Field, v: Field): u.next = v.prev[0]",
        "v.prev is read, and v gets no new values; read v[...], unchanged by the step",
    ),
]


@pytest.mark.parametrize(("text", "reason"), WRONG_FUNCTIONS, ids=lambda text: text[:40])
def test_a_wrong_function_is_refused_with_its_line(tmp_path: Path, text: str, reason: str):
    head = "from timetile import Field, Scalar, stencil\n"
    future = "from __future__ import annotations\n" if "Unknown" in text else ""
    found = refusal(tmp_path, f"{future}{head}@stencil\n{text}\n")
    assert found.reason == reason
    assert found.line in (2, 3, 4)


WRONG_OPTIONS: list[tuple[str, str]] = [
    (
        "boundary='wrap'",
        "unknown boundary 'wrap'; use 'keep', 'periodic', 'mirror', 'reflect', 'clamp', "
        "timetile.value(0), a tuple with one for each axis, in it a pair for the two sides, or a "
        "dict by field",
    ),
    ("reach=-1", "the reach is a number of cells, got -1; write reach=1, or leave it out"),
    ("reach=0.5", "the reach is a number of cells, got 0.5; write reach=1, or leave it out"),
    ("reach=1", "u[-2] reads 2 cells away, and the step declares reach=1; declare reach=2"),
]


@pytest.mark.parametrize(("options", "reason"), WRONG_OPTIONS)
def test_wrong_options_of_a_step_are_underlined(tmp_path: Path, options: str, reason: str):
    head = "from timetile import Field, stencil\n"
    found = refusal(
        tmp_path, f"{head}@stencil({options})\ndef step(u: Field):\n    u.next = u[-2]\n"
    )
    assert found.reason == reason
    marked = "u[-2]" if options == "reach=1" else f"stencil({options})"
    _, shown, marks = str(found).splitlines()
    assert shown[marks.index("^") : len(marks)] == marked
