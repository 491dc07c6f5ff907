"""Tuning of a compiled program: schedules measured on the GPU at hand, on the program's fields."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.ir import SSAValue

from timetile.passes.diagnostics import LOGGER, CompileError
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu import device
from timetile.runtime.host.arrays import DeviceArray, is_numpy_array
from timetile.runtime.host.halos import HaloFrame, compared_in_turn
from timetile.runtime.host.parameters import Parameter
from timetile.runtime.kernels.measured import Measured, best_first
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.program_titles import title_of, updates_of_step
from timetile.runtime.kernels.tuning import (
    LIMIT_SECONDS,
    MOST_MEASURED,
    SEVERAL,
    Tell,
    Tuning,
    say_nothing,
)
from timetile.runtime.kernels.workers import Workers
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.pieces import Span

RUN_SECONDS = 0.04
"""The least time of a timed run."""

REPEATS = 3
"""Timed runs; the fastest counts."""

MOST_STEPS = 1 << 20
"""Most steps of a timed run, for launches that take nearly no time."""


def whole_frame(parameter: Parameter) -> HaloFrame:
    """A frame whose comparison compares every cell of a field."""
    shape = parameter.shape
    return HaloFrame(shape, shape, shape, dtype_of(parameter.kind).itemsize)


class GpuBench:
    """Runs kernels on copies of a program's arguments in GPU memory."""

    def __init__(self, program: CompiledProgram, values: Sequence[Any]):
        self.program, self.values = program, values
        self.gpu = device(program.gpu)
        self.fields = [
            p for p, value in zip(program.parameters, values) if is_device_field(p, value)
        ]
        self.own: list[DeviceBuffer] = []

    @contextmanager
    def open(self) -> Generator[GpuBench]:
        """
        Hold memory of the GPU for the arguments and two copies. Raises RuntimeError if there is
        none.
        """
        with self.gpu.current():
            try:
                self.start = self.placed()
                self.one, self.other = self.placed(), self.placed()
                yield self
            finally:
                self.gpu.synchronize(0)
                while self.own:
                    self.gpu.free(self.own.pop().pointer)

    def placed(self) -> list[Any]:
        """The arguments, with a copy of each field in GPU memory."""
        placed: list[Any] = []
        for parameter, value in zip(self.program.parameters, self.values):
            if parameter not in self.fields:
                placed.append(value.copy() if is_numpy_array(value) else value)
                continue
            if is_numpy_array(value):
                buffer = self.buffer(value.nbytes)
                self.gpu.upload(buffer.pointer, value)
            else:
                buffer = self.buffer(value.bytes)
                self.copy(buffer, DeviceBuffer(value.pointer, value.bytes))
            placed.append(buffer)
        return placed

    def buffer(self, size: int) -> DeviceBuffer:
        """Memory of the GPU, given back at the end."""
        self.own.append(DeviceBuffer(self.gpu.allocate(size), size))
        return self.own[-1]

    def copy(self, target: DeviceBuffer, source: DeviceBuffer) -> None:
        """Copy a field."""
        checked(self.gpu.cuda.cuMemcpyDtoDAsync(target.pointer, source.pointer, source.bytes, 0))

    def reset(self, values: list[Any]) -> None:
        """Give copies of the fields their first cells again."""
        for target, source in zip(values, self.start):
            if isinstance(target, DeviceBuffer):
                self.copy(target, source)
            elif is_numpy_array(target):
                target[...] = source

    def has_common_halos(self) -> bool:
        """Whether runs on these arguments take the kernels for common halos."""
        kernels, block = self.program.kernels, self.program.function.body.block
        loops = [loop for loop in kernels.loops if kernels.compares_halos(loop, SEVERAL)]
        positions: dict[SSAValue, int] = {value: k for k, value in enumerate(block.args)}
        for loop in loops:
            buffers = [positions.get(buffer, -1) for buffer in loop.buffers]
            for frame, first, other in compared_in_turn(loop):
                if min(buffers[first], buffers[other]) < 0:
                    return False
                one, two = self.start[buffers[first]], self.start[buffers[other]]
                if self.gpu.halos_differ(frame, one.pointer, two.pointer, 0):
                    return False
        return bool(loops)

    def run(self, program: CompiledProgram, values: list[Any], steps: int) -> None:
        """Run a number of steps."""
        with program.runners.lent(0) as runner:
            program.run_host(runner, values, Span(steps, 0))

    def running(self, kernels: ProgramKernels) -> CompiledProgram:
        """A program of these kernels."""
        return CompiledProgram(kernels.source, kernels, "gpu", self.program.gpu)

    def agree(self, one: ProgramKernels, other: ProgramKernels, steps: int) -> bool:
        """Whether runs of a number of steps end with equal bits in every field."""
        for kernels, values in ((one, self.one), (other, self.other)):
            self.reset(values)
            with self.running(kernels) as program:
                self.run(program, values, steps)
                self.gpu.synchronize(0)
        return not any(
            self.gpu.halos_differ(
                whole_frame(p), self.one[p.position].pointer, self.other[p.position].pointer, 0
            )
            for p in self.fields
        )

    def seconds(self, kernels: ProgramKernels, steps: int) -> float:
        """Seconds of a step, the best of some runs from the first cells on."""
        with self.running(kernels) as program:
            times = [self.timed(program, steps)]
            many = steps * max(1, min(int(RUN_SECONDS / max(times[0], 1e-7)), MOST_STEPS // steps))
            return min(self.timed(program, many) for _ in range(REPEATS)) / many

    def timed(self, program: CompiledProgram, steps: int) -> float:
        """Seconds of a run, between two events of the GPU, after a run of the same launches."""
        cuda = self.gpu.cuda
        self.reset(self.one)
        self.run(program, self.one, steps)
        start, end = (checked(cuda.cuEventCreate(0)) for _ in range(2))
        checked(cuda.cuEventRecord(start, 0))
        self.run(program, self.one, steps)
        checked(cuda.cuEventRecord(end, 0))
        checked(cuda.cuEventSynchronize(end))
        seconds = float(checked(cuda.cuEventElapsedTime(start, end))) * 1e-3
        for event in (start, end):
            checked(cuda.cuEventDestroy(event))
        return seconds


def is_device_field(parameter: Parameter, value: Any) -> bool:
    """Whether an argument is a field, in memory of the host or of the GPU."""
    return parameter.is_field and (is_numpy_array(value) or isinstance(value, DeviceArray))


def tuned(
    program: CompiledProgram,
    values: Sequence[Any],
    limit: float = LIMIT_SECONDS,
    tell: Tell = say_nothing,
) -> Measured:
    """
    Measure schedules of a program on the GPU, on copies of these checked arguments, keep the
    record, and let the program use the fastest from now on. Raises CompileError for a program
    without a choice, RuntimeError for a GPU without memory for two more copies of the fields.
    """
    own, records = program.kernels, program.kernels.records
    if records is None:
        raise CompileError(
            "schedules are measured on a GPU, and the program is compiled for the "
            f"{program.executor} executor; compile with executor='gpu'"
        )
    if own.options.passes is not None:
        raise CompileError("given passes leave no schedule to choose; tune without passes")
    with GpuBench(program, values).open() as bench:
        kernels = own.common if bench.has_common_halos() else own
        if own.edges.steps:
            # Most steps run in kernels continuing the fields.
            kernels = own.edges.continued.kernels
        search = ProgramKernels(kernels.source, kernels.options, kernels.cache)
        cells = updates_of_step(kernels)
        early = 0 if search.cache is None else MOST_MEASURED
        # Processes load the compiler while the default is made and measured.
        with Workers(early) as workers:
            rows = Tuning(search, bench, cells, limit, workers.made, tell=tell).run()
    speed = rows[0].gcells_per_second
    record = Measured(title_of(own), records.device, tuple(best_first(rows)), speed)
    records.keep(kernels.model_key, record)
    program.renew()
    return record


def is_tuned(program: CompiledProgram) -> bool:
    """Whether the program was tuned, for halos of its own or common halos."""
    kernels = program.kernels
    variants = [kernels, *([kernels.common] if kernels.options.halos == "compared" else [])]
    if kernels.edges.steps:
        variants = [kernels.edges.continued.kernels]
    return any(each.record is not None and not each.record.in_run for each in variants)


def tune_if_new(program: CompiledProgram, values: Sequence[Any]) -> None:
    """Tune a program without a record; a warning tells why a program cannot be tuned."""
    if is_tuned(program):
        return
    try:
        tuned(program, values)
    except (CompileError, RuntimeError) as error:
        LOGGER.warning("%s runs with the model's schedules: %s", program.name, error)
