"""Global and shared memory as bytes, and asynchronous copies on their way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.runtime.executors.ptx.strand import Strand
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import Buffer, Clocks, Ints, Mask, some

Words = NDArray[np.uint8]

WORD_BYTES = 1
"""Bytes of the smallest access."""

FIELD_BITS, ORIGIN = 40, 1 << 39
"""
Distance of fields in bytes, and the room before a field, equal to the room behind: no access strays
into another field.
"""

WINDOW_BITS = 24
"""
Bits of an address inside shared memory. Higher bits are 0, or the block's rank in its cluster plus
1.
"""


def words_of(data: NDArray[Any]) -> Words:
    """A copy of an array as bytes."""
    return np.ascontiguousarray(data).copy().reshape(-1).view(np.uint8)


@dataclass(slots=True)
class LaneAccess:
    """An access to memory: the instruction, the space, the lanes, and an address for each lane."""

    text: str
    space: str
    strand: Strand
    lanes: Ints
    address: Ints


@dataclass
class Copy:
    """An asynchronous copy of several lanes: the data, and the target, a row for each lane."""

    text: str
    target: Buffer
    words: Ints
    data: Words
    unset: Mask
    lanes: Ints
    group: Ints


class PtxMemory:
    """The memory of a launch: fields by number, and the shared memory of all blocks."""

    def __init__(self, fields: Sequence[Buffer], shared: Buffer, clocks: Clocks, cluster: int):
        self.fields, self.shared, self.clocks, self.cluster = fields, shared, clocks, cluster
        self.copies: dict[int, list[Copy]] = {}
        """Copies on their way, by strand."""
        self.loose: Sequence[Buffer] = ()
        """
        Fields that may take unset cells: messages between blocks, and lists of points, where lanes
        note more cells than are read.
        """
        self.events = 0
        """The number of events, so far, for which a thread may have waited."""

    @staticmethod
    def address_of(number: int) -> int:
        """Where a field begins."""
        return (number + 1 << FIELD_BITS) + ORIGIN

    def places(self, access: LaneAccess, size: int) -> Iterator[tuple[Buffer, Ints, Ints]]:
        """Buffers, the lanes accessing each, and the words of `size` bytes, a row for each lane."""
        text, lanes, address = access.text, access.lanes, access.address
        if some(address % size):
            raise SimtError(text, f"an access of {size} bytes is not aligned")
        if access.space == "shared":
            yield self.shared, lanes, self.shared_words(access, size)
            return
        numbers = address >> FIELD_BITS
        # Most accesses are to a single field.
        alike = numbers.size > 0 and not some(numbers != numbers[0])
        found: list[int] = [int(numbers[0])] if alike else np.unique(numbers).tolist()
        for number in found:
            if not 0 < number <= len(self.fields):
                raise SimtError(text, f"there is no memory at {int(address[0]):#x}")
            buffer, who, at = self.fields[number - 1], lanes, address
            if not alike:
                chosen = numbers == number
                who, at = lanes[chosen], address[chosen]
            yield buffer, who, self.checked(text, buffer, at - self.address_of(number - 1), size)

    def shared_words(self, access: LaneAccess, size: int) -> Ints:
        """
        The words of an access to shared memory of the own block, or of a block in the cluster.
        """
        window, offset = access.address >> WINDOW_BITS, access.address & (1 << WINDOW_BITS) - 1
        block = access.strand.blocks[access.lanes]
        if some(window):
            if (window > self.cluster).any():
                raise SimtError(access.text, "the cluster has no such block")
            first = block // self.cluster * self.cluster
            block = np.where(window > 0, first + window - 1, block)
        within = self.checked(access.text, self.shared, offset, size)
        return within + block[:, None] * self.shared.cells

    @staticmethod
    def checked(text: str, buffer: Buffer, offset: Ints, size: int) -> Ints:
        """The words from a byte on; SimtError where one lies outside the buffer."""
        words = (offset // WORD_BYTES)[:, None] + np.arange(size // WORD_BYTES)
        buffer.check_bounds(text, words)
        return words

    # Plain accesses.

    def load(self, access: LaneAccess, size: int, *, weak: bool) -> tuple[Words, Mask]:
        """
        The words at an address, a row for each lane, and which words are unset. A strong access may
        race.
        """
        strand = access.strand
        data = np.zeros((strand.lanes, size // WORD_BYTES), dtype=np.uint8)
        unset = np.zeros(data.shape, dtype=bool)
        for buffer, who, words in self.places(access, size):
            if weak:
                threads = np.repeat(strand.threads[who], words.shape[1])
                buffer.note_read(access.text, words.reshape(-1), threads, self.clocks)
            data[who], unset[who] = buffer.data[words], buffer.unset[words]
        return data, unset

    def store(self, access: LaneAccess, data: Words, unset: Mask, *, weak: bool) -> None:
        """
        Write a row of words for each lane, given for all lanes. Words written to a field must be
        set, unless the field is loose.
        """
        size = data.shape[1] * WORD_BYTES
        for buffer, who, words in self.places(access, size):
            if weak:
                self.note_write(access, buffer, who, words)
            is_loose = any(buffer is each for each in self.loose)
            if access.space == "global" and not is_loose and unset[who].any():
                raise SimtError(access.text, "stores a value that was never set")
            buffer.data[words], buffer.unset[words] = data[who], unset[who]
        self.events += 1

    def note_write(self, access: LaneAccess, buffer: Buffer, lanes: Ints, words: Ints) -> None:
        """Let lanes write a row of words each. Raises SimtError for a race."""
        threads = np.repeat(access.strand.threads[lanes], words.shape[1])
        buffer.note_write(access.text, words.reshape(-1), threads, self.clocks)

    # Asynchronous copies: the target is unset until a thread has waited for the copy.

    def copy(self, target: LaneAccess, source: Ints, size: int, taken: Ints) -> None:
        """
        Start copies of `size` bytes from global memory. `taken` bytes are copied, other bytes
        become 0.
        """
        text, strand = target.text, target.strand
        if not ((taken == 0) | (taken == size)).all():
            raise SimtError(text, "takes a part of the bytes that it copies")
        reading = taken > 0
        read = LaneAccess(text, "global", strand, target.lanes[reading], source[reading])
        data, unset = self.load(read, size, weak=True)
        for buffer, who, words in self.places(target, size):
            if buffer.awaited[words].any():
                raise SimtError(text, "copies to where a copy is on its way")
            self.note_write(target, buffer, who, words)
            buffer.awaited[words], buffer.unset[words] = True, True
            made = Copy(text, buffer, words, data[who], unset[who], who, strand.committed[who])
            self.copies.setdefault(strand.number, []).append(made)

    def wait_for_copies(self, strand: Strand, mask: Mask | None, pending: int) -> None:
        """Let the copies of all groups but the last arrive, for the waiting lanes."""
        waits = np.full(strand.lanes, True) if mask is None else mask
        left: list[Copy] = []
        for copy in self.copies.pop(strand.number, []):
            arrived = waits[copy.lanes] & (copy.group < strand.committed[copy.lanes] - pending)
            if not some(arrived):
                left.append(copy)
                continue
            words = copy.words[arrived]
            target = copy.target
            target.data[words], target.unset[words] = copy.data[arrived], copy.unset[arrived]
            target.awaited[words] = False
            threads = np.repeat(strand.threads[copy.lanes[arrived]], words.shape[1])
            target.note_arrival(copy.text, words.reshape(-1), threads, self.clocks)
            if not arrived.all():
                rest = ~arrived
                left.append(
                    Copy(
                        copy.text, target, copy.words[rest], copy.data[rest],
                        copy.unset[rest], copy.lanes[rest], copy.group[rest],
                    )
                )  # fmt: skip
        if left:
            self.copies[strand.number] = left
