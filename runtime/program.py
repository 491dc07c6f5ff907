"""A compiled program: arrays in, arrays out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from timetile.runtime.arrays import (
    DeviceArray,
    check_aliasing,
    check_alignment,
    check_numpy,
    check_shape,
    checked_scalar,
    from_device,
    is_numpy_array,
    is_on_device,
)
from timetile.runtime.cpu import Progress
from timetile.runtime.executors import (
    LoopRunner,
    NumpyRunner,
    PlanesRunner,
    SimtRunner,
    handlers_of,
)
from timetile.runtime.explain.data import Explanation
from timetile.runtime.gpu import device
from timetile.runtime.gpu_runner import DeviceBuffer, GpuRunner
from timetile.runtime.homes import Cells
from timetile.runtime.host import Host
from timetile.runtime.kernels import ProgramKernels
from timetile.runtime.loop_facts import KnownLoops
from timetile.runtime.native import NativeProgram, NativeRunner
from timetile.runtime.parameters import Parameter, parameters_of
from timetile.runtime.run_record import RunRecord
from timetile.runtime.selection import host_function
from timetile.runtime.simt.memory import Buffer
from timetile.runtime.teams import thread_count

Executor = Literal["gpu", "cpu", "numpy", "planes", "simt"]


@dataclass(frozen=True)
class RunResult:
    """
    What a run leaves: `latest[k]` is the argument that holds what time loop k wrote last (one per
    buffer that its step writes), `steps` the steps of each loop, `cells` the cells that were updated,
    `seconds` the time of the run without transfers (0 for asynchronous runs), `returned` what the function
    returns: a number, or the position of the argument that is returned.
    """

    latest: tuple[tuple[int, ...], ...]
    steps: tuple[int, ...]
    cells: int
    seconds: float = field(compare=False)
    returned: tuple[Any, ...] = ()

    @property
    def gcells_per_second(self) -> float:
        """Cell updates per nanosecond."""
        return self.cells / self.seconds / 1e9 if self.seconds else 0.0


class CompiledProgram:
    """
    A stencil program that runs. Call it with the arguments of its function, by position: fields as
    arrays whose shape is the field's bounds, halos included, scalars as numbers. `steps` replaces the
    trip count of its time loops.

    NumPy arrays are updated in place and the call blocks. Device arrays (anything with
    `__cuda_array_interface__` or DLPack, that begins at a multiple of 16 bytes) are updated in place, asynchronously
    on `stream`; but for the answer to whether buffers that take turns have their halos in common, which
    `compile(halos=...)` can give instead. Runs that are made again on the same arrays are quicker: their launches are
    kept as CUDA graphs.
    """

    def __init__(
        self,
        module: ModuleOp,
        kernels: ProgramKernels,
        executor: Executor,
        gpu: int = 0,
        threads: int | None = None,
    ):
        self.module, self.kernels, self.gpu = module, kernels, gpu
        self.threads = thread_count(threads)
        self.executor: Executor = executor
        self.function = host_function(module, kernels.options.function)
        self.parameters = parameters_of(self.function)
        self.runners: dict[int, LoopRunner] = {}
        self.loops = KnownLoops()

    def __call__(
        self,
        *arguments: Any,
        steps: int | None = None,
        stream: Any = None,
        progress: Progress | None = None,
    ) -> RunResult:
        if len(arguments) != len(self.parameters):
            raise TypeError(
                f"@{self.function.sym_name.data} takes {len(self.parameters)} arguments, "
                f"and got {len(arguments)}"
            )
        if steps is not None and index(steps) < 0:
            raise ValueError(f"the number of steps is not negative, got {steps}")
        on = stream_handle(stream)
        values = [self.check(p, a, on) for p, a in zip(self.parameters, arguments)]
        self.check_memory(values)
        if any(isinstance(value, DeviceArray) for value in values):
            return self.run_on_device_arrays(values, steps, stream)
        match self.executor:
            case "cpu":
                runner = NativeRunner(self.native, self.threads, progress)
                return self.run_host(runner, values, steps)
            case "numpy":
                return self.run_host(NumpyRunner(progress), values, steps)
            case "planes":
                # Finds lags and homes that are wrong.
                runner = PlanesRunner(self.kernels, progress)
                return self.run_checked(Cells.copy_of, runner, values, steps)
            case "simt":
                # Finds races and wild accesses.
                return self.run_checked(
                    Buffer.copy_of, SimtRunner(self.kernels, progress), values, steps
                )
            case "gpu":
                return self.run_gpu(values, steps, stream)

    def explain(self, steps: int | None = None) -> Explanation:
        """
        How fast the program is predicted to be, what limits it and what can be changed, as data;
        `str()` of it is text, and a notebook shows it as tables. `steps` adds the launches of a run of
        so many steps. Kernels are compiled where they were not.
        """
        # Imported here: programs that only run need none of it.
        from timetile.runtime.explain.explanation import explanation_of

        return explanation_of(self, steps)

    # Arguments.

    def check(self, parameter: Parameter, value: Any, stream: int = 0) -> Any:
        """An argument as the executors take it; TypeError or ValueError where it does not fit."""
        if not parameter.is_read and (value is None or parameter.bounds is None):
            return None
        if parameter.bounds is None:
            return checked_scalar(parameter.position, value, parameter.kind)
        if is_on_device(value):
            array = from_device(parameter.position, value, stream)
            check_alignment(parameter.position, array)
            check_shape(
                parameter.position, array.shape, array.dtype, parameter.bounds, parameter.kind
            )
            return array
        if not is_numpy_array(value):
            raise TypeError(
                f"argument {parameter.position} is a {type(value).__name__}; pass a NumPy array or a "
                "device array"
            )
        check_numpy(parameter.position, value)
        check_shape(parameter.position, value.shape, value.dtype, parameter.bounds, parameter.kind)
        return value

    def check_memory(self, values: Sequence[Any]) -> None:
        """No two fields share memory, and all are on one side."""
        spans: list[tuple[int, int, int]] = []
        kinds: set[type] = set()
        for position, value in enumerate(values):
            if is_numpy_array(value):
                start = value.__array_interface__["data"][0]
                spans.append((start, start + value.nbytes, position))
                kinds.add(np.ndarray)
            elif isinstance(value, DeviceArray):
                spans.append((value.pointer, value.pointer + value.bytes, position))
                kinds.add(DeviceArray)
        if len(kinds) > 1:
            raise TypeError(
                "some fields are NumPy arrays and some are on the device; pass all of one kind"
            )
        check_aliasing(spans)

    # Running.

    @cached_property
    def native(self) -> NativeProgram:
        """The program's machine code for this processor."""
        return NativeProgram(self.module, self.kernels.cache)

    def run_function(
        self, runner: LoopRunner, values: Sequence[Any], steps: int | None
    ) -> tuple[RunRecord, list[Any]]:
        """Run the host function with a runner of time loops; what it did, and what it returns."""
        record = RunRecord()
        handlers = handlers_of(runner, steps, record, self.loops)
        returned = Host(handlers, steps, record).run(self.function, list(values))
        return record, returned

    def run_host(self, runner: LoopRunner, values: Sequence[Any], steps: int | None) -> RunResult:
        """Run the host function with a runner of time loops."""
        start = time.perf_counter()
        record, returned = self.run_function(runner, values, steps)
        seconds = time.perf_counter() - start
        return self.result(record, returned, values, seconds)

    def result(
        self,
        record: RunRecord,
        returned: Sequence[Any],
        values: Sequence[Any],
        seconds: float,
    ) -> RunResult:
        """Describe a run."""

        def places(buffer: Any) -> tuple[int, ...]:
            return tuple(k for k, value in enumerate(values) if value is buffer)

        loops = record.time_loops
        return RunResult(
            tuple(tuple(k for buffer in run.written for k in places(buffer)) for run in loops),
            tuple(run.steps for run in loops),
            sum(run.cells for run in record.runs),
            seconds,
            tuple(next(iter(places(value)), value) for value in returned),
        )

    def run_checked(
        self,
        copy: Callable[[NDArray[Any]], Cells | Buffer],
        runner: LoopRunner,
        values: Sequence[Any],
        steps: int | None,
    ) -> RunResult:
        """Run with an executor that works on copies of the fields which know what was written: slow."""
        copies: list[Any] = [
            copy(value) if is_numpy_array(value) and parameter.is_field else value
            for parameter, value in zip(self.parameters, values)
        ]
        result = self.run_host(runner, copies, steps)
        for made, value in zip(copies, values):
            if isinstance(made, Cells | Buffer):
                value[...] = made.data.reshape(value.shape)
        return result

    def runner(self, stream: int) -> GpuRunner:
        """The runner of a stream, kept for its scratch buffers and plans."""
        if stream not in self.runners:
            self.runners[stream] = GpuRunner(self.kernels, device(self.gpu), stream)
        runner = self.runners[stream]
        assert isinstance(runner, GpuRunner)
        return runner

    def run_gpu(self, values: Sequence[Any], steps: int | None, stream: Any) -> RunResult:
        """Copy NumPy arrays to the device, run, and copy them back."""
        runner = self.runner(stream_handle(stream))
        gpu = runner.device
        with gpu.current():
            placed: list[Any] = []
            try:
                for parameter, value in zip(self.parameters, values):
                    if is_numpy_array(value) and parameter.is_field:
                        buffer = DeviceBuffer(gpu.allocate(value.nbytes), value.nbytes)
                        placed.append(buffer)
                        gpu.upload(buffer.pointer, value)
                    else:
                        placed.append(value)
                gpu.synchronize(runner.stream)
                start = time.perf_counter()
                record, returned = self.run_function(runner, placed, steps)
                gpu.synchronize(runner.stream)
                seconds = time.perf_counter() - start
                for buffer, value in zip(placed, values):
                    if isinstance(buffer, DeviceBuffer):
                        gpu.download(value, buffer.pointer)
            finally:
                for buffer in placed:
                    if isinstance(buffer, DeviceBuffer):
                        gpu.free(buffer.pointer)
        return self.result(record, returned, placed, seconds)

    def run_on_device_arrays(
        self, values: Sequence[Any], steps: int | None, stream: Any
    ) -> RunResult:
        """Run on the caller's device memory, asynchronously on the caller's stream."""
        if self.executor != "gpu":
            raise TypeError(
                f"the arguments are on the device, and the program was compiled for the "
                f"{self.executor} executor; pass NumPy arrays or compile with executor='gpu'"
            )
        runner = self.runner(stream_handle(stream))
        gpu = runner.device
        with gpu.current():
            placed = [
                DeviceBuffer(value.pointer, value.bytes)
                if isinstance(value, DeviceArray)
                else value
                for value in values
            ]
            for value in values:
                if isinstance(value, DeviceArray) and value.stream is not None:
                    gpu.wait_for_stream(runner.stream, value.stream)
            record, returned = self.run_function(runner, placed, steps)
        return self.result(record, returned, placed, 0.0)


def stream_handle(stream: Any) -> int:
    """The handle of a stream: an integer, or an object with `__cuda_stream__`; 0 for the default."""
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    return int(stream)
