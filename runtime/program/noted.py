"""Launches and reductions noted once, and made again on other memory.

The host's interpreter takes some hundred microseconds for a program whose kernels take a GPU less.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from timetile.runtime.device.actions import Prepared
from timetile.runtime.device.alternating_runner import AlternatingRunner
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.cells import DeviceBuffer, NotedNumbers
from timetile.runtime.device.gpu_runner import GpuRunner, identity
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.graph_loop import PlacedNumber
from timetile.runtime.program.pieces import Span


def new_places(before: Sequence[DeviceBuffer], now: Sequence[DeviceBuffer]) -> dict[int, int]:
    """The pointers of memory given now, by those of the memory given before."""
    return {old.pointer: new.pointer for old, new in zip(before, now, strict=True)}


class NotedLaunches:
    """Some launches of a program, by a runner, with equal scalars on any memory."""

    def __init__(self, program: CompiledProgram, runner: AlternatingRunner):
        self.program, self.runner = program, runner
        self.launches: list[Prepared] | None = None
        """The launches, if pointers given are all that changes with the memory."""
        self.memory: Sequence[DeviceBuffer] = []
        self.scalars: tuple[Any, ...] = ()

    def give(self, buffers: Sequence[DeviceBuffer], scalars: Sequence[Any]) -> None:
        """Give the launches to the runner's stream."""
        key = tuple(map(identity, scalars))
        if self.launches is None or key != self.scalars:
            self.program.run_host(self.runner, [*buffers, *scalars, self.runner.steps], Span())
            self.memory, self.scalars = buffers, key
            self.launches = moving(self.runner.launches, buffers)
            return
        places, made = new_places(self.memory, buffers), dict[Prepared, LaunchArguments]()
        for each in self.launches:
            if each not in made:
                made[each] = each.arguments.moved(places)
            self.runner.device.launch(each.kernel, made[each], self.runner.stream)


def moving(
    launches: list[Prepared] | None, memory: Sequence[DeviceBuffer]
) -> list[Prepared] | None:
    """The launches, if every pointer is of one buffer of some memory."""
    known = {each.pointer for each in memory}
    if launches is None or len(known) < len(memory):
        return None
    for each in launches:
        pairs = zip(each.arguments.values, each.arguments.types)
        if any(kind is ctypes.c_void_p and value not in known for value, kind in pairs):
            return None
    return launches


class NotedReductions:
    """The numbers of a program, by a runner of its own, on any memory."""

    def __init__(self, program: CompiledProgram, runner: GpuRunner):
        self.program, self.runner = program, runner
        self.noted: NotedNumbers | None = None
        self.memory: Sequence[DeviceBuffer] = []

    def give(self, buffers: Sequence[DeviceBuffer], scalars: Sequence[Any]) -> list[PlacedNumber]:
        """Give the reductions to the runner's stream: where the numbers lie."""
        known = self.noted
        if known is None:
            with self.runner.fields.noting() as found:
                self.program.run_host(self.runner, [*buffers, *scalars], Span())
            if found.reads_given(buffers):
                self.noted, self.memory = found, buffers
            return found.numbers
        places = new_places(self.memory, buffers)
        for function, made, pointers in known.rounds:
            moved = [places.get(pointer, pointer) for pointer in pointers]
            self.runner.device.reduce(function, made, moved, self.runner.stream)
        return known.numbers
