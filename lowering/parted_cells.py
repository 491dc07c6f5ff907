"""The cells of a block of a sweep in parts: copied to shared memory, read by parts, and stored.

```
simt.copy_async %cells[%to + 1024], %u[%i + 1024] bytes 16     a row of vectors, one a thread
%a:4 = simt.load %cells[%slot]                                 a vector of the thread's own part
simt.store %r:4 to %cells[%slot]                               results, in place of the cells
simt.store %v:4 to %s[%i + 1024]                               a row of vectors
```
1. Rows of a block are 256 vectors of memory, one a thread, in turned slots of shared memory
   (`lowering/parted_layout.py`).
2. Cells of the first and the last vector that belong to other blocks are not stored: the block's
   own cells of such a vector move one by one, and all cells of a last block with fewer places.
3. Cells of narrow types are loaded one by one, and lengthened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import i32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.gpu import BlockIdOp, DimensionAttr, DimensionEnum, ThreadIdOp
from xdsl.ir import Attribute, Block, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.simt.buffers import SHARED_SPACE, buffer_type
from timetile.dialects.syntax import element_type
from timetile.dialects.taps import Tap
from timetile.dialects.temporal.sweep import PART_PLACES
from timetile.lowering.emitter import Emitter
from timetile.lowering.parted_layout import (
    PARTS_OF_SECTION,
    PLACES_OF_SECTION,
    PartedBuffers,
    PartedLayout,
    PartPiece,
    lowest_of,
    places_of_block,
    sections_of,
)
from timetile.lowering.sweep_frames import SweepFrame
from timetile.lowering.sweep_kernels import SweepThread
from timetile.passes.targets.hardware import VECTOR_BYTES

PartCells = list[SSAValue]
"""A part's cells, in the order of the sweep."""


class CellsThread(SweepThread):
    """Emits a thread's accesses to cells, for a sweep in parts."""

    emit: Emitter
    """The builder of the block at hand."""

    def __init__(self, frame: SweepFrame, function: FuncOp):
        super().__init__(frame, function)
        emit, along = self.emit, DimensionAttr(DimensionEnum.X)
        self.thread = emit.add(arith.IndexCastOp(emit.add(ThreadIdOp(along)).result, i32)).result
        self.block = emit.add(arith.IndexCastOp(emit.add(BlockIdOp(along)).result, i32)).result
        self.bytes = 0
        self.sections, self.places_of_block = sections_of(self.op), places_of_block(self.op)
        self.staging = PartedBuffers.of(self.op)
        self.cells = {tap: self.room(staged.layout) for tap, staged in self.staging.taps.items()}
        replaced = self.staging.replaced
        self.results = self.room(self.staging.results) if replaced is None else self.cells[replaced]
        self.is_last = self.emit.compare("eq", self.block, frame.grid - 1)
        self.slots: dict[tuple[Attribute, int], SSAValue] = {}
        """Where vectors of the thread's part lie in shared memory, by type and number."""

    # Shared memory.

    def shared(self, kind: Attribute, cells: int) -> SSAValue:
        """A new slice of shared memory, which begins at a multiple of 16 bytes."""
        at, size = self.bytes, cells * CELL_BYTES[kind]
        self.bytes += -(-size // VECTOR_BYTES) * VECTOR_BYTES
        return self.emit.add(simt.SharedOp(at, buffer_type(kind, cells, SHARED_SPACE))).result

    def room(self, layout: PartedLayout) -> SSAValue:
        """A new slice for a block's cells."""
        return self.shared(layout.kind, layout.cells)

    def synchronise(self) -> None:
        """Let the threads of the block wait for each other."""
        self.emit.add(gpu.BarrierOp())

    def split(self, number: SSAValue, count: int) -> tuple[SSAValue, SSAValue]:
        """
        The remainder of a number by a power of two, and the quotient. (The assembler divides by a
        reciprocal, 15 instructions.)
        """
        emit, bits = self.emit, count.bit_length() - 1
        if not bits:
            return emit.int(0), number
        rest = emit.binary(arith.AndIOp, number, emit.int(count - 1))
        return rest, emit.binary(arith.ShRUIOp, number, emit.int(bits))

    def exclusive_or(self, a: SSAValue, b: int | SSAValue) -> SSAValue:
        """The bits set in one integer only."""
        other = self.emit.int(b) if isinstance(b, int) else b
        return a if b == 0 else self.emit.binary(arith.XOrIOp, a, other)

    def turned(self, layout: PartedLayout, row: SSAValue) -> SSAValue:
        """The number that turns the slots of a row."""
        _, number = self.split(row, layout.rows_turned_alike)
        return self.emit.remainder(number, layout.row)

    # Rows of vectors.

    def spread(self, layout: PartedLayout, number: SSAValue, cells: int) -> SSAValue:
        """Where unit `number`, some cells, lies in a block's first row."""
        emit = self.emit
        within, place = self.split(number, layout.vector // cells)
        within, place = (emit.int(0), number) if cells == layout.vector else (within, place)
        vector, row = self.split(place, layout.row)
        slot = self.exclusive_or(vector, self.turned(layout, row))
        first = emit.add_int(emit.mul_int(row, layout.row), slot)
        at = emit.mul_int(first, layout.vector)
        return at if cells == layout.vector else emit.add_int(at, within)

    def index(self, number: SSAValue) -> SSAValue:
        """The distance of cell `number` of the block from the first block's lowest cell."""
        far = self.emit.extend(self.emit.mul_int(self.block, self.places_of_block), self.width)
        cell = self.emit.extend(number, self.width)
        return (
            self.emit.add_int(far, cell) if self.op.is_ascending else self.emit.sub_int(cell, far)
        )

    def by_blocks(self, whole: Callable[[], None], rest: Callable[[int, int], None]) -> None:
        """
        Emit code for whole blocks, and for a last block with cells `low` to `high` only, in the
        order of memory.
        """
        count, outside = len(self.op.places), self.emit
        places = count % self.places_of_block
        if not places:
            whole()
            return
        low = 0 if self.op.is_ascending else self.places_of_block - places
        if self.frame.grid == 1:
            rest(low, low + places)
            return
        blocks = [Block(), Block()]
        self.emit = outside.into(blocks[0])
        rest(low, low + places)
        self.emit = outside.into(blocks[1])
        whole()
        self.emit = outside
        for block in blocks:
            block.add_op(scf.YieldOp())
        self.emit.add(scf.IfOp(self.is_last, [], [blocks[0]], [blocks[1]]))

    def rows(self, layout: PartedLayout) -> Iterator[tuple[SSAValue, SSAValue, int]]:
        """Rows of vectors: where a vector lies in shared memory, and in a field, and how far."""
        to = self.spread(layout, self.thread, layout.vector)
        index = self.index(self.emit.mul_int(self.thread, layout.vector))
        for row in range(layout.row * self.sections):
            yield to, index, row * PARTS_OF_SECTION * layout.vector

    def edge(
        self, layout: PartedLayout, vector: int, begin: int, end: int
    ) -> tuple[SSAValue, SSAValue, SSAValue]:
        """
        A vector's cells, one a thread: where a cell lies in shared memory, and in a field, and the
        mask for threads with a cell.
        """
        emit, thread = self.emit, self.thread
        to = emit.add_int(thread, layout.slot(vector) * layout.vector)
        index = self.index(emit.add_int(thread, vector * layout.vector))
        mask = emit.compare("slt", thread, end)
        if begin:
            mask = emit.binary(arith.AndIOp, mask, emit.compare("sge", thread, begin))
        return to, index, mask

    def single_cells(
        self, layout: PartedLayout, low: int, high: int
    ) -> Iterator[tuple[SSAValue, SSAValue, int, SSAValue | None]]:
        """
        A block's cells, one a thread and row: where a cell lies in shared memory, and in a field,
        how far, and the mask for cells from `low` to `high`.
        """
        emit = self.emit
        to = self.spread(layout, emit.add_int(self.thread, layout.shift), 1)
        index = self.index(emit.add_int(self.thread, layout.shift))
        for row in range(PART_PLACES * self.sections):
            far, mask = row * PARTS_OF_SECTION, None
            if (low, high) != (0, self.places_of_block):
                at = emit.add_int(self.thread, far - low)
                mask = emit.compare("ult", at, high - low)
            yield to, index, far, mask

    def gather(self, tap: Tap) -> None:
        """Copy a tap's cells to shared memory."""
        staged = self.staging.taps[tap]
        one_by_one = partial(self.gather_cells, tap)
        if staged.in_vectors:
            self.by_blocks(partial(self.gather_vectors, tap), one_by_one)
        else:
            self.by_blocks(partial(one_by_one, 0, self.places_of_block), one_by_one)

    def gather_vectors(self, tap: Tap) -> None:
        """
        Copy a tap's cells for a whole block. Other blocks' cells in the first vector come along,
        but not from the target, which other blocks write.
        """
        field, layout = self.op.sources[tap.operand], self.staging.taps[tap].layout
        buffer, source = self.cells[tap], self.buffers[field]
        start = lowest_of(self.op, field, tap.offset) - layout.shift
        is_cut = bool(layout.shift) and field in self.op.targets
        outside = self.emit
        for to, index, far in self.rows(layout):
            body = Block()
            self.emit = outside.into(body) if is_cut and not far else outside
            copy = simt.CopyAsyncOp(buffer, to, far, source, index, start + far, VECTOR_BYTES)
            self.emit.add(copy)
            if self.emit is not outside:
                self.emit.add(scf.YieldOp())
                self.emit = outside
                outside.add(scf.IfOp(outside.compare("sgt", self.thread, 0), [], [body]))
        edges = [(0, layout.shift, layout.vector)] if is_cut else []
        edges += [(layout.vectors, 0, layout.shift)] if layout.shift else []
        for edge in edges:
            to, index, mask = self.edge(layout, *edge)
            load = simt.LoadOp(source, index, start, [layout.kind], mask)
            cells = list(outside.add(load).cells)
            outside.add(simt.StoreOp(cells, buffer, to, 0, mask))

    def gather_cells(self, tap: Tap, low: int, high: int) -> None:
        """Copy a tap's cells `low` to `high` one by one, in the order of memory."""
        field, layout = self.op.sources[tap.operand], self.staging.taps[tap].layout
        buffer, source, element = self.cells[tap], self.buffers[field], element_type(field)
        start = lowest_of(self.op, field, tap.offset) - layout.shift
        for to, index, far, mask in self.single_cells(layout, low, high):
            if element == layout.kind:
                given = source, index, start + far, CELL_BYTES[element], mask
                self.emit.add(simt.CopyAsyncOp(buffer, to, far, *given))
            else:
                self.mask = mask
                cells = self.cells_at(self.emit, field, index, start + far)
                self.emit.add(simt.StoreOp(cells, buffer, to, far, None))
        self.mask = None

    def scatter(self) -> None:
        """Store the block's results."""
        (target,), layout = self.op.targets, self.staging.results
        start = lowest_of(self.op, target, (0,)) - layout.shift

        def store(
            to: SSAValue, index: SSAValue, far: int, width: int, mask: SSAValue | None
        ) -> None:
            load = simt.LoadOp(self.results, to, far, [layout.kind] * width, mask)
            cells = list(self.emit.add(load).cells)
            self.emit.add(simt.StoreOp(cells, self.buffers[target], index, start + far, mask))

        def whole() -> None:
            for to, index, far in self.rows(layout):
                is_cut = layout.shift and not far
                mask = self.emit.compare("sgt", self.thread, 0) if is_cut else None
                store(to, index, far, layout.vector, mask)
            if layout.shift:
                to, index, mask = self.edge(layout, 0, layout.shift, layout.vector)
                store(to, index, 0, 1, mask)
                to, index, mask = self.edge(layout, layout.vectors, 0, layout.shift)
                store(to, index, 0, 1, mask)

        def single(low: int, high: int) -> None:
            for to, index, far, mask in self.single_cells(layout, low, high):
                store(to, index, far, 1, mask)

        self.by_blocks(whole, single)

    # Parts.

    def slot_of(self, layout: PartedLayout, vector: int) -> SSAValue:
        """
        Where a vector begins in shared memory, in the thread's part of the first section or behind.
        """
        key = layout.kind, vector
        if key not in self.slots:
            emit, row, place = self.emit, self.thread, vector
            if not self.op.is_ascending:
                row = emit.sub_int(emit.int(PARTS_OF_SECTION * self.sections - 1), row)
            if vector == layout.row:
                row, place = emit.add_int(row, 1), 0
            slot = emit.mul_int(self.exclusive_or(self.turned(layout, row), place), layout.vector)
            self.slots[key] = emit.add_int(emit.mul_int(row, PART_PLACES), slot)
        return self.slots[key]

    def pieces(self, layout: PartedLayout) -> Iterator[tuple[PartPiece, list[int]]]:
        """A part's pieces in the order of the sweep, with the places of their cells."""
        found = list(layout.pieces())
        for piece in found if self.op.is_ascending else found[::-1]:
            places = [piece.place + k for k in range(piece.width)]
            yield piece, places if self.op.is_ascending else [PART_PLACES - 1 - k for k in places]

    def away(self, section: int) -> int:
        """Cells of shared memory from a thread's part in the first section to that in another."""
        return section * PLACES_OF_SECTION * (1 if self.op.is_ascending else -1)

    def own_cells(self, tap: Tap, section: int) -> PartCells:
        """A tap's cells in the thread's part of a section."""
        layout, found = self.staging.taps[tap].layout, dict[int, SSAValue]()
        for piece, places in self.pieces(layout):
            at, types = self.slot_of(layout, piece.vector), [layout.kind] * piece.width
            cell = self.away(section) + piece.cell
            load = self.emit.add(simt.LoadOp(self.cells[tap], at, cell, types, None))
            found |= dict(zip(places, load.cells))
        return [found[place] for place in range(PART_PLACES)]

    def keep_results(self, results: PartCells, section: int) -> None:
        """Write the results for the thread's part of a section to shared memory."""
        layout = self.staging.results
        for piece, places in self.pieces(layout):
            at, cells = self.slot_of(layout, piece.vector), [results[place] for place in places]
            cell = self.away(section) + piece.cell
            self.emit.add(simt.StoreOp(cells, self.results, at, cell, None))

    def arguments(
        self, cells: dict[Tap, PartCells], number: SSAValue, place: int
    ) -> list[SSAValue | None]:
        """The cell function's arguments at a place in the part; None for the value before."""
        op = self.op
        found = [None if op.is_result(tap) else cells[tap][place] for tap in op.tap_list]
        found += [self.scalars[scalar] for scalar in op.scalars]
        axes = op.index_axes
        return found + [self.coordinate(self.emit, axis, number, place, 0) for axis in axes]

    def wait_for_copies(self) -> None:
        """Wait until the block's copies have arrived."""
        self.emit.add(nvvm.CpAsyncCommitGroupOp())
        self.emit.add(nvvm.CpAsyncWaitGroupOp(0))
        self.synchronise()
