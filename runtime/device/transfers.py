"""
Fields sent to a GPU and received while kernels run, through page-locked memory of the host.

A copy between a GPU and ordinary memory of the host waits for all earlier work. Copies of
page-locked memory are work of the stream: the host goes on, and waits for the copy's event when the
cells are needed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ROOMS = 2
"""Rooms of a field for each direction: the host works in one, and the GPU copies the other."""


class CopyingDevice(Protocol):
    """What copies need of a GPU; `GpuMemory` describes each."""

    def allocate_locked(self, size: int) -> int: ...
    def free_locked(self, pointer: int) -> None: ...
    def begin_upload(self, pointer: int, locked: int, size: int, stream: int) -> None: ...
    def begin_download(self, locked: int, pointer: int, size: int, stream: int) -> None: ...
    def mark(self, event: Any, stream: int) -> Any: ...
    def wait_for(self, event: Any) -> None: ...
    def wait_for_mark(self, event: Any) -> None: ...


@dataclass
class Room:
    """Page-locked memory of the host, and an event behind the last copy."""

    pointer: int
    bytes: int
    event: Any = None

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The room as an array."""
        memory = (ctypes.c_byte * (prod(shape) * dtype.itemsize)).from_address(self.pointer)
        return np.frombuffer(memoryview(memory), dtype).reshape(shape)


class Transfers:
    """The copies of a stream between fields and page-locked memory."""

    def __init__(self, on: CopyingDevice, stream: int):
        self.device, self.stream = on, stream
        self.rooms: dict[tuple[int, int, bool], list[Room]] = {}
        """Rooms by the pointer, bytes and direction, the room used last at the end."""

    def send(self, pointer: int, cells: Array) -> None:
        """Copy cells to a field, as work of the stream; the array may change at once."""
        room = self.free_room(pointer, cells.nbytes, to_device=True)
        room.array(cells.shape, cells.dtype)[...] = cells
        self.device.begin_upload(pointer, room.pointer, cells.nbytes, self.stream)
        room.event = self.device.mark(room.event, self.stream)

    def receive(
        self, pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Callable[[], Array]:
        """
        Begin to copy a field's cells, as work of the stream. The result waits for the cells: an
        array of `shape`, good until the field is received twice again.
        """
        room = self.free_room(pointer, prod(shape) * dtype.itemsize, to_device=False)
        self.device.begin_download(room.pointer, pointer, room.bytes, self.stream)
        event = room.event = self.device.mark(room.event, self.stream)

        def received() -> Array:
            self.device.wait_for(event)
            return room.array(shape, dtype)

        return received

    def free_room(self, pointer: int, size: int, *, to_device: bool) -> Room:
        """The room of a field used least lately, after its last copy."""
        rooms = self.rooms.setdefault((pointer, size, to_device), [])
        if len(rooms) < ROOMS:
            rooms.append(Room(self.device.allocate_locked(size), size))
            return rooms[-1]
        rooms.append(rooms.pop(0))
        self.device.wait_for(rooms[-1].event)
        return rooms[-1]

    def close(self) -> None:
        """Give all rooms back, after their last copies."""
        for room in (room for rooms in self.rooms.values() for room in rooms):
            if room.event is not None:
                self.device.wait_for_mark(room.event)
            self.device.free_locked(room.pointer)
        self.rooms.clear()
