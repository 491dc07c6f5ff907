"""
Ghosts of ranks whose GPUs reach each other's memory: pulled by the stream, without the host.

1. Once for each field of a run, ranks tell each other the handle of the buffer.
2. An exchange is a meeting with all neighbours (`gpu_meetings.py`), pulls from their buffers, and a
   second meeting, as the next launch may overwrite rims: all by one kernel of the stream.
3. The host is some exchanges ahead, and looks after the other ranks while it waits: a death, a
   failure, and a silence of other ranks are told as ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.ranks.exchange import Exchange
from timetile.runtime.ranks.gpu_meetings import words_for
from timetile.runtime.ranks.parted import PartedField
from timetile.runtime.ranks.peers import missing, waiting_limit, words_of_all
from timetile.runtime.ranks.rims import box_copy
from timetile.runtime.ranks.shared_buffers import SharedBuffers
from timetile.runtime.ranks.sites import HANDLE_BYTES, MeetingSide, Pull, Site

YES = "yes"


class NearGhosts:
    """Exchanges of ghosts between ranks in reach. `shared`: the opened buffers of other ranks."""

    def __init__(self, site: Site, exchange: Exchange, shared: SharedBuffers):
        self.site, self.moved, self.shared = site, exchange, shared
        self.peers = exchange.peers
        self.are_near: bool | None = None
        self.words: Any = None
        """The own words for meetings."""
        self.side: MeetingSide | None = None
        self.sources: dict[PartedField, dict[int, Any]] = {}
        """The buffers of other ranks with the rims of a field, by rank."""
        self.received: dict[PartedField, list[Pull]] = {}
        """The copies to the own ghosts of a field."""

    def are_all_near(self) -> bool:
        """
        Whether all ranks are in reach of all, each with a GPU of its own, asked once by all ranks
        together. On a shared GPU a rank that waits would keep others from their work.
        """
        if self.are_near is None:
            places = words_of_all(self.peers, f"{self.site.host} {self.site.place}")
            is_alone = len(set(places)) == self.peers.count
            size = words_for(self.peers.count)
            self.words = self.site.new((size,), np.dtype(np.uint8))
            self.site.upload(self.words, np.zeros(size, np.uint8))
            near = self.shared.near_ranks(self.words)
            can_meet = is_alone and len(near) == self.peers.count - 1 and self.can_meet()
            answers = words_of_all(self.peers, YES if can_meet else "no")
            self.are_near = all(answer == YES for answer in answers)
        return self.are_near

    def can_meet(self) -> bool:
        """Whether the site can meet others."""
        side = self.site.side_of_meetings(0, [self.words] * self.peers.count)
        if side is not None:
            side.close()
        return side is not None

    def present_side(self) -> MeetingSide:
        """The side of the present run, made by all ranks together."""
        if self.side is None:
            own, rank = self.site.shared(self.words), self.peers.rank
            said = words_of_all(self.peers, own.hex())
            words = [
                self.words if other == rank else self.shared.open(bytes.fromhex(handle))
                for other, handle in enumerate(said)
            ]
            self.side = self.site.side_of_meetings(rank, words)
            self.site.watch(self.look)
            assert self.side is not None
        return self.side

    def look(self) -> None:
        """Look after the other ranks. Raises RankError if one died, failed or is silent."""
        self.peers.look()
        limit = waiting_limit()
        silent = [] if self.side is None else self.side.late(limit)
        if silent:
            error = missing(silent, self.peers.count, limit)
            self.peers.tell(f"{error}")
            raise error

    def meet(self, fields: Sequence[PartedField]) -> None:
        """Let the stream wait for all work so far of the ranks with rims of fields in common."""
        side = self.present_side()
        side.meet(neighbours_of_rank(fields, self.peers.rank))

    def sent_rims(self, fields: Sequence[PartedField]) -> list[Pull]:
        """The copies to the ghosts of fields on other ranks."""
        self.open_sources([field for field in fields if field not in self.sources])
        found: list[Pull] = []
        for field in fields:
            cut, buffer = field.cuts[0], field.buffers[0]
            for transfer in cut.sent:
                part, target = cut.part, transfer.target
                held = part.decomposition.held(target, cut.whole, part.zone)
                boxes = (cut.held, transfer.source_box, held, transfer.box)
                copy = box_copy(*boxes, field.dtype.itemsize)
                found.append(Pull(buffer, self.sources[field][target], copy))
        return found

    def exchange(self, fields: Sequence[PartedField]) -> None:
        """Make the ghosts of fields fresh."""
        self.open_sources([field for field in fields if field not in self.sources])
        side, pulls = self.present_side(), list[Pull]()
        for field in fields:
            if field not in self.received:
                self.received[field] = self.received_rims(field)
            pulls += self.received[field]
            field.age, field.is_settled = 0, True
        side.exchange(neighbours_of_rank(fields, self.peers.rank), pulls)
        self.site.keep_pace()

    def received_rims(self, field: PartedField) -> list[Pull]:
        """The copies that make the ghosts of a field fresh."""
        cut, buffer, found = field.cuts[0], field.buffers[0], list[Pull]()
        for transfer in cut.received:
            source = transfer.source
            held = cut.part.decomposition.held(source, cut.whole, cut.part.zone)
            boxes = (held, transfer.source_box, cut.held, transfer.box)
            copy = box_copy(*boxes, field.dtype.itemsize)
            given = buffer if source == self.peers.rank else self.sources[field][source]
            found.append(Pull(given, buffer, copy))
        return found

    def open_sources(self, fields: Sequence[PartedField]) -> None:
        """Tell neighbours the handles of buffers, and open theirs."""
        sent, places = defaultdict[int, list[Array]](list), defaultdict[int, list[Array]](list)
        taken: list[tuple[PartedField, int, Array]] = []
        for field in fields:
            self.sources[field] = {}
            neighbours = neighbours_of_rank([field], self.peers.rank)
            if not neighbours:
                continue
            own = np.frombuffer(self.site.shared(field.buffers[0]), np.uint8)
            for other in neighbours:
                handle = np.empty(HANDLE_BYTES, np.uint8)
                sent[other].append(own)
                places[other].append(handle)
                taken.append((field, other, handle))
        if sent:
            self.moved.move(sent, places)
        for field, other, handle in taken:
            self.sources[field][other] = self.shared.open(handle.tobytes())

    def end_run(self) -> None:
        """The buffers of other ranks are closed by `SharedBuffers`, after all work."""
        self.site.synchronize()
        if self.side is not None:
            self.side.close()
            self.side = None
        self.sources.clear()
        self.received.clear()

    def close(self) -> None:
        """Give back the own words."""
        if self.words is not None:
            self.site.free(self.words)
            self.words = None


def neighbours_of_rank(fields: Sequence[PartedField], own: int) -> tuple[int, ...]:
    """The ranks that give or take rims of fields, in order."""
    found: set[int] = set()
    for field in fields:
        found |= {transfer.source for transfer in field.cuts[0].received}
        found |= {transfer.target for transfer in field.cuts[0].sent}
    return tuple(sorted(found - {own}))
