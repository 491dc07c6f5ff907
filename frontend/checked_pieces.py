"""The work between two checks on a GPU, with the numbers of the check made by the last launch."""

from __future__ import annotations

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
from timetile.frontend.statements import Buffer
from timetile.runtime.device.alternating_runner import AlternatingRunner
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.graph_loop import PlacedNumber
from timetile.runtime.program.pieces import Span

WORTH_SECONDS = 5.0
"""Seconds of runs with equal checks after which programs are made for them: about as many."""

PREPARED_SECONDS = 0.006
"""
Seconds that the checks of a run must save: twice those in which the work is prepared on an H200.
"""

CHECK_STEPS = 8
"""A check saves the time of some steps: of a pass over the fields."""


class CheckedPiece:
    """The work between two checks, given to a stream that is recorded."""

    def __init__(
        self, placed: PlacedRun, every: int, numbers: Sequence[NumberProgram], options: Options
    ):
        """Raises NotTogetherError, CompileError or RuntimeError where a pass makes the numbers."""
        self.run, self.numbers = placed.run, numbers
        self.gpu, self.stream = placed.gpu, placed.stream
        self.runners: dict[Launches, Any] = {}
        self.reducers: list[Any] = []
        """For each number, the runner of its reduction, which its program keeps."""
        self.rooms: list[Any] = []
        """The memory of the numbers, each with a place for every warp."""
        self.spares: list[Any] = []
        """For each field of numbers, the buffer that would take turns: no kernel touches it."""
        self.programs = checked_programs(placed.run, every, numbers, options)
        try:
            self.make()
        except BaseException:
            self.close()
            raise

    def make(self) -> None:
        """Make the runners, and the memory for the numbers."""
        made = self.programs
        for launches in (made.first, made.middle, made.last):
            if launches is not None:
                self.runners[launches] = self.alternating(launches)
        for number, program, staying in zip(self.numbers, made.rooms, made.staying):
            self.rooms.append(self.memory(number, made.size))
            self.spares.append(self.memory(number, 1))
            self.fill(self.rooms[-1], number, staying)
            self.reducers.append(self.reducing(program))
            # A reduction that is recorded loads no kernel.
            self.number_in(self.rooms[-1], program, self.reducers[-1])

    def launch(self) -> Sequence[PlacedNumber]:
        """Give the work to the stream: where the numbers of the check lie."""
        self.begin()
        return self.end()

    def begin(self) -> None:
        """Give the first launch to the stream: no buffer of newest values changes."""
        self.work(self.programs.first, [*self.arrays.values()])

    def end(self) -> Sequence[PlacedNumber]:
        """Give the other launches to the stream: where the numbers of the check lie."""
        made, arrays = self.programs, self.arrays
        # The newest values lie where values a step later go.
        given = dict(arrays)
        for name in self.run.step.written:
            now, new = (name, Time.NOW), (name, Time.NEXT)
            given[now], given[new] = arrays[new], arrays[now]
        if made.middle is not None:
            self.work(made.middle, [*given.values()])
        for name, room, spare in zip(names_of_numbers(self.numbers), self.rooms, self.spares):
            given[name, Time.NOW], given[name, Time.NEXT] = room, spare
        self.work(made.last, [given[key] for key in buffers_of(made.step)])
        return [
            self.number_in(room, program, runner)
            for program, runner, room in zip(made.rooms, self.reducers, self.rooms)
        ]

    @property
    def arrays(self) -> dict[Buffer, Any]:
        """The memory of the run's arrays."""
        return {key: self.buffer_of(array) for key, array in self.run.arrays.items()}

    def work(self, launches: Launches, buffers: Sequence[Any]) -> None:
        """Give launches to the stream."""
        given = [*buffers, *self.run.scalars.values(), launches.steps]
        launches.program.run_host(self.runners[launches], given, Span())

    # The GPU.

    def alternating(self, launches: Launches) -> Any:
        """The runner of some launches."""
        program = launches.program
        made = AlternatingRunner(
            program.kernels, self.gpu, self.stream, launches.function, launches.steps
        )
        # Kernels stay loaded from run to run.
        for kernel in made.retained:
            program.runner(self.stream).retain(kernel)
        return made

    def reducing(self, program: CompiledProgram) -> Any:
        """The runner of a reduction."""
        return program.runner(self.stream)

    def buffer_of(self, array: Any) -> Any:
        """The memory of an array."""
        return DeviceBuffer(array.pointer, array.bytes)

    def memory(self, number: NumberProgram, count: int) -> Any:
        """Memory for some numbers."""
        size = count * number.dtype.itemsize
        return DeviceBuffer(self.gpu.allocate(size), size)

    def fill(self, room: Any, number: NumberProgram, staying: NumberProgram | None) -> None:
        """Fill a room: the numbers of staying cells lie at the end, and no others count yet."""
        gpu, run, size = self.gpu, self.run, number.dtype.itemsize
        gpu.fill(
            room.pointer, number.dtype.type(IDENTITY[number.kind]), room.bytes // size, self.stream
        )
        if staying is None:
            return
        place = room.pointer + room.bytes
        for found, _ in staying.noted([run.before(*buffer) for buffer in staying.buffers], run):
            place -= size
            checked(gpu.cuda.cuMemcpyDtoDAsync(place, found, size, self.stream))

    def number_in(self, room: Any, program: CompiledProgram, runner: Any) -> PlacedNumber:
        """Give the reduction of a room's numbers to the stream: where the number lies."""
        with runner.fields.noting() as found:
            program.run_host(runner, [room], Span())
        return found[0]

    def close(self) -> None:
        """Give back memory and kernels, after all runs are done."""
        for runner in self.runners.values():
            runner.close()
        rooms, self.rooms, self.spares = [*self.rooms, *self.spares], [], []
        for room in rooms:
            self.gpu.free(room.pointer)
