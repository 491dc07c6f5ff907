"""Copies of a stream through page-locked memory, on a stream that works only when waited for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from timetile.runtime.device.transfers import Transfers
from timetile.runtime.host.pieces import tapered_pieces


class LateDevice:
    """Memory of the host in place of a GPU: a copy happens when the host waits for its event."""

    def __init__(self) -> None:
        self.blocks: dict[int, Any] = {}
        self.waiting: list[Callable[[], object]] = []

    def allocate_locked(self, size: int) -> int:
        block = (ctypes.c_byte * size)()
        self.blocks[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def free_locked(self, pointer: int) -> None:
        del self.blocks[pointer]

    def begin_upload(self, pointer: int, locked: int, size: int, stream: int) -> None:
        self.waiting.append(lambda: ctypes.memmove(pointer, locked, size))

    def begin_download(self, locked: int, pointer: int, size: int, stream: int) -> None:
        self.begin_upload(locked, pointer, size, stream)

    def mark(self, event: Any, stream: int) -> int:
        return len(self.waiting)

    def wait_for(self, event: int) -> None:
        for copy in self.waiting[:event]:
            copy()
        self.waiting[:event] = [lambda: None] * event

    wait_for_mark = wait_for


@pytest.fixture
def device() -> LateDevice:
    return LateDevice()


def test_an_array_may_change_once_sent(device: LateDevice) -> None:
    field, cells = np.zeros(4), np.arange(4.0)
    transfers = Transfers(device, 0)
    transfers.send(field.ctypes.data, cells)
    cells[:] = -1
    assert not field.any()
    device.wait_for(len(device.waiting))
    assert field.tolist() == [0, 1, 2, 3]


def test_a_third_copy_waits_for_the_first(device: LateDevice) -> None:
    field = np.zeros(2)
    transfers = Transfers(device, 0)
    for number in (1.0, 2.0):
        transfers.send(field.ctypes.data, np.full(2, number))
    assert not field.any()
    transfers.send(field.ctypes.data, np.full(2, 3.0))
    assert field.tolist() == [1, 1]


def test_received_cells_stay_while_the_next_arrive(device: LateDevice) -> None:
    field = np.array([[1.0, 2.0]])
    transfers = Transfers(device, 0)
    first = transfers.receive(field.ctypes.data, field.shape, field.dtype)
    found = first()
    field[:] = 7
    second = transfers.receive(field.ctypes.data, field.shape, field.dtype)
    assert second().tolist() == [[7, 7]]
    assert found.tolist() == [[1, 2]]


def test_rooms_are_given_back(device: LateDevice) -> None:
    field = np.zeros(3, np.float32)
    transfers = Transfers(device, 0)
    transfers.send(field.ctypes.data, np.ones(3, np.float32))
    transfers.close()
    assert field.tolist() == [1, 1, 1]
    assert not device.blocks


def test_the_last_tapered_pieces_a_run_are_short() -> None:
    counts = [count for _, count in tapered_pieces(1000, 256)]
    assert counts == [240, 240, 240, 96, 48, 48, 88]
    assert list(tapered_pieces(3, 2)) == [(0, 1), (1, 2)]
