"""Adds exchanges: a tap across warps reads an exchange, and an exchange publishes the least for its
readers.

Before: `%v = tile.apply @cell(%u[0, -1, 0], %u[0, 0, 0])`, with warps along the second axis
After:
```
%e = tile.exchange %u what plane delay 0
%v = tile.apply @cell(%e[0, -1, 0], %u[0, 0, 0])
```
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.taps import Tap
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    QueueType,
    StoreOp,
    queue_type,
    taps_of,
)
from timetile.dialects.tile.kinds import Published, PublishedAttr
from timetile.dialects.verified import maker_of
from timetile.passes.analysis.geometry.field_shapes import FieldShape
from timetile.passes.analysis.geometry.outline import widest_access
from timetile.passes.analysis.placed import layout_of
from timetile.passes.rewriting import replace_apply
from timetile.passes.targets.hardware import LEAST_COPY, VECTOR_BYTES


def add_exchanges(kernel: KernelOp) -> None:
    """Let taps across warps read an exchange of the whole plane."""
    crossing = [
        (axis, k)
        for k, (axis, layout) in enumerate(zip(kernel.plane_axes, layout_of(kernel).axis_layouts))
        if layout.tile_warps > 1
    ]
    if not crossing:
        return
    position = 0
    while position < len(stages := kernel.stages):
        stage = stages[position]
        for queue in () if isinstance(stage, ExchangeOp) else stage.results:
            width = crossing_width(queue, crossing, len(kernel.plane_axes))
            if not any(width):
                continue
            exchange = ExchangeOp(queue, width)
            kernel.body.block.insert_op_after(exchange, stage)
            for reader in dict.fromkeys(use.operation for use in queue.uses):
                if isinstance(reader, ApplyOp):
                    redirect(reader, queue, exchange.result, [axis for axis, _ in crossing])
        position += 1


def crossing_width(queue: SSAValue, crossing: list[tuple[int, int]], axes: int) -> list[int]:
    """
    The largest distance, in cells, of the queue's taps along each of the (axis, in-plane position)
    pairs across warps. Every thread reads cells in memory itself.
    """
    width = [0] * axes
    if isinstance(queue.owner, LoadOp) and queue.owner.is_read_at_use:
        return width
    for _, tap in taps_of(queue):
        for axis, k in crossing:
            width[k] = max(width[k], abs(tap.offset[axis]))
    return width


def redirect(reader: ApplyOp, queue: SSAValue, exchange: SSAValue, axes: Sequence[int]) -> None:
    """Let the taps of `queue` that leave the thread's row along the axes read `exchange`."""
    queues = list(dict.fromkeys((*reader.queues, exchange)))
    taps: list[Tap] = []
    for tap in reader.tap_list:
        read = reader.queue_of(tap)
        if read is queue and any(tap.offset[axis] for axis in axes):
            read = exchange
        taps.append(Tap(queues.index(read), tap.offset))
    used = [k for k in range(len(queues)) if any(tap.operand == k for tap in taps)]
    replace_apply(
        reader,
        queues=[queues[k] for k in used],
        taps=[Tap(used.index(tap.operand), tap.offset) for tap in taps],
    )


def crosses_one_axis(kernel: KernelOp) -> bool:
    """Whether warps lie along one in-plane axis: edges are then whole rows or single cells."""
    return sum(axis.tile_warps > 1 for axis in layout_of(kernel).axis_layouts) == 1


def edges_suffice(kernel: KernelOp, exchange: ExchangeOp) -> bool:
    """Whether edges are enough: neighbours look no further than the next warp's own cells."""
    layout = layout_of(kernel)
    *rows, last = layout.axis_layouts
    if len(rows) > 1:
        # Edges are rows of cells: edges of planes with three axes would be planes.
        return False
    for axis, edge in zip(layout.axis_layouts, exchange.edges):
        if edge > axis.cells * axis.lanes:
            return False
    if last.tile_warps > 1 and any(axis.cells * axis.lanes > 1 for axis in rows):
        # Edges along a row are single cells: every warp must hold one row.
        return False
    return crosses_one_axis(kernel)


def publish(
    kernel: KernelOp, what: Published | None, ahead: int, loads: Published | None = None
) -> None:
    """
    Let every exchange publish the least for its readers, of: copies of a load fetched ahead, edges,
    the whole plane. `what` asks for one kind, used if sufficient, and `loads` for another kind for
    the exchanges of fields. Copies asked for before stay.
    """
    if what is None and loads is None:
        exchange_along_lanes(kernel, ahead)
    for stage in [s for s in kernel.stages if isinstance(s, ExchangeOp)]:
        asked = what
        if isinstance(stage.queue.owner, LoadOp):
            asked = loads or (Published.COPIES if stage.publishes_copies else what)
        if asked in (None, Published.COPIES) and copies_suffice(kernel, stage.queue, ahead):
            publish_copies(kernel, stage)
        else:
            edges = asked is not Published.PLANE and edges_suffice(kernel, stage)
            stage.what = PublishedAttr(Published.EDGES if edges else Published.PLANE)


def copies_suffice(kernel: KernelOp, queue: SSAValue, ahead: int) -> bool:
    """Whether a queue is of a field fetched ahead by asynchronous copies."""
    load = queue.owner
    if not isinstance(load, LoadOp) or load.data is None:
        return False
    if not ahead or kernel.stream_axis is None:
        return False
    return copied_cells(kernel, load) * CELL_BYTES[element_type(load.field)] >= LEAST_COPY


def exchange_along_lanes(kernel: KernelOp, ahead: int) -> None:
    """
    Add exchanges of fields tapped along the lanes alone, in a single step whose other fields are
    published by copies: shuffles would let tiles overlap for these fields alone.
    """
    exchanged = [stage.queue for stage in kernel.stages if isinstance(stage, ExchangeOp)]
    axes = [(axis, k) for k, axis in enumerate(kernel.plane_axes)]
    if kernel.steps.data > 1 or not exchanged:
        return
    makers = (stage for stage in kernel.stages if not isinstance(stage, ExchangeOp))
    queues = (queue for stage in makers for queue in stage.results)
    widths = {queue: crossing_width(queue, axes, len(axes)) for queue in queues}
    beside = [queue for queue, width in widths.items() if queue not in exchanged and any(width)]
    if all(copies_suffice(kernel, queue, ahead) for queue in (*exchanged, *beside)):
        for queue in beside:
            exchange = ExchangeOp(queue, widths[queue])
            kernel.body.block.insert_op_after(exchange, maker_of(queue, LoadOp))


def copied_cells(kernel: KernelOp, load: LoadOp) -> int:
    """Cells of one copy of a field, in any tile: tiles lie as in the first stored field's rows."""
    stored = next(stage.field for stage in kernel.stages if isinstance(stage, StoreOp))
    rows, own = FieldShape.of(stored), FieldShape.loaded(load, kernel.rank)
    if kernel.plane_axes[-1] != kernel.rank - 1:
        return 1
    cells = gcd(layout_of(kernel).axis_layouts[-1].cells, widest_access(element_type(load.field)))
    return gcd(cells, rows.sizes[-1], own.sizes[-1], own.lower[-1] - rows.lower[-1])


def publish_copies(kernel: KernelOp, exchange: ExchangeOp, *, along_lanes: bool = False) -> None:
    """
    Let the copies of a load serve the taps across warps. Copies also serve taps along the lanes if
    asked for, or if better than shuffles: if whole vectors are read, or if no other queue asks for
    an overlap.
    """
    load = maker_of(exchange.queue, LoadOp)
    queue, element = load.result, queue_type(load.result).element
    bytes = CELL_BYTES[element_type(load.field)]
    axes = [(axis, k) for k, axis in enumerate(kernel.plane_axes)]
    reach = crossing_width(queue, axes, len(axes))
    layouts = layout_of(kernel).axis_layouts
    beside = [
        axis
        for axis, k in axes
        if along_lanes
        or layouts[k].tile_warps > 1
        or kernel.steps.data == 1
        or reach[k] * bytes >= VECTOR_BYTES
    ]
    exchange.what = PublishedAttr(Published.COPIES)
    for reader in dict.fromkeys(use.operation for use in queue.uses):
        if isinstance(reader, ApplyOp):
            redirect(reader, queue, exchange.result, beside)
    edges = crossing_width(exchange.result, axes, len(axes))
    wider = QueueType(element, exchange.lag, edges)
    Rewriter.replace_value_with_new_type(exchange.result, wider)
