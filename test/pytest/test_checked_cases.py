"""The cases of `benchmarks/check_gpu.py` with decisions by hand compile without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from support.benchmark_scripts import scripts
from support.sizes import spread
from timetile.dialects.tile import KernelOp
from timetile.lowering.pipelines import tile_passes
from timetile.passes.analysis.placed import layout_of
from timetile.runtime.kernels.options import run_passes

Cases = tuple[ModuleType, ModuleType]


@pytest.fixture(scope="module")
def scripts_of_cases() -> Iterator[Cases]:
    """The scripts `benchmarks/check_gpu.py` and `benchmarks/rows.py`."""
    with scripts("check_gpu", "rows") as (checks, rows):
        yield checks, rows


@pytest.mark.parametrize("number", spread(range(15)))
def test_kernels_of_a_case_have_the_decisions_of_the_case(scripts_of_cases: Cases, number: int):
    checks, rows = scripts_of_cases
    case = [case for case in checks.SMALL if case.changes][number]
    text, *_ = rows.source(case.name, case.domain, case.element)
    module = rows.scheduled(text, case.depth, case.changes)
    run_passes(tile_passes(case.depth)[2:], module)
    kernels = [op for op in module.ops if isinstance(op, KernelOp)]
    assert kernels
    for kernel in kernels:
        assert {name: getattr(kernel.decisions, name) for name in case.changes} == case.changes
        assert layout_of(kernel).level.data is kernel.decisions.tile


def test_every_case_by_hand_is_numbered(scripts_of_cases: Cases):
    checks, _ = scripts_of_cases
    assert sum(bool(case.changes) for case in checks.SMALL) == 15
