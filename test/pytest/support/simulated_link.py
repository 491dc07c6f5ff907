"""Rims between simulated devices of ranks, in messages of the ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from timetile.runtime.ranks.exchange import as_message, unpack
from timetile.runtime.ranks.peers import Peers
from timetile.runtime.ranks.sites import RimMessage, Site


class SimulatedLink:
    """A link of simulated devices; see `RimLink`."""

    used: ClassVar[list[int]] = []
    """The ranks that received rims."""

    def __init__(self, site: Site, peers: Peers):
        self.site, self.peers = site, peers

    def exchange(self, sent: Sequence[RimMessage], received: Sequence[RimMessage]) -> None:
        """Send and receive rims, joined to a message for each rank."""
        outgoing, incoming = defaultdict[int, list[Any]](list), defaultdict[int, list[Any]](list)
        for message in sent:
            room = self.site.new((message.copy.bytes // size_of(message),), type_of(message))
            self.site.pull(message.buffer, room, message.copy)
            outgoing[message.rank].append(room)
        for message in received:
            room = self.site.new((message.copy.bytes // size_of(message),), type_of(message))
            incoming[message.rank].append((message, room))
        self.site.synchronize()
        taken = {
            rank: as_message([room.data for room in rooms]) for rank, rooms in outgoing.items()
        }
        given = {
            rank: np.empty(sum(message.copy.bytes for message, _ in rooms), np.uint8)
            for rank, rooms in incoming.items()
        }
        self.peers.exchange(taken, given)
        for rank, rooms in incoming.items():
            unpack(given[rank], [room.data for _, room in rooms])
            for message, room in rooms:
                room.known[...] = True
                self.site.pull(room, message.buffer, message.copy)
        self.site.synchronize()
        for room in (*chain(*outgoing.values()), *(room for _, room in chain(*incoming.values()))):
            self.site.free(room)
        self.used.append(self.peers.rank)

    def close(self) -> None:
        """Nothing is left."""


def type_of(message: RimMessage) -> np.dtype[Any]:
    """The type of a rim's cells."""
    return message.buffer.data.dtype


def size_of(message: RimMessage) -> int:
    """The bytes of a cell of a rim."""
    return type_of(message).itemsize
