"""
Fields of i8 and i16: cells compute in i32, and wrap around where NumPy's integers do, with the bits
of an evaluation by NumPy, on each executor, and for each operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timetile
from support.printed_kernels import made_kernels_of
from timetile.passes.diagnostics import CompileError
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

EXECUTORS: tuple[Executor, ...] = ("numpy", "cpu", "planes", "simt", "ptx")
KINDS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}

CELL = """
      %k = arith.constant -3 : KIND
      %s0 = arith.addi %a0, %a1 : KIND
      %s1 = arith.muli %s0, %a2 : KIND
      %c = arith.cmpi sgt, %s1, %a3 : KIND
      %d = arith.cmpi ult, %s1, %a0 : KIND
      %q = arith.floordivsi %s1, %k : KIND
      %e = arith.remui %s1, %a1 : KIND
      %m = arith.select %c, %q, %e : KIND
      %h = arith.shrui %s0, %a2 : KIND
      %o = arith.xori %m, %h : KIND
      %z = arith.select %d, %o, %a3 : KIND
"""
"""Sums and products that leave the range, and readers of all bits."""


def program(kind: str, sizes: tuple[int, int], cell: str, result: str = "%z") -> str:
    """A step with a cell of four neighbours, `%a0` to `%a3`."""
    return f"""
!field = !stencil.field<[-1,{sizes[0] + 1}]x[-1,{sizes[1] + 1}]x{kind}>
!temp = !stencil.temp<?x?x{kind}>
func.func @spread(%a: !field, %b: !field, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%u = %a, %v = %b) -> (!field, !field) {{
    %x = stencil.load %u : !field -> !temp
    %y = stencil.apply(%w = %x : !temp) -> (!temp) {{
      %a0 = stencil.access %w[-1, 0] : !temp
      %a1 = stencil.access %w[1, 1] : !temp
      %a2 = stencil.access %w[0, -1] : !temp
      %a3 = stencil.access %w[0, 0] : !temp
      {cell.replace("KIND", kind)}
      stencil.return {result} : {kind}
    }}
    stencil.store %y to %v(<[0, 0], [{sizes[0]}, {sizes[1]}]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }}
  return
}}
"""


where: Callable[[Any, Any, Any], Any] = np.where


def neighbours(u: Any) -> tuple[Any, Any, Any, Any]:
    """The operands of all cells."""
    return u[:-2, 1:-1], u[2:, 2:], u[1:-1, :-2], u[1:-1, 1:-1]


def natural(cells: Any) -> Any:
    """Cells without a sign."""
    return cells.astype(f"u{cells.dtype.name}")


def shifted(cells: Any, amount: Any) -> Any:
    """Cells shifted right without a sign, with no bit left for an amount out of range."""
    inside = (amount >= 0) & (amount < 8 * amount.dtype.itemsize)
    moved = natural(cells) >> natural(where(inside, amount, 0))
    return where(inside, moved, 0).astype(cells.dtype)


def remainder(a: Any, b: Any) -> Any:
    """The remainder without a sign; 0 for a divisor of 0."""
    divisor = where(b == 0, 1, b)
    return where(b == 0, 0, natural(a) % natural(divisor)).astype(a.dtype)


def stepped(u: Any) -> Any:
    """The new cells of `CELL`, by NumPy."""
    a0, a1, a2, a3 = neighbours(u)
    s0 = a0 + a1
    s1 = s0 * a2
    third: Any = s1 // u.dtype.type(-3)
    m = where(s1 > a3, third, remainder(s1, a1))
    return where(natural(s1) < natural(a0), m ^ shifted(s0, a2), a3)


def drawn(kind: str, sizes: tuple[int, int], seed: int) -> Any:
    """Random numbers of the whole range, and small ones."""
    rng, dtype = np.random.default_rng(seed), np.dtype(KINDS[kind])
    shape = (sizes[0] + 2, sizes[1] + 2)
    limits = np.iinfo(dtype)
    wild = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return where(rng.random(shape) < 0.5, wild, rng.integers(-9, 10, shape).astype(dtype))


@pytest.mark.covering
@pytest.mark.parametrize("kind", ["i8", "i16"])
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("sizes", [(37, 41), (16, 64)], ids=str)
@pytest.mark.parametrize("depth", [None, 3])
def test_cells_have_the_bits_of_numpy(
    kind: str, executor: Executor, sizes: tuple[int, int], depth: int | None
):
    a, b = drawn(kind, sizes, 1), drawn(kind, sizes, 2)
    u, v = a.copy(), b.copy()
    for _ in range(5):
        with np.errstate(all="ignore"):
            v[1:-1, 1:-1] = stepped(u)
        u, v = v, u
    compiled = timetile.compile(
        program(kind, sizes, CELL), executor=executor, depth=depth, halos="apart", cache=False
    )
    result = compiled(a, b, steps=5)
    for found, wanted in zip(result.buffers, (u, v)):
        assert np.array_equal(found, wanted)


def clipped(a: Any, dtype: Any) -> Any:
    """The nearest numbers of a type."""
    limits = np.iinfo(dtype)
    return np.clip(a, limits.min, limits.max).astype(dtype)


OPERATIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "subi": ("%z = arith.subi %a0, %a1 : KIND", lambda a, b: a - b),
    "andi": ("%z = arith.andi %a0, %a1 : KIND", lambda a, b: a & b),
    "ori of a sum": (
        "%s = arith.addi %a0, %a1 : KIND\n%o = arith.ori %s, %a0 : KIND\n"
        "%z = arith.maxsi %o, %a1 : KIND",
        lambda a, b: np.maximum((a + b) | a, b),
    ),
    "minui": (
        "%z = arith.minui %a0, %a1 : KIND",
        lambda a, b: np.minimum(natural(a), natural(b)).astype(a.dtype),
    ),
    "absi": ("%z = math.absi %a0 : KIND", lambda a, b: np.abs(a)),
    "remsi": (
        "%z = arith.remsi %a0, %a1 : KIND",
        lambda a, b: where(b == 0, 0, np.fmod(a, where(b == 0, 1, b))),
    ),
    "divsi": (
        "%z = arith.divsi %a0, %a1 : KIND",
        lambda a, b: where(
            b == 0, 0, np.trunc(a / where(b == 0, 1, b).astype(np.float64)).astype(np.int64)
        ).astype(a.dtype),
    ),
    "divui": (
        "%z = arith.divui %a0, %a1 : KIND",
        lambda a, b: where(
            b == 0, 0, natural(a) // natural(where(b == 0, b.dtype.type(1), b))
        ).astype(a.dtype),
    ),
    "shrsi": (
        "%k = arith.constant 3 : KIND\n%z = arith.shrsi %a0, %k : KIND",
        lambda a, b: a >> a.dtype.type(3),
    ),
    "shli": (
        "%k = arith.constant 5 : KIND\n%z = arith.shli %a0, %k : KIND",
        lambda a, b: a << a.dtype.type(5),
    ),
    "extui and trunci": (
        "%p = arith.extui %a0 : KIND to i64\n%g = arith.extsi %a1 : KIND to i64\n"
        "%m = arith.muli %p, %g : i64\n%k = arith.constant 2 : i64\n"
        "%h = arith.shrsi %m, %k : i64\n%z = arith.trunci %h : i64 to KIND",
        lambda a, b: (natural(a).astype(np.int64) * b.astype(np.int64) >> 2).astype(a.dtype),
    ),
    "sitofp and fptosi": (
        "%p = arith.sitofp %a0 : KIND to f64\n%g = arith.uitofp %a1 : KIND to f64\n"
        "%m = arith.mulf %p, %g : f64\n%z = arith.fptosi %m : f64 to KIND",
        lambda a, b: clipped(a.astype(np.float64) * natural(b), a.dtype),
    ),
    "fptoui": (
        "%p = arith.sitofp %a0 : KIND to f32\n%z = arith.fptoui %p : f32 to KIND",
        lambda a, b: np.maximum(a, a.dtype.type(0)),
    ),
    "trunci to i1": (
        "%p = arith.trunci %a0 : KIND to i1\n%z = arith.select %p, %a1, %a0 : KIND",
        lambda a, b: where(a & 1 == 1, b, a),
    ),
    "extui of i1": (
        "%c = arith.cmpi slt, %a0, %a1 : KIND\n%z = arith.extui %c : i1 to KIND",
        lambda a, b: (a < b).astype(a.dtype),
    ),
    "ctpop": (
        "%z = math.ctpop %a0 : KIND",
        lambda a, b: np.bitwise_count(natural(a)).astype(a.dtype),
    ),
}


@pytest.mark.covering
@pytest.mark.parametrize("kind", ["i8", "i16"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_the_bits_of_numpy(kind: str, name: str):
    cell, meaning = OPERATIONS[name]
    text, sizes = program(kind, (21, 35), cell), (21, 35)
    a, b = drawn(kind, sizes, 3), drawn(kind, sizes, 4)
    expected = b.copy()
    with np.errstate(all="ignore"):
        expected[1:-1, 1:-1] = meaning(*neighbours(a)[:2])
    for executor in ("numpy", "cpu"):
        u, v = a.copy(), b.copy()
        timetile.compile(text, executor=executor, cache=False)(u, v, steps=1)
        assert np.array_equal(v, expected), executor


def test_arrays_without_a_sign_and_of_truth_values_are_fields_of_integers():
    sizes = (21, 35)
    a, b = natural(drawn("i8", sizes, 3)), natural(drawn("i8", sizes, 4))
    cell = OPERATIONS["divui"][0]
    for executor in ("numpy", "cpu", "ptx"):
        u, v = a.copy(), b.copy()
        text = program("i8", sizes, cell)
        compiled = timetile.compile(text, executor=executor, depth=1, cache=False)
        result = compiled(u, v, steps=1)
        x, y = neighbours(a)[:2]
        wanted = where(y == 0, 0, x // where(y == 0, 1, y))
        assert result.buffers[0] is v and np.array_equal(v[1:-1, 1:-1], wanted)
    with pytest.raises(TypeError, match="has elements of uint16, and its field of int8"):
        compiled(a.astype(np.uint16), b, steps=1)


@pytest.mark.covering
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kind", ["i8", "i16"])
@pytest.mark.parametrize("sizes", [(30, 33), (512, 512)], ids=str)
def test_kernels_assemble_and_rows_of_vectors_are_loaded_as_vectors(
    arch: str, kind: str, sizes: tuple[int, int]
):
    compiled = timetile.compile(
        program(kind, sizes, CELL), executor="planes", arch=arch, depth=2, cache=False
    )
    kernels = made_kernels_of(compiled)
    wide = any(f"ld.global.v2.s{kind[1:]}" in kernel.ptx for kernel in kernels)
    assert wide == (sizes[1] == 512)
    assert all(kernel.registers > 0 for kernel in kernels)


def test_other_uses_of_narrow_integers_are_refused():
    text = program("i8", (16, 16), "%z = math.ctlz %a0 : KIND")
    with pytest.raises(CompileError) as caught:
        timetile.compile(text, executor="numpy", cache=False)
    assert (
        "it computes with i8, a type of memory; extend cells to i32 by arith.extsi or arith.extui, "
        "and shorten results by arith.trunci" in str(caught.value)
    )


@timetile.stencil(boundary={"u": "periodic", "mask": ("keep", "mirror", "mirror")})
def crossed(mask: timetile.Field, u: timetile.Field):
    mask.next = (u[0, 1, -1] < u[0, 0, 0]) ^ mask[-1, 1, 0]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_mask_is_read_beside_a_field_with_images_farther_than_a_tile(depth: int):
    """Narrow loads are not fetched early; the others are, and bring cells around the tile."""
    rng = np.random.default_rng(2)
    mask, u = rng.random((5, 6, 36)) < 0.5, rng.random((5, 6, 36)).astype(np.float32)
    model = crossed.on(executor="planes", depth=depth, cache=False)
    found = model.advance({"mask": mask, "u": u}, 3)["mask"]
    less = np.roll(u, (-1, 1), (1, 2)) < u
    for _ in range(3):
        beyond = np.pad(mask, ((0, 0), (0, 1), (0, 0)), "symmetric")
        mask = np.concatenate([mask[:1], less[1:] ^ beyond[:-1, 1:]])
    assert np.array_equal(found, mask)
