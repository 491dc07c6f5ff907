"""Reading cells of planes: from registers, other lanes, shared memory; each cell once in a step."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import LANES, CopiesAttr, LoadOp
from timetile.lowering.tile_to_gpu.beyond import read_with_value
from timetile.lowering.tile_to_gpu.halo_plans import Reach
from timetile.lowering.tile_to_gpu.halos import as_read
from timetile.lowering.tile_to_gpu.prefetch import PrefetchRing
from timetile.lowering.tile_to_gpu.queues import (
    CopiedPlane,
    EdgeBuffer,
    ExchangePlan,
    Plane,
    Position,
    PublishedPlane,
    PublishedRing,
    QueuePlan,
    SharedPlane,
)
from timetile.lowering.tile_to_gpu.rings import add_offsets
from timetile.lowering.tile_to_gpu.scopes import StepScope
from timetile.lowering.tile_to_gpu.stored_cells import load_cells
from timetile.passes.analysis.geometry.plane_geometry import Row, vector_cells


def read(step: StepScope, queue: QueuePlan, age: int, at: Position, reach: Reach) -> SSAValue:
    """
    The cell at a position of the plane of some age, right outside the bounds, too, as far as the
    reader looks: `reach` is the distance from a cell inside the bounds.
    """
    cell = read_with_value(step, queue, age, at, reach, raw(step, queue, age, at))
    return as_read(step, queue, age, at, reach, cell)


def raw(step: StepScope, queue: QueuePlan, age: int, at: Position) -> SSAValue:
    """The cell, whatever the bounds."""
    if isinstance(queue, ExchangePlan):
        return exchanged(step, queue, age, at)
    if queue.shared is not None:
        own = own_cell(step, step.planes(queue)[:1], age, at)
        return from_ring(step, queue, queue.shared, age, at) if own is None else own
    plane = own_plane(step, queue, age)
    if not any(cell[:-1] == at[:-1] for cell in plane):
        # The row lies beyond the tile, where the neighbouring tile stores the cells.
        return step.emit.add(simt.UnsetOp(queue.element)).result
    return of_lane(step, plane, at)


def own_plane(step: StepScope, queue: QueuePlan, age: int) -> Plane:
    """The thread's own cells of a plane of some age, from registers or from a ring of copies."""
    copies = copies_of(step, queue) if age else None
    return step.planes(queue)[age] if copies is None else older_copy(step, queue, copies, age)


def copies_of(step: StepScope, queue: QueuePlan) -> PrefetchRing | None:
    """The ring of copies with the older planes of a queue; None for queues of other homes."""
    load = queue.value.owner
    if isinstance(load, LoadOp) and isinstance(load.home, CopiesAttr):
        return step.code.placement.prefetch_of(load)
    return None


def older_copy(step: StepScope, queue: QueuePlan, ring: PrefetchRing, age: int) -> Plane:
    """The thread's own cells of a plane of some age, from a ring of copies."""
    own = [(*read.at[:-1], read.at[-1] + k) for read in ring.reads for k in range(read.width)]
    if (queue.value, age, own[0]) not in step.fetched:
        slot = step.slot(ring.ring, age)
        index = add_offsets(step.emit, ring.read_from, slot.index)
        values: list[SSAValue] = []
        for vector in ring.reads:
            types = [ring.element] * vector.width
            place = slot.offset + vector.place
            values += load_cells(step.emit, ring.ring.buffer, index, place, types)
        for at, value in zip(own, values, strict=True):
            step.fetched[queue.value, age, at] = value
    return {at: step.fetched[queue.value, age, at] for at in own}


def exchanged(step: StepScope, queue: ExchangePlan, age: int, at: Position) -> SSAValue:
    """The cell of an exchange, whatever the bounds."""
    source, behind = queue.source, age + queue.published_age
    match queue.published:
        case EdgeBuffer() as buffer:
            return from_edges(step, queue, buffer, age, at)
        case PublishedRing(plane=shared):
            # The ring holds the rows around the block, too.
            return from_ring(step, source, shared, behind, at)
        case PublishedPlane(plane=shared):
            slot = age + queue.delay
        case CopiedPlane(plane=shared):
            slot = behind
    own = own_cell(step, step.planes(source), behind, at)
    return from_ring(step, queue, shared, slot, at) if own is None else own


def own_cell(step: StepScope, planes: Sequence[Plane], age: int, at: Position) -> SSAValue | None:
    """The thread's own cell of a plane of some age in registers; None if there is none."""
    row, cell = at[:-1], at[-1]
    own = row in step.code.rows and 0 <= cell < step.code.cells
    return planes[age][at] if own and age < len(planes) else None


def of_lane(step: StepScope, plane: Plane, at: Position) -> SSAValue:
    """A cell of a plane held in registers, by the thread's own lane or another."""
    lane, within = divmod(at[-1], step.code.cells)
    value = plane[*at[:-1], within]
    return value if lane == 0 else shuffled(step, value, lane)


def rows_of(step: StepScope, queue: QueuePlan, age: int, rows: Sequence[Row]) -> Plane:
    """The thread's cells in the given rows of the plane `age` steps old."""
    own = [(*row, k) for row in rows for k in range(step.code.cells)]
    return {at: raw(step, queue, age, at) for at in own}


def shuffled(step: StepScope, value: SSAValue, delta: int) -> SSAValue:
    """The value of another lane."""
    key = (value, delta, ())
    if key not in step.fetched:
        step.fetched[key] = step.emit.add(simt.ShuffleOp(value, delta)).result
    return step.fetched[key]


def from_ring(
    step: StepScope, queue: QueuePlan, shared: SharedPlane, age: int, at: Position
) -> SSAValue:
    """A cell of a whole plane in shared memory, fetched with the aligned vector around the cell."""
    key = (queue.value, age, at)
    if key not in step.fetched:
        slot = step.slot(shared.ring, age, shared.base)
        index = add_offsets(step.emit, shared.own, slot.index)
        width = vector_cells(step.code.cells, shared.element)
        row, first = at[:-1], at[-1] // width * width
        offset = slot.offset + shared.offset((*row, first))
        types = [shared.element] * width
        values = load_cells(step.emit, shared.ring.buffer, index, offset, types)
        for k, value in enumerate(values):
            step.fetched[queue.value, age, (*row, first + k)] = value
    return step.fetched[key]


def from_edges(
    step: StepScope, queue: ExchangePlan, buffer: EdgeBuffer, age: int, at: Position
) -> SSAValue:
    """A cell of a neighbouring warp's edge, or of the own warp's registers."""
    row, cell = at[:-1], at[-1]
    lane, within = divmod(cell, step.code.cells)
    if buffer.edges.along_rows and row not in step.code.rows:
        value = edge_row(step, queue, buffer, age, row)[within]
        return value if lane == 0 else shuffled(step, value, lane)
    own = of_lane(step, step.planes(queue.source)[age + queue.published_age], at)
    if buffer.edges.along_rows or lane == 0:
        return own
    return edge_cell(step, queue, buffer, age, cell, own)


def edge_row(
    step: StepScope, queue: ExchangePlan, buffer: EdgeBuffer, age: int, row: Row
) -> list[SSAValue]:
    """The lane's cells of a row that a neighbouring warp published."""
    (place,) = row
    cells = step.code.cells
    # Each warp publishes 2 * `width` edge rows: row -1 is the last row of the warp before, and row
    # 2 * `width` is the first row of the warp after.
    number = place if place < 0 else 2 * buffer.edges.width + place - len(step.code.rows)
    keys = [(queue.value, age, (place, cell)) for cell in range(cells)]
    if keys[0] not in step.fetched:
        slot = step.slot(buffer.ring, age + queue.delay, buffer.base)
        index = add_offsets(step.emit, buffer.own, slot.index)
        vector = vector_cells(cells, buffer.element)
        for start in range(0, cells, vector):
            offset = slot.offset + number * buffer.edges.row_cells + start
            types = [buffer.element] * vector
            load = step.emit.add(simt.LoadOp(buffer.ring.buffer, index, offset, types))
            for k, value in enumerate(load.cells):
                step.fetched[keys[start + k]] = value
    return [step.fetched[key] for key in keys]


def edge_cell(
    step: StepScope,
    queue: ExchangePlan,
    buffer: EdgeBuffer,
    age: int,
    cell: int,
    own: SSAValue,
) -> SSAValue:
    """
    The cell shuffled from the `own` warp, or a neighbouring warp's published cell if the lane
    leaves the warp.
    """
    key = (queue.value, age, (cell,))
    if key in step.fetched:
        return step.fetched[key]
    emit = step.emit
    slot = step.slot(buffer.ring, age + queue.delay, buffer.base)
    index = add_offsets(emit, buffer.own, slot.index, buffer.lane_position)
    warp_cells = step.code.cells * LANES
    position = emit.add_int(buffer.lane_position, cell)
    if cell < 0:
        mask, offset = emit.compare("slt", position, 0), cell
    else:
        mask = emit.compare("sge", position, warp_cells)
        offset = cell - warp_cells + 2 * buffer.edges.width
    override = simt.OverrideOp([own], buffer.ring.buffer, index, slot.offset + offset, mask)
    step.fetched[key] = emit.add(override).res[0]
    return step.fetched[key]
