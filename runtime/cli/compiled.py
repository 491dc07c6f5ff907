"""The program named by the options of `run`, `compile` and `explain`, compiled."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from xdsl.passes import ModulePass

from timetile.dialects.tile import KernelOp
from timetile.passes.diagnostics import LOGGER, CompileError
from timetile.passes.targets.isa import version_of
from timetile.passes.targets.target import target_named
from timetile.runtime.cli.example import examples
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.ranks import parts_of
from timetile.runtime.cli.terminal import progress
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.device.gpu import device
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.loading.plugins import parsed_passes
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.machine.teams import thread_count
from timetile.runtime.program.compile import compile as compile_program
from timetile.runtime.program.compile import default_executor
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


def parse_passes(spec: str) -> tuple[ModulePass, ...]:
    """
    The passes of an xdsl-opt style pipeline, of all packages. Raises UsageError for a wrong
    pipeline.
    """
    if not spec.strip():
        raise UsageError("--pipeline names no pass; leave out the option for the default passes")
    try:
        return parsed_passes(spec)
    except ValueError as error:
        raise UsageError(f"--pipeline {spec!r} cannot be used: {error}") from error


STANDARD_INPUT = Path("-")
"""The name of standard input, as for `xdsl-opt`."""


@cache
def program_from_standard_input() -> str:
    """The text on standard input, which can be read only once."""
    return sys.stdin.read()


def check_program_path(path: Path) -> None:
    """UsageError for the name of an example, and for a program in Python."""
    if path.suffix == ".py":
        raise UsageError(
            f"{path} is a program in Python; run the file with python {path}, or give a program "
            "in MLIR, as the mlir of a model"
        )
    if not path.exists() and str(path) in examples():
        raise UsageError(
            f"{path} is the name of an example, and no file; timetile example {path} --out DIR "
            "writes the file"
        )


def compiled(
    options: Options, executor: Executor | None, threads: int | None = None, comm: object = None
) -> CompiledProgram:
    """The program named by the options, compiled; with `comm` for all ranks of a communicator."""
    if options.pipeline is not None and options.depth is not None:
        raise UsageError(
            "--depth has no effect with --pipeline; write temporal-fusion{depths=N} in the pipeline"
        )
    is_read = options.program == STANDARD_INPUT
    check_program_path(options.program)
    check_device(options.device, executor)
    # Other commands than `run` have no such options.
    gpus: int | None = getattr(options, "gpus", None)
    in_parts = comm is not None or gpus is not None
    check_gpus(gpus, executor)
    try:
        thread_count(threads)
    except ValueError as error:
        raise UsageError(str(error)) from error
    try:
        program = compile_program(
            program_from_standard_input() if is_read else options.program,
            executor=executor,
            depth=options.depth,
            arch=options.arch,
            fp_contract=options.fp_contract,
            fp_division=options.fp_division,
            fp_reassoc=options.fp_reassoc,
            passes=None if options.pipeline is None else parse_passes(options.pipeline),
            function=options.function,
            bound_waits=options.bound_waits,
            halos=options.halos,
            gpu=options.device or 0,
            threads=threads,
            cache=not options.no_cache,
            comm=comm,
            parts=parts_of(options.parts) if in_parts else None,
            exchange_every=options.exchange_every if in_parts else None,
            gpus=gpus,
        )
    except UnicodeDecodeError as error:
        raise UsageError(f"{options.program} is not a text file; give a program in MLIR") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    if options.pipeline is not None and executor not in ("cpu", "numpy"):
        check_kernels(program)
    if options.verbose:
        describe(program)
    return program


def executor_of_readers(options: Options) -> Executor | None:
    """
    The executor of a program whose kernels are only read: not the GPU's for kernels of an
    architecture newer than the GPU.
    """
    if options.arch is None or options.device is not None or default_executor() != "gpu":
        return None
    try:
        asked = target_named(options.arch).isa.name
    except CompileError:
        # The compilation refuses the name.
        return None
    return "cpu" if version_of(asked) > version_of(device(0).arch) else None


def describe(program: CompiledProgram) -> None:
    """Log the compilation. The passes run, to log their remarks even for cached kernels."""
    name = program.function.sym_name.data
    LOGGER.info(
        "@%s for the executor %s, target %s",
        name,
        program.executor,
        program.kernels.options.target.title,
    )
    for number, loop in enumerate(loops_of(program.kernels.tiled)):
        depths = ", ".join(map(str, loop.depth_list))
        LOGGER.info("time loop %d: kernels of %s steps", number, depths)
    if not program.kernels.remarks:
        LOGGER.info("no remarks: nothing was left as it was")


def check_device(number: int | None, executor: Executor | None) -> None:
    """Raise UsageError for a GPU asked for and missing, or for a GPU's number without a use."""
    if executor not in (None, "gpu"):
        if number is not None:
            raise UsageError(
                f"--device has no effect with --executor {executor}; leave out the option"
            )
        return
    if gpu_is_available():
        try:
            device(number or 0)
        except RuntimeError as error:
            raise UsageError(f"--device {number or 0} cannot be opened: {error}") from error
        return
    if executor == "gpu":
        raise UsageError("no GPU can be used, timetile doctor says why; run with --executor cpu")
    if number is not None:
        raise UsageError(
            f"--device {number} cannot be opened, as no GPU can be used (timetile doctor tells the "
            "reason); leave out --device"
        )


def check_gpus(count: int | None, executor: Executor | None) -> None:
    """Raise UsageError for several GPUs asked for and missing."""
    if count is None or executor not in (None, "gpu"):
        return
    check_device(None, "gpu")
    for number in range(count):
        try:
            device(number)
        except RuntimeError as error:
            raise UsageError(f"--gpus {count} cannot be opened: {error}") from error


def placed_kernels(program: CompiledProgram) -> list[KernelOp]:
    """The placed kernels of a program at tile level, ready for lowering."""
    return [
        op
        for op in program.kernels.tiled.ops
        if isinstance(op, KernelOp) and op.is_placed and op.variants is not None
    ]


def check_kernels(program: CompiledProgram) -> None:
    """UsageError unless a pipeline made placed kernels of every time loop."""
    placed = {kernel.sym_name.data for kernel in placed_kernels(program)}
    for loop in loops_of(program.kernels.tiled):
        if not loop.kernel_names or not placed.issuperset(loop.kernel_names):
            raise UsageError(
                "--pipeline leaves a time loop without placed kernels; it needs at least "
                "device-tiling,multi-queue-buffering,peel-boundaries"
            )


def compile_kernels(names: Sequence[tuple[ProgramKernels, str]]) -> list[Kernel]:
    """Compile kernels missing in the cache, each with its owner."""
    kernels: list[Kernel] = []
    for owner in dict.fromkeys(owner for owner, _ in names):
        owner.begin([name for other, name in names if other is owner])
    with progress("compiling", len(names)) as advance:
        for owner, name in names:
            kernels.append(owner.kernel(name))
            advance(len(kernels), len(names))
    return kernels
