"""Buffers of a launch, with unset cells and the last accesses to each cell.

Two accesses to a cell by different threads, one of them a write, must be ordered: inside a warp by
a warp synchronisation or a barrier, inside a block by a barrier or its two halves. Between blocks
of a launch nothing orders accesses, except sent cells between blocks of a cluster.

Vector clocks record the knowledge of the warps of a team: a block or a cluster, whose threads may
synchronise. A warp's own clock ticks at each release: at a barrier, at an arrival, at a send. A
waiting warp acquires the clocks of the releasing warps. An access by warp A at time t comes before
an access by warp B exactly if B then knows a time of A later than t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from timetile.dialects.simt import CopyAsyncOp
from timetile.dialects.tile import LANES
from timetile.runtime.executors.simt.errors import SimtError, describe

Ints = NDArray[np.int64]
Values = NDArray[Any]
Mask = NDArray[np.bool_]

Where = Operation | str
"""The author of an access: an operation, or an instruction's text."""

NOBODY, MANY = -1, -2


SENDS = 1 << 20
"""Times of a warp between two of its barriers or arrivals: one more for each send."""


@dataclass
class Clocks:
    """
    Threads of a launch, warp synchronisations passed by each thread, and what each warp knows about
    others in its team: `known[w, v]` is the time up to which warp w knows the v-th warp. Up to
    `together[w]`, all lanes of w know each other.
    """

    threads: Ints
    warps: Ints
    blocks: Ints
    warp_syncs: Ints
    known: Ints
    together: Ints
    block_warps: int

    @staticmethod
    def of(grid: int, block: int, cluster: int = 1) -> Clocks:
        """The clocks at the start of a launch."""
        threads = np.arange(grid * block, dtype=np.int64)
        warps = block // LANES
        known = np.zeros((grid * warps, warps * cluster), dtype=np.int64)
        together = np.zeros(grid * warps, dtype=np.int64)
        syncs = np.zeros_like(threads)
        return Clocks(threads, threads // LANES, threads // block, syncs, known, together, warps)

    @property
    def team_warps(self) -> int:
        """Warps of a team."""
        return self.known.shape[1]

    def times(self, warps: Ints) -> Ints:
        """The own clocks of warps."""
        return self.known[warps, warps % self.team_warps]

    def tick(self, warps: Ints) -> None:
        """Let warps release their accesses: later accesses get later times."""
        place = warps % self.team_warps
        self.known[warps, place] = (self.known[warps, place] // SENDS + 1) * SENDS

    def tick_send(self, warps: Ints) -> None:
        """Let warps release their accesses by a send, before a later arrival."""
        self.known[warps, warps % self.team_warps] += 1

    def meet(self, warps: Ints, group: int) -> None:
        """Let `group` consecutive warps release, and acquire from each other."""
        self.tick(warps)
        together = self.known[warps].reshape(-1, group, self.team_warps).max(axis=1)
        self.known[warps] = np.repeat(together, group, axis=0)
        self.together[warps] = self.times(warps)

    def acquire(self, warp: int, known: Ints) -> None:
        """Let a warp learn the knowledge of the warps awaited, its own lanes included."""
        np.maximum(self.known[warp], known, out=self.known[warp])
        place = warp % self.team_warps
        self.together[warp] = max(self.together[warp], known[place])

    def knows(self, who: Ints, warps: Ints, times: Ints) -> Mask:
        """Whether threads know warps' accesses at given times. Nothing is known of other teams."""
        own, team = self.warps.take(who), self.team_warps
        known = self.known[own, warps % team]
        np.copyto(known, self.together.take(own), where=own == warps)
        return (own // team == warps // team) & (known > times)

    def knows_block(self, who: Ints, blocks: Ints, times: Ints) -> Mask:
        """Whether threads know all accesses of all warps of blocks at given times."""
        known = np.full(who.size, True)
        for k in range(self.block_warps):
            known &= self.knows(who, blocks * self.block_warps + k, times)
        return known


def is_rising(at: Ints) -> bool:
    """Each cell lies behind the cell before: no cell occurs twice."""
    return not some(at[1:] <= at[:-1])


def some(values: Values) -> bool:
    """Whether some value is not 0: counting is faster than `any` for the lanes of a block."""
    return bool(np.count_nonzero(values))


class Buffer:
    """
    One buffer of `cells` cells, in `instances` copies: one for each block for shared memory, one
    for global memory.
    """

    def __init__(self, data: NDArray[Any], instances: int = 1, *, unset: bool = False):
        self.data = data.reshape(-1)
        self.cells = self.data.size // instances
        self.unset = np.full(self.data.size, unset)
        self.awaited = np.full(self.data.size, False)
        """Whether an asynchronous copy to the cell is on its way."""
        shape = self.data.size
        self.writer = np.full(shape, NOBODY, dtype=np.int64)
        self.write_times = np.zeros(shape, dtype=np.int64)
        self.write_syncs = np.zeros(shape, dtype=np.int64)
        self.reader = np.full(shape, NOBODY, dtype=np.int64)
        self.reader_warp = np.full(shape, NOBODY, dtype=np.int64)
        self.reader_block = np.full(shape, NOBODY, dtype=np.int64)
        self.read_times = np.zeros(shape, dtype=np.int64)
        self.read_syncs = np.zeros(shape, dtype=np.int64)
        self.last_write: Where | None = None
        self.last_read: Where | None = None

    @staticmethod
    def copy_of(data: NDArray[Any]) -> Buffer:
        """A buffer with a copy of a field, all cells set."""
        return Buffer(data.copy())

    def forget(self) -> None:
        """End a launch: all later accesses are ordered after."""
        self.writer[:] = NOBODY
        self.reader[:] = NOBODY
        self.reader_block[:] = NOBODY
        self.reader_warp[:] = NOBODY

    def check_bounds(self, op: Where, at: Ints) -> None:
        """Every address lies in the buffer."""
        # As a number without a sign, a negative address is large.
        wild = at.view(np.uint64) >= self.cells
        if some(wild):
            raise SimtError(op, f"accesses cell {int(at[wild][0])} of a buffer of {self.cells}")

    def note_read(self, op: Where, at: Ints, who: Ints, clocks: Clocks) -> None:
        """Record reads; SimtError where another thread's write is not ordered before."""
        self.check_writes(op, at, who, clocks, "reads what another thread wrote")
        self.last_read = op
        warp, block = clocks.warps.take(who), clocks.blocks.take(who)
        times = clocks.times(warp)
        reader = self.reader.take(at)
        # The noted reads of a cell belong to one epoch of the readers; of blocks, all reads are
        # noted.
        same_epoch = reader != NOBODY
        same_epoch &= self.read_times.take(at) // SENDS == times // SENDS
        if some(same_epoch):
            self.reader[at] = np.where(same_epoch & (reader != who), MANY, who)
            other_warp = self.reader_warp.take(at) != warp
            self.reader_warp[at] = np.where(same_epoch & other_warp, MANY, warp)
        else:
            self.reader[at], self.reader_warp[at] = who, warp
        blocks = self.reader_block.take(at)
        others = (blocks != NOBODY) & (blocks != block)
        self.reader_block[at] = np.where(others, MANY, block) if some(others) else block
        self.read_times[at] = times
        self.read_syncs[at] = clocks.warp_syncs.take(who)
        if is_rising(at):
            return
        # Several lanes may read one cell in an instruction.
        order = np.argsort(at, kind="stable")
        sorted_at, sorted_who = at[order], who[order]
        repeated = sorted_at[1:][
            (sorted_at[1:] == sorted_at[:-1]) & (sorted_who[1:] != sorted_who[:-1])
        ]
        if repeated.size:
            self.reader[repeated] = MANY
            self.mark_many(order, sorted_at, clocks.warps[sorted_who], self.reader_warp)
            self.mark_many(order, sorted_at, clocks.blocks[sorted_who], self.reader_block)

    @staticmethod
    def mark_many(order: Ints, sorted_at: Ints, group: Ints, table: Ints) -> None:
        """Mark the cells read by threads of several groups at once."""
        differs = (sorted_at[1:] == sorted_at[:-1]) & (group[1:] != group[:-1])
        table[sorted_at[1:][differs]] = MANY

    def note_write(self, op: Where, at: Ints, who: Ints, clocks: Clocks) -> None:
        """Record writes; SimtError where another thread's access is not ordered before."""
        if not is_rising(at):
            unique, counts = np.unique(at, return_counts=True)
            if unique.size != at.size:
                raise SimtError(op, f"two threads write cell {int(unique[counts > 1][0])} at once")
        self.check_writes(op, at, who, clocks, "overwrites what another thread wrote")
        reader = self.reader.take(at)
        other = (reader != NOBODY) & (reader != who)
        if some(other):
            self.check_readers(op, at, who, clocks, other)
        self.last_write = op
        self.writer[at] = who
        self.write_times[at] = clocks.times(clocks.warps[who])
        self.write_syncs[at] = clocks.warp_syncs[who]

    def note_arrival(self, op: Where, at: Ints, who: Ints, clocks: Clocks) -> None:
        """
        Note the arrival of an asynchronous copy: a write at the time of the wait, by the waiting
        thread.
        """
        self.last_write = op
        self.writer[at] = who
        self.write_times[at] = clocks.times(clocks.warps[who])
        self.write_syncs[at] = clocks.warp_syncs[who]

    def check_writes(self, op: Where, at: Ints, who: Ints, clocks: Clocks, what: str) -> None:
        """
        Raise SimtError, which says `what` the access does, unless writes by others are ordered
        before the access by `who`.
        """
        writer = self.writer.take(at)
        other = (writer != NOBODY) & (writer != who)
        if not some(other):
            return
        same_warp = clocks.warps[writer] == clocks.warps[who]
        ordered = clocks.knows(who, clocks.warps[writer], self.write_times[at])
        ordered |= same_warp & (self.write_syncs[at] < clocks.warp_syncs[who])
        race = other & ~ordered
        if some(race):
            self.report(op, int(at[race][0]), what, self.last_write)

    def check_readers(self, op: Where, at: Ints, who: Ints, clocks: Clocks, other: Mask) -> None:
        """The reads by others are ordered before the write by `who`."""
        readers, blocks, times = self.reader_warp[at], self.reader_block[at], self.read_times[at]
        one = readers >= 0
        ordered = one & clocks.knows(who, np.maximum(readers, 0), times)
        if not ordered[other].all():
            ordered |= (blocks >= 0) & clocks.knows_block(who, np.maximum(blocks, 0), times)
        ordered &= blocks != MANY
        own_warp = readers == clocks.warps[who]
        ordered |= own_warp & (self.read_syncs[at] < clocks.warp_syncs[who])
        race = other & ~ordered
        if some(race):
            self.report(
                op,
                int(at[race][0]),
                "overwrites what another thread may still read",
                self.last_read,
            )

    @staticmethod
    def report(op: Where, cell: int, what: str, earlier: Where | None) -> None:
        """Raise SimtError for two accesses without a synchronisation in between."""
        by = f"; the other access is {describe(earlier)}" if earlier is not None else ""
        raise SimtError(op, f"{what}, cell {cell}, without a synchronisation between{by}")


@dataclass
class PendingCopy:
    """Asynchronous copies on their way."""

    op: CopyAsyncOp
    target: Buffer
    at: Ints
    cells: Values
    unset: Mask
    who: Ints
    group: Ints
