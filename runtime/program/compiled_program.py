"""A compiled program: arrays in, arrays out."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Self

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from timetile.passes.diagnostics import CompileError
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu_runner import GpuRunner
from timetile.runtime.device.runners import Runners
from timetile.runtime.executors.handlers import handlers_of
from timetile.runtime.executors.homes import MarkedCells
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.executors.ptx.runner import FieldOfPtx, PtxRunner
from timetile.runtime.executors.runners import (
    LoopRunner,
    NoticingRunner,
    NumpyRunner,
    PlanesRunner,
    SimtRunner,
)
from timetile.runtime.executors.simt.memory import Buffer
from timetile.runtime.explain.data import Explanation
from timetile.runtime.host.arrays import DeviceArray, check_home, is_numpy_array
from timetile.runtime.host.functions import Host, HostLoops, HostValues
from timetile.runtime.host.loop_facts import KnownLoops
from timetile.runtime.host.parameters import bound, parameters_of
from timetile.runtime.host.point_loops import PointLoops, has_point_runs
from timetile.runtime.host.run_record import RunRecord
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.loading.selection import host_function
from timetile.runtime.machine.floating_point import in_standard_modes
from timetile.runtime.machine.teams import thread_count
from timetile.runtime.native.point_nests import PointNests
from timetile.runtime.native.program import NativeProgram, NativeRunner
from timetile.runtime.program.arguments import check_memory, checked_argument, stream_handle
from timetile.runtime.program.finite import is_finite, warn_of_blow_up
from timetile.runtime.program.pieces import Span, check_pieces, in_pieces
from timetile.runtime.program.rehearsal import is_worth_it, rehearse
from timetile.runtime.program.results import RunResult, next_order
from timetile.runtime.program.shown_names import ShownNames
from timetile.runtime.program.unused_options import UnusedOptions
from timetile.runtime.program.whole_fields import WholeFields
from timetile.runtime.program.written_fields import constant_arguments

Executor = Literal["gpu", "cpu", "numpy", "planes", "simt", "ptx"]


@dataclass
class HostCall:
    """
    A run of the host function: the values for the arguments, the record, the values after the run,
    the returned values, and the seconds taken (0 without a wait).
    """

    values: Sequence[Any]
    record: RunRecord
    made: HostValues
    returned: list[Any]
    seconds: float = 0.0


class CompiledProgram(ShownNames):
    """
    A stencil program that runs.

    ```
    result = program(u, v, steps=5)                  # the function's arguments, by position
    result = program(*result.buffers, steps=5)       # goes on: 10 steps in all
    u, v = program.advance((u, v), 5)                # five steps more
    program(u=u, v=v, steps=5)                       # by the program's own names: a field %u is u=
    ```

    Fields are arrays with the shape of the field's bounds, halos included; scalars are numbers.
    `steps` replaces the trip count of time loops, and stands for an argument that is only a number
    of steps. Rotating buffers (`u` and `v` of `u, v = v, u`) each have a halo, and steps read the
    halos in turn: fill all of them.

    NumPy arrays are updated in place, and the call blocks. Device arrays (with
    `__cuda_array_interface__` or DLPack, beginning at a multiple of 16 bytes) are updated in place,
    asynchronously on `stream`, except for the comparison of halos, which `compile(halos=...)` can
    replace. Runs made again on equal arrays are quicker: their launches are kept as CUDA graphs.

    On a GPU a program holds kernels, graphs and scratch buffers. `close()`, the end of a `with`
    block, or dropping the program gives all of these back; a later call takes them anew.
    """

    def __init__(
        self,
        module: ModuleOp,
        kernels: ProgramKernels,
        executor: Executor,
        gpu: int = 0,
        threads: int | None = None,
        unused: UnusedOptions | None = None,
    ):
        self.module, self.kernels, self.gpu = module, kernels, gpu
        self.threads = thread_count(threads)
        self.executor: Executor = executor
        self.unused = unused or UnusedOptions(executor)
        self.tunes = False
        """Whether the next run measures schedules first."""
        self.whole = WholeFields()
        """The program for runs of few steps, if longer runs store layers alone."""
        self.function = host_function(module, kernels.options.function)
        self.parameters = parameters_of(self.function)
        self.runners, self.loops = Runners(kernels, gpu), KnownLoops()
        self.is_rehearsed = is_worth_it(self.function)
        given_back = weakref.finalize(self, self.runners.close)
        # When the process ends, the driver frees the memory, and may already be gone.
        given_back.atexit = False

    @cached_property
    def constant_arguments(self) -> frozenset[int]:
        """The positions of arguments that a run only reads; two such may share memory."""
        return constant_arguments(self.function)

    @property
    def name(self) -> str:
        """The name of the function, as `@heat`."""
        return f"@{self.function.sym_name.data}"

    def __repr__(self) -> str:
        arguments = ", ".join(map(str, self.parameters))
        where = f"GPU {self.gpu}, {self.kernels.options.arch}" if self.executor == "gpu" else ""
        return f"<timetile program {self.name}({arguments}) for {where or self.executor}>"

    @in_standard_modes
    def __call__(
        self,
        *arguments: Any,
        steps: int | None = None,
        first_step: int = 0,
        stream: Any = None,
        progress: Progress | None = None,
        **named: Any,
    ) -> RunResult:
        """
        Run on arguments by position or by the program's own names (arguments %steps, %first_step,
        %stream and %progress by position only). Steps are counted from `first_step`, for programs
        with steps that depend on their number, as those with sources. `stream` is a CUDA stream's
        handle, or an object with `__cuda_stream__`. `progress` is called with the steps done and
        all steps of a loop. Raises TypeError or ValueError, before any change, for a wrong
        argument.
        """
        if self.whole.takes(steps):
            run = partial(self.whole.program, steps=steps, first_step=first_step, stream=stream)
            return run(*arguments, progress=progress, **named)
        self.unused.say()
        span = Span.checked(steps, first_step)
        given = bound(self.name, self.parameters, arguments, named, steps)
        on = stream_handle(stream)
        values = [checked_argument(p, a, on) for p, a in zip(self.parameters, given)]
        check_memory(self.parameters, values, self.constant_arguments)
        if self.tunes:
            self.tune(values)
        if self.is_rehearsed:
            rehearse(self.function, values, steps, self.loops)
        if any(isinstance(value, DeviceArray) for value in values):
            return self.result(self.run_on_device_arrays(values, span, on), given)
        return self.result(self.run_on_arrays(values, span, on, progress), given)

    def advance(
        self, arguments: Sequence[Any], steps: int, *, first_step: int = 0, stream: Any = None
    ) -> tuple[Any, ...]:
        """
        Run `steps` steps, and return the arguments of a continuing call. A RuntimeWarning names
        NumPy arrays with cells that became NaN or infinite.
        """
        given = [array for array in arguments if is_numpy_array(array) and is_finite(array)]
        result = self(*arguments, steps=steps, first_step=first_step, stream=stream)
        if not all(map(is_finite, given)):
            warn_of_blow_up(self.parameters, arguments, given, f"after {steps} steps")
        return result.buffers[: len(arguments)]

    def snapshots(
        self,
        arguments: Sequence[Any],
        steps: int,
        every: int,
        *,
        first_step: int = 0,
        stream: Any = None,
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """
        Run `steps` steps, and stop after every `every` steps and at the end: `for step, (u, v) in
        program.snapshots((u, v), steps=1000, every=100)` gets the number of steps done, and the
        arguments of a continuing call. Arrays are updated in place: copy arrays to keep. The bits
        equal the bits of one run. Raises CompileError, before any run, if a run cannot stop between
        steps: the program has several time loops or none, or does more than its time loop.
        """
        check_pieces(self.function)

        def run(state: tuple[Any, ...], count: int, done: int) -> tuple[Any, ...]:
            return self.advance(state, count, first_step=done, stream=stream)

        return in_pieces(run, tuple(arguments), steps, every, first_step)

    def __reduce__(self) -> tuple[Callable[..., CompiledProgram], tuple[Any, ...]]:
        """
        A pickle or a copy has the program and its options; kernels are found again in the cache.
        """
        # Programs that only run never need the import.
        from timetile.runtime.program.pickled import program_of_text, text_of_program

        return program_of_text, (text_of_program(self),)

    # Resources of the program.

    def runner(self, stream: int) -> GpuRunner:
        """The runner of a stream, kept for its scratch buffers and plans."""
        return self.runners.of(stream)

    def close(self) -> None:
        """Give back the program's resources on the GPU, after all runs are done."""
        self.runners.close()
        self.whole.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def tune(self, values: Sequence[Any]) -> None:
        """Measure schedules on the GPU, on copies of these checked arguments, unless known."""
        from timetile.runtime.program.tuned_program import tune_if_new

        self.tunes = False
        tune_if_new(self, values)

    def renew(self) -> None:
        """Use the schedules measured meanwhile, after all runs are done."""
        self.runners.close()
        self.kernels = self.runners.kernels = self.kernels.with_new_records()

    @in_standard_modes
    def explain(self, steps: int | None = None) -> Explanation:
        """
        The predicted speed, the limits and possible changes, as data; `str()` gives text, and a
        notebook shows tables. `steps` adds the launches of a run of `steps` steps. Missing kernels
        are compiled.
        """
        from timetile.runtime.explain.explanation import explanation_of

        return explanation_of(self, steps)

    # Running.

    @cached_property
    def native(self) -> NativeProgram:
        """The program's machine code for this processor."""
        return NativeProgram(self.module, self.kernels.cache)

    def run_on_arrays(
        self, values: Sequence[Any], span: Span, stream: int, progress: Progress | None
    ) -> HostCall:
        """Run on NumPy arrays."""
        match self.executor:
            case "cpu":
                native = NativeRunner(self.native, self.threads, progress)
                noticing = NoticingRunner(native, self.kernels.notice)
                return self.run_host(noticing, values, span, native.nests)
            case "numpy":
                judge = NoticingRunner(NumpyRunner(progress), self.kernels.notice)
                return self.run_host(judge, values, span)
            case "planes":
                # The planes executor finds wrong lags and homes.
                runner = PlanesRunner(self.kernels, progress)
                return self.run_checked(MarkedCells.copy_of, runner, values, span)
            case "simt":
                # The SIMT interpreter finds races and wild accesses.
                runner = SimtRunner(self.kernels, progress)
                return self.run_checked(Buffer.copy_of, runner, values, span)
            case "ptx":
                # The PTX interpreter finds faults of the text for the GPU.
                runner = PtxRunner(self.kernels, progress)
                return self.run_checked(FieldOfPtx.of, runner, values, span)
            case "gpu":
                return self.run_gpu(values, span, stream)

    def run_host(
        self,
        runner: LoopRunner,
        values: Sequence[Any],
        span: Span,
        loops: HostLoops | None = None,
    ) -> HostCall:
        """Run the host function with a runner of time loops, and `loops` for the host's loops."""
        record, block = RunRecord(), self.function.body.block
        handlers = handlers_of(runner, span.steps, record, self.loops, span.first)
        made: HostValues = dict(zip(block.args, values))
        if has_point_runs(self.function):
            inner = handlers_of(runner, None, record, self.loops)
            loops = PointLoops(loops or self.point_nests, inner, runner.memory, record)
        start = time.perf_counter()
        host = Host(handlers, span.steps, record, span.first, runner.memory.nest, loops)
        try:
            returned = host.run_block(block, made)
        except CompileError as error:
            raise record.with_what_ran(error) from error
        return HostCall(values, record, made, returned, time.perf_counter() - start)

    @cached_property
    def point_nests(self) -> HostLoops:
        """The work of the host at points, as machine code."""
        return PointNests(self.module, self.kernels.cache)

    def run_checked(
        self,
        copy: Callable[[NDArray[Any]], MarkedCells | Buffer],
        runner: LoopRunner,
        values: Sequence[Any],
        span: Span,
    ) -> HostCall:
        """Run with a slow executor on copies of the fields with marks for written cells."""
        copies: list[Any] = [
            copy(value) if is_numpy_array(value) and parameter.is_field else value
            for parameter, value in zip(self.parameters, values)
        ]
        call = self.run_host(runner, copies, span)
        for made, value in zip(copies, values):
            if isinstance(made, MarkedCells | Buffer):
                value[...] = made.data.view(value.dtype).reshape(value.shape)
        return call

    def run_gpu(self, values: Sequence[Any], span: Span, stream: int) -> HostCall:
        """Copy NumPy arrays to the device, run, and copy the arrays back."""
        with self.runners.lent(stream) as runner, runner.device.current():
            gpu, placed = runner.device, list[Any]()
            try:
                for parameter, value in zip(self.parameters, values):
                    if is_numpy_array(value) and parameter.is_field:
                        buffer = DeviceBuffer(gpu.allocate(value.nbytes), value.nbytes)
                        placed.append(buffer)
                        gpu.upload(buffer.pointer, value)
                    else:
                        placed.append(value)
                # A copy from the host's memory may outlast its call, on the default stream.
                gpu.synchronize(0)
                gpu.synchronize(runner.stream)
                start = time.perf_counter()
                call = self.run_host(runner, placed, span)
                gpu.synchronize(runner.stream)
                call.seconds = time.perf_counter() - start
                for k, (buffer, value) in enumerate(zip(placed, values)):
                    if isinstance(buffer, DeviceBuffer) and k not in self.constant_arguments:
                        gpu.download(value, buffer.pointer)
            finally:
                for buffer in placed:
                    if isinstance(buffer, DeviceBuffer):
                        gpu.free(buffer.pointer)
        return call

    def run_on_device_arrays(self, values: Sequence[Any], span: Span, stream: int) -> HostCall:
        """Run on the caller's device memory, asynchronously on the caller's stream."""
        if self.executor != "gpu":
            raise TypeError(
                f"the arguments are on the device, and the program was compiled for the "
                f"{self.executor} executor; pass NumPy arrays or compile with executor='gpu'"
            )
        with self.runners.lent(stream) as runner, runner.device.current():
            placed: list[Any] = []
            for parameter, value in zip(self.parameters, values):
                if isinstance(value, DeviceArray):
                    check_home(parameter.label, value, runner.device)
                    placed.append(DeviceBuffer(value.pointer, value.bytes))
                else:
                    placed.append(value)
            for value in values:
                if isinstance(value, DeviceArray) and value.stream is not None:
                    runner.device.wait_for_stream(runner.stream, value.stream)
            call = self.run_host(runner, placed, span)
        call.seconds = 0.0
        return call

    def result(self, call: HostCall, given: Sequence[Any]) -> RunResult:
        """Describe a run on the given arguments."""

        def places(buffer: Any) -> tuple[int, ...]:
            return tuple(k for k, value in enumerate(call.values) if value is buffer)

        loops = call.record.time_loops
        order = next_order(self.function, call.made, call.values)
        return RunResult(
            tuple(tuple(k for buffer in run.written for k in places(buffer)) for run in loops),
            tuple(run.steps for run in loops),
            sum(run.cells for run in call.record.runs),
            call.seconds,
            tuple(next(iter(places(value)), value) for value in call.returned),
            tuple(given[k] for k in order),
        )
