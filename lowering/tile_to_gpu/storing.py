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
    rows = {row: [plane[row, k] for k in range(v.cells)] for row in range(v.rows)}
    if staging is not None:
        deal_rows(v, number, stage, staging, rows)
        return
    for row, own in rows.items():
        v.mark(number, row, private=True)
        cells = {start: own[start : start + width] for start in range(0, v.cells, width)}
        store_row(v, stage, row, cells, v.thread)


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


def deal_rows(
    v: Variant, number: int, stage: StoreOp, staging: Staging, rows: dict[int, list[SSAValue]]
) -> None:
    """Hand rows over, through shared memory, to the lanes that write them: a vector each in turn."""
    if not v.synchronises:
        # The rows of the step before have been read by the lanes that write them.
        v.mark(number, 0, private=True)
        v.synchronise_warp()
    for vector in staging.writes:
        row, start = vector.at
        v.mark(number, row, private=True)
        cells = rows[row][start : start + vector.width]
        v.body.add(simt.StoreOp(cells, staging.buffer, staging.written_from, vector.place))
    v.mark(number, v.rows, private=True)
    v.synchronise_warp()
    dealt: dict[int, dict[int, list[SSAValue]]] = {}
    for vector in staging.reads:
        row, start = vector.at
        types = [staging.element] * vector.width
        op = simt.LoadOp(staging.buffer, staging.read_from, vector.place, types)
        dealt.setdefault(row, {})[start] = list(v.body.add(op).cells)
    for row, cells in dealt.items():
        store_row(v, stage, row, cells, staging.view)
