"""Streams, events and recorded work of a GPU, in place: as early or as late as the host sees it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from timetile.runtime.device.gpu import ROW_BYTES
from timetile.runtime.device.gpu_memory import WorkResult

Work = Callable[[], object]


class EventHere:
    """An event: the stream of its latest mark, and a list with whether the work before is done."""

    def __init__(self) -> None:
        self.stream, self.done = 0, [True]


class GpuHere:
    """
    Work is made as soon as it is given (`is_fast`), or as late as the host can wait for it. `held`:
    graphs and events that are not given back.
    """

    def __init__(self, *, is_fast: bool):
        self.is_fast = is_fast
        self.streams: list[list[Work]] = [[], []]
        self.recording: list[Work] | None = None
        self.room = ctypes.create_string_buffer(ROW_BYTES)
        self.side, self.led = (1, ctypes.addressof(self.room)), 0
        self.held: list[object] = []

    @property
    def is_done(self) -> bool:
        """Nothing is left to do, and nothing to give back."""
        return not self.held and not any(self.streams)

    def give(self, stream: int, *work: Work) -> None:
        """Give some work to a stream, or to the recording."""
        if self.recording is not None:
            self.recording += work
            return
        self.streams[stream] += work
        if self.is_fast:
            self.synchronize(stream)

    def take_side(self) -> tuple[int, int]:
        self.held.append(self.side)
        self.led += 1
        return self.side

    def synchronize(self, stream: int) -> None:
        while self.streams[stream]:
            self.streams[stream].pop(0)()

    def recorded(
        self, stream: int, work: Callable[[], WorkResult]
    ) -> tuple[list[Work], WorkResult]:
        self.recording = graph = list[Work]()
        made, self.recording = work(), None
        return graph, made

    def instantiated(self, graph: list[Work]) -> list[Work]:
        self.held.append(graph)
        return graph

    def launch_graph(self, graph: list[Work], stream: int) -> None:
        self.give(stream, *graph)

    def begin_download(self, locked: int, number: Any, size: int, stream: int) -> None:
        self.give(stream, lambda: ctypes.memmove(locked, number.ctypes.data, size))

    def mark(self, event: EventHere | None, stream: int) -> EventHere:
        if event is None:
            self.held.append(event := EventHere())
        event.stream, event.done = stream, done = stream, [False]
        self.give(stream, lambda: done.__setitem__(0, True))
        return event

    def wait_for(self, event: EventHere) -> None:
        self.wait_until(event.stream, event.done)

    def wait_until(self, stream: int, done: list[bool]) -> None:
        """Make the work of a stream up to a mark."""
        while not done[0]:
            self.streams[stream].pop(0)()

    def wait_for_event(self, waiting: int, event: EventHere) -> None:
        stream, done = event.stream, event.done
        self.give(waiting, lambda: self.wait_until(stream, done))

    def has_passed(self, event: EventHere) -> bool:
        return event.done[0]

    def forget(self, held: object) -> None:
        """Give back a graph or an event."""
        self.held = [each for each in self.held if each is not held]

    destroy_event = free_graph = forget

    def give_side(self, side: tuple[int, int]) -> None:
        assert side == self.side
        self.forget(self.side)
        self.led -= 1
