"""Kernels without a lowering, refused with a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from timetile.dialects.tile import (
    ApplyOp,
    AxisLayout,
    ExchangeOp,
    KernelOp,
    Published,
    SharedAttr,
    StageOp,
    Sync,
    exchanges_of,
)
from timetile.lowering.tile_to_gpu.message_buffers import messages
from timetile.passes.analysis.geometry.limits import check_fields, checked_geometry
from timetile.passes.analysis.geometry.outside import guarding_field, is_read_outside
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.placed import layout_of, refuse_unplaced, variants_of
from timetile.passes.analysis.queues.kept_planes import check_kept_planes
from timetile.passes.analysis.queues.synchronisation import (
    batches_keep,
    collect_orders,
    lives_in_ring,
    split_keeps,
    steps_between_barriers,
)
from timetile.passes.diagnostics import check_verified, refuse


def check(kernel: KernelOp) -> None:
    """Refuse wrong kernels, and kernels without a lowering, with a sentence."""
    check_verified(kernel)
    if kernel.layout is None or kernel.variants is None or not kernel.is_placed:
        refuse_unplaced(kernel)
    axes = kernel.layout.axis_layouts
    check_kept_planes(kernel)
    check_synchronisation(kernel)
    if any(axis.lanes > 1 for axis in axes[:-1]) and not kernel.reads_memory:
        refuse(kernel, "lanes lie along the last axis only; give the other axes warps or cells")
    roles = zip(kernel.body.block.args, kernel.roles)
    check_fields(kernel, [field for field, role in roles if not role.kind.data.is_number])
    check_outside(kernel)
    check_columns(kernel)
    check_joined(kernel)


def check_outside(kernel: KernelOp) -> None:
    """
    Refuse stages that take cells outside the bounds from a queue whose cells no field has, if a
    stage reads the cells.
    """
    for stage in kernel.stages:
        if not isinstance(stage, ApplyOp) or not stage.replaces_cells:
            continue
        for queue in stage.res:
            read = is_read_outside(queue) or exchanges_of(queue)
            if read and guarding_field(queue) is None:
                refuse(
                    stage,
                    "its cells outside the bounds are computed by another stage, and no field has "
                    "them; give else a queue that takes cells outside the bounds from a field",
                )


def check_columns(kernel: KernelOp) -> None:
    """Refuse variants with fewer or more columns of tiles than the kernel."""
    geometry, variants = checked_geometry(kernel), variants_of(kernel)
    for interior in (False, True):
        have = geometry.columns_of_kind(interior=interior)
        of_kind = [v for v in variants if v.is_interior == interior]
        given = sum(v.columns.data for v in of_kind)
        takes_rest = sum(v.columns.data == 0 for v in of_kind)
        if takes_rest > 1 or given > have or (given < have and not takes_rest):
            refuse(
                kernel,
                f"the variants name {given} of {have} columns of tiles "
                f"{'inside' if interior else 'on'} the rim, and "
                f"{takes_rest} take the rest; let a single variant take the rest",
            )


def check_joined(kernel: KernelOp) -> None:
    """
    Refuse joined planes of tiles that cannot go on in another column, and more than a column has.
    """
    layout, geometry = layout_of(kernel), checked_geometry(kernel)
    if not geometry.joins_columns:
        return
    most = max(variant.joined.data for variant in variants_of(kernel))
    if most > geometry.planes:
        refuse(
            kernel,
            f"the variants join {most} planes of each column, which have {geometry.planes}; join "
            "no more",
        )
    if layout.warps * layout.blocks > 1 or kernel.stream_axis is None:
        refuse(
            kernel,
            "the variants join planes of columns, and only streamed tiles of one warp continue in "
            "the next column; leave out joined, or give device-tiling tile=warp",
        )


def check_synchronisation(kernel: KernelOp) -> None:
    """Refuse exchanges read too early, or overwritten while still read."""
    layout = layout_of(kernel)
    exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
    kinds = {e.home.sync.data for e in exchanges if e.home is not None}
    if kernel.stream_axis is None:
        check_resident(kernel, exchanges)
    if layout.blocks > 1:
        check_blocks(kernel, exchanges)
    if not layout.has_messages and (between := kinds & {Sync.FLAGS, Sync.GRID}):
        refuse(
            kernel,
            f"the tile has no blocks for exchanges by {min(between)}; use barrier, mbarrier, or "
            "tile=device and blocks",
        )
    if {Sync.BARRIER, Sync.MBARRIER} <= kinds:
        refuse(kernel, "some exchanges wait at a barrier, some at an mbarrier; use one kind")
    if kernel.stream_axis is None:
        return
    orders = collect_orders(kernel)
    if kinds and kinds <= {Sync.MBARRIER, Sync.FLAGS} and not split_keeps(orders):
        refuse(
            kernel,
            "an mbarrier once a step does not order the accesses; use a barrier, or exchanges "
            "with a delay of a step and a further slot",
        )
    every = steps_between_barriers(messages(kernel) or exchanges)
    meets_once = Sync.GRID in kinds or (kinds == {Sync.BARRIER} and every > 1)
    if meets_once and not batches_keep(orders, every):
        who = "blocks" if Sync.GRID in kinds else "warps"
        start = "a step" if every == 1 else f"one step in {every}"
        refuse(
            kernel,
            f"the {who} meet once, at the start of {start}, and other barriers are needed; delay "
            f"the exchanges by {every} or more",
        )


def check_resident(kernel: KernelOp, exchanges: Sequence[ExchangeOp]) -> None:
    """Refuse resident tiles without a lowering."""
    layout = layout_of(kernel)
    if any(exchange.publishes_copies for exchange in exchanges):
        refuse(
            kernel,
            "a resident tile fetches nothing ahead, and copies serve fetched planes only; use "
            "what=plane",
        )
    is_volume = TileShape.of(kernel) is TileShape.VOLUME
    kept = [result for stage in kernel.stages for result in stage.results]
    if is_volume and layout.blocks > 1 and any(map(lives_in_ring, kept)):
        refuse(
            kernel,
            "the blocks of a resident volume keep cells in registers; use storage=registers",
        )
    if is_volume and any(e.what.data is Published.EDGES for e in exchanges):
        refuse(kernel, "the edges of a volume are planes; use what=plane")
    if layout.has_cluster:
        refuse(
            kernel,
            "the blocks of a cluster exchange one stream step late, and a resident tile has no "
            "stream; use tile=device",
        )


def check_blocks(kernel: KernelOp, exchanges: Sequence[ExchangeOp]) -> None:
    """Refuse exchanges not possible between the blocks of a tile."""
    layout = layout_of(kernel)
    first, *others = layout.axis_layouts
    along_others = any(axis.blocks > 1 for axis in others)
    if not others or (layout.has_cluster and along_others):
        refuse(
            kernel,
            "the blocks of a tile lie along the first of several in-plane axes; give device-tiling "
            "blocks=1 along the other axes, or tile=device, or tile=block for a single axis",
        )
    if along_others:
        check_columns_of_blocks(kernel, exchanges)
    check_rings_of_blocks(kernel)
    check_warps_of_blocks(kernel, exchanges, others)
    for exchange in exchanges:
        if not exchange.publishes_copies and exchange.edges[0] > first.cells:
            refuse(
                kernel,
                f"its taps reach {exchange.edges[0]} cells along the blocks and a warp has "
                f"{first.cells}; give device-tiling {exchange.edges[0]} cells or more along the "
                "first axis",
            )
    check_sync_of_blocks(kernel, exchanges)


def check_columns_of_blocks(kernel: KernelOp, exchanges: Sequence[ExchangeOp]) -> None:
    """Refuse exchanges not possible between blocks that lie along other axes than the first."""
    axes = zip(kernel.plane_axes, layout_of(kernel).axis_layouts)
    for k, (axis, layout) in enumerate(axes):
        widest = max((exchange.edges[k] for exchange in exchanges), default=0)
        if k and layout.blocks > 1 and widest > layout.block_extent:
            refuse(
                kernel,
                f"its taps reach {widest} cells along axis {axis} and a block has "
                f"{layout.block_extent}; give device-tiling more cells or lanes along the axis",
            )
    if any(e.what.data is Published.EDGES and not lives_in_ring(e.queue) for e in exchanges):
        refuse(
            kernel,
            "blocks that lie along several axes exchange columns of whole planes; run "
            "register-streaming with what=plane",
        )


def check_rings_of_blocks(kernel: KernelOp) -> None:
    """
    Refuse taps across warps that read a ring of one block: cells of other blocks come by exchanges.
    """
    axes = zip(kernel.plane_axes, layout_of(kernel).axis_layouts)
    crossing = [axis for axis, layout in axes if layout.tile_warps > 1]
    for stage in [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]:
        for tap in stage.tap_list:
            leaves = any(tap.offset[axis] for axis in crossing)
            if leaves and lives_in_ring(stage.queue_of(tap)):
                refuse(
                    stage,
                    "a tap leaves the warp and reads the ring of its queue; put a tile.exchange of "
                    "the queue between",
                )


def check_warps_of_blocks(
    kernel: KernelOp, exchanges: Sequence[ExchangeOp], others: Sequence[AxisLayout]
) -> None:
    """
    Refuse warps of a tile of several blocks along `others`, the axes behind the first, unless the
    tile is resident and exchanges planes.
    """
    edges = any(exchange.what.data is Published.EDGES for exchange in exchanges)
    if any(axis.warps > 1 for axis in others) and (edges or kernel.stream_axis is not None):
        refuse(
            kernel,
            "the warps of a tile of several blocks lie along the first axis; give the other axes "
            "cells, or keep the tile resident and exchange whole planes (stream-axis=none, "
            "what=plane)",
        )


def check_sync_of_blocks(kernel: KernelOp, exchanges: Sequence[ExchangeOp]) -> None:
    """Refuse ways to wait unknown between blocks, by what the blocks keep and exchange."""
    layout = layout_of(kernel)
    sent = {e.home.sync.data for e in exchanges if e.home and not e.publishes_copies}
    whole = any(map(is_ring_of_tile, kernel.stages))
    streamed = layout.has_messages and kernel.stream_axis is not None
    rings = any(isinstance(stage.home, SharedAttr) for stage in kernel.stages)
    if streamed and rings and sent != {Sync.GRID}:
        refuse(
            kernel,
            "the blocks of the tile keep whole planes in shared memory, exchanged at barriers of "
            "the grid; run register-streaming, or use sync=grid",
        )
    if layout.has_cluster and (whole or Sync.BARRIER in sent):
        refuse(
            kernel,
            "the blocks of a tile exchange edges, a step late; use storage=registers and "
            "what=edges",
        )
    if layout.has_messages and sent & {Sync.BARRIER, Sync.MBARRIER}:
        refuse(
            kernel,
            "the blocks of a tile of the device exchange by flags or grid; run "
            "register-streaming with sync=flags or sync=grid",
        )


def is_ring_of_tile(stage: StageOp) -> bool:
    """Whole planes of a queue are written to shared memory for the tile's other warps."""
    if isinstance(stage, ExchangeOp):
        return stage.what.data is Published.PLANE
    return isinstance(stage.home, SharedAttr)
