"""
States kept during a run on a GPU that goes on meanwhile.

A state is copied on the GPU, as work of the run's stream, and from there to the host on a stream of
its own. The state before is given away while kernels of the next steps run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from timetile.frontend.keeping import Keeper
from timetile.frontend.placed_runs import PlacedRun, ShownArray
from timetile.frontend.runs import State, StateRun

SLOTS = 2
"""States under way at once: one is copied while another is given away."""


@dataclass
class Slot:
    """Room for a state: for each array by name memory of the GPU, and page-locked memory."""

    rooms: dict[str, tuple[int, int, int]] = field(default_factory=dict[str, tuple[int, int, int]])
    """Pointers on the GPU and on the host, and bytes."""
    arrays: dict[str, ShownArray] = field(default_factory=dict[str, ShownArray])
    others: dict[str, Any] = field(default_factory=dict[str, Any])
    """Arrays of the state that no step assigns."""
    steps: int = 0
    event: Any = None


class PlacedKeeping:
    """Keeps the states of a placed run by its keeper, as a context."""

    def __init__(self, placed: PlacedRun, keeper: Keeper):
        self.placed, self.keeper, self.gpu = placed, keeper, placed.gpu
        self.slots = [Slot() for _ in range(SLOTS)]
        self.under_way: Slot | None = None
        self.stream = 0

    def __enter__(self) -> Self:
        self.stream = self.gpu.new_stream()
        return self

    def keep(self) -> None:
        """Begin to copy the present state, and give the state before away."""
        run, slot = self.placed.run, self.slots[0]
        self.slots.reverse()
        state = run.state(self.keeper.given)
        slot.arrays = {name: a for name, a in state.items() if isinstance(a, ShownArray)}
        slot.others = {name: a for name, a in state.items() if name not in slot.arrays}
        slot.steps = run.first + run.done
        for name, array in slot.arrays.items():
            near, _, size = self.room(slot, name, array)
            self.gpu.copy(array.pointer, near, size, self.placed.stream)
        self.gpu.wait_for_stream(self.stream, self.placed.stream)
        for near, locked, size in slot.rooms.values():
            self.gpu.begin_download(locked, near, size, self.stream)
        slot.event = self.gpu.mark(slot.event, self.stream)
        self.give()
        self.under_way = slot

    def room(self, slot: Slot, name: str, array: ShownArray) -> tuple[int, int, int]:
        """The room of an array in a slot."""
        if name not in slot.rooms:
            size = array.bytes
            slot.rooms[name] = (self.gpu.allocate(size), self.gpu.allocate_locked(size), size)
        return slot.rooms[name]

    def give(self) -> None:
        """Give the state under way to the keeper, once its copies are done."""
        slot, self.under_way = self.under_way, None
        if slot is None:
            return
        self.gpu.wait_for(slot.event)
        found = dict(slot.others)
        for name, array in slot.arrays.items():
            memory = (ctypes.c_byte * array.bytes).from_address(slot.rooms[name][1])
            cells = np.frombuffer(memoryview(memory), array.dtype)
            found[name] = cells.reshape(array.shape).copy()
        self.keeper.taken(State(found, slot.steps, stopped=False))

    def __exit__(self, kind: object, problem: object, traceback: object) -> None:
        try:
            if problem is None:
                self.give()
        finally:
            self.gpu.synchronize(self.stream)
            for slot in self.slots:
                for near, locked, _ in slot.rooms.values():
                    self.gpu.free(near)
                    self.gpu.free_locked(locked)
                if slot.event is not None:
                    self.gpu.destroy_event(slot.event)
            self.gpu.destroy_stream(self.stream)


@contextmanager
def kept_beside(run: StateRun, keeper: Keeper) -> Generator[Callable[[], None]]:
    """Keeps the states of a run by a keeper: on a GPU while the run goes on."""
    placed = PlacedRun.of(run)
    if placed is None:
        yield keeper.keep
        return
    with placed, PlacedKeeping(placed, keeper) as keeping:
        yield keeping.keep
