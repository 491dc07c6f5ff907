"""The code of asynchronous copies: started early, waited for, read."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.simt import CELL_BYTES
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.ownership import load_mask
from timetile.lowering.tile_to_gpu.planes import Plane
from timetile.lowering.tile_to_gpu.prefetch import PadCopy, PrefetchRing
from timetile.lowering.tile_to_gpu.rings import Address, add_offsets
from timetile.lowering.tile_to_gpu.thread import Thread
from timetile.lowering.tile_to_gpu.variant import Variant


def start_prefetch(v: Variant, ring: PrefetchRing) -> None:
    """Start the copies of the first planes."""
    first = v.setup.add_int(v.thread.first, -v.geometry.fill)
    for k in range(ring.ahead):
        step = v.setup.add_int(first, k)
        slot = ring.ring.early_slot(k)

        def index_of(view: Thread, step: SSAValue = step) -> SSAValue:
            base = v.base_of(ring.shape, view)
            return v.moved_to(v.setup, base, ring.shape, step)

        copy_plane(v, v.setup, ring, slot, step, 0, index_of)
        v.setup.add(nvvm.CpAsyncCommitGroupOp())


def copy_plane(
    v: Variant,
    emit: Emitter,
    ring: PrefetchRing,
    slot: Address,
    step: SSAValue | None,
    turn: int,
    index_of: Callable[[Thread], SSAValue],
) -> None:
    """
    Start copying the thread's share of plane `step + turn - lag`; where a plane outside the bounds
    is read by neighbours, from the halo.
    """
    assert v.stream is not None
    shift = turn - ring.load.lag
    if ring.halo is None or step is None:
        copy_cells(v, emit, ring, ring.source, slot, step, shift, index_of)
        return
    low, high = v.geometry.lower[v.stream], v.geometry.upper[v.stream]
    inside = emit.compare("ult", emit.add_int(step, shift - low), high - low)
    # Both branches count from the same cells.
    for view in (ring.view, v.thread):
        index_of(view)
    blocks = [Block(), Block()]
    for block, source in zip(blocks, (ring.source, ring.halo)):
        copy_cells(v, emit.into(block), ring, source, slot, step, shift, index_of)
        block.add_op(scf.YieldOp())
    emit.add(scf.IfOp(inside, [], [blocks[0]], [blocks[1]]))


def copy_cells(
    v: Variant,
    emit: Emitter,
    ring: PrefetchRing,
    source: SSAValue,
    slot: Address,
    step: SSAValue | None,
    shift: int,
    index_of: Callable[[Thread], SSAValue],
) -> None:
    """Start copying the thread's share of plane `step + shift`, and of the pads around it."""
    assert v.stream is not None
    buffer, plane = ring.ring.buffer, shift * ring.shape.strides[v.stream]
    size = ring.copies[0].width * CELL_BYTES[ring.element]
    target, index = add_offsets(emit, ring.copied_from, slot.index), index_of(ring.view)
    for vector in ring.copies:
        mask = load_mask(v, emit, ring.load, ring.shape, step, shift, vector.at, ring.view)
        to, offset = slot.offset + vector.place, plane + v.in_plane(ring.shape, vector.at)
        emit.add(simt.CopyAsyncOp(buffer, target, to, source, index, offset, size, mask))
    if ring.pads:
        index = index_of(v.thread)
    for number, pad in enumerate(ring.pads):
        # Who has nothing to copy must not fill what another thread copies.
        part = emit if pad.valid is None else emit.into(Block())
        target = add_offsets(part, pad.slot_offset, slot.index)
        moved = part.add_int(index, pad.distance)
        lies_in = pad_mask(v, ring, number, pad)
        mask = part.all_of([lies_in, v.plane_mask(part, ring.shape, step, shift)])
        to = slot.offset
        part.add(simt.CopyAsyncOp(buffer, target, to, source, moved, plane, size, mask))
        if pad.valid is not None:
            part.add(scf.YieldOp())
            emit.add(scf.IfOp(pad.valid, [], [part.block]))


def pad_mask(v: Variant, ring: PrefetchRing, number: int, pad: PadCopy) -> SSAValue | None:
    """What a thread copies for the tile's surroundings lies in the field."""

    def make() -> SSAValue | None:
        return v.cells_in_field(ring.shape, [(place, 0, 0) for place in pad.coordinates])

    return v.mask(("pad", ring.load.result, number), make)


def take_prefetched(v: Variant, number: int, ring: PrefetchRing) -> Plane:
    """Wait for this step's plane, read it, and start the copy of a later one."""
    assert v.count is not None
    if ring.waits:
        v.body.add(nvvm.CpAsyncWaitGroupOp(v.placement.pending_groups))
        if any(other.is_dealt for other in v.placement.prefetches):
            # Lanes read what other lanes copied, and overwrite what others have read.
            v.synchronise_warp()
    slot = ring.ring.slot(v.body, v.count, v.turn, 0, 0)
    index = add_offsets(v.body, ring.read_from, slot.index)
    plane: Plane = {}
    for vector in ring.reads:
        types = [ring.element] * vector.width
        op = simt.LoadOp(ring.ring.buffer, index, slot.offset + vector.place, types)
        row, start = vector.at[:-1], vector.at[-1]
        v.mark(number, v.rows.index(row))
        for k, value in enumerate(v.body.add(op).cells):
            plane[*row, start + k] = value
    # Nobody waits for a later plane: its copies start behind the rows that others wait for, before the inner ones.
    v.mark(number, -1, private=True)
    later = ring.ring.slot(v.body, v.count, v.turn, -ring.ahead, 0)
    turn = v.turn + ring.ahead

    def index_of(view: Thread) -> SSAValue:
        return v.index_of(ring.shape, view)

    copy_plane(v, v.body, ring, later, v.guarded_step, turn, index_of)
    if ring.commits:
        v.body.add(nvvm.CpAsyncCommitGroupOp())
    return plane
