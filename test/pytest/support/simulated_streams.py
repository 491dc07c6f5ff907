"""
Streams of work of the mind, which run in any order that marks, waits and counts of meetings allow.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from timetile.runtime.ranks.rims import BoxCopy
from timetile.runtime.ranks.sites import Pull


class SiteOfWorld(Protocol):
    """A site with a stream of a world."""

    world: World
    number: int

    def put_work(self, work: Callable[[], None]) -> None:
        """Put work on the stream."""
        ...

    def pull(self, source: Any, target: Any, copy: BoxCopy) -> None:
        """Copy a box."""
        ...


class Mark:
    """A mark on a stream."""

    def __init__(self) -> None:
        self.done = False

    def passed(self) -> None:
        """All work before is done."""
        self.done = True

    def is_passed(self) -> bool:
        """Whether all work before is done."""
        return self.done


class Met(Mark):
    """A wait for others' counts, as high as the own."""

    def __init__(self, counts: Counter[tuple[int, int]], number: int, others: tuple[int, ...]):
        super().__init__()
        self.counts, self.number, self.others = counts, number, others

    def is_passed(self) -> bool:
        """Whether all others have counted the meeting."""
        own = {other: self.counts[self.number, other] for other in self.others}
        return all(self.counts[other, self.number] >= own[other] for other in self.others)


class SimulatedMeetings:
    """Meetings of sites of a world by counts; see `Meetings`."""

    def __init__(self, sites: Sequence[SiteOfWorld]):
        self.sites, self.counts = sites, Counter[tuple[int, int]]()

    def meet(self, neighbours: Mapping[int, tuple[int, ...]]) -> None:
        """Count, and wait for others' counts."""
        for number, others in neighbours.items():
            site = self.sites[number]
            site.put_work(partial(self.counts.update, [(number, other) for other in others]))
            site.world.put(site.number, Met(self.counts, number, others), waits=True)

    def exchange(
        self, neighbours: Mapping[int, tuple[int, ...]], pulls: Mapping[int, Sequence[Pull]]
    ) -> None:
        """Meet, pull, and meet."""
        self.meet(neighbours)
        for number, copies in pulls.items():
            for each in copies:
                self.sites[number].pull(each.source, each.target, each.copy)
        self.meet(neighbours)

    def close(self) -> None:
        """Nothing is left."""


Work = Callable[[], None]

Step = tuple[int, Work | Mark, bool]
"""Recorded on a stream: work, a mark, or (True) a wait for a mark."""


class World:
    """The streams of all simulated devices."""

    def __init__(self, seed: int):
        self.recordings: dict[int, list[Step]] = {}
        """The steps recorded so far, by the first stream of a graph, while graphs are made."""
        self.parents: dict[int, int] = {}
        """The first streams of sites with a second stream, by the second."""
        self.graphs = 0
        """The number of graphs not given back."""
        self.seed, self.random = seed, np.random.default_rng(seed)
        self.streams: list[deque[Callable[[], None] | Mark]] = []
        self.waits: dict[int, Mark] = {}
        self.launched: list[tuple[int, str]] = []
        self.pulled: list[tuple[int, int]] = []
        """Bytes of pulls, by site."""

    @property
    def recorded(self) -> list[Step] | None:
        """The steps of a graph that is made."""
        return next(iter(self.recordings.values()), None)

    def is_ready(self, stream: int) -> bool:
        """The first work of a stream may run now."""
        queue = self.streams[stream]
        return bool(queue) and not (isinstance(queue[0], Mark) and not queue[0].is_passed())

    def put(self, stream: int, work: Work | Mark, *, waits: bool = False) -> None:
        """Put work, a mark or a wait for a mark on a stream."""
        if self.recordings:
            own = self.parents.get(stream, stream)
            root = own if len(self.recordings) > 1 else next(iter(self.recordings))
            self.recordings[root].append((stream, work, waits))
        elif isinstance(work, Mark) and not waits:
            self.streams[stream].append(work.passed)
        else:
            self.streams[stream].append(work)

    def run_graph(self, steps: Sequence[Step]) -> None:
        """Run recorded work, in any order allowed by its own marks and waits."""
        inner = World(int(self.random.integers(1 << 30)))
        inner.streams = [deque() for _ in self.streams]
        marks = {work: Mark() for _, work, _ in steps if isinstance(work, Mark)}
        for stream, work, waits in steps:
            inner.put(stream, marks[work] if isinstance(work, Mark) else work, waits=waits)
        for stream in range(len(inner.streams)):
            inner.run_until_empty(stream)

    def put_graph(self, steps: Sequence[Step]) -> None:
        """Put recorded work on the streams of the site that it was recorded for."""
        marks = {work: Mark() for _, work, _ in steps if type(work) is Mark}
        for stream, work, waits in steps:
            given = marks[work] if isinstance(work, Mark) and work in marks else work
            self.put(stream, given, waits=waits)

    def run_until_empty(self, stream: int) -> None:
        """Run work of all streams, in any order, until one stream has none."""
        assert self.recorded is None, "the host waits while work is recorded"
        while self.streams[stream]:
            ready = [number for number in range(len(self.streams)) if self.is_ready(number)]
            assert ready, "all streams wait for each other"
            queue = self.streams[int(self.random.choice(ready))]
            work = queue.popleft()
            if not isinstance(work, Mark):
                work()
