"""Messages between blocks in the SIMT interpreter: senders, takers, and knowledge of both.

A sender may write a word again once the sender knows that the message before was taken: the reader
has sent a message since, lane by lane, and the sender has taken the reader's message. Nothing else
orders messages.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from timetile.dialects.tile import LANES
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import Clocks, Ints, Mask, Values


class Messages:
    """The messages of one launch, by the first word of a cell."""

    def __init__(self, words: int, clocks: Clocks):
        self.clocks = clocks
        self.numbers = np.zeros(words, dtype=np.int64)
        self.bits = np.zeros(words, dtype=np.uint64)
        self.unset = np.full(words, True)
        self.taker = np.full(words, -1, dtype=np.int64)
        """The thread that took the word's message, and the time by the thread's own count."""
        self.taken_at = np.zeros(words, dtype=np.int64)
        self.sender = np.full(words, -1, dtype=np.int64)
        team = clocks.team_warps
        self.brought = np.zeros((words, team), dtype=np.int64)
        """The knowledge of the sender's lane about equal lanes of the team's other warps."""
        warps = clocks.known.shape[0]
        self.known = np.zeros((warps, LANES, team), dtype=np.int64)
        """
        The knowledge of each lane about equal lanes of the team's warps: the number of messages
        taken.
        """

    def places(self, who: Ints) -> tuple[Ints, Ints]:
        """Warps and lanes of threads."""
        return self.clocks.warps[who], who % LANES

    def check_bounds(self, op: Operation, at: Ints, words: int) -> None:
        """
        Raise SimtError unless a cell lies in the buffer, and begins at a multiple of its words.
        """
        wild = (at < 0) | (at + words > self.numbers.size) | (at % words != 0)
        if wild.any():
            raise SimtError(
                op, f"a message at word {int(at[wild][0])} of a buffer of {self.numbers.size}"
            )

    def post(
        self, op: Operation, at: Ints, who: Ints, number: Ints, cells: Values, unset: Mask | None
    ) -> None:
        """Write a cell for each thread."""
        words = cells.dtype.itemsize // 4
        self.check_bounds(op, at, words)
        if np.unique(at).size != at.size:
            raise SimtError(op, "two threads write one message")
        warps, lanes = self.places(who)
        taker = self.taker[at]
        first = (self.numbers[at] == 0) & (taker < 0)
        alone = ~first & (taker < 0)
        if alone.any():
            old = int(self.numbers[at][alone][0])
            raise SimtError(op, f"overwrites message {old}, which no thread has taken")
        taker_warps, taker_lanes = self.places(np.maximum(taker, 0))
        team = self.clocks.team_warps
        known = self.known[warps, lanes, taker_warps % team] > self.taken_at[at]
        known &= (taker_lanes == lanes) & (taker_warps // team == warps // team)
        unknown = ~first & ~known
        if unknown.any():
            old = int(self.numbers[at][unknown][0])
            raise SimtError(op, f"overwrites message {old}, and cannot know that it was taken")
        self.numbers[at] = number
        self.bits[at] = cells.view(f"u{cells.dtype.itemsize}")
        self.unset[at] = False if unset is None else unset
        self.taker[at] = -1
        self.sender[at] = who
        self.brought[at] = self.known[warps, lanes]

    def have_come(self, op: Operation, at: Ints, number: Ints, words: int) -> bool:
        """Whether all words of the messages with these numbers are there."""
        self.check_bounds(op, at, words)
        late = self.numbers[at] > number
        if late.any():
            wanted, there = int(number[late][0]), int(self.numbers[at][late][0])
            raise SimtError(op, f"waits for message {wanted}, and message {there} is there")
        return bool((self.numbers[at] == number).all())

    def take(self, at: Ints, who: Ints, cells: Values) -> Mask:
        """Let threads read a cell each into `cells`. Returns the threads whose cell is unset."""
        warps, lanes = self.places(who)
        sender = self.sender[at]
        alike = (sender >= 0) & (sender % LANES == lanes)
        learnt = np.where(alike[:, None], self.brought[at], 0)
        self.known[warps, lanes] = np.maximum(self.known[warps, lanes], learnt)
        own = warps % self.clocks.team_warps
        self.taken_at[at] = self.known[warps, lanes, own]
        self.taker[at] = who
        self.known[warps, lanes, own] += 1
        bits = self.bits[at].astype(f"u{cells.dtype.itemsize}")
        cells[:] = bits.view(cells.dtype)
        return self.unset[at]
