"""The code of asynchronous copies: started early, waited for, read."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.code import KernelCode
from timetile.lowering.tile_to_gpu.fields import (
    cells_in_field,
    copied_plane_at,
    fetched_plane,
    index_of,
)
from timetile.lowering.tile_to_gpu.images import image_view, seen
from timetile.lowering.tile_to_gpu.ownership import load_masks
from timetile.lowering.tile_to_gpu.prefetch import PadCopy, PrefetchRing
from timetile.lowering.tile_to_gpu.queues import Plane, cells_between
from timetile.lowering.tile_to_gpu.rings import Address, add_offsets
from timetile.lowering.tile_to_gpu.scopes import (
    CopyingStep,
    EarlyStep,
    StreamStep,
    VariantScope,
    once,
)
from timetile.lowering.tile_to_gpu.stored_cells import load_cells
from timetile.lowering.tile_to_gpu.thread import Thread
from timetile.passes.analysis.geometry.images import cells_before, image_width


def start_prefetch(variant: VariantScope, axis: int, ring: PrefetchRing) -> None:
    """Start the copies of the first planes along an axis."""
    code, emit = variant.code, variant.emit
    first = emit.add_int(code.thread.first, -code.geometry.fill)
    for k in range(ring.ahead):
        early = EarlyStep(variant, axis, emit.add_int(first, k))
        copy_plane(early, emit, ring, ring.ring.early_slot(k + ring.base), 0)
        emit.add(nvvm.CpAsyncCommitGroupOp())


def copy_plane(
    step: CopyingStep, emit: Emitter, ring: PrefetchRing, slot: Address, ahead: int
) -> None:
    """
    Start copying the thread's share of a load's plane, `ahead` planes after the plane of this step.
    Planes outside the bounds with readers of neighbours come from the halo.
    """
    shift = step.turn + ahead - ring.load.lag
    goes_on = step.axis in step.variant.code.kernel.continued_axes
    if ring.halo is None or step.is_steady or goes_on:
        copy_cells(step, emit, ring, ring.source, slot, shift)
        return
    stored = step.variant.code.geometry.stored_planes
    place = emit.add_int(step.arriving_plane, shift - stored.start)
    inside = emit.compare("ult", place, len(stored))
    # Both branches use one index, computed before the branch.
    for view in (ring.view, step.variant.code.thread):
        index_of(step, ring.shape, view)
    blocks = [Block(), Block()]
    for block, source in zip(blocks, (ring.source, ring.halo)):
        copy_cells(step, emit.into(block), ring, source, slot, shift)
        block.add_op(scf.YieldOp())
    emit.add(scf.IfOp(inside, [], [blocks[0]], [blocks[1]]))


def copy_cells(
    step: CopyingStep,
    emit: Emitter,
    ring: PrefetchRing,
    source: SSAValue,
    slot: Address,
    shift: int,
) -> None:
    """
    Start copying the thread's share of a plane, `shift` planes from the arriving plane, and of the
    pads around the plane.
    """
    variant, shape = step.variant, ring.shape
    code = variant.code
    buffer, lag = ring.ring.buffer, step.turn - shift
    width = copied_width(variant, ring)
    size = width * CELL_BYTES[ring.element]
    target = add_offsets(emit, ring.copied_from, slot.index)
    places: dict[Thread, tuple[SSAValue, int]] = {}
    first, _ = seen(variant, ring.view, (0,) * len(code.geometry.axes), width=width)
    places[first] = copied_plane_at(step, shape, lag, first)
    for vector in (part for whole in ring.copies for part in whole.parts(width)):
        masks = load_masks(variant, ring.load, vector.at, ring.view)
        mask = emit.all_of([*masks, fetched_plane(step, emit, shape, lag)])
        to = slot.offset + vector.place
        view, at = seen(variant, ring.view, vector.at, width=width)
        if view not in places:
            places[view] = copied_plane_at(step, shape, lag, view)
        index, plane = places[view]
        offset = plane + cells_between(code.geometry, shape, at)
        index, mask = with_ordinary_cells(emit, code, ring, source, index, offset, mask)
        emit.add(simt.CopyAsyncOp(buffer, target, to, source, index, offset, size, mask))
    copy_pads(step, emit, ring, source, slot, lag)


def with_ordinary_cells(
    emit: Emitter,
    code: KernelCode,
    ring: PrefetchRing,
    source: SSAValue,
    index: SSAValue,
    offset: int,
    mask: SSAValue | None,
) -> tuple[SSAValue, SSAValue | None]:
    """
    The index and the mask of a copy from `offset` cells behind the index. In a kernel with
    quotients or roots, threads without cells copy the field's cells nearest to the first updated
    ones: zeros in their place would be special operands, and every warp on the rim would compute
    them slowly. Of a halo's buffer no updated cell is read, as the kernel may store to the buffer.
    """
    if mask is None or not code.divides or source is ring.halo:
        return index, mask
    width = ring.copies[0].width
    first = ring.shape.nearest(code.geometry.lower) // width * width
    near = emit.int(first - offset, code.index_type)
    return emit.select(mask, index, near), None


def copied_width(variant: VariantScope, ring: PrefetchRing) -> int:
    """Cells of one copy to a ring: fewer in the rim, where a field may go on inside a vector."""
    geometry, width = variant.code.geometry, ring.copies[0].width
    if not variant.guarded or width > geometry.access_width(ring.load.field):
        return width
    return image_width(geometry, ring.load.field)


def copy_pads(
    step: CopyingStep,
    emit: Emitter,
    ring: PrefetchRing,
    source: SSAValue,
    slot: Address,
    lag: int,
) -> None:
    """Start copying the thread's share of the cells around the tile, of the plane `lag` back."""
    variant, shape = step.variant, ring.shape
    width, buffer = copied_width(variant, ring), ring.ring.buffer
    size = width * CELL_BYTES[ring.element]
    images = variant.guarded and variant.code.geometry.continues_in_plane
    before = cells_before(variant.code.geometry, width)
    if not ring.pads:
        return
    index, plane = copied_plane_at(step, shape, lag, variant.code.thread)
    for number, pad in enumerate(ring.pads):
        # A thread with nothing to copy must not fill cells that another thread copies.
        part = emit if pad.valid is None else emit.into(Block())
        target = add_offsets(part, pad.slot_offset, slot.index)
        for cell in range(0, ring.copies[0].width, width):
            if images:
                at = (*(0,) * (len(pad.coordinates) - 1), cell)
                view = image_view(variant, pad_view(variant, pad), at, before=before)
                moved, plane = copied_plane_at(step, shape, lag, view)
            else:
                moved = part.add_int(index, pad.distance)
            lies_in = pad_mask(variant, ring, number, pad)
            mask = part.all_of([lies_in, fetched_plane(step, part, shape, lag)])
            moved, mask = with_ordinary_cells(part, variant.code, ring, source, moved, plane, mask)
            to = slot.offset + cell
            part.add(simt.CopyAsyncOp(buffer, target, to, source, moved, plane, size, mask))
        if pad.valid is not None:
            part.add(scf.YieldOp())
            emit.add(scf.IfOp(pad.valid, [], [part.block]))


@once
def pad_view(variant: VariantScope, pad: PadCopy) -> Thread:
    """A thread's copy around the tile, seen as the thread's first own cell."""
    thread = variant.code.thread
    axes = zip(thread.axes, pad.coordinates, strict=True)
    return replace(thread, axes=tuple(replace(axis, coordinate=place) for axis, place in axes))


@once
def pad_mask(
    variant: VariantScope, ring: PrefetchRing, number: int, pad: PadCopy
) -> SSAValue | None:
    """The cells of a thread's copy around the tile, of the given number, lie in the field."""
    return cells_in_field(variant, ring.shape, [(place, 0, 0) for place in pad.coordinates])


def take_prefetched(step: StreamStep, number: int, ring: PrefetchRing) -> Plane:
    """Wait for this step's plane, read the plane, and start the copy of a later plane."""
    placement = step.code.placement
    if ring.waits:
        step.emit.add(nvvm.CpAsyncWaitGroupOp(placement.pending_groups))
        if any(other.changes_lanes for other in placement.prefetches):
            # Lanes read cells that other lanes copied, and overwrite cells that other lanes have
            # read.
            step.synchronise_warp()
    slot = step.slot(ring.ring, 0, ring.base)
    index = add_offsets(step.emit, ring.read_from, slot.index)
    plane: Plane = {}
    for vector in ring.reads:
        types = [ring.element] * vector.width
        place = slot.offset + vector.place
        row, start = vector.at[:-1], vector.at[-1]
        step.mark(number, step.code.rows.index(row))
        for k, value in enumerate(load_cells(step.emit, ring.ring.buffer, index, place, types)):
            plane[*row, start + k] = value
    # Copies of a later plane are not urgent: the copies start after the edge rows, before the inner
    # rows.
    step.mark(number, -1, private=True)
    later = step.slot(ring.ring, -ring.ahead, ring.base)
    step.compute_arriving_plane()
    copy_plane(step, step.emit, ring, later, ring.ahead)
    if ring.commits:
        step.emit.add(nvvm.CpAsyncCommitGroupOp())
    return plane
