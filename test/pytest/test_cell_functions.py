"""Functions of the mathematical library in cells: C's on CPUs, CUDA's in PTX."""

from __future__ import annotations

import ctypes.util
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import Operation

import timetile
from support.cell_operations import Case, cases
from support.cell_programs import program_of
from support.printed_kernels import made_kernels_of
from timetile.lowering.ptx import functions
from timetile.passes.analysis.cells.cell_operations import FUNCTIONS
from timetile.passes.diagnostics import CompileError
from timetile.runtime.kernels.assembler import figures
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

ROOT = Path(__file__).parents[2]

CASES = [case for case in cases() if case.operation in FUNCTIONS]
DTYPES: dict[str, type[np.floating[Any]]] = {"f64": np.float64, "f32": np.float32}
CELLS = 200


def given(case: Case) -> list[NDArray[np.floating[Any]]]:
    """Numbers between -3 and 3, with NaN as the result of some functions, and special numbers."""
    random = np.random.default_rng(7)
    dtype = DTYPES[str(case.result)]
    arrays = [random.uniform(-3, 3, CELLS).astype(dtype) for _ in case.operands]
    for array in arrays:
        array[:6] = 0.0, -0.0, 1.0, np.inf, -np.inf, np.nan
    return arrays


def run(case: Case, executor: Executor) -> NDArray[np.floating]:
    """An executor's results for the numbers."""
    result = np.zeros(CELLS, DTYPES[str(case.result)])
    program = timetile.compile(
        program_of([case], CELLS), executor=executor, arch="sm_90", cache=False
    )
    program(*given(case), result, 1)
    return result


def of_the_library(case: Case) -> NDArray[np.floating]:
    """The C library's results for the numbers, one after the other."""
    kind = ctypes.c_double if str(case.result) == "f64" else ctypes.c_float
    suffix = "" if kind is ctypes.c_double else "f"
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    function = getattr(library, FUNCTIONS[case.operation].library + suffix)
    function.restype, function.argtypes = kind, [kind] * len(case.operands)
    numbers = [function(*map(float, cell)) for cell in zip(*given(case))]
    return np.array(numbers, DTYPES[str(case.result)])


def module_of(path: Path) -> Any:
    """A script as a module."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    found = module_from_spec(spec)
    sys.modules[path.stem] = found
    spec.loader.exec_module(found)
    return found


CHECK_MATH = module_of(ROOT / "benchmarks" / "check_math.py")


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "simt"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_functions_are_near_the_c_library_and_equal_on_executors(case: Case, executor: Executor):
    found, expected = run(case, executor), of_the_library(case)
    assert found.dtype == expected.dtype
    name, element = FUNCTIONS[case.operation].library, str(case.result)
    distance = CHECK_MATH.worst(found, expected, given(case)).distance
    assert distance <= CHECK_MATH.of_processor(name, element) + CHECK_MATH.of_gnu(name, element)
    other: Executor = "cpu" if executor == "numpy" else "numpy"
    np.testing.assert_array_equal(found, run(case, other), strict=True)
    signed = ~np.isnan(found)
    assert np.array_equal(np.signbit(found[signed]), np.signbit(expected[signed]))


@pytest.mark.covering
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["double", "float"])
def test_all_functions_assemble_together(arch: str, name: str):
    kind = "f64" if name == "double" else "f32"
    group = [case for case in CASES if str(case.result) == kind and len(case.operands) == 1]
    program = timetile.compile(program_of(group, 64), executor="planes", arch=arch, cache=False)
    kernels = made_kernels_of(program)
    suffix = "f" if kind == "f32" else ""
    for case in group:
        called = FUNCTIONS[case.operation].library + suffix
        call = f"call (result), timetile_{called}, (argument0);"
        assert any(call in kernel.ptx for kernel in kernels)
    assert all(kernel.registers > 0 for kernel in kernels)


@pytest.mark.parametrize("case", [c for c in CASES if len(c.operands) == 2], ids=str)
def test_functions_of_two_operands_assemble(case: Case):
    program = timetile.compile(program_of([case], 64), executor="planes", arch="sm_90", cache=False)
    assert all(kernel.registers > 0 for kernel in made_kernels_of(program))


SAID = """ptxas info    : Function properties for timetile_sin
ptxas         .     8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 70 registers, used 0 barriers
"""


def test_spills_of_functions_are_not_the_kernels():
    assert figures(SAID) == (70, 0)


def test_a_refusal_of_nvrtc_is_reported():
    with pytest.raises(
        CompileError, match=r"NVRTC does not compile CUDA's functions for sm_90: .*wrong"
    ):
        functions.compiled("wrong", "sm_90")


@pytest.mark.parametrize("operation", FUNCTIONS, ids=lambda op: op.name)
def test_a_function_takes_more_work_than_a_product(operation: type[Operation]):
    work = FUNCTIONS[operation].work
    assert sum(work[8]) > 20 and sum(work[4]) > 5


def test_the_page_has_the_bound_of_every_function():
    page = (ROOT / "docs" / "cells.md").read_text()
    for known in FUNCTIONS.values():
        a, b, c, d = CHECK_MATH.ERRORS[known.library]
        assert f"| `{known.library}` | {a} + {b} | {c} + {d} |" in page


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distances_are_counted_in_places(dtype: type[np.floating]):
    one = np.array([1.0, -0.0, 2.0, np.nan, -1.0, 5.0], dtype)
    other = one.copy()
    assert CHECK_MATH.worst(one, other, [one]).distance == 0
    other[1] = 0.0
    other[2] = np.nextafter(np.nextafter(dtype(2), dtype(3)), dtype(3))
    assert CHECK_MATH.worst(one, other, [one]) == CHECK_MATH.Worst(2, (2.0,))
    tiny = np.nextafter(dtype(0), dtype(1))
    assert CHECK_MATH.worst(np.array([-tiny]), np.array([tiny]), [one]).distance == 2
    assert CHECK_MATH.worst(one, np.full(6, dtype(np.nan)), [one]).distance > 2**60


def test_without_nvrtc_the_place_of_the_function_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(functions, "nvrtc", lambda: None)
    (case,) = [
        c for c in CASES if FUNCTIONS[c.operation].library == "exp" and str(c.result) == "f64"
    ]
    text = program_of([case], CELLS)
    program = timetile.compile(text, executor="planes", arch="sm_90", cache=False)
    line = next(k for k, text in enumerate(text.splitlines(), 1) if "math.exp" in text)
    with pytest.raises(
        CompileError, match=rf"math\.exp in @cells\w* \(<program>:{line}\): PTX has no"
    ):
        made_kernels_of(program)
    # Interpreters need no PTX.
    result = np.zeros(CELLS)
    program(*given(case), result, 1)
    assert np.any(result)
