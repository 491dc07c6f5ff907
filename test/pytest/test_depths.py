"""
The predicted speed over all depths of the benchmarks' programs: each large loss from one depth to
the next has a reason.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from support.sizes import is_nightly
from timetile.dialects.temporal import LoopOp
from timetile.passes.scheduling.candidates import Candidate, Trials
from timetile.passes.scheduling.choose_schedule import CLIFF, fitting
from timetile.passes.scheduling.ran_out import drop_between
from timetile.passes.scheduling.reasons import Resource
from timetile.passes.targets.target import target_named
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Halos, Options
from timetile.runtime.loading.modules import load

SM_90 = target_named("sm_90")
DOMAINS = {1: (1 << 26,), 2: (8352, 8352), 3: (512, 512, 512)}
DEEPEST = 16


@cache
def stencils() -> ModuleType:
    """The programs of the benchmarks."""
    path = Path(__file__).parents[2] / "benchmarks" / "stencils.py"
    spec = importlib.util.spec_from_file_location("benchmark_stencils", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@cache
def loop_of(name: str, element: str, halos: Halos) -> tuple[LoopOp, ModuleOp]:
    """A benchmark's time loop, and the module of the loop."""
    found = stencils()
    if name == "gradient":
        text = found.gradient(DOMAINS[2], element)
    elif name == "wave":
        text = found.wave((256, 256, 256), 2, element)
    else:
        stencil = found.STENCILS[name]
        text = found.program(stencil.scaled(), DOMAINS[stencil.rank], element)
    module = raise_program(load(text), Options(halos=halos))
    (loop,) = loops_of(module)
    return loop, module


@cache
def at_depth(name: str, element: str, halos: Halos, depth: int) -> Candidate | None:
    """The chosen schedule at a depth."""
    return fitting(*loop_of(name, element, halos), SM_90, depth)


ELEMENTS: tuple[str, ...] = ("f64", "f32")
HALOS: tuple[Halos, ...] = ("common", "apart")
NAMES = [*stencils().STENCILS, "gradient", "wave"]
ROWS = [(name, element, halos) for name in NAMES for element in ELEMENTS for halos in HALOS]


def check_reason(name: str, element: str, halos: Halos, depth: int) -> None:
    """A further step loses little, or `explain` names the exhausted resource."""
    before, now = (at_depth(name, element, halos, each) for each in (depth - 1, depth))
    if before is None:
        return
    speed = 0.0 if now is None else now.cost.gcells_per_second
    drop = drop_between(Trials(*loop_of(name, element, halos), SM_90), before, now)
    if speed >= CLIFF * before.cost.gcells_per_second:
        assert drop is None
        return
    assert drop is not None
    assert drop.why.partition(":")[0] in set(Resource), drop.why


@given(row=st.sampled_from(ROWS), depth=st.integers(2, DEEPEST))
def test_a_cliff_has_its_reason(row: tuple[str, str, Halos], depth: int):
    check_reason(*row, depth)


@pytest.mark.parametrize("row", ROWS if is_nightly() else ROWS[:1])
def test_every_cliff_of_a_row_has_its_reason(row: tuple[str, str, Halos]):
    """All rows in `make nightly`."""
    for depth in range(2, DEEPEST + 1):
        check_reason(*row, depth)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("halos", ["common", "apart"])
@pytest.mark.parametrize("name", ["j2d5pt", "j2d9pt", "j2d9pt-gol", "gradient"])
def test_rows_in_fp64_have_no_cliff(name: str, halos: Halos):
    """
    A tile with a few registers too many is better than a tile with waits for the whole device.
    """
    speeds = [at_depth(name, "f64", halos, depth) for depth in range(1, DEEPEST + 1)]
    found = [candidate.cost.gcells_per_second for candidate in speeds if candidate is not None]
    assert len(found) == DEEPEST
    for depth, (before, now) in enumerate(pairwise(found), 2):
        assert now >= CLIFF * before, f"{before:.0f} and {now:.0f} at depth {depth}"
