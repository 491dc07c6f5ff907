"""
Every operation in every type has one meaning on every executor, also at the edges of the types; the
PTX assembles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import ModuleOp

import timetile
from support.cell_meaning import MEANINGS
from support.cell_operations import Case, arguments, cases
from support.cell_programs import program_of, stored
from support.executors import kernel_executors
from support.printed_kernels import made_kernels_of
from timetile.passes.analysis.cells.cell_operations import FUNCTIONS
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load
from timetile.runtime.program.compiled_program import Executor

# One worker has the shared results of the file's tests.
pytestmark = [
    pytest.mark.xdist_group("cells_on_executors"),
    pytest.mark.usefixtures("chosen_among_few"),
]

DTYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32}
AT_ONCE = 8


def groups(wanted: Sequence[Case]) -> list[list[Case]]:
    """Operations with operands of equal types, a few at a time."""
    found: list[list[Case]] = []
    ordered = sorted(wanted, key=lambda case: str(case.operands))
    for _, same in groupby(ordered, key=lambda case: case.operands):
        every = list(same)
        found += [every[k : k + AT_ONCE] for k in range(0, len(every), AT_ONCE)]
    return found


GROUPS = groups([case for case in cases() if case.operation not in FUNCTIONS])


def name_of(group: Sequence[Case]) -> str:
    return f"{group[0]}-and-{len(group) - 1}-more"


def name_of_number(number: int) -> str:
    return name_of(GROUPS[number])


@cache
def raised(number: int) -> ModuleOp:
    """The time loop of a group's program, raised once for all executors."""
    group = GROUPS[number]
    return raise_program(load(program_of(group, arguments(group[0])[0].size)), Options())


@cache
def compiled(number: int, executor: Executor) -> timetile.CompiledProgram:
    """The program of a group, compiled once."""
    module = raised(number).clone()
    return timetile.compile(module, executor=executor, arch="sm_90", cache=False)


def run(number: int, executor: Executor) -> list[NDArray[Any]]:
    """The results of a group on all samples."""
    group = GROUPS[number]
    given = [
        np.ascontiguousarray(axis.astype(DTYPES[stored(kind)]))
        for axis, kind in zip(arguments(group[0]), group[0].operands)
    ]
    made: list[NDArray[Any]] = [
        np.zeros(given[0].size, DTYPES[stored(case.result)]) for case in group
    ]
    compiled(number, executor)(*given, *made, 1)
    return made


def bits(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The bits of numbers; all NaNs count as equal."""
    if array.dtype.kind != "f":
        return array
    one_nan = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return np.abs(one_nan).view(f"u{array.dtype.itemsize}") * 2 + np.signbit(one_nan)


@cache
def on_numpy(number: int) -> list[NDArray[Any]]:
    return run(number, "numpy")


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("kernels", kernel_executors())
@pytest.mark.parametrize("number", range(len(GROUPS)), ids=name_of_number)
def test_executors_agree_on_every_operation_of_cells(number: int, kernels: Executor):
    """The CPU, and an executor of kernels: all such executors in `make nightly`."""
    expected = on_numpy(number)
    # A power with a variable exponent is a function of the library; a GPU has its own version.
    own = kernels == "gpu" and GROUPS[number][0].operation is xmath.FPowIOp
    for executor in ("cpu",) if own else ("cpu", kernels):
        for case, wanted, found in zip(GROUPS[number], expected, run(number, executor)):
            different = np.flatnonzero(bits(wanted) != bits(found))
            assert not different.size, f"{case} on {executor} at {different[:5]}"


WITH_MEANING = [k for k, group in enumerate(GROUPS) if any(c.operation in MEANINGS for c in group)]
"""The groups with operations that Python has, too."""


@pytest.mark.parametrize("number", WITH_MEANING, ids=name_of_number)
def test_operations_of_cells_are_those_of_python(number: int):
    for case, found in zip(GROUPS[number], on_numpy(number), strict=True):
        if case.operation not in MEANINGS:
            continue
        meaning, given = MEANINGS[case.operation], arguments(case)
        for cell, result in enumerate(found.tolist()):
            numbers = [axis[cell].item() for axis in given]
            wanted = meaning(case, *numbers)
            same = (result, math.copysign(1, result)) == (wanted, math.copysign(1, wanted))
            assert same or (result != result and wanted != wanted), f"{case} of {numbers}"


@pytest.mark.covering(every=4)
@pytest.mark.parametrize("number", range(len(GROUPS)), ids=name_of_number)
def test_every_operation_of_cells_assembles(number: int):
    assert all(kernel.registers > 0 for kernel in made_kernels_of(compiled(number, "planes")))
