"""
Given passes replace the default passes of every level, and passes and dialects of other packages
are known.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.passes import ModulePass
from xdsl.universe import Universe

import timetile
from support.command_line import HEAT, run
from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.pipelines import TimetilePass, temporal_passes, thread_passes, tile_passes
from timetile.lowering.threads.order_threads import OrderThreadsPass
from timetile.passes.cells.contract_cells import ContractCellsPass
from timetile.passes.diagnostics import CompileError
from timetile.passes.target_arch import TargetArchPass
from timetile.runtime.kernels.levels import levels_of
from timetile.runtime.loading import plugins
from timetile.runtime.loading.modules import make_context
from timetile.runtime.program.compiled_program import Executor

SHAPE = (16, 21)


@dataclass(frozen=True)
class NotePass(ModulePass):
    """
    A pass of another package: records the known dialects, and whether its own dialect is known.
    """

    name = "note"
    met: ClassVar[list[set[str]]] = []

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.met.append({each.name.partition(".")[0] for each in op.walk()})


@irdl_op_definition
class NoteOp(IRDLOperation):
    """An operation of another package."""

    name = "notes.note"


@pytest.fixture(autouse=True)
def nothing_met() -> Iterator[None]:
    NotePass.met.clear()
    plugins.universe.cache_clear()
    yield
    plugins.universe.cache_clear()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with the pass and a dialect."""
    found = Universe.get_multiverse()
    more = Universe(
        all_dialects={**found.all_dialects, "notes": lambda: Dialect("notes", [NoteOp])},
        all_passes={**found.all_passes, "note": lambda: NotePass},
    )
    monkeypatch.setattr(Universe, "get_multiverse", staticmethod(lambda: more))


def fields() -> list[Any]:
    return [np.random.default_rng(k).random(SHAPE) for k in range(2)]


def run_on(executor: Executor = "simt", **options: Any) -> list[Any]:
    """The fields after a program."""
    found = fields()
    timetile.compile(HEAT, executor=executor, **options)(*found, 0.1, 5)
    return found


@cache
def fields_by_default() -> list[Any]:
    """The fields after the program, by the default passes."""
    return run_on("planes", depth=2, cache=False)


def same(first: list[Any], second: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


DEFAULT = (
    temporal_passes(),
    (*tile_passes(2), TargetArchPass()),
    thread_passes(),
    (ConvertGpuToNvvmPass(),),
)


def test_all_passes_belong_to_their_levels():
    levels = levels_of(tuple(timetile.pipeline(depth=2)))
    assert (levels.temporal, levels.tile, levels.threads, levels.hardware) == DEFAULT


@pytest.mark.parametrize("level", range(4))
def test_passes_of_one_level_leave_other_levels_unchanged(level: int):
    levels = levels_of(DEFAULT[level])
    found = (levels.temporal, levels.tile, levels.threads, levels.hardware)
    assert found == tuple(DEFAULT[k] if k == level else () for k in range(4))


def test_passes_without_raise_time_loop_follow_the_default_ones():
    given = (ContractCellsPass("off"), *tile_passes(2))
    assert levels_of(given).temporal == () and levels_of(given).tile == given


@pytest.mark.parametrize("executor", ["planes", "simt"])
def test_the_whole_pipeline_is_what_is_done_without_passes(executor: Executor):
    expected = run_on(executor, depth=2, cache=False)
    assert same(run_on(executor, passes=timetile.pipeline(depth=2), cache=False), expected)


@pytest.mark.parametrize(
    ("level", "dialect"), [(0, "stencil"), (1, "temporal"), (2, "simt"), (3, "nvvm")]
)
def test_a_pass_of_another_package_runs_at_the_level_around(level: int, dialect: str):
    """Behind the first pass of a level, or before all of the first."""
    parts = [list(part) for part in DEFAULT]
    parts[level].insert(0 if level == 0 else 1, NotePass())
    passes = tuple(item for part in parts for item in part)
    program = timetile.compile(HEAT, executor="planes", passes=passes, cache=False)
    for loop in program.kernels.facts:
        for kernel in loop:
            program.kernels.kernel(kernel.name)
    assert NotePass.met and all(dialect in met for met in NotePass.met)
    found = fields()
    program(*found, 0.1, 5)
    assert same(found, fields_by_default())


def test_the_cpu_runs_what_given_passes_make_of_time_loops():
    """The temporal level decides contraction, for every executor."""
    off = [
        ContractCellsPass("off") if isinstance(item, ContractCellsPass) else item
        for item in DEFAULT[0]
    ]
    for executor in ("cpu", "planes"):
        assert same(
            run_on(executor, passes=off, depth=2, cache=False),
            run_on(executor, fp_contract="off", depth=2, cache=False),
        )
    assert not same(run_on("cpu", passes=off, cache=False), run_on("cpu", cache=False))


def test_passes_of_other_packages_are_not_cached(own_cache: Path):
    run_on(passes=(NotePass(), *tile_passes(2)))
    assert not own_cache.exists()
    run_on(passes=tile_passes(2))
    assert own_cache.exists()


def test_given_passes_have_keys_of_their_own(own_cache: Path):
    """Of every level: one pipeline's result is never taken for another pipeline's."""
    expected = run_on("cpu", fp_contract="off")
    run_on("cpu")
    off = [
        ContractCellsPass("off") if isinstance(item, ContractCellsPass) else item
        for item in DEFAULT[0]
    ]
    assert same(run_on("cpu", passes=off), expected)
    few = timetile.compile(HEAT, executor="simt", depth=2, passes=thread_passes()[:2]).kernels
    all_of_them = timetile.compile(HEAT, executor="simt", depth=2).kernels
    assert few.key != all_of_them.key


# As text, and of other packages.


def test_passes_may_be_given_as_text():
    text = ",".join(map(str, tile_passes(2)))
    assert same(run_on(passes=text, cache=False), run_on(depth=2, cache=False))


def test_text_names_passes_of_other_packages(installed: None):
    text = ",".join(["note", *map(str, tile_passes(2))])
    assert same(run_on(passes=text, cache=False), run_on(depth=2, cache=False))
    assert NotePass.met


def test_the_command_line_knows_passes_of_other_packages(
    installed: None, heat: Path, own_cache: Path, capsys: pytest.CaptureFixture[str]
):
    passes = ",".join(["note", *map(str, tile_passes(2))])
    line = f"run {heat} --executor planes --random 1 --set k=0.1 --steps 3 --check"
    assert run(f"{line} --pipeline '{passes}'") == 0
    assert "bit for bit" in capsys.readouterr().out
    assert NotePass.met
    assert run(f"compile {heat} --pipeline '{passes}'") == 0


def test_options_decided_by_a_pipeline_are_one_sentence_on_the_command_line(
    heat: Path, capsys: pytest.CaptureFixture[str]
):
    passes = ",".join(map(str, timetile.pipeline(depth=2)))
    assert run(f"compile {heat} --fp-contract off --pipeline '{passes}'") == 2
    assert capsys.readouterr().err == (
        "timetile: fp_contract has no effect where passes find time loops; write "
        "contract-cells{fp-contract=off} there\n"
    )


def test_dialects_of_other_packages_are_known(installed: None):
    """Other packages are asked once a name is of no dialect of xDSL, and of none here."""
    context = make_context()
    assert context.get_op("arith.addf") and "notes" not in context.registered_dialect_names
    assert context.get_op("notes.note") is NoteOp


@pytest.mark.usefixtures("new_process")
def test_a_package_that_cannot_be_loaded_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def broken() -> Universe:
        raise ImportError("no module named 'elsewhere'")

    monkeypatch.setattr(Universe, "get_multiverse", staticmethod(broken))
    with caplog.at_level(logging.WARNING, "timetile"):
        for _ in range(2):
            assert make_context().get_optional_op("elsewhere.add") is None
    (said,) = caplog.messages
    assert said == (
        "dialects and passes of other packages are left out, as an entry point xdsl.universe "
        "cannot be loaded (no module named 'elsewhere'); xdsl-opt --help says which"
    )


# Refusals.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"passes": "nothing"},
            "passes 'nothing' cannot be used: no pass is named nothing; xdsl-opt --help lists all",
        ),
        ({"passes": ""}, "passes '' cannot be used: "),
        (
            {"passes": (TimetilePass(),)},
            "the pass timetile is all passes; leave out passes, or name the different passes",
        ),
        (
            {"passes": timetile.pipeline(), "fp_contract": "off"},
            "fp_contract has no effect where passes find time loops; write "
            "contract-cells{fp-contract=off} there",
        ),
        (
            {"passes": timetile.pipeline(), "fp_division": "fast"},
            "fp_division has no effect where passes find time loops; write "
            "simplify-cells{fp-division=fast} there",
        ),
        (
            {"passes": timetile.pipeline(), "fp_reassoc": "on"},
            "fp_reassoc has no effect where passes find time loops; write "
            "sort-terms{fp-reassoc=on} there",
        ),
        (
            {"passes": timetile.pipeline(arch="sm_80")},
            "the passes are for sm_80, and the program is compiled for sm_90; give arch='sm_80'",
        ),
        (
            {"passes": tile_passes(3), "depth": 2},
            "depth has no effect where passes make kernels; write temporal-fusion{depths=2} there",
        ),
    ],
)
def test_options_that_passes_decide_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError) as caught:
        timetile.compile(HEAT, executor="cpu", **options)
    assert str(caught.value).startswith(message)


def test_passes_that_make_no_kernels_are_refused():
    program = timetile.compile(HEAT, executor="planes", passes=tile_passes(2)[:3], cache=False)
    found = fields()
    with pytest.raises(CompileError) as caught:
        program(*found, 0.25, 5)
    assert "the given passes make no placed kernels of the loop; at least needed are " in str(
        caught.value
    )
    assert same(found, fields())


class ForgetLaunchPass(ModulePass):
    """A pass of another package that drops the attributes of modules."""

    name = "forget-launch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for module in (each for each in op.ops if each.name == "gpu.module"):
            module.attributes.clear()


@pytest.mark.parametrize(
    ("executor", "passes", "place"),
    [
        ("simt", (OrderThreadsPass(),), "tile.kernel in @heat_"),
        ("ptx", (OrderThreadsPass(),), "tile.kernel in @heat_"),
        ("simt", (*thread_passes(), ForgetLaunchPass()), "gpu.module in @heat_"),
        ("ptx", (*thread_passes(), ForgetLaunchPass()), "gpu.module in @heat_"),
    ],
)
def test_passes_that_do_not_say_how_a_kernel_is_launched_are_refused(
    executor: Executor, passes: tuple[ModulePass, ...], place: str
):
    program = timetile.compile(HEAT, executor=executor, passes=passes, depth=2, cache=False)
    found = fields()
    with pytest.raises(CompileError) as caught:
        program(*found, 0.25, 5)
    assert str(caught.value).startswith(place)
    assert str(caught.value).endswith(
        "the passes that were given do not lower it to the code of threads; they need at least "
        "lower-tile-to-gpu"
    )
    assert same(found, fields())
