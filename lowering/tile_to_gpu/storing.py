"""The code that writes finished planes to memory, in vectors.

Where the bounds, or the end of what a tile stores, lie within a vector, a lane stores its cells on this
side alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import StoreOp
from timetile.lowering.tile_to_gpu.ownership import owned, stored_along
from timetile.lowering.tile_to_gpu.planes import Position
from timetile.lowering.tile_to_gpu.prefetch import Staging
from timetile.lowering.tile_to_gpu.thread import Thread
from timetile.lowering.tile_to_gpu.variant import Variant
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, Row, is_word


def store(v: Variant, number: int, stage: StoreOp) -> None:
    """Write the tile's own cells of the newest plane."""
    width = v.geometry.access_width(stage.field, inside=not v.guarded)
    plane = v.queues[stage.queue].planes[0]
    rows = {row: [plane[*row, k] for k in range(v.cells)] for row in v.rows}
    if (staging := v.placement.staging.get(stage.field)) is not None:
        deal_rows(v, number, stage, staging, rows)
        return
    for line, (row, own) in enumerate(rows.items()):
        v.mark(number, line, private=True)
        cells = {start: own[start : start + width] for start in range(0, v.cells, width)}
        store_row(v, stage, row, cells, v.thread)


def store_row(
    v: Variant, stage: StoreOp, row: Row, cells: dict[int, list[SSAValue]], view: Thread
) -> None:
    """Write vectors of a row, by their first cells in the thread's view."""
    for start, vector in cells.items():
        at, width = (*row, start), len(vector)
        stride = v.cells if view is v.thread else width
        write(v, stage, at, vector, view, owned(v, at, view, width))
        cut = v.geometry.cut_cells(start, width, stride, guarded=v.guarded)
        # Both cells are cut where a beginning and an end fall on vectors at the same place of a lane.
        if v.geometry.cuts_pairs and len(cut) == 2 and is_word(stage.field):
            write_either(v, stage, at, vector, view)
            continue
        for k in cut:
            cell = (*row, start + k)
            mask = alone(v, owned(v, cell, view), owned(v, at, view, width))
            write(v, stage, cell, [vector[k]], view, mask)


def write_either(
    v: Variant, stage: StoreOp, at: Position, cells: Sequence[SSAValue], view: Thread
) -> None:
    """Write one cell of a vector of two, in the lanes of which the tile stores only that one: one access for all."""
    *row, start = at
    tiling, axis = v.geometry.axes[-1], view.axes[-1]
    second = v.known(
        ("second", start, axis.coordinate), lambda: stored_along(v, tiling, axis, start + 1)
    )
    mask = alone(v, owned(v, at, view), owned(v, (*row, start + 1), view))
    cell = v.body.select(second, cells[1], cells[0])
    write(v, stage, at, [cell], view, mask, second)


def alone(v: Variant, own: SSAValue | None, other: SSAValue | None) -> SSAValue:
    """Exactly one of two masks is on: those of a cell and of its whole vector, or of the vector's two cells."""
    assert own is not None and other is not None
    return v.known(("alone", own, other), lambda: v.setup.binary(arith.XOrIOp, own, other))


def write(
    v: Variant,
    stage: StoreOp,
    at: Position,
    cells: Sequence[SSAValue],
    view: Thread,
    mask: SSAValue | None,
    is_next: SSAValue | None = None,
) -> None:
    """
    Write consecutive cells of a row, where the mask is on, the chunk has the plane and the field has the cells; a cell
    further in the lanes where `is_next` is on.
    """
    queue, shape = v.queues[stage.queue], FieldShape.of(stage.field)
    masks = [mask, v.in_field(shape, at, view, stores=True)]
    if v.stream is not None:
        masks += [v.chunk_mask(queue.lag), v.stored_plane(shape, queue.lag)]
    index, distance = v.plane_at(shape, queue.lag, view)
    if is_next is not None:
        index = v.next_cell(index, is_next)
    offset, mask = distance + v.in_plane(shape, at), v.body.all_of(masks)
    v.body.add(simt.StoreOp(cells, v.arguments[stage.field], index, offset, mask))


def deal_rows(
    v: Variant, number: int, stage: StoreOp, staging: Staging, rows: dict[Row, list[SSAValue]]
) -> None:
    """Hand rows over, through shared memory, to the lanes that write them: a vector each in turn."""
    if not v.synchronises:
        # The rows of the step before have been read by the lanes that write them.
        v.mark(number, 0, private=True)
        v.synchronise_warp()
    for vector in staging.writes:
        row, start = vector.at[:-1], vector.at[-1]
        v.mark(number, v.rows.index(row), private=True)
        cells = rows[row][start : start + vector.width]
        v.body.add(simt.StoreOp(cells, staging.buffer, staging.written_from, vector.place))
    v.mark(number, len(v.rows), private=True)
    v.synchronise_warp()
    dealt: dict[Row, dict[int, list[SSAValue]]] = {}
    for vector in staging.reads:
        row, start = vector.at[:-1], vector.at[-1]
        types = [staging.element] * vector.width
        op = simt.LoadOp(staging.buffer, staging.read_from, vector.place, types)
        dealt.setdefault(row, {})[start] = list(v.body.add(op).cells)
    for row, cells in dealt.items():
        store_row(v, stage, row, cells, staging.view)
