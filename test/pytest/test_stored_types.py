"""
Fields of 16 bits: cells compute in f32 and are rounded at each step, with the bits of an evaluation
by NumPy, on each executor, at each depth, from IR and from Python.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16

import timetile
from timetile import Field, Scalar
from timetile.dialects.cell_types import FIELD_DTYPES, STORED_TYPES, computed_type, stored_number
from timetile.passes.diagnostics import CompileError
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
EXECUTORS: tuple[Executor, ...] = ("numpy", "cpu", "planes", "simt", "ptx")


def program(kind: str, sizes: tuple[int, ...]) -> str:
    """A sum of all neighbours, times a number."""
    rank, body = len(sizes), ""
    offsets = [
        [distance if axis == k else 0 for k in range(rank)]
        for axis in range(rank)
        for distance in (-1, 1)
    ]
    total = "%e0"
    for k, offset in enumerate(offsets):
        body += f"%a{k} = stencil.access %w{offset} : !temp\n"
        body += f"%e{k} = arith.extf %a{k} : {kind} to f32\n"
        if k:
            body += f"%s{k} = arith.addf {total}, %e{k} : f32\n"
            total = f"%s{k}"
    bounds = "x".join(f"[-1,{size + 1}]" for size in sizes)
    return f"""
!field = !stencil.field<{bounds}x{kind}>
!temp = !stencil.temp<{"?x" * rank}{kind}>
func.func @spread(%a: !field, %b: !field, %rate: f32, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%u = %a, %v = %b) -> (!field, !field) {{
    %x = stencil.load %u : !field -> !temp
    %y = stencil.apply(%w = %x : !temp, %k = %rate : f32) -> (!temp) {{
      {body}
      %m = arith.mulf {total}, %k : f32
      %o = arith.truncf %m : f32 to {kind}
      stencil.return %o : {kind}
    }}
    stencil.store %y to %v(<{[0] * rank}, {list(sizes)}>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }}
  return
}}
"""


def evaluated(u: Any, v: Any, rate: Any, steps: int) -> tuple[Any, Any]:
    """Both buffers after some steps, by NumPy."""
    u, v = u.copy(), v.copy()
    inner = (slice(1, -1),) * u.ndim
    for _ in range(steps):
        wide, total = u.astype(np.float32), None
        for axis in range(u.ndim):
            for distance in (-1, 1):
                at = list(inner)
                at[axis] = slice(1 + distance, u.shape[axis] - 1 + distance)
                cells = wide[tuple(at)]
                total = cells if total is None else total + cells
        v[inner] = (total * rate).astype(u.dtype)
        u, v = v, u
    return u, v


def drawn(shape: tuple[int, ...], kind: str, seed: int) -> Any:
    """Random cells, of which some are too small for normal numbers."""
    rng = np.random.default_rng(seed)
    cells = rng.standard_normal(shape) * 10.0 ** rng.integers(-7, 3, shape)
    return cells.astype(DTYPES[kind])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.covering
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("sizes", [(37, 41), (32, 64), (9, 10, 24), (130,)], ids=str)
@pytest.mark.parametrize("depth", [None, 3])
def test_cells_have_the_bits_of_numpy(
    kind: str, executor: Executor, sizes: tuple[int, ...], depth: int | None
):
    shape, rate = tuple(size + 2 for size in sizes), np.float32(0.9 / (2 * len(sizes)))
    a, b = drawn(shape, kind, 1), drawn(shape, kind, 2)
    expected = evaluated(a, b, rate, 7)
    compiled = timetile.compile(
        program(kind, sizes), executor=executor, depth=depth, halos="apart", cache=False
    )
    result = compiled(a, b, rate, steps=7)
    for found, wanted in zip(result.buffers, expected):
        np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))


@timetile.stencil
def conducted(u: Field, k: Field, c: Scalar):
    u.next = u[0, 0] + c * k[0, 0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def computing(cells: Any) -> Any:
    """Cells in the type of NumPy's arithmetic, FP32 for 16 bits."""
    return cells.astype(np.float32) if cells.dtype.itemsize == 2 else cells


MIXED = [
    ("float16", "float16"), ("bfloat16", "float32"), ("float64", "float32"),
    ("float16", "float64"), ("float32", "bfloat16"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "coefficient"), MIXED)
def test_fields_of_several_types_run_from_python(field: str, coefficient: str):
    rng = np.random.default_rng(5)
    u = rng.random((18, 39)).astype(dtype_of(FIELD_DTYPES[field]))
    k = rng.random((18, 39)).astype(dtype_of(FIELD_DTYPES[coefficient]))
    ends = [
        conducted.on(executor=executor, fp_contract="off").advance(
            {"u": u, "k": k}, steps=4, c=0.2
        )["u"]
        for executor in ("numpy", "cpu", "ptx")
    ]
    expected = u.copy()
    for _ in range(4):
        v, inner = computing(expected), (slice(1, -1), slice(1, -1))
        around = v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:]
        new = v[inner] + 0.2 * computing(k)[inner] * (around - 4 * v[inner])
        # From FP64 a number of 16 bits is rounded to FP32 first.
        narrow = new if u.dtype == np.float64 else new.astype(np.float32)
        expected[inner] = narrow.astype(u.dtype)
    for end in ends:
        assert end.dtype == u.dtype and end.tobytes() == expected.tobytes()


HALVES = [0.0, -0.0, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, np.inf]
"""Zeros, numbers halfway between two of f16 or bf16, and infinity."""


def test_numbers_are_rounded_to_the_nearest_even():
    rng = np.random.default_rng(3)
    numbers = (rng.standard_normal(2000) * 10.0 ** rng.integers(-9, 6, 2000)).astype(np.float32)
    numbers = np.append(numbers, np.array(HALVES, np.float32))
    for kind, dtype in ((f16, np.float16), (bf16, ml_dtypes.bfloat16)):
        with np.errstate(over="ignore"):
            nearest = numbers.astype(dtype)
        for number, wanted in zip(numbers.tolist(), nearest.tolist()):
            found = stored_number(number, kind)
            assert found == wanted and np.signbit(found) == np.signbit(wanted)


def test_every_stored_type_computes_with_a_type_of_cells():
    for kind, row in STORED_TYPES.items():
        assert dtype_of(kind).name == row.dtype and dtype_of(kind).itemsize == row.bytes
        assert str(computed_type(kind)) == ("f32" if row.is_float else "i32")


def test_arithmetic_of_16_bits_is_rounded_after_each_operation():
    text = program("f16", (16, 16)).replace(
        "arith.extf %a0 : f16 to f32", "arith.addf %a0, %a0 : f16"
    )
    text = text.replace("%s1 = arith.addf %e0, %e1", "%x0 = arith.extf %e0 : f16 to f32\n"
                        "%s1 = arith.addf %x0, %e1")  # fmt: skip
    a = drawn((18, 18), "f16", 4)
    ends: list[bytes] = []
    for executor in EXECUTORS:
        u, v = a.copy(), a.copy()
        timetile.compile(text, executor=executor, cache=False)(u, v, np.float32(0.25), steps=1)
        ends.append(v.tobytes())
    wide, twice = a.astype(np.float32), (a + a).astype(np.float32)
    total = twice[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    expected = a.copy()
    expected[1:-1, 1:-1] = (total * np.float32(0.25)).astype(np.float16)
    assert set(ends) == {expected.tobytes()}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            ("arith.extf %a0 : f16 to f32", "arith.bitcast %a0 : f16 to i16"),
            "it computes with f16, a type of memory; extend cells to f32 by arith.extf, and round "
            "results by arith.truncf from f32",
        ),
        (
            ("%rate: f32", "%rate: f16"),
            "it takes a number of f16; give the number as f32",
        ),
    ],
)
def test_other_uses_of_16_bits_are_refused(change: tuple[str, str], sentence: str):
    text = program("f16", (16, 16)).replace(*change)
    if "f16" in change[1] and "rate" in change[1]:
        text = text.replace("%k = %rate : f32", "%k = %rate : f16")
        text = text.replace("%m = arith.mulf", "%kw = arith.extf %k : f16 to f32\n%m = arith.mulf")
        text = text.replace(", %k : f32\n      %o", ", %kw : f32\n      %o")
    else:
        text = text.replace("arith.addf %e0, %e1", "arith.addf %e1, %e1")
    with pytest.raises(CompileError) as caught:
        timetile.compile(text, executor="numpy", cache=False)
    assert sentence in str(caught.value)


def test_arrays_of_another_type_are_refused():
    u = np.zeros((8, 8), np.float16)
    compiled = conducted.program((8, 8), "float16")
    with pytest.raises(TypeError, match="has elements of float32, and its field of float16"):
        compiled(u.astype(np.float32), u, u, np.float32(1), steps=1)
