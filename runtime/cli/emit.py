"""`timetile compile`: a program at one level of the compiler."""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.gpu import ModuleOp as GpuModuleOp
from xdsl.ir import Operation

from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.runtime.bundle.files import write_bundle
from timetile.runtime.cli.compiled import compiled, executor_of_readers
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.outputs import written
from timetile.runtime.cli.terminal import Log, progress, say
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.explain.explanation import kernel_names
from timetile.runtime.kernels.sweeping import modules_of_sweeps
from timetile.runtime.program.compiled_program import CompiledProgram


def lowered(program: CompiledProgram, *, to_hardware: bool) -> ModuleOp:
    """All kernels, of sweeps too, per thread, or in the form of the hardware, in one module."""
    names = kernel_names(program)
    kernels: list[Operation] = []
    with progress("lowering", len(names)) as advance:
        for name in names:
            if to_hardware:
                ops = program.kernels.hardware(name, verify=True).ops
                kernels += [op.clone() for op in ops if isinstance(op, GpuModuleOp)]
            else:
                kernels.append(program.kernels.threads(name).clone())
            advance(len(kernels), len(names))
    arch = program.kernels.options.target.name
    sweeps = modules_of_sweeps(program.function, arch, to_hardware=to_hardware)
    return ModuleOp([*kernels, *sweeps])


def printed(module: ModuleOp) -> str:
    """A module as text."""
    return str(module) + "\n"


def emitted(program: CompiledProgram, what: str) -> str:
    """The program at one level, as text."""
    match what:
        case "temporal":
            return printed(program.module)
        case "tile":
            return printed(program.kernels.tiled)
        case "gpu":
            return printed(lowered(program, to_hardware=False))
        case "hardware":
            return printed(lowered(program, to_hardware=True))
        case _:
            target = program.kernels.options.target
            kernels = kernels_of(lowered(program, to_hardware=True))
            bound = program.kernels.options.bound_waits
            return print_module(kernels, target.isa.ptx_version, target.name, bound_waits=bound)


def compile(options: Options, log: Log) -> int:
    """`timetile compile`."""
    if options.emit == "bundle":
        return bundle(options, log)
    if options.steps is not None:
        raise UsageError(
            "--steps has no effect without --emit bundle, the only output with a number of steps; "
            "leave out --steps"
        )
    text = emitted(compiled(options, executor_of_readers(options)), options.emit)
    if options.out is None:
        sys.stdout.write(text)
    else:
        with written(options.out) as file:
            file.write(text.encode())
    return 0


def bundle(options: Options, log: Log) -> int:
    """Write a folder with kernels, a plan of launches, and C that makes the launches."""
    if options.out is None:
        raise UsageError("--emit bundle writes a folder; name the folder with --out FOLDER")
    if options.out.exists() and not options.out.is_dir():
        raise UsageError(f"{options.out} is a file; name a folder with --out FOLDER")
    program = compiled(options, executor_of_readers(options))
    for path in write_bundle(program, options.steps, options.out):
        say(f"wrote {path}")
    return 0
