"""
Work of the host at points as lists of kernels: the bits of the steps of the host, which the
executor `numpy` runs one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import timetile
from timetile.dialects.temporal import LoopOp
from timetile.passes.diagnostics import CompileError
from timetile.passes.raising import point_work
from timetile.runtime.executors.checked_memory import CellsMemory
from timetile.runtime.executors.runners import PlanesRunner
from timetile.runtime.host.point_loops import RunWithLists

FIELD = "!stencil.field<[-1,13]x[-1,11]xf64>"
ENTRIES, STEPS = 24, 11

SURVEY = """
func.func @survey(%p : F, %u : F, %v : F, %c : f64, %place : memref<24xindex>,
    %weight : memref<24xf64>, %wave : memref<40xf64>, %at : memref<2x6xindex>,
    %heard : memref<40x3xf64>, %kept : memref<6xf64>, %loud : memref<6xi64>, %count : index,
    %first : index, %steps : index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %six = arith.constant 6 : index
  %none = arith.constant 0.0 : f64
  %half = arith.constant 0.5 : f64
  %end:3 = scf.for %t = %zero to %steps step %one iter_args(%x = %p, %y = %u, %z = %v)
      -> (F, F, F) {
    %now = arith.addi %first, %t : index
    %l = stencil.load %y : F -> T
    %o = stencil.load %x : F -> T
    %r = stencil.apply(%a = %l : T, %b = %o : T, %k = %c : f64) -> (T) {
      %w = stencil.access %a[0, -1] : T
      %e = stencil.access %a[1, 0] : T
      %s = arith.addf %w, %e : f64
      %m = stencil.access %b[0, 0] : T
      %d = arith.subf %s, %m : f64
      %f = arith.mulf %k, %d : f64
      stencil.return %f : f64
    }
    stencil.store %r to %z(<[0, 0], [12, 10]>) : T to F
    %cells = builtin.unrealized_conversion_cast %z : F to memref<168xf64>
    %f = memref.load %wave[%now] : memref<40xf64>
    %cell = arith.constant 89 : index
    %early = builtin.unrealized_conversion_cast %y : F to memref<168xf64>
    %e0 = memref.load %early[%cell] : memref<168xf64>
    memref.store %e0, %kept[%three] : memref<6xf64>
    scf.for %k = %zero to %count step %one {
      %i = memref.load %place[%k] : memref<24xindex>
      %g = memref.load %weight[%k] : memref<24xf64>
      %is = arith.cmpf une, %g, %none : f64
      scf.if %is {
        %h = arith.mulf %g, %f : f64
        %old = memref.load %cells[%i] : memref<168xf64>
        %new = arith.subf %old, %h : f64
        memref.store %new, %cells[%i] : memref<168xf64>
      }
    }
    "scf.parallel"(%two, %three, %six, %six, %two, %one)
        <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
    ^bb0(%i: index, %j: index):
      %q = builtin.unrealized_conversion_cast %z : F to memref<14x12xf64>
      %z0 = "memref.atomic_rmw"(%f, %q, %i, %j) <{kind = 0 : i64}>
        : (f64, memref<14x12xf64>, index, index) -> f64
      scf.reduce
    }) : (index, index, index, index, index, index) -> ()
    scf.for %j = %zero to %three step %one {
      memref.store %none, %heard[%now, %j] : memref<40x3xf64>
      scf.for %k = %zero to %two step %one {
        %n = arith.muli %j, %two : index
        %i = arith.addi %n, %k : index
        %row = memref.load %at[%zero, %i] : memref<2x6xindex>
        %column = memref.load %at[%one, %i] : memref<2x6xindex>
        %new = builtin.unrealized_conversion_cast %z : F to memref<14x12xf64>
        %old = builtin.unrealized_conversion_cast %y : F to memref<14x12xf64>
        %older = builtin.unrealized_conversion_cast %x : F to memref<14x12xf64>
        %n0 = memref.load %new[%row, %column] : memref<14x12xf64>
        %n1 = memref.load %old[%column, %row] : memref<14x12xf64>
        %n2 = memref.load %older[%row, %column] : memref<14x12xf64>
        %m0 = arith.addf %n0, %n1 : f64
        %m1 = arith.mulf %m0, %n2 : f64
        %sum = memref.load %heard[%now, %j] : memref<40x3xf64>
        %all = arith.addf %sum, %m1 : f64
        memref.store %all, %heard[%now, %j] : memref<40x3xf64>
        %before = memref.load %kept[%i] : memref<6xf64>
        %part = arith.mulf %before, %half : f64
        %after = arith.addf %part, %n1 : f64
        memref.store %after, %kept[%i] : memref<6xf64>
        %is = arith.cmpf ogt, %after, %half : f64
        scf.if %is {
          %times = memref.load %loud[%i] : memref<6xi64>
          %once = arith.constant 1 : i64
          %more = arith.addi %times, %once : i64
          memref.store %more, %loud[%i] : memref<6xi64>
        }
      }
    }
    scf.yield %y, %z, %x : F, F, F
  }
  return
}
"""
"""
A wave with a source of weights, a source of a box, and receivers that read three levels, sums of
earlier steps, and conditions.
"""


def survey() -> str:
    """The program's text."""
    temp = "!stencil.temp<?x?xf64>"
    return SURVEY.replace(" T", f" {temp}").replace("(T", f"({temp}").replace(
        " F", f" {FIELD}"
    ).replace("(F", f"({FIELD}")  # fmt: skip


def arguments(*, beside: bool = False, seed: int = 5) -> list[Any]:
    """
    The arguments of a run, drawn by a seed: entries in one cell, of weight 0, and cells without an
    update; `beside`: values are added to such cells, too.
    """
    rng = np.random.default_rng(seed)
    fields = [rng.uniform(-1, 1, (14, 12)) for _ in range(3)]
    rows, columns = rng.integers(1, 13, ENTRIES), rng.integers(1, 11, ENTRIES)
    rows[:6], columns[:6] = 7, 5
    if beside:
        rows[9] = 0
    weights = rng.uniform(-1, 1, ENTRIES)
    weights[10:13] = 0
    at = rng.integers(1, 11, (2, 6))
    at[:, 0], at[:, 1], at[:, 2] = (0, 5), (5, 11), 7
    return [
        *fields, 0.4, rows * 12 + columns, weights, rng.uniform(-1, 1, 40), at,
        rng.uniform(-1, 1, (40, 3)), rng.uniform(-1, 1, 6), np.zeros(6, np.int64), ENTRIES - 3, 4,
    ]  # fmt: skip


def bits(
    program: timetile.CompiledProgram, steps: int, *, beside: bool = False, seed: int = 5
) -> list[bytes]:
    """The bits of all memory after a run."""
    given = arguments(beside=beside, seed=seed)
    program(*given, steps)
    return [np.asarray(value).tobytes() for value in given]


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The steps of each piece run as kernels; tables have four rows."""
    found: list[int] = []
    piece = RunWithLists.piece

    def noted(run: RunWithLists, steps: range, carried: list[Any]) -> list[Any]:
        found.append(len(steps))
        return piece(run, steps, carried)

    monkeypatch.setattr(RunWithLists, "piece", noted)
    monkeypatch.setattr(point_work, "MOST_ROWS", 4)
    yield found


def test_sources_and_receivers_of_the_host_have_the_bits_of_single_steps(pieces: list[int]):
    program = timetile.compile(survey(), executor="planes", depth=2, cache=False)
    assert not any("points" in remark for remark in program.kernels.remarks)
    judge = timetile.compile(survey(), executor="numpy", cache=False)
    assert bits(program, STEPS) == bits(judge, STEPS)
    # The loop left to the host, a step at a time, is no reason to speak of the depth.
    assert not any("no launch advances" in remark for remark in program.kernels.remarks)
    assert pieces == [4, 3, 4]
    pieces.clear()
    # An index outside a row is no cell of the next row.
    given = arguments()
    given[7][1, 3] = 12
    with pytest.raises(CompileError, match="index 12 along axis 1, and there are 12"):
        program(*given, STEPS)
    assert not pieces
    # Values added to cells that no update writes are work of the host.
    assert bits(program, STEPS, beside=True) == bits(judge, STEPS, beside=True)
    assert not pieces


def test_runs_at_equal_places_share_lists(monkeypatch: pytest.MonkeyPatch):
    kept: dict[Any, RunWithLists] = {}

    def nothing(memory: CellsMemory, given: object) -> None:
        """The memory of a run keeps no lists of its own."""

    lists = property(lambda memory: kept, nothing)
    monkeypatch.setattr(CellsMemory, "point_lists", lists, raising=False)
    monkeypatch.setattr(point_work, "MOST_ROWS", 4)
    agree, compared = PlanesRunner.halos_agree, list[LoopOp]()

    def noted(runner: PlanesRunner, loop: LoopOp, buffers: Sequence[Any]) -> bool:
        compared.append(loop)
        return agree(runner, loop, buffers)

    monkeypatch.setattr(PlanesRunner, "halos_agree", noted)
    program = timetile.compile(survey(), executor="planes", depth=2, cache=False)
    judge = timetile.compile(survey(), executor="numpy", cache=False)
    taken: list[RunWithLists] = []
    for seed, steps in ((5, 5), (5, 6), (6, 5)):
        assert bits(program, steps, seed=seed) == bits(judge, steps, seed=seed)
        taken += kept.values()
    assert taken[0] is taken[1] is not taken[2]
    # Once a run of two pieces.
    assert len(compared) == 3
