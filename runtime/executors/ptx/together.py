"""
Instructions of several threads: shuffles, votes, barriers, arrivals, and sends between blocks of a
cluster.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from timetile.dialects.tile import LANES
from timetile.runtime.executors.ptx.accesses import MOVED, VECTORS, Special, cells
from timetile.runtime.executors.ptx.arithmetic import Array
from timetile.runtime.executors.ptx.memory import LaneAccess
from timetile.runtime.executors.ptx.operands import (
    Context,
    LaneAction,
    Source,
    address,
    register,
    source,
)
from timetile.runtime.executors.ptx.parse import Instruction
from timetile.runtime.executors.ptx.strand import Strand
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import Ints, Mask, some

# Operations that all lanes of a warp take part in.


def check_all_named(get: Source, s: Strand, text: str) -> None:
    """SimtError where a membermask leaves out a lane."""
    if some(get(s).astype(np.uint32) != 0xFFFFFFFF):
        raise SimtError(text, "does not name all lanes of the warp")


def shuffles(mode: str) -> Special:
    """A shuffle: a lane takes the register of another lane, or its own if no other exists."""

    def bind(c: Context, instruction: Instruction) -> LaneAction:
        text = instruction.text
        target, value, by, clamp, members = instruction.operands
        result = register(c, target, "b32", text)
        (get, names), (distance, more), (bound, last), (named, _) = (
            source(c, operand, "b32", text) for operand in (value, by, clamp, members)
        )

        def step(s: Strand, mask: Mask | None) -> None:
            s.whole_warps(mask, text)
            check_all_named(named, s, text)
            s.check_set(more + last, mask, text, "which lane it takes")
            lane = np.arange(s.lanes) % LANES
            taken = other_lane(mode, lane, distance(s).astype(np.int64), bound(s).astype(np.int64))
            taken = np.arange(s.lanes) - lane + taken
            unset = s.any_unset(names)
            unset = None if unset is None else unset[taken]
            s.write(result, np.broadcast_to(get(s), s.at.shape)[taken], mask, unset)

        return step

    return bind


def other_lane(mode: str, lane: Ints, by: Ints, bound: Ints) -> Ints:
    """The source lane of each lane, by the rules of shfl."""
    by, clamp, segment = by & 31, bound & 31, bound >> 8 & 31
    first, last = lane & segment, lane & segment | clamp & ~segment
    if mode == "up":
        other = lane - by
        return np.where(other >= last, other, lane)
    other = {"down": lane + by, "bfly": lane ^ by, "idx": first | by & ~segment}[mode]
    return np.where(other <= last, other, lane)


def agree(each: Mask, axis: int) -> Mask:
    """Whether all or none have a true predicate."""
    return np.equal(each.all(axis=axis), each.any(axis=axis))


def joined(join: Callable[..., Array], kind: str, *, reads_unset: bool) -> Special:
    """
    A predicate or a number of the whole warp, made from those of its lanes. `reads_unset`: lanes
    with an unset operand take part, as on a GPU; otherwise an unset operand is an error.
    """

    def bind(c: Context, instruction: Instruction) -> LaneAction:
        text = instruction.text
        target, value, members = instruction.operands
        result = register(c, target, kind, text)
        get, names = source(c, value, kind, text)
        named, _ = source(c, members, "b32", text)

        def step(s: Strand, mask: Mask | None) -> None:
            s.whole_warps(mask, text)
            check_all_named(named, s, text)
            if not reads_unset:
                s.check_set(names, mask, text, "it")
            each = np.broadcast_to(get(s), s.at.shape).reshape(-1, LANES)
            s.write(result, np.repeat(join(each, axis=1), LANES), mask)

        return step

    return bind


def warp_sync(c: Context, instruction: Instruction) -> LaneAction:
    """Synchronise warps: all lanes see earlier accesses of all lanes."""
    text = instruction.text
    named, _ = source(c, instruction.operands[0], "b32", text)

    def step(s: Strand, mask: Mask | None) -> None:
        s.whole_warps(mask, text)
        check_all_named(named, s, text)
        s.launch.memory.clocks.warp_syncs[s.threads[s.taking(mask)]] += 1

    return step


# Blocks, clusters, arrivals.


def block_barrier(c: Context, instruction: Instruction) -> LaneAction:
    """A barrier of a block."""
    if instruction.operands != ("0",):
        raise SimtError(instruction.text, "barrier 0 is the only one")
    return lambda s, mask: s.launch.barriers.meet_block(s, mask)


def cluster_arrive(c: Context, instruction: Instruction) -> LaneAction:
    """An arrival at the barrier of a cluster."""
    return lambda s, mask: s.launch.barriers.arrive_cluster(s, mask, instruction.text)


def cluster_wait(c: Context, instruction: Instruction) -> LaneAction:
    """A wait at the barrier of a cluster."""
    return lambda s, mask: s.launch.barriers.meet_cluster(s, mask, instruction.text)


def nothing(c: Context, instruction: Instruction) -> LaneAction:
    """Memory here is always in order."""
    return lambda s, mask: None


def counter_of(s: Strand, lanes: Ints, at: Ints, text: str) -> tuple[Ints, Ints]:
    """The block and the word of each lane's mbarrier."""
    access = LaneAccess(text, "shared", s, lanes, at[lanes])
    words = s.launch.memory.shared_words(access, 8)[:, 0]
    cells = s.launch.memory.shared.cells
    return words // cells, words % cells


def make_mbarrier(c: Context, instruction: Instruction) -> LaneAction:
    """Initialise an mbarrier."""
    text = instruction.text
    where, names = address(c, instruction.operands[0], "u32", text)
    count, more = source(c, instruction.operands[1], "u32", text)

    def step(s: Strand, mask: Mask | None) -> None:
        s.check_set(names + more, mask, text, "it")
        lanes = s.taking(mask)
        amount = np.broadcast_to(count(s), s.at.shape)
        for lane, block, word in zip(lanes, *counter_of(s, lanes, where(s), text)):
            s.launch.barriers.make(s, lane, (int(block), int(word)), int(amount[lane]), text)

    return step


def arrive(c: Context, instruction: Instruction) -> LaneAction:
    """Lanes arrive, and may say how many bytes are to come as well."""
    text = instruction.text
    _, place, *rest = instruction.operands
    where, names = address(c, place, "u32", text)
    bytes, more = source(c, rest[0] if rest else "0", "u32", text)

    def step(s: Strand, mask: Mask | None) -> None:
        s.check_set(names + more, mask, text, "it")
        lanes = s.taking(mask)
        blocks, words = counter_of(s, lanes, where(s), text)
        amount = np.broadcast_to(bytes(s), s.at.shape)[lanes].astype(np.int64)
        s.launch.barriers.arrive(s, mask, words, blocks, amount, text)

    return step


def try_wait(c: Context, instruction: Instruction) -> LaneAction:
    """Whether the phase of a parity is complete."""
    text = instruction.text
    target, place, phase = instruction.operands
    result = register(c, target, "pred", text)
    where, names = address(c, place, "u32", text)
    parity, more = source(c, phase, "u32", text)

    def step(s: Strand, mask: Mask | None) -> None:
        s.check_set(names + more, mask, text, "it")
        lanes = s.taking(mask)
        odd = np.broadcast_to(parity(s), s.at.shape)
        done = np.zeros(s.lanes, dtype=bool)
        for lane, block, word in zip(lanes, *counter_of(s, lanes, where(s), text)):
            which = (int(block), int(word))
            done[lane] = s.launch.barriers.is_complete(s, int(lane), which, int(odd[lane]), text)
        s.write(result, done, mask)

    return step


def map_shared(c: Context, instruction: Instruction) -> LaneAction:
    """The address of the same place in another block of the cluster."""
    text = instruction.text
    target, place, rank = instruction.operands
    result = register(c, target, "u32", text)
    (own, names), (block, more) = (source(c, o, "u32", text) for o in (place, rank))

    def step(s: Strand, mask: Mask | None) -> None:
        value = own(s) + (block(s) + np.uint32(1) << np.uint32(24))
        s.write(result, value.astype(np.uint32), mask, s.any_unset(names + more))

    return step


def sends(count: int, kind: str) -> Special:
    """Send cells to another block, counted there on arrival."""

    def bind(c: Context, instruction: Instruction) -> LaneAction:
        text = instruction.text
        place, values, counter = instruction.operands
        where, names = address(c, place, "u32", text)
        there, more = address(c, counter, "u32", text)
        read = cells(c, values, kind, count, text)

        def step(s: Strand, mask: Mask | None) -> None:
            s.check_set(names + more, mask, text, "its address")
            lanes = s.taking(mask)
            data, unset = read(s)
            counts = counter_of(s, lanes, there(s), text)
            target = LaneAccess(text, "shared", s, lanes, where(s)[lanes])
            s.launch.barriers.send(target, data[lanes], unset[lanes], counts)

        return step

    return bind


REDUCTIONS: dict[str, tuple[Callable[..., Array], tuple[str, ...]]] = {
    "min": (np.min, ("s32", "u32")),
    "max": (np.max, ("s32", "u32")),
    "add": (np.add.reduce, ("s32", "u32")),
    "and": (np.bitwise_and.reduce, ("b32",)),
    "or": (np.bitwise_or.reduce, ("b32",)),
    "xor": (np.bitwise_xor.reduce, ("b32",)),
}

SEND = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"

TOGETHER: dict[str, Special] = {
    **{f"shfl.sync.{mode}.b32": shuffles(mode) for mode in ("up", "down", "bfly", "idx")},
    "vote.sync.all.pred": joined(np.all, "pred", reads_unset=True),
    "vote.sync.any.pred": joined(np.any, "pred", reads_unset=True),
    "vote.sync.uni.pred": joined(agree, "pred", reads_unset=True),
    "bar.warp.sync": warp_sync,
    "bar.sync": block_barrier,
    "barrier.cluster.arrive.aligned": cluster_arrive,
    "barrier.cluster.wait.aligned": cluster_wait,
    "fence.mbarrier_init.release.cluster": nothing,
    "mbarrier.init.shared.b64": make_mbarrier,
    "mbarrier.arrive.shared.b64": arrive,
    "mbarrier.arrive.expect_tx.shared.b64": arrive,
    "mbarrier.try_wait.parity.shared.b64": try_wait,
    "mapa.shared::cluster.u32": map_shared,
    **{f"{SEND}{v}.{k}": sends(n, k) for v, n in VECTORS.items() for k in MOVED},
}
"""How instructions of several threads are bound to operands."""

for word, (join, kinds) in REDUCTIONS.items():
    for kind in kinds:
        TOGETHER[f"redux.sync.{word}.{kind}"] = joined(join, kind, reads_unset=False)
