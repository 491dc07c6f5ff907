"""Vertical solvers printed level by level: one sweep, with the bits of the levels in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import timetile
from support.steps import noise
from timetile.dialects.temporal import LoopOp, SweepOp
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

SHAPE = (5, 6, 9)
FIELD = "!stencil.field<[0,5]x[0,6]x[0,9]xf64>"
TEMP = "!stencil.temp<?x?x?xf64>"


def level(to: str, k: int, reads: str, number: int, given: str = "") -> str:
    """A level: a cell of `to` less half a cell of `to` beside, times a cell of the other field."""
    other = "d" if to == "c" else "c"
    loaded = given or f"%a{number}"
    load = "" if given else f"  %a{number} = stencil.load %{to} : {FIELD} -> {TEMP}\n"
    return f"""{load}  %b{number} = stencil.load %{other} : {FIELD} -> {TEMP}
  %r{number} = stencil.apply(%x = {loaded} : {TEMP}, %y = %b{number} : {TEMP}) -> ({TEMP}) {{
    %0 = stencil.access %x[0, 0, 0] : {TEMP}
    %1 = stencil.access %x[{reads}] : {TEMP}
    %2 = stencil.access %y[0, 0, 0] : {TEMP}
    %half = arith.constant 0.5 : f64
    %3 = arith.mulf %1, %half : f64
    %4 = arith.mulf %3, %2 : f64
    %5 = arith.subf %0, %4 : f64
    stencil.return %5 : f64
  }}
  stencil.store %r{number} to %{to}(<[0, 0, {k}], [5, 6, {k + 1}]>) : {TEMP} to {FIELD}
"""


def text_of(levels: Sequence[str]) -> str:
    """A function of levels."""
    return f"func.func @solve(%c: {FIELD}, %d: {FIELD}) {{\n{''.join(levels)}  return\n}}\n"


def up_and_down() -> str:
    """A solver: c upwards, then d downwards."""
    up = [level("c", k, "0, 0, -1", k) for k in range(1, 9)]
    down = [level("d", k, "0, 0, 1", 20 - k) for k in range(7, -1, -1)]
    return text_of([*up, *down])


def compiled(text: str, executor: Executor = "numpy") -> CompiledProgram:
    return timetile.compile(text, executor=executor, fp_contract="off", cache=False)


def counts(program: CompiledProgram) -> tuple[int, int]:
    """The number of sweeps along an axis, and of updates."""
    ops = list(program.kernels.tiled.walk())
    updates = sum(len(op.updates) for op in ops if isinstance(op, LoopOp))
    return sum(isinstance(op, SweepOp) for op in ops), updates


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["numpy", "cpu", "ptx"])
def test_a_solver_printed_by_levels_is_two_sweeps_with_the_bits_of_the_levels(executor: Executor):
    program = compiled(up_and_down(), executor)
    assert counts(program) == (2, 0)
    c, d = noise(*SHAPE), noise(*SHAPE) + 1
    wanted = [c.copy(), d.copy()]
    for k in range(1, 9):
        wanted[0][..., k] -= wanted[0][..., k - 1] * 0.5 * wanted[1][..., k]
    for k in range(7, -1, -1):
        wanted[1][..., k] -= wanted[1][..., k + 1] * 0.5 * wanted[0][..., k]
    program(c, d)
    assert [a.tobytes() for a in (c, d)] == [a.tobytes() for a in wanted]


def test_levels_with_reads_beside_the_line_stay_updates():
    inner = [
        level("c", k, "0, 0, -1", k).replace(
            "stencil.access %y[0, 0, 0]", "stencil.access %y[0, 0, -1]"
        )
        for k in range(1, 9)
    ]
    assert counts(compiled(text_of(inner))) == (1, 0)
    beside = [
        each.replace("%x[0, 0, -1]", "%x[1, 0, -1]").replace("[5, 6,", "[4, 6,") for each in inner
    ]
    assert counts(compiled(text_of(beside)))[0] == 0


def test_levels_of_one_snapshot_stay_updates():
    """All levels read the field as it was before the first."""
    load = f"  %old = stencil.load %c : {FIELD} -> {TEMP}\n"
    levels = [level("c", k, "0, 0, -1", k, given="%old") for k in range(1, 9)]
    program = compiled(text_of([load, *levels]))
    assert counts(program)[0] == 0
    c, d = noise(*SHAPE), noise(*SHAPE)
    wanted = c.copy()
    wanted[..., 1:] -= c[..., :-1] * 0.5 * d[..., 1:]
    program(c, d)
    assert c.tobytes() == wanted.tobytes()


def test_another_store_between_levels_parts_them():
    levels = [level("c", k, "0, 0, -1", k) for k in range(1, 9)]
    other = level("d", 4, "0, 0, 1", 30)
    assert counts(compiled(text_of([*levels[:4], other, *levels[4:]])))[0] == 0
    assert counts(compiled(text_of([*levels, other])))[0] == 1


LEVELS, PART = "memref<9x5x6xf64>", "memref<5x6xf64, strided<[6, 1], offset: ?>>"
PLANE, PLANE_TEMP = "!stencil.field<[0,5]x[0,6]xf64>", "!stencil.temp<?x?xf64>"


def viewed(name: str, memory: str, at: str) -> str:
    """The values of a level of a memref, by a view."""
    return f"""
    %{name}_v = memref.subview %{memory}[%{at}, 0, 0] [1, 5, 6] [1, 1, 1] : {LEVELS} to {PART}
    %{name}_f = stencil.external_load %{name}_v : {PART} -> {PLANE}
    %{name} = stencil.load %{name}_f : {PLANE} -> {PLANE_TEMP}"""


def by_views() -> str:
    """A solver upwards whose levels are views at the number of a loop, with a surface and a row."""
    return f"""
func.func @solve(%c: {LEVELS}, %d: {LEVELS}, %s: {PLANE}) {{
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %k = %c1 to %c9 step %c1 {{
    %up = arith.subi %c9, %k : index
    %below = arith.subi %k, %c1 : index
    {viewed("x", "c", "k")}{viewed("y", "c", "below")}{viewed("z", "d", "up")}
    %w = stencil.load %s : {PLANE} -> {PLANE_TEMP}
    %r = stencil.apply(%a = %x : {PLANE_TEMP}, %b = %y : {PLANE_TEMP}, %e = %z : {PLANE_TEMP},
                       %g = %w : {PLANE_TEMP}) -> ({PLANE_TEMP}) {{
      %0 = stencil.access %a[0, 0] : {PLANE_TEMP}
      %1 = stencil.access %b[0, 0] : {PLANE_TEMP}
      %2 = stencil.access %e[0, 1] : {PLANE_TEMP}
      %3 = stencil.access %g[1, 0] : {PLANE_TEMP}
      %4 = stencil.index 0 <[0, 0]>
      %5 = arith.index_cast %4 : index to i64
      %row = arith.sitofp %5 : i64 to f64
      %6 = arith.mulf %1, %2 : f64
      %7 = arith.subf %0, %6 : f64
      %8 = arith.mulf %row, %3 : f64
      %9 = arith.addf %7, %8 : f64
      stencil.return %9 : f64
    }}
    stencil.store %r to %x_f(<[0, 0], [4, 5]>) : {PLANE_TEMP} to {PLANE}
  }}
  return
}}
"""


def test_levels_viewed_at_the_number_of_a_loop_are_levels_of_a_field():
    c, d, surface = noise(9, 5, 6), noise(9, 5, 6) + 1, noise(5, 6)
    program = compiled(by_views(), "cpu")
    wanted = c.copy()
    row = np.arange(4.0)[:, None]
    for k in range(1, 9):
        change = wanted[k - 1, :4, :5] * d[9 - k, :4, 1:]
        wanted[k, :4, :5] = wanted[k, :4, :5] - change + row * surface[1:, :5]
    program(c, d, surface)
    assert c.tobytes() == wanted.tobytes()
