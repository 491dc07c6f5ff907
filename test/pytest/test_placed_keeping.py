"""States kept beside a run on a GPU, with memory of the host in place of the GPU's."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from timetile.frontend.keeping import Keeper
from timetile.frontend.placed_keeping import PlacedKeeping
from timetile.frontend.placed_runs import ShownArray


class MemoryHere:
    """Memory and streams of the host."""

    def __init__(self):
        self.held: dict[int, Any] = {}
        self.open = list[str]()

    def allocate(self, size: int) -> int:
        """Memory of some bytes."""
        memory = (ctypes.c_byte * size)()
        self.held[ctypes.addressof(memory)] = memory
        return ctypes.addressof(memory)

    allocate_locked = allocate

    def free(self, pointer: int) -> None:
        """Give memory back."""
        del self.held[pointer]

    free_locked = free

    def copy(self, source: int, target: int, size: int, stream: int) -> None:
        """Copy bytes."""
        ctypes.memmove(target, source, size)

    def begin_download(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes."""
        ctypes.memmove(target, source, size)

    def new_stream(self) -> int:
        """A stream."""
        self.open.append("stream")
        return 7

    def destroy_stream(self, stream: int) -> None:
        """The stream is gone."""
        self.open.remove("stream")

    def mark(self, event: Any, stream: int) -> Any:
        """An event."""
        if event is None:
            self.open.append("event")
        return "event"

    def destroy_event(self, event: Any) -> None:
        """The event is gone."""
        self.open.remove(event)

    def wait_for(self, event: Any) -> None:
        """Nothing is under way."""

    def wait_for_stream(self, waiting: int, other: int) -> None:
        """Nothing is under way."""

    def synchronize(self, stream: int) -> None:
        """Nothing is under way."""


def test_states_are_given_away_one_later_each_as_it_was():
    gpu, cells, seen = MemoryHere(), np.zeros((2, 3)), list[Any]()
    shown = ShownArray(cells.ctypes.data, cells.shape, cells.dtype, cells)
    other = np.ones(4)

    def state_of(given: dict[str, Any]) -> dict[str, Any]:
        return {"u": shown, **given}

    run: Any = SimpleNamespace(first=10, done=0, state=state_of)
    keeper = Keeper(run, {"c": other}, seen.append)
    placed: Any = SimpleNamespace(run=run, gpu=gpu, stream=3)
    given: list[int] = []
    with PlacedKeeping(placed, keeper) as keeping:
        for done in (1, 2, 3, 4):
            run.done, cells[...] = done, done
            keeping.keep()
            given.append(len(seen))
        cells[...] = -1
    assert given == [0, 1, 2, 3] and [state.steps for state in seen] == [11, 12, 13, 14]
    for done, state in enumerate(seen, 1):
        assert (state["u"] == done).all() and state["u"].shape == (2, 3) and state["c"] is other
    assert not gpu.held and not gpu.open
    with pytest.raises(KeyError), PlacedKeeping(placed, keeper) as keeping:
        keeping.keep()
        raise KeyError
    assert len(seen) == 4 and not gpu.held and not gpu.open
