"""Kernels of sweeps with few lines: cells of many places ahead are on their way to shared memory.

A thread has a line, as in `sweep_kernels.py`. Few threads hide the time of memory with many cells
under way, more cells than registers hold. A thread copies the cells of a turn of places to a ring
in shared memory, some turns ahead of reading. Other threads have cells of the ring of their own:
```
scf.for %k = 0 to 120 step 8 { copies of the turn at %k; commit }
scf.for %k = 0 to 8064 step 8 iter_args(%before) {
  nvvm.cp.async.wait.group 14
  %u0 = simt.load %ring[%slot]   %u1 = simt.load %ring[%slot + 32]   ...
  copies of the turn at %k + 120; commit
  ...
  simt.store %c0 to %c[%i]
}
```
1. The cells of a tap at a place lie side by side for the threads of a block: a warp reads each bank
   once.
2. The turn ahead goes to the slot of the turn before: all cells of the slot are used.
3. The last turns copy nothing; single places behind the last turn read memory.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.gpu import DimensionAttr, DimensionEnum, ThreadIdOp
from xdsl.ir import Block, Region, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.simt.buffers import SHARED_SPACE, buffer_type
from timetile.dialects.syntax import cell_type, element_type
from timetile.dialects.taps import Tap
from timetile.lowering.emitter import Emitter
from timetile.lowering.sweep_frames import SweepFrame
from timetile.lowering.sweep_kernels import SweepThread, ordinary_number
from timetile.lowering.sweep_staging import bytes_of
from timetile.lowering.tile_to_gpu.stored_cells import load_cells, override_cells


class RingThread(SweepThread):
    """Emits a thread's code for a sweep with a ring of turns in shared memory."""

    def __init__(self, frame: SweepFrame, function: FuncOp):
        super().__init__(frame, function)
        self.buffer_of: dict[Tap, SSAValue] = {}
        self.thread = self.emit.int(0)

    def field_of(self, tap: Tap) -> SSAValue:
        """The field of a tap."""
        return self.op.sources[tap.operand]

    def place_rings(self) -> None:
        """Name the parts of shared memory."""
        emit, frame, at = self.emit, self.frame, 0
        along = DimensionAttr(DimensionEnum.X)
        self.thread = emit.add(arith.IndexCastOp(emit.add(ThreadIdOp(along)).result, i32)).result
        cells = frame.ring * frame.places_of_turn * frame.threads
        for tap in frame.loads:
            kind = buffer_type(element_type(self.field_of(tap)), cells, SHARED_SPACE)
            self.buffer_of[tap] = emit.add(simt.SharedOp(at, kind)).result
            at += cells * bytes_of(self.field_of(tap))

    def go(self, carried: list[SSAValue]) -> None:
        """Emit all places of the line: turns that copy, turns that only read, single places."""
        self.place_rings()
        emit, frame, turn = self.emit, self.frame, self.frame.places_of_turn
        count, ahead = len(self.op.places), (frame.ring - 1) * turn
        whole = count // turn * turn
        body = Block(arg_types=[i32])
        inner = emit.into(body)
        self.copy_turn(inner, body.args[0], self.indices(inner, body.args[0]), 0)
        inner.add(scf.YieldOp())
        bounds = (emit.int(0), emit.int(ahead), emit.int(turn))
        emit.add(scf.ForOp(*bounds, [], Region(body)))
        carried = self.ring_loop(0, whole - ahead, carried, copies=True)
        emit.add(nvvm.CpAsyncWaitGroupOp(0))
        carried = self.ring_loop(whole - ahead, whole, carried, copies=False)
        self.loop(whole, count, 1, carried)

    def ring_loop(
        self, low: int, high: int, carried: list[SSAValue], *, copies: bool
    ) -> list[SSAValue]:
        """The turns from place `low` to `high`; returns the kept cells after the last."""
        if low == high:
            return carried
        emit, turn = self.emit, self.frame.places_of_turn
        body = Block(arg_types=[i32, *(value.type for value in carried)])
        inner = emit.into(body)
        kept = self.ring_turn(inner, body.args[0], list(body.args[1:]), copies=copies)
        inner.add(scf.YieldOp(*kept))
        bounds = (emit.int(low), emit.int(high), emit.int(turn))
        return list(emit.add(scf.ForOp(*bounds, carried, Region(body))).results)

    def ring_turn(
        self, emit: Emitter, number: SSAValue, carried: list[SSAValue], *, copies: bool
    ) -> list[SSAValue]:
        """A turn of places; returns the kept cells."""
        frame, turn = self.frame, self.frame.places_of_turn
        if copies:
            emit.add(nvvm.CpAsyncWaitGroupOp(frame.ring - 2))
        index, slot = self.indices(emit, number), self.slot(emit, number)
        loaded: list[dict[Tap, list[SSAValue]]] = [{} for _ in range(turn)]
        for place, cells in enumerate(loaded):
            for tap in frame.loads:
                cells[tap] = self.read(emit, tap, slot, place)
        if copies:
            self.copy_turn(emit, number, index, (frame.ring - 1) * turn)
        return self.compute_and_store(emit, number, index, loaded, carried)

    def slot(self, emit: Emitter, number: SSAValue) -> SSAValue:
        """Where the cells of a thread at a place begin in a ring."""
        place, _ = emit.split(number, self.frame.ring * self.frame.places_of_turn)
        return emit.add_int(emit.mul_int(place, self.frame.threads), self.thread)

    def read(self, emit: Emitter, tap: Tap, slot: SSAValue, place: int) -> list[SSAValue]:
        """The cell of a tap at a place of a turn, from shared memory."""
        field, at = self.field_of(tap), place * self.frame.threads
        element, buffer = element_type(field), self.buffer_of[tap]
        if self.mask is None:
            return load_cells(emit, buffer, slot, at, [element])
        none = ordinary_number(emit, cell_type(field))
        return override_cells(emit, [none], element, buffer, slot, at, self.mask)

    def copy_turn(
        self, emit: Emitter, number: SSAValue, index: dict[SSAValue, SSAValue], ahead: int
    ) -> None:
        """Start the copies for the turn `ahead` places further on, as one group."""
        slot = self.slot(emit, emit.add_int(number, ahead))
        for place in range(self.frame.places_of_turn):
            for tap in self.frame.loads:
                field = self.field_of(tap)
                source = self.offset(field, ahead + place, tap.offset)
                target, size = place * self.frame.threads, bytes_of(field)
                given = self.buffers[field], index[field], source, size, self.mask
                emit.add(simt.CopyAsyncOp(self.buffer_of[tap], slot, target, *given))
        emit.add(nvvm.CpAsyncCommitGroupOp())
