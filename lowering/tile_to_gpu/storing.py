"""The code that writes finished planes to memory."""

from __future__ import annotations

from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.tile import StoreOp
from timetile.lowering.tile_to_gpu.prefetch import Staging
from timetile.lowering.tile_to_gpu.thread import Thread
from timetile.lowering.tile_to_gpu.variant import Variant
from timetile.passes.analysis.geometry import FieldShape


def store(v: Variant, number: int, stage: StoreOp) -> None:
    """Write the tile's own cells of the newest plane."""
    queue, width = v.queues[stage.queue], v.geometry.access_width(stage.field)
    staging = v.placement.staging.get(stage.field)
    if v.guarded and not v.geometry.bounds_cut_between(width):
        # Few tiles; cells that the bounds cut from their vector are stored alone.
        width, staging = 1, None
    plane = queue.planes[0]
    for row in range(v.rows):
        # Only the own warp sees what is stored, or handed over before.
        v.body.add(simt.PhaseOp(v.turn, number, row, inner=True))
        if staging is None:
            cells = {
                start: [plane[row, start + k] for k in range(width)]
                for start in range(0, v.cells, width)
            }
            store_row(v, stage, row, cells, v.thread)
        else:
            if row or not v.synchronises:
                # The row before has been read by the lanes that write it.
                v.synchronise_warp()
            cells = deal_row(v, staging, [plane[row, k] for k in range(v.cells)])
            store_row(v, stage, row, cells, staging.view)


def store_row(
    v: Variant, stage: StoreOp, row: int, cells: dict[int, list[SSAValue]], view: Thread
) -> None:
    """Write vectors of a row, by their first cells in the thread's view."""
    queue, shape = v.queues[stage.queue], FieldShape.of(stage.field)
    field = v.arguments[stage.field]
    for start, vector in cells.items():
        masks: list[SSAValue | None] = [v.owned((row, start), view)]
        if v.stream is not None:
            masks.append(v.chunk_mask(queue.lag))
        offset = v.reader.stream_offset(shape, queue.lag)
        offset += v.in_plane(shape, (row, start))
        mask, index = v.body.all_of(masks), v.index_of(shape, view)
        v.body.add(simt.StoreOp(vector, field, index, offset, mask))


def deal_row(v: Variant, staging: Staging, row: list[SSAValue]) -> dict[int, list[SSAValue]]:
    """Hand a row over to the lanes that write it, through shared memory: vectors by first cell."""
    for vector in staging.writes:
        cells = row[vector.at[1] : vector.at[1] + vector.width]
        v.body.add(simt.StoreOp(cells, staging.buffer, staging.written_from, vector.place))
    v.synchronise_warp()
    dealt: dict[int, list[SSAValue]] = {}
    for vector in staging.reads:
        types = [staging.element] * vector.width
        op = simt.LoadOp(staging.buffer, staging.read_from, vector.place, types)
        dealt[vector.at[1]] = list(v.body.add(op).cells)
    return dealt
