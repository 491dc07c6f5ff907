"""Vertical solvers printed level by level: one sweep, with the bits of the levels in order."""

from __future__ import annotations

from collections.abc import Sequence

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
@pytest.mark.parametrize("executor", ["numpy", "cpu", "planes", "ptx"])
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
