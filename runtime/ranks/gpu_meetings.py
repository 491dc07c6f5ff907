"""
Meetings of GPUs by counts in their memory: no event of another GPU, and no work of the host.

A meeting is a kernel of few threads on each GPU, a thread for each neighbour. The thread counts the
meetings with the neighbour, stores the count to the neighbour's memory, behind all earlier stores
of the stream, and waits until the neighbour's count in the own memory is as high. Counts go on from
launch to launch and from graph to graph: each GPU has a graph of its own, with meetings inside. The
memory of a neighbour may be of another process.

A neighbour that never comes is a fault (a launch that failed): the kernel traps after some time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.gpu import Device
from timetile.runtime.machine.driver import checked
from timetile.runtime.ranks.peers import waiting_limit

LINE = 128
"""Bytes between two words: each in a cache line of its own."""

LONGER = 2
"""The kernel waits longer than the host by this factor: the host has a sentence."""

NAME = "meet"

TEXT = f"""
.version 7.8
.target sm_80
.address_size 64
// table: for each thread the addresses of the own count, of the place of the count in the
// neighbour's memory, and of the neighbour's count in the own memory. limit: nanoseconds.
.visible .entry {NAME}(.param .u64 table, .param .u64 limit) {{
  .reg .u64 %at, %place, %begin, %now, %limit;
  .reg .u32 %lane, %count, %seen;
  .reg .pred %waits, %late;
  ld.param.u64 %at, [table];
  ld.param.u64 %limit, [limit];
  cvta.to.global.u64 %at, %at;
  mov.u32 %lane, %tid.x;
  mad.wide.u32 %at, %lane, 24, %at;
  ld.global.u64 %place, [%at];
  ld.global.u32 %count, [%place];
  add.u32 %count, %count, 1;
  st.global.u32 [%place], %count;
  ld.global.u64 %place, [%at+8];
  membar.sys;
  st.release.sys.global.u32 [%place], %count;
  ld.global.u64 %place, [%at+16];
  mov.u64 %begin, %globaltimer;
look:
  ld.acquire.sys.global.u32 %seen, [%place];
  sub.u32 %seen, %seen, %count;
  setp.lt.s32 %waits, %seen, 0;
  @!%waits bra met;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %begin;
  setp.gt.u64 %late, %now, %limit;
  @%late trap;
  bra look;
met:
  ret;
}}
\0"""
"""The kernel of a meeting, as PTX."""


def words_for(count: int) -> int:
    """The bytes of a GPU's words, for meetings of some GPUs; all zero before the first meeting."""
    return 2 * LINE * count


class LoadedKernel:
    """The kernel of a meeting, loaded on a GPU."""

    def __init__(self, gpu: Device):
        self.gpu = gpu
        with gpu.current():
            self.function: Any = gpu.function(TEXT.encode(), NAME)

    def close(self) -> None:
        """Unload the kernel, after all launches."""
        cuda = self.gpu.cuda
        with self.gpu.current():
            checked(cuda.cuModuleUnload(checked(cuda.cuFuncGetModule(self.function))))


class GpuSide:
    """A GPU's side of meetings. `words`: each GPU's words, as addresses for this GPU."""

    def __init__(self, kernel: LoadedKernel, stream: int, number: int, words: Sequence[int]):
        self.function, self.gpu = kernel.function, kernel.gpu
        self.stream, self.number, self.words = stream, number, words
        self.tables: dict[tuple[int, ...], LaunchArguments] = {}
        """The arguments of launches, by neighbours."""
        self.memory: list[int] = []

    def arguments(self, others: tuple[int, ...]) -> LaunchArguments:
        """The arguments of a launch that meets others."""
        if others not in self.tables:
            own, count = self.words[self.number], len(self.words)
            rows = [
                (
                    own + LINE * other,
                    self.words[other] + LINE * (count + self.number),
                    own + LINE * (count + other),
                )
                for other in others
            ]
            with self.gpu.current():
                table = self.gpu.allocate(24 * len(rows))
                self.gpu.upload(table, np.array(rows, np.uint64))
                self.gpu.synchronize(0)
            self.memory.append(table)
            limit = int(LONGER * waiting_limit() * 1e9)
            kinds = ctypes.c_void_p, ctypes.c_uint64
            self.tables[others] = LaunchArguments((table, limit), kinds)
        return self.tables[others]

    def meet(self, others: tuple[int, ...]) -> None:
        """Let the stream wait for all work so far of others' streams, which do the same."""
        arguments, gpu = self.arguments(others), self.gpu
        gpu.enter()
        checked(
            gpu.cuda.cuLaunchKernel(
                self.function, 1, 1, 1, len(others), 1, 1, 0, self.stream, arguments.address, 0
            )
        )

    def close(self) -> None:
        """Give back tables, after all work of the stream."""
        with self.gpu.current():
            while self.memory:
                self.gpu.free(self.memory.pop())


class GpuMeetings:
    """Meetings of the GPUs of a process, each with a stream, that reach each other's memory."""

    def __init__(self, gpus: Sequence[Device], streams: Sequence[int]):
        self.gpus, self.words = gpus, list[int]()
        for gpu in gpus:
            with gpu.current():
                self.words.append(gpu.allocate(words_for(len(gpus))))
                gpu.upload(self.words[-1], np.zeros(words_for(len(gpus)), np.uint8))
                gpu.synchronize(0)
        self.kernels = [LoadedKernel(gpu) for gpu in gpus]
        pairs = zip(self.kernels, streams, strict=True)
        self.sides = [GpuSide(*pair, number, self.words) for number, pair in enumerate(pairs)]

    def meet(self, neighbours: Mapping[int, tuple[int, ...]]) -> None:
        """Let the streams of GPUs wait for all work so far of their neighbours' streams."""
        for number, others in neighbours.items():
            self.sides[number].arguments(others)
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


def meetings_of(gpus: Sequence[Device], streams: Sequence[int]) -> GpuMeetings | None:
    """Meetings of several GPUs; None where a GPU has two streams, or does not reach another."""
    numbers = {gpu.number for gpu in gpus}
    if len(numbers) < len(gpus) or len(gpus) < 2:
        return None
    if not all(one is two or one.reaches(two) for one in gpus for two in gpus):
        return None
    return GpuMeetings(gpus, streams)
