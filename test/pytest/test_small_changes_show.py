"""
Laws that a small slip of a pass would break without a word: each test runs a program in which the
slip changes cells.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Block, SSAValue

import timetile
from support.catalogue import entry, star, taps, two_buffers
from support.description import Program
from support.programs import program_text
from support.schedules import (
    GRID,
    Schedule,
    block_plane,
    check,
    device_plane,
    warp_row,
)
from timetile.dialects import simt
from timetile.dialects.tile import Sync
from timetile.lowering.emitter import Emitter
from timetile.lowering.threads.carry_cells import CarryCellsPass
from timetile.lowering.tile_to_gpu.chunks import inner_column, rim_column
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.arithmetic.cells import evaluate
from timetile.runtime.loading.modules import load_text


def test_a_ring_of_copies_keeps_the_planes_of_all_steps_between_two_barriers():
    """One step in three has a barrier: two more slots than planes read and on the way."""
    schedule = Schedule(
        "three-steps-a-barrier",
        device_plane((2, 2), 2, 2),
        Buffering(ahead=1),
        Streaming(sync=Sync.GRID, every=3),
        planes=None,
        shown=GRID,
    )
    program = entry("heat-3d").make((7, 9, 22))
    compiled = timetile.compile(
        program_text(program),
        executor="planes",
        passes=schedule.passes(2),
        fp_contract="off",
        cache=False,
    )
    # A ring that is too short is refused where the kernel's threads are made.
    assert compiled.kernels.kernel("run_d2").blocks_per_tile == 2


@pytest.mark.parametrize("counts", [(2,), (7,), (3, 3), (5, 4), (4, 7), (3, 9)])
def test_every_column_of_tiles_has_one_number_on_the_rim_or_inside(counts: tuple[int, ...]):
    """The emitted operations, evaluated for all numbers of both kinds."""
    everything = np.arange(prod(counts)).reshape(counts)
    inside = everything[tuple(slice(1, -1) for _ in counts)].ravel()
    rim = np.setdiff1d(everything, inside)
    for column_of, wanted in ((rim_column, rim), (inner_column, inside)):
        block = Block(arg_types=[i32])
        found = column_of(Emitter(block), block.args[0], list(counts))
        values: dict[SSAValue, NDArray[Any]] = {
            block.args[0]: np.arange(wanted.size, dtype=np.int32)
        }
        for op in block.ops:
            values[op.results[0]] = evaluate(op, [values[operand] for operand in op.operands])
        assert sorted(values[found].tolist()) == wanted.tolist()


# Differences of neighbours: a cell's difference is the neighbour's, turned round.


def differences(kind: str) -> Program:
    """Both cells of a face compute the difference, and use the difference with its sign."""
    c, n, s, w, e = taps(2)
    cells = {
        "sum": ((e - c) + (w - c)) * 0.5 + ((n - c) + (s - c)),
        "square and product": (e - c) * (e - c) + (w - c) * 0.5 + (w - c) * (w - c) + (n - s),
    }
    return two_buffers((9, 135), "f64", star(2, 1), cells[kind])


@pytest.mark.parametrize("kind", ["sum", "square and product"])
def test_a_difference_serves_for_its_opposite_only_where_the_sign_is_lost(kind: str):
    check(differences(kind), Schedule("cells-in-a-row", warp_row(), planes=5), 2, "ptx")


# Fields of fewer axes.

PROFILES = """
!field = !stencil.field<[0,6]x[0,40]xf64>
!temp = !stencil.temp<?x?xf64>
!line = !stencil.field<[0,40]xf64>
!values = !stencil.temp<?xf64>
func.func @faded(%A: !field, %w: !line, %q: !line, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %d = stencil.load %w : !line -> !values
    %g = stencil.load %q : !line -> !values
    %v = stencil.apply(%x = %u : !temp, %e = %d : !values, %f = %g : !values) -> (!temp) {
      %c = stencil.access %x[0, 0] : !temp
      %r = stencil.access %e[_, 0] : !values
      %s = stencil.access %f[_, 0] : !values
      %m = arith.mulf %c, %r : f64
      %p = arith.addf %m, %s : f64
      stencil.return %p : f64
    }
    stencil.store %v to %A(<[0, 0], [6, 40]>) : !temp to !field
  }
  return
}
"""


def test_every_field_of_fewer_axes_is_read_from_its_own_memory():
    random = np.random.default_rng(4)
    a, w, q = random.random((6, 40)), random.random(40), random.random(40)
    program = timetile.compile(PROFILES, executor="planes", fp_contract="off", cache=False)
    right = a.copy()
    for _ in range(5):
        right = right * w + q
    program(a, w, q, 5)
    assert a.tobytes() == right.tobytes()


def test_levels_read_a_coefficient_at_their_own_plane():
    """Two axes in a plane: every level loads the coefficient as late as the level runs."""
    schedule = Schedule("levels", block_plane((4, 2), (3, 1)), planes=4)
    check(entry("wave-3d").make((9, 11, 17)), schedule, 2, "planes")


# Cells at places, and unrolled cells.

MOVED = """
!field = !stencil.field<[-3,43]xf64>
!temp = !stencil.temp<?xf64>
func.func @moved(%A: !field, %B: !field, %shift: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %s = %shift : index) -> (!temp) {
      %i = stencil.index 0 <[0]>
      %k = arith.addi %i, %s : index
      %r = stencil.dyn_access %x[%k] in <[-3]> : <[3]> : !temp
      stencil.return %r : f64
    }
    stencil.store %v to %B(<[0], [40]>) : !temp to !field
  }
  return
}
"""


@pytest.mark.parametrize("shift", range(-3, 4))
def test_accesses_at_places_reach_both_ends_of_the_extent(shift: int):
    a, b = np.arange(46.0), np.zeros(46)
    timetile.compile(MOVED, executor="planes", cache=False)(a, b, shift, 1)
    assert b[3:43].tobytes() == a[3 + shift : 43 + shift].tobytes()


UNROLLED = """
!field = !stencil.field<[-6,46]xf64>
!temp = !stencil.temp<?xf64>
func.func @alternates(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %0 = stencil.access %x[0] : !temp
    %1 = stencil.access %x[2] : !temp
    %2 = stencil.access %x[-1] : !temp
    stencil.return %0, %1, %2 unroll <[3]> : f64, f64, f64
  }
  stencil.store %v to %B(<[BEGIN], [END]>) : !temp to !field
  return
}
"""


@pytest.mark.parametrize("begin", [-2, -1, 0, 1, 2])
def test_unrolled_cells_are_counted_from_the_first_stored_cell(begin: int):
    end = begin + 39
    text = UNROLLED.replace("BEGIN", str(begin)).replace("END", str(end))
    a, b = np.arange(52.0), np.zeros(52)
    timetile.compile(text, executor="planes", cache=False)(a, b)
    for cell in range(begin, end):
        # Of three cells at `first`, the values are those of `first`, `first + 2` and `first - 1`.
        first = cell - (cell - begin) % 3
        source = (first, first + 2, first - 1)[cell - first]
        assert b[cell + 6] == a[source + 6]


# Quotients.


def divided_by(divisor: float) -> timetile.Model:
    """A step that divides every cell by a constant."""

    @timetile.stencil
    def divided(u: timetile.Field) -> None:
        u.next = u[0] / divisor

    return divided.on(executor="numpy")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_by_constants_are_correctly_rounded(dtype: Any):
    """A product with a rounded reciprocal is off by a bit for some of the numerators."""
    numerators = np.arange(1, 65, dtype=dtype)
    for divisor in (1.5, 3.0, 0.75, 6.0, -12.0, 0.1, 5.0, 7.0, 4.0, 0.125, 192.0):
        found = divided_by(divisor).advance({"u": numerators}, steps=1)["u"]
        np.testing.assert_array_equal(found, numerators / dtype(divisor))


# Differences carried from turn to turn of a loop.

CARRIED = """
"gpu.module"() <{sym_name = "kernels"}> ({
  "gpu.func"() <{function_type = (i32, memref<4096xf64, 1>, f64, f64, f64) -> (), kernel}> ({
  ^bb0(%n: i32, %field: memref<4096xf64, 1>, %a: f64, %b: f64, %c: f64):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %u0, %v0 = scf.for %i = %zero to %n step %one iter_args(%u = %a, %v = %b) -> (f64, f64) : i32 {
      %d = arith.subf FIRST : f64
      %p = math.fma USED, %c : f64
      %w = arith.mulf %v, %c : f64
      %e = arith.subf LATER : f64
      %q = math.fma %e, %e, %p : f64
      simt.store %q to %field[%i + 0]
      scf.yield %v, %w : f64, f64
    }
    %left = arith.subf BEHIND : f64
    %after = AFTER
    simt.store %after to %field[%n + 0]
    "gpu.return"() : () -> ()
  }) {sym_name = "loops"} : () -> ()
}) : () -> ()
"""


def stored_by(module: ModuleOp, turns: int) -> list[float]:
    """The stored values of a kernel with a loop of some turns."""
    (function,) = (op for op in module.walk() if op.name == "gpu.func")
    block = function.regions[0].block
    values: dict[SSAValue, Any] = dict(zip(block.args[2:], (2.0, 5.0, 0.5), strict=True))
    values[block.args[0]] = turns
    found: list[float] = []

    def run(ops: Block) -> list[Any]:
        for op in ops.ops:
            operands = [values.get(operand) for operand in op.operands]
            if isinstance(op, scf.ForOp):
                held = operands[3:]
                for _ in range(turns):
                    values.update(zip(op.body.block.args[1:], held, strict=True))
                    held = run(op.body.block)
                values.update(zip(op.results, held, strict=True))
            elif isinstance(op, simt.StoreOp):
                found.extend(values[cell] for cell in op.cells)
            elif isinstance(op, scf.YieldOp):
                return operands
            elif op.name != "gpu.return":
                values[op.results[0]] = evaluate(op, [np.asarray(each) for each in operands])
        return []

    run(block)
    return [float(value) for value in found]


NEXT_LOOP = """scf.for %k = %zero to %n step %one iter_args(%z = %left) -> (f64) : i32 {
      %y = arith.addf %z, %c : f64
      scf.yield %y : f64
    }"""
"""A loop behind the loop, which keeps the sign of what it is handed."""


@pytest.mark.parametrize(
    "after", ["arith.addf %left, %c : f64", "arith.mulf %left, %left : f64", NEXT_LOOP]
)
@pytest.mark.parametrize("behind", ["%v0, %u0", "%u0, %v0"])
@pytest.mark.parametrize("later", ["%v, %w", "%w, %v"])
@pytest.mark.parametrize("first", ["%v, %u", "%u, %v"])
@pytest.mark.parametrize("used", ["%d, %d", "%d, %c"])
def test_a_difference_carried_to_the_next_turn_has_its_sign(
    used: str, first: str, later: str, behind: str, after: str
):
    text = CARRIED.replace("FIRST", first).replace("LATER", later).replace("USED", used)
    text = text.replace("BEHIND", behind).replace("AFTER", after)
    module = load_text(text)
    right = stored_by(module, 3)
    CarryCellsPass().apply(Context(), module)
    assert len(right) == 4 and stored_by(module, 3) == right


AROUND = """
    %x0, %y0 = scf.for %o = %zero to %n step %one iter_args(%x = %a, %y = %b)
        -> (f64, f64) : i32 {"""

INNER = """
      %uK, %vK = scf.for %iK = %zero to %n step %one iter_args(%u = %U, %v = %V)
          -> (f64, f64) : i32 {
        %d = arith.subf FIRST : f64
        %p = math.fma USED, %c : f64
        %w = arith.mulf %v, %c : f64
        %e = arith.subf LATER : f64
        %q = math.fma %e, %e, %p : f64
        simt.store %q to %field[%iK + 0]
        scf.yield %v, %w : f64, f64
      }"""


@pytest.mark.parametrize("used", [("%d, %d", "%d, %d"), ("%d, %c", "%d, %d"), ("%d, %d", "%d, %c")])
def test_loops_in_a_loop_hand_a_difference_on_with_its_sign(used: tuple[str, str]):
    """Two loops in a loop: the differences of one or of both enter squares alone."""
    begin, _, rest = CARRIED.partition("    %u0, %v0")
    end, carried = "    " + rest[rest.index('"gpu.return"') :], 0
    for one, *others in product(("%w, %v", "%v, %w"), ("%v, %u", "%u, %v"), ("%w, %v", "%v, %w")):
        orders = ("%v, %u", one), others
        loops = [
            INNER.replace("FIRST", first).replace("LATER", later).replace("USED", values)
            for (first, later), values in zip(orders, used, strict=True)
        ]
        loops[0] = loops[0].replace("K", "1").replace("%U", "%x").replace("%V", "%y")
        loops[1] = loops[1].replace("K", "2").replace("%U", "%u1").replace("%V", "%v1")
        text = begin + AROUND + "".join(loops)
        module = load_text(f"{text}\n      scf.yield %u2, %v2 : f64, f64\n    }}\n{end}")
        before, right = str(module), stored_by(module, 3)
        CarryCellsPass().apply(Context(), module)
        assert len(right) == 18 and stored_by(module, 3) == right
        carried += str(module) != before
    assert carried == (8 if used[0] == used[1] else 1)
