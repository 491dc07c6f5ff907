"""The work between two checks on a GPU, with the numbers of the check made by the last launch."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from timetile.dialects.temporal.reduce import IDENTITY
from timetile.frontend.checked_programs import (
    Launches,
    checked_programs,
    names_of_numbers,
)
from timetile.frontend.module import buffers_of
from timetile.frontend.numbers import NumberProgram
from timetile.frontend.operations import Time
from timetile.frontend.options import Options
from timetile.frontend.placed_runs import PlacedRun
from timetile.frontend.runs import StateRun
from timetile.frontend.statements import Buffer
from timetile.passes.diagnostics import LOGGER
from timetile.runtime.device.alternating_runner import AlternatingRunner
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu import Device
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.checked_turns import MOST_NUMBERS, NumbersOfWarps
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.graph_loop import PlacedNumber
from timetile.runtime.program.noted import NotedLaunches, NotedReductions

WORTH_SECONDS = 5.0
"""Seconds of runs with equal checks after which programs are made for them: about as many."""

PREPARED_SECONDS = 0.006
"""
Seconds that the checks of a run must save: twice those in which the work is prepared on an H200.
"""

CHECK_STEPS = 8
"""A check saves the time of some steps: of a pass over the fields."""

MOST_KEPT = 2
"""Most pieces of work kept for the runs of a number."""


class HeldOnGpu:
    """What the work between two checks holds on a GPU."""

    def __init__(self, gpu: Device):
        self.gpu = gpu
        self.runners: list[GpuRunner] = []
        self.memory: list[DeviceBuffer] = []

    def close(self) -> None:
        """Give back memory and kernels, after all runs are done."""
        runners, self.runners = self.runners, []
        memory, self.memory = self.memory, []
        for runner in runners:
            runner.close()
        try:
            with self.gpu.giving_back():
                for each in memory:
                    self.gpu.free(each.pointer)
        except RuntimeError as error:
            LOGGER.warning("the numbers of checks are not given back: %s", error)


class CheckedPiece:
    """The work between two checks, given to a stream that is recorded: for one run at a time."""

    def __init__(
        self, placed: PlacedRun, every: int, numbers: Sequence[NumberProgram], options: Options
    ):
        """Raises NotTogetherError, CompileError or RuntimeError where a pass makes the numbers."""
        self.every, self.numbers = every, numbers
        self.gpu, self.stream = placed.gpu, placed.stream
        self.launches: dict[Launches, Any] = {}
        self.rooms: list[Any] = []
        """The memory of the numbers, each with a place for every warp."""
        self.spares: list[Any] = []
        """For each field of numbers, the buffer that would take turns: no kernel touches it."""
        self.reductions: list[Any] = []
        """For each number, the reduction of its room; none until asked for."""
        self.programs = checked_programs(placed.run, every, numbers, options)
        self.held = HeldOnGpu(self.gpu)
        self.given_back = weakref.finalize(self, self.held.close)
        # When the process ends, the driver frees the memory, and may already be gone.
        self.given_back.atexit = False
        try:
            self.make()
        except BaseException:
            self.close()
            raise

    def make(self) -> None:
        """Make the launches, and the memory for the numbers."""
        made = self.programs
        for launches in (made.first, made.middle, made.last):
            if launches is not None:
                self.launches[launches] = self.alternating(launches)
        for number in self.numbers:
            room, spare = (self.memory(number, count) for count in (made.size, 1))
            self.rooms.append(room)
            self.spares.append(spare)
        self.staying = [
            None if each is None else (each.buffers, self.reducing(each.program))
            for each in made.staying
        ]

    def begin(self, run: StateRun) -> None:
        """Give the first launch to the stream: no buffer of newest values changes."""
        self.work(self.programs.first, [*self.arrays(run).values()], run)

    def end(self, run: StateRun) -> None:
        """Give the other launches to the stream."""
        made, arrays = self.programs, self.arrays(run)
        # The newest values lie where values a step later go.
        given = dict(arrays)
        for name in run.step.written:
            now, new = (name, Time.NOW), (name, Time.NEXT)
            given[now], given[new] = arrays[new], arrays[now]
        if made.middle is not None:
            self.work(made.middle, [*given.values()], run)
        for name, room, spare in zip(names_of_numbers(self.numbers), self.rooms, self.spares):
            given[name, Time.NOW], given[name, Time.NEXT] = room, spare
        self.work(made.last, [given[key] for key in buffers_of(made.step)], run)

    def work(self, launches: Launches, buffers: Sequence[Any], run: StateRun) -> None:
        """Give launches to the stream."""
        self.launches[launches].give(buffers, [*run.scalars.values()])

    def arrays(self, run: StateRun) -> dict[Buffer, Any]:
        """The memory of a run's arrays."""
        return {key: self.buffer_of(array) for key, array in run.arrays.items()}

    # Numbers of a check.

    def prepare(self, run: StateRun, *, reduces: bool) -> None:
        """Prepare a run whose work is to be recorded; `reduces`: the GPU reduces the numbers."""
        self.stay(run)
        if (reduces or self.has_many) and not self.reductions:
            self.reductions = [self.reducing(program) for program in self.programs.rooms]
            # A reduction that is recorded loads no kernel.
            self.reduced()

    @property
    def has_many(self) -> bool:
        """Whether the warps have too many numbers for the host."""
        return self.programs.size * len(self.numbers) > MOST_NUMBERS

    def stay(self, run: StateRun) -> None:
        """Give the numbers of staying cells to the stream: they lie at the ends of the rooms."""
        for room, number, staying in zip(self.rooms, self.numbers, self.staying):
            if staying is not None:
                names, reductions = staying
                buffers = [self.buffer_of(run.before(*name)) for name in names]
                self.fill(room, number, reductions.give(buffers, [*run.scalars.values()]))

    def fill(self, room: Any, number: NumberProgram, found: Sequence[PlacedNumber]) -> None:
        """Copy numbers of staying cells to the end of a room."""
        place, size = room.pointer + room.bytes, number.dtype.itemsize
        for pointer, _ in found:
            place -= size
            checked(self.gpu.cuda.cuMemcpyDtoDAsync(place, pointer, size, self.stream))

    def of_warps(self) -> Sequence[NumbersOfWarps]:
        """
        The numbers of a check, for the host to reduce: of all warps, or, where these are many, of
        reductions given to the stream.
        """
        if self.has_many:
            pairs = zip(self.reduced(), self.numbers)
            return [NumbersOfWarps(*found, 1, number.kind) for found, number in pairs]
        return [self.in_room(*each) for each in zip(self.rooms, self.numbers)]

    def in_room(self, room: Any, number: NumberProgram) -> NumbersOfWarps:
        """The numbers in a room."""
        count = room.bytes // number.dtype.itemsize
        return NumbersOfWarps(room.pointer, number.dtype, count, number.kind)

    def reduced(self) -> Sequence[PlacedNumber]:
        """Give the reductions to the stream: where the numbers of the check lie."""
        return [
            found
            for room, made in zip(self.rooms, self.reductions)
            for found in made.give([room], [])
        ]

    # The GPU.

    def alternating(self, launches: Launches) -> Any:
        """Some launches by a runner."""
        program = launches.program
        runner = AlternatingRunner(
            program.kernels, self.gpu, self.stream, launches.function, launches.steps
        )
        self.held.runners.append(runner)
        return NotedLaunches(program, runner)

    def reducing(self, program: CompiledProgram) -> Any:
        """The reductions of a program by a runner."""
        runner = GpuRunner(program.kernels, self.gpu, self.stream, alone=True)
        self.held.runners.append(runner)
        return NotedReductions(program, runner)

    def buffer_of(self, array: Any) -> Any:
        """The memory of an array."""
        return DeviceBuffer(array.pointer, array.bytes)

    def memory(self, number: NumberProgram, count: int) -> Any:
        """Memory for some numbers: no number counts yet."""
        size = count * number.dtype.itemsize
        made = DeviceBuffer(self.gpu.allocate(size), size)
        self.held.memory.append(made)
        self.gpu.fill(made.pointer, number.dtype.type(IDENTITY[number.kind]), count, self.stream)
        return made

    # From run to run.

    def is_for(self, placed: PlacedRun, every: int, numbers: Sequence[NumberProgram]) -> bool:
        """Whether the work is of such checks of a run."""
        asked = (placed.gpu, placed.stream, every, [*map(id, numbers)])
        return asked == (self.gpu, self.stream, self.every, [*map(id, self.numbers)])

    def keep(self) -> None:
        """Keep the work for later runs, all launches of this run being done."""
        kept = self.numbers[0].past.pieces
        kept.append(self)
        while len(kept) > MOST_KEPT:
            kept.pop(0).close()

    def close(self) -> None:
        """Give back memory and kernels, after all runs are done."""
        self.given_back()


def kept_piece(
    placed: PlacedRun, every: int, numbers: Sequence[NumberProgram]
) -> CheckedPiece | None:
    """The work kept from an earlier run with such checks, for this run alone; None without."""
    kept: list[CheckedPiece] = numbers[0].past.pieces if numbers else []
    for piece in list(kept):
        if piece.is_for(placed, every, numbers):
            kept.remove(piece)
            return piece
    return None
