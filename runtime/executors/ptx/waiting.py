"""Waits of threads: barriers of a block and of a cluster, and phases of arrivals and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from timetile.dialects.tile import LANES
from timetile.runtime.executors.ptx.memory import WORD_BYTES, LaneAccess, PtxMemory, Words
from timetile.runtime.executors.ptx.strand import Strand
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import Buffer, Clocks, Ints, Mask


@dataclass
class Sent:
    """Cells on their way to another block."""

    buffer: Buffer
    words: Ints
    data: Words
    unset: Mask


@dataclass
class Mbarrier:
    """
    Counts arrivals and bytes: how many each phase expects, how many the present phase misses, and
    what arriving threads knew, in the present phase (`new`) and the one before (`old`).
    """

    expected: int
    missing: int
    new: Ints
    old: Ints
    maker: int
    """The warp that initialised the mbarrier, and the time by the warp's own clock."""
    made: int
    bytes: int = 0
    phase: int = 0
    sent: list[Sent] = field(default_factory=list[Sent])

    def complete(self) -> None:
        """Begin the next phase if nothing is missing in the present phase."""
        if self.missing == 0 and self.bytes == 0:
            self.phase += 1
            self.missing = self.expected
            self.old, self.new = self.new, np.zeros_like(self.new)


class Barriers:
    """The barriers of a launch."""

    def __init__(self, strands: Sequence[Strand], memory: PtxMemory, clocks: Clocks, cluster: int):
        self.strands, self.memory, self.clocks, self.cluster = strands, memory, clocks, cluster
        self.at_block: Counter[int] = Counter()
        """Lanes waiting at each block's barrier."""
        self.at_cluster: Counter[int] = Counter()
        """Warps that have arrived at each cluster's barrier."""
        self.arrived: dict[int, Ints] = {}
        """The knowledge of each arrived warp at its arrival."""
        self.counted: dict[tuple[int, int], Mbarrier] = {}
        """Mbarriers, by block and word of shared memory."""
        self.released: dict[int, Ints] = {}
        """The knowledge released with each word of global memory."""

    def release(self, blocks: Ints) -> None:
        """Let all warps of some blocks go on."""
        self.memory.events += 1
        for strand in self.strands:
            lanes = strand.lanes_of(blocks)
            self.clocks.warp_syncs[strand.threads[lanes]] += 1
            strand.blocked &= ~lanes

    def meet_block(self, strand: Strand, mask: Mask | None) -> None:
        """Let lanes wait for all other lanes of their blocks."""
        lanes = strand.taking(mask)
        strand.blocked[lanes] = True
        self.at_block.update(strand.blocks[lanes].tolist())
        warps = self.clocks.block_warps
        blocks: list[int] = np.unique(strand.blocks[lanes]).tolist()
        for block in blocks:
            if self.at_block[block] < warps * LANES:
                continue
            del self.at_block[block]
            self.clocks.meet(np.arange(block * warps, (block + 1) * warps), warps)
            self.release(np.array([block]))

    # A cluster's barrier, in two halves.

    def arrive_cluster(self, strand: Strand, mask: Mask | None, text: str) -> None:
        """Let warps arrive at the barrier of their clusters, and go on."""
        blocks = strand.whole_warps(mask, text)
        warps = strand.warps_of(blocks)
        self.clocks.tick(warps)
        for block, warp in zip(blocks.tolist(), warps.tolist()):
            if warp in self.arrived:
                raise SimtError(text, "arrives twice at the barrier of its cluster")
            self.arrived[warp] = self.clocks.known[warp].copy()
            self.at_cluster[block // self.cluster] += 1

    def meet_cluster(self, strand: Strand, mask: Mask | None, text: str) -> None:
        """Let warps wait for all other warps of their clusters to arrive."""
        blocks = strand.whole_warps(mask, text)
        if any(int(warp) not in self.arrived for warp in strand.warps_of(blocks)):
            raise SimtError(text, "waits at the barrier of its cluster, and has not arrived")
        strand.blocked |= strand.lanes_of(blocks)
        self.at_cluster.update((blocks // self.cluster).tolist())
        team = self.clocks.block_warps * self.cluster
        clusters: list[int] = np.unique(blocks // self.cluster).tolist()
        for number in clusters:
            # Each warp counts twice: when arriving, and when waiting.
            if self.at_cluster[number] < 2 * team:
                continue
            del self.at_cluster[number]
            warps = range(number * team, (number + 1) * team)
            known = np.maximum.reduce([self.arrived.pop(warp) for warp in warps])
            for warp in warps:
                self.clocks.acquire(warp, known)
            self.release(np.arange(number * self.cluster, (number + 1) * self.cluster))

    # Arrivals and bytes.

    def mbarrier(self, block: int, word: int, warp: int, text: str) -> Mbarrier:
        """The mbarrier at a word. Raises SimtError if a warp cannot know of the initialisation."""
        found = self.counted.get((block, word))
        if found is None:
            raise SimtError(text, "no thread has initialised the mbarrier")
        known = self.clocks.known[warp, found.maker % self.clocks.team_warps]
        if warp != found.maker and known <= found.made:
            raise SimtError(text, "no earlier barrier shows the mbarrier as initialised")
        return found

    def make(
        self, strand: Strand, lane: int, place: tuple[int, int], count: int, text: str
    ) -> None:
        """Let a lane make one ready."""
        if place in self.counted:
            raise SimtError(text, "makes an mbarrier ready that is ready")
        warp = int(self.clocks.warps[strand.threads[lane]])
        nobody = np.zeros(self.clocks.team_warps, dtype=np.int64)
        now = int(self.clocks.times(np.array([warp]))[0])
        self.counted[place] = Mbarrier(count, count, nobody, nobody.copy(), warp, now)

    def arrive(
        self, strand: Strand, mask: Mask | None, words: Ints, blocks: Ints, bytes: Ints, text: str
    ) -> None:
        """
        Let lanes arrive, each at its block's mbarrier at a word, with a number of bytes to expect.
        """
        lanes = strand.taking(mask)
        self.clocks.tick(np.unique(self.clocks.warps[strand.threads[lanes]]))
        self.memory.events += 1
        warps = self.clocks.warps[strand.threads[lanes]]
        for warp, block, word in np.unique(
            np.stack([warps, blocks, words], axis=1), axis=0
        ).tolist():
            chosen = (warps == warp) & (blocks == block) & (words == word)
            counted = self.mbarrier(block, word, warp, text)
            counted.missing -= int(chosen.sum())
            counted.bytes += int(bytes[chosen].sum())
            if counted.missing < 0:
                raise SimtError(text, "more threads arrive than are expected")
            counted.new = np.maximum(counted.new, self.clocks.known[warp])
            counted.complete()

    def send(self, target: LaneAccess, data: Words, unset: Mask, counts: tuple[Ints, Ints]) -> None:
        """
        Let lanes send words to shared memory, a row each. On arrival the mbarriers at `counts`,
        blocks and words, count the bytes.
        """
        buffer = self.memory.shared
        words = self.memory.shared_words(target, data.shape[1] * WORD_BYTES)
        self.memory.note_write(target, buffer, target.lanes, words)
        buffer.unset[words] = True
        blocks, places = counts
        warps = self.clocks.warps[target.strand.threads[target.lanes]]
        self.clocks.tick_send(np.unique(warps))
        self.memory.events += 1
        for warp, block, place in np.unique(np.stack([warps, *counts], axis=1), axis=0).tolist():
            chosen = (warps == warp) & (blocks == block) & (places == place)
            counted = self.mbarrier(block, place, warp, target.text)
            counted.sent.append(Sent(buffer, words[chosen], data[chosen], unset[chosen]))
            counted.new = np.maximum(counted.new, self.clocks.known[warp])

    def is_complete(
        self, strand: Strand, lane: int, place: tuple[int, int], parity: int, text: str
    ) -> bool:
        """
        Whether a lane sees the end of the phase with a parity; the lane then learns the knowledge
        of all arrivals. Sent words arrive now: no earlier than required.
        """
        warp = int(self.clocks.warps[strand.threads[lane]])
        counted = self.mbarrier(*place, warp, text)
        for sent in counted.sent:
            sent.buffer.data[sent.words], sent.buffer.unset[sent.words] = sent.data, sent.unset
            counted.bytes -= sent.words.size * WORD_BYTES
        if counted.sent:
            counted.sent = []
            counted.complete()
        if counted.phase % 2 == parity:
            return False
        self.clocks.acquire(warp, counted.old)
        return True

    # Words of global memory that count arriving blocks.

    def publish(self, strand: Strand, lanes: Ints, place: int) -> None:
        """Let lanes count themselves in a word, after all of their earlier accesses."""
        self.memory.events += 1
        warps = np.unique(self.clocks.warps[strand.threads[lanes]])
        self.clocks.tick(warps)
        for warp in warps.tolist():
            known = self.clocks.known[warp]
            self.released[place] = np.maximum(self.released.get(place, known), known)

    def learn(self, strand: Strand, lanes: Ints, place: int) -> None:
        """Let lanes read a word, and learn the knowledge released with the word."""
        if (known := self.released.get(place)) is not None:
            for warp in np.unique(self.clocks.warps[strand.threads[lanes]]).tolist():
                self.clocks.acquire(warp, known)

    def check_end(self) -> None:
        """Raise SimtError if the launch ends before all sent words have arrived."""
        for (block, _), counted in sorted(self.counted.items()):
            if counted.sent:
                raise SimtError(
                    None, f"block {block} ends before all cells sent to it have arrived"
                )
