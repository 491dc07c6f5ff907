"""
Branches that keep cells from reading outside a field: the code has no such read, at any depth.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import timetile
from timetile.passes.diagnostics import CompileError
from timetile.runtime.program.compiled_program import Executor

ROOM = """
!field = !stencil.field<[0,9]x[0,7]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @room(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %i = stencil.index 0 <[0, 0]>
      %j = stencil.index 1 <[0, 0]>
      %zero = arith.constant 0 : index
      %last = arith.constant 6 : index
      %top = arith.cmpi eq, %i, %zero : index
      %right = arith.cmpi eq, %j, %last : index
      %c = stencil.access %x[0, 0] : !temp
      %d = scf.if %top -> (f64) {
        scf.yield %c : f64
      } else {
        %up = stencil.access %x[-1, 0] : !temp
        %e = scf.if %right -> (f64) {
          scf.yield %up : f64
        } else {
          %far = stencil.access %x[-1, 1] : !temp
          scf.yield %far : f64
        }
        scf.yield %e : f64
      }
      %half = arith.constant 0.5 : f64
      %s = arith.addf %c, %d : f64
      %m = arith.mulf %s, %half : f64
      stencil.return %m : f64
    }
    stencil.store %v to %b(<[0, 0], [9, 7]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}
"""


def step(a: Any) -> Any:
    b = a.copy()
    for i in range(9):
        for j in range(7):
            d = a[i, j] if i == 0 else a[i - 1, j] if j == 6 else a[i - 1, j + 1]
            b[i, j] = (a[i, j] + d) * 0.5
    return b


@pytest.mark.parametrize("executor", ["cpu", "planes", "simt"])
def test_branches_keep_a_room_without_halo_from_reading_outside(executor: Executor):
    program = timetile.compile(ROOM, executor=executor, fp_contract="off", cache=False)
    a = np.random.default_rng(4).random((9, 7))
    right = a
    for _ in range(4):
        right = step(right)
    b = a.copy()
    program(a, b, 4)
    assert a.tobytes() == right.tobytes()


def test_a_read_in_no_branch_is_refused_outside():
    text = ROOM.replace(
        "%half =", "%out = stencil.access %x[-1, 0] : !temp\n      %half ="
    ).replace("arith.addf %c, %d", "arith.addf %out, %d")
    with pytest.raises(
        CompileError, match=r"outside the field's .* give the field these cells, or store fewer$"
    ):
        timetile.compile(text, executor="cpu", cache=False)


VALUE = """
!field = !stencil.field<[0,10]xf64>
!temp = !stencil.temp<?xf64>
func.func @ends(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %l = stencil.access %x[0] : !temp
    %m = arith.mulf %l, %l : f64
    stencil.return %m : f64
  }
  %w = stencil.apply(%x = %v : !temp) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %last = arith.constant 9 : index
    %inside = arith.cmpi slt, %i, %last : index
    %z = arith.constant 0.25 : f64
    %d = scf.if %inside -> (f64) {
      %r = stencil.access %x[1] : !temp
      scf.yield %r : f64
    } else {
      scf.yield %z : f64
    }
    stencil.return %d : f64
  }
  stencil.store %w to %B(<[0], [10]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("executor", ["cpu", "planes", "simt"])
def test_branches_guard_reads_of_a_value_of_another_apply(executor: Executor):
    """The value exists for cells of the field alone, and the guarded read stays within them."""
    a, b = np.random.default_rng(5).random(10), np.zeros(10)
    timetile.compile(VALUE, executor=executor, fp_contract="off", cache=False)(a, b)
    assert b.tobytes() == np.append(a[1:] * a[1:], 0.25).tobytes()


GUARDED = """
!field = !stencil.field<[0,10]xf64>
!temp = !stencil.temp<?xf64>
func.func @guarded(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %z = arith.constant 0.25 : f64
CONDITION
    %d = scf.if %c -> (f64) {
      %r = stencil.access %x[OFFSET] : !temp
      scf.yield %r : f64
    } else {
      scf.yield %z : f64
    }
    stencil.return %d : f64
  }
  stencil.store %v to %B(<[LOW], [HIGH]>) : !temp to !field
  return
}
"""

CELLS = 10

Compare = Callable[[int, int], bool]

COMPARED: dict[str, Compare] = {
    "slt": operator.lt,
    "ult": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "uge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}

JOINED: dict[str, Compare] = {
    "andi": lambda one, other: bool(one and other),
    "ori": lambda one, other: bool(one or other),
    "xori": operator.ne,
}


@dataclass(frozen=True)
class Condition:
    """A condition on a coordinate: lines of IR, by names that begin with `%c`, and its cells."""

    lines: tuple[str, ...]
    holds: tuple[bool, ...]

    def text(self, name: str) -> str:
        """The lines, for a result of a name."""
        return "\n".join(self.lines).replace("%c", name)

    def joined(self, word: str, other: Condition) -> Condition:
        """Two conditions joined by an operation of bits."""
        ends = zip(self.holds, other.holds, strict=True)
        lines = (self.text("%ca"), other.text("%cb"), f"    %c = arith.{word} %ca, %cb : i1")
        return Condition(lines, tuple(bool(JOINED[word](one, both)) for one, both in ends))


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    """The coordinate, or its remainder, compared with a number."""
    word = draw(st.sampled_from(list(COMPARED)))
    number, parts = draw(st.integers(0, CELLS)), draw(st.sampled_from((None, 2, 3)))
    places = [i if parts is None else i % parts for i in range(CELLS)]
    place = "%i" if parts is None else "%cp"
    lines = [f"    %cm = arith.constant {parts} : index\n    %cp = arith.remsi %i, %cm : index"] * (
        parts is not None
    )
    lines += [
        f"    %ck = arith.constant {number} : index",
        f"    %c = arith.cmpi {word}, {place}, %ck : index",
    ]
    compare = COMPARED[word]
    return Condition(tuple(lines), tuple(compare(place, number) for place in places))


@given(
    condition=st.recursive(
        comparisons(),
        lambda inner: st.builds(
            Condition.joined, inner, st.sampled_from(("andi", "ori", "xori")), inner
        ),
        max_leaves=3,
    ),
    offset=st.integers(-2, 2),
    low=st.integers(0, 3),
    high=st.integers(7, CELLS),
)
def test_a_branch_taken_outside_a_field_is_refused_and_no_other(
    condition: Condition, offset: int, low: int, high: int
):
    text = GUARDED.replace("CONDITION", condition.text("%c")).replace("OFFSET", str(offset))
    text = text.replace("LOW", str(low)).replace("HIGH", str(high))
    outside = [i for i in range(low, high) if condition.holds[i] and not 0 <= i + offset < CELLS]
    if outside:
        with pytest.raises(CompileError) as caught:
            timetile.compile(text, executor="numpy", cache=False)
        found = re.search(r"taken at cell \[(\d+)\], and reads \[(-?\d+)\]", str(caught.value))
        assert found is not None and int(found[1]) in outside and int(found[2]) == offset
        return
    a, b = np.random.default_rng(5).random(CELLS), np.zeros(CELLS)
    timetile.compile(text, executor="numpy", cache=False)(a, b)
    right = [a[i + offset] if condition.holds[i] else 0.25 for i in range(low, high)]
    assert b[low:high].tobytes() == np.array(right).tobytes()


def test_the_refusal_of_a_branch_names_cell_read_and_ways_out():
    lines = "    %k = arith.constant 10 : index\n    %c = arith.cmpi slt, %i, %k : index"
    text = GUARDED.replace("CONDITION", lines).replace("OFFSET", "1")
    text = text.replace("LOW", "0").replace("HIGH", "10")
    with pytest.raises(CompileError) as caught:
        timetile.compile(text, executor="cpu", cache=False)
    assert caught.value.operation == "stencil.access" and caught.value.line == 12
    assert caught.value.reason == (
        "the branch is taken at cell [9], and reads [1] from the cell, outside the read value's "
        "[0, 10) along axis 0; narrow the condition of the branch, give the field these cells, or "
        "store fewer"
    )


def test_a_condition_on_cells_is_the_word_of_the_program():
    """No cell is known to take the branch: the field's own cells decide."""
    lines = "    %m = stencil.access %x[0] : !temp\n    %c = arith.cmpf olt, %m, %z : f64"
    text = GUARDED.replace("CONDITION", lines).replace("OFFSET", "1")
    text = text.replace("LOW", "0").replace("HIGH", "10")
    a, b = np.random.default_rng(5).random(CELLS), np.zeros(CELLS)
    a[9] = 0.5
    timetile.compile(text, executor="numpy", cache=False)(a, b)
    right = [a[i + 1] if a[i] < 0.25 else 0.25 for i in range(CELLS)]
    assert b.tobytes() == np.array(right).tobytes()
