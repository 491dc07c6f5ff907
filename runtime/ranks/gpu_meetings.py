"""
Meetings of GPUs by counts in their memory, without events of other GPUs or work of the host.

A meeting is a kernel of few threads on each GPU, a thread for each neighbour. The thread counts the
meetings with the neighbour, stores the count to the neighbour's memory, behind all earlier stores
of the stream, and waits until the neighbour's count in the own memory is as high. Counts are never
reset: they go on from run to run.

A thread that has to wait says so in a word of the host, with the count, until it has met the
neighbour. The host knows for how long each neighbour has been waited for, and that nobody is late
while the GPU has work of its own. A neighbour that never comes is a fault, told by the host: the
kernel traps after a longer time.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import Device
from timetile.runtime.device.small_kernels import SmallKernels
from timetile.runtime.machine.driver import checked
from timetile.runtime.ranks.exchange_kernel import (
    MOST_COPIES,
    MOST_NEIGHBOURS,
    TELL,
    THREADS,
    grid_of,
    row_of,
    rows_argument,
    wait_for_neighbour,
)
from timetile.runtime.ranks.exchange_kernel import NAME as EXCHANGE
from timetile.runtime.ranks.exchange_kernel import NEIGHBOUR_ROW as ROW
from timetile.runtime.ranks.exchange_kernel import TEXT as EXCHANGE_TEXT
from timetile.runtime.ranks.peers import waiting_limit
from timetile.runtime.ranks.rims import BoxCopy
from timetile.runtime.ranks.sites import Pull

LINE = 128
"""Bytes between two words: each in a cache line of its own."""

LONGER = 2
"""The kernel waits longer than the host by this factor: the host has a sentence."""

NAME = "meet"

WORD = 4
"""Bytes of the host's word."""

TEXT = f"""
.version 7.8
.target sm_80
.address_size 64
// rows: for each thread the addresses of the own count, of the place of the count in the
// neighbour's memory, of the neighbour's count in the own memory, and of the host's word. limit:
// nanoseconds.
.visible .entry {NAME}(.param .align 8 .b8 rows[{ROW * MOST_NEIGHBOURS}], .param .u64 limit) {{
  .reg .u64 %row, %own, %place, %word, %begin, %now, %limit;
  .reg .u32 %lane, %count, %seen;
  .reg .pred %waits, %late;
  mov.u64 %row, rows;
  mov.u32 %lane, %tid.x;
  mad.wide.u32 %row, %lane, {ROW}, %row;
  ld.param.u64 %own, [%row];
  ld.param.u64 %limit, [limit];
  ld.global.u32 %count, [%own];
  add.u32 %count, %count, 1;
  {TELL}
  st.global.u32 [%own], %count;
  {wait_for_neighbour("here", is_told=True)}
  ret;
}}
\0"""
"""The kernel of a meeting, as PTX."""


MOST_KEPT = 64
"""Most exchanges whose arguments a GPU keeps: fields of other runs have other buffers."""

Neighbours = Mapping[int, tuple[int, ...]]
"""The neighbours of GPUs that meet, by number."""

Exchanged = tuple[tuple[int, ...], tuple[tuple[int, int, BoxCopy], ...]]
"""Neighbours, and copies: addresses of source and target, and the box."""


def rows_of_meeting(addresses: Sequence[int]) -> Any:
    """Rows of addresses as an argument of a kernel."""
    return (ctypes.c_uint64 * (ROW // 8 * MOST_NEIGHBOURS))(*addresses)


def words_for(count: int) -> int:
    """
    The bytes of a GPU's words, for meetings of some GPUs; all zero before the first meeting. The
    last word counts blocks of an exchange.
    """
    return LINE * (2 * count + 1)


class LoadedKernels:
    """The kernels of a meeting and of an exchange, loaded on a GPU."""

    def __init__(self, gpu: Device):
        self.gpu, self.kernels = gpu, SmallKernels(gpu)
        with gpu.current():
            self.meet: Any = self.kernels.function(TEXT, NAME)
            self.exchange: Any = self.kernels.function(EXCHANGE_TEXT, EXCHANGE)

    def close(self) -> None:
        """Unload the kernels, after all launches."""
        with self.gpu.current():
            self.kernels.close()


class GpuSide:
    """A GPU's side of meetings. `words`: each GPU's words, as addresses for this GPU."""

    def __init__(self, kernels: LoadedKernels, stream: int, number: int, words: Sequence[int]):
        self.kernels, self.gpu = kernels, kernels.gpu
        self.stream, self.number, self.words = stream, number, words
        self.arguments: dict[tuple[int, ...], LaunchArguments] = {}
        """The arguments of meetings, by neighbours."""
        self.exchanges: dict[Exchanged, tuple[tuple[int, int], LaunchArguments]] = {}
        """The grids and the arguments of exchanges."""
        self.limit = int(LONGER * waiting_limit() * 1e9)
        self.locked = self.gpu.allocate_locked(WORD * len(words))
        self.waits = (ctypes.c_uint32 * len(words)).from_address(self.locked)
        """The counts of meetings with others that the stream waits for now; 0 for none."""
        self.seen: list[tuple[int, float]] = [(0, 0.0)] * len(words)
        """The counts seen last, and when they were seen first."""
        for other in range(len(words)):
            self.waits[other] = 0

    def rows(self, others: tuple[int, ...]) -> list[int]:
        """The rows of addresses of a launch that meets others, one after the other."""
        own, count = self.words[self.number], len(self.words)
        rows = [
            (
                own + LINE * other,
                self.words[other] + LINE * (count + self.number),
                own + LINE * (count + other),
                self.locked + WORD * other,
            )
            for other in others
        ]
        return [address for row in rows for address in row]

    def meet(self, others: tuple[int, ...]) -> None:
        """Let the stream wait for all work so far of others' streams, which do the same."""
        if not others:
            return
        if others not in self.arguments:
            kinds = rows_of_meeting, ctypes.c_uint64
            self.arguments[others] = LaunchArguments((self.rows(others), self.limit), kinds)
        self.launch(self.kernels.meet, (1, 1), len(others), self.arguments[others])

    def exchange(self, others: tuple[int, ...], pulls: Sequence[Pull]) -> None:
        """
        Meet others, copy rims from their buffers, and meet others again: by one kernel, or by
        several steps of the stream for very many copies. Others count two meetings, either way.
        """
        if not others or len(pulls) > MOST_COPIES:
            self.meet(others)
            self.gpu.enter()
            for pull in pulls:
                ends = pull.source.pointer, pull.target.pointer
                copy_rim(self.gpu, *ends, pull.copy, self.stream)
            self.meet(others)
            return
        key = others, tuple((each.source.pointer, each.target.pointer, each.copy) for each in pulls)
        if key not in self.exchanges:
            if len(self.exchanges) == MOST_KEPT:
                self.exchanges.clear()
            self.exchanges[key] = self.exchange_arguments(*key)
        grid, arguments = self.exchanges[key]
        self.launch(self.kernels.exchange, grid, THREADS, arguments)

    def exchange_arguments(
        self, others: tuple[int, ...], copies: Sequence[tuple[int, int, BoxCopy]]
    ) -> tuple[tuple[int, int], LaunchArguments]:
        """The grid and the arguments of the kernel that meets others and copies rims."""
        rows = [row_of(*each) for each in copies]
        done = self.words[self.number] + LINE * 2 * len(self.words)
        values = self.rows(others), len(others), done, self.limit, rows
        number = ctypes.c_uint64
        kinds = rows_of_meeting, ctypes.c_uint32, ctypes.c_void_p, number, rows_argument
        return grid_of(rows), LaunchArguments(values, kinds)

    def launch(
        self, function: Any, grid: tuple[int, int], threads: int, arguments: LaunchArguments
    ) -> None:
        """Put a kernel on the stream."""
        gpu = self.gpu
        gpu.enter()
        checked(
            gpu.cuda.cuLaunchKernel(
                function, *grid, 1, threads, 1, 1, 0, self.stream, arguments.address, 0
            )
        )

    def late(self, limit: float) -> list[int]:
        """The sites that the stream has waited for longer than `limit` seconds, by number."""
        now = time.monotonic()
        for other, count in enumerate(self.waits):
            if count != self.seen[other][0]:
                self.seen[other] = count, now
        return [
            other for other, (count, since) in enumerate(self.seen) if count and now - since > limit
        ]

    def close(self) -> None:
        """Give back the words, after all work of the stream."""
        with self.gpu.current():
            self.gpu.free_locked(self.locked)


class GpuMeetings:
    """Meetings of the GPUs of a process, each with a stream, that reach each other's memory."""

    def __init__(self, gpus: Sequence[Device], streams: Sequence[int]):
        self.gpus, self.words = gpus, list[int]()
        size = words_for(len(gpus))
        for gpu in gpus:
            with gpu.current():
                self.words.append(gpu.allocate(size))
                gpu.upload(self.words[-1], np.zeros(size, np.uint8))
                gpu.synchronize(0)
        self.kernels = [LoadedKernels(gpu) for gpu in gpus]
        pairs = zip(self.kernels, streams, strict=True)
        self.sides = [GpuSide(*pair, number, self.words) for number, pair in enumerate(pairs)]
        for number, (side, gpu) in enumerate(zip(self.sides, gpus)):
            with gpu.current():
                side.meet((number,))
                side.exchange((number,), ())
                gpu.synchronize(side.stream)

    def exchange(self, neighbours: Neighbours, pulls: Mapping[int, Sequence[Pull]]) -> None:
        """Let GPUs meet their neighbours, pull rims, and meet their neighbours again."""
        for number in sorted({*neighbours, *pulls}):
            self.sides[number].exchange(neighbours.get(number, ()), pulls.get(number, ()))

    def meet(self, neighbours: Neighbours) -> None:
        """Let the streams of GPUs wait for all work so far of their neighbours' streams."""
        for number, others in neighbours.items():
            self.sides[number].meet(others)

    def close(self) -> None:
        """Give back all, after all work of the streams."""
        while self.sides:
            self.sides.pop().close()
            self.kernels.pop().close()
        for gpu, pointer in zip(self.gpus, self.words):
            with gpu.current():
                gpu.free(pointer)


def copy_rim(gpu: Device, source: int, target: int, copy: BoxCopy, stream: int) -> None:
    """Copy a box of cells between buffers of any GPUs, on a stream."""
    first, last = source + copy.source.first, target + copy.target.first
    if copy.is_contiguous:
        gpu.copy(first, last, copy.width, stream)
    else:
        gpu.copy_box(
            (copy.width, copy.rows, copy.planes),
            (first, copy.source.pitch, copy.source.height),
            (last, copy.target.pitch, copy.target.height),
            stream,
        )


def meetings_of(gpus: Sequence[Device], streams: Sequence[int]) -> GpuMeetings | None:
    """Meetings of several GPUs; None where a GPU has two streams, or does not reach another."""
    numbers = {gpu.number for gpu in gpus}
    if len(numbers) < len(gpus) or not 2 <= len(gpus) <= MOST_NEIGHBOURS:
        return None
    if not all(one is two or one.reaches(two) for one in gpus for two in gpus):
        return None
    return GpuMeetings(gpus, streams)
