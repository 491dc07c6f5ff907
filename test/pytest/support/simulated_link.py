"""Simulated devices of ranks: rims in messages of the ranks, and meetings by counts."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, ClassVar, Protocol

import numpy as np

from timetile.runtime.executors.homes import MarkedCells
from timetile.runtime.ranks.exchange import as_message, unpack
from timetile.runtime.ranks.gpu_meetings import LINE
from timetile.runtime.ranks.peers import Peers
from timetile.runtime.ranks.rims import BoxCopy
from timetile.runtime.ranks.sites import Pull, RimMessage, Site


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


class Recording(Protocol):
    """Records work."""

    recorded: Any
    """None while nothing is recorded."""


class Waiting(Protocol):
    """A site whose host may wait."""

    def pull(self, source: Any, target: Any, copy: BoxCopy) -> None:
        """Copy a box."""
        ...

    def put_work(self, work: Callable[[], None]) -> None:
        """Put work on the stream."""
        ...

    def synchronize(self) -> None:
        """Wait for all work."""
        ...


class HostsThatWait:
    """Sites whose hosts wait at each meeting with other threads."""

    def watch(self, look: Callable[[], None]) -> None:
        """Nothing is waited for behind a meeting."""

    def keep_pace(self) -> None:
        """The host is never ahead."""

    @property
    def place(self) -> str:
        """Each simulated device of a rank is in a world of its own."""
        return f"{id(getattr(self, 'world', None))}"


class SimulatedSide:
    """A site's side of meetings; see `MeetingSide`. Ranks are threads: the host waits."""

    met: ClassVar[list[int]] = []
    """The numbers of sites that met others."""

    def __init__(self, site: Waiting, world: Recording, number: int, words: Sequence[MarkedCells]):
        self.site, self.world, self.number = site, world, number
        self.counts = [each.data.view(np.uint32)[:: LINE // 4] for each in words]

    def meet(self, others: tuple[int, ...]) -> None:
        """Meet others now, or in a graph."""
        if not others:
            return
        if self.world.recorded is not None:
            self.site.put_work(lambda: self.meet_now(others))
        else:
            self.site.synchronize()
            self.meet_now(others)

    def meet_now(self, others: tuple[int, ...]) -> None:
        """Count, tell others the count, and wait for theirs."""
        own, count, end = self.counts[self.number], len(self.counts), time.monotonic() + 60
        for other in others:
            own[other] += 1
            self.counts[other][count + self.number] = own[other]
        while any(own[count + other] < own[other] for other in others):
            assert time.monotonic() < end, "a neighbour never came"
            time.sleep(1e-4)
        self.met.append(self.number)

    def exchange(self, others: tuple[int, ...], pulls: Sequence[Pull]) -> None:
        """Meet others, pull, and meet others again."""
        self.meet(others)
        for each in pulls:
            self.site.pull(each.source, each.target, each.copy)
        self.meet(others)

    def late(self, limit: float) -> list[int]:
        """Nobody is waited for behind a meeting."""
        return []

    def close(self) -> None:
        """Nothing is left."""


def type_of(message: RimMessage) -> np.dtype[Any]:
    """The type of a rim's cells."""
    return message.buffer.data.dtype


def size_of(message: RimMessage) -> int:
    """The bytes of a cell of a rim."""
    return type_of(message).itemsize
