"""The commands of the command line, one function each: `run`, `compile`, `explain`, `cache`, `doctor`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.gpu import ModuleOp as GpuModuleOp
from xdsl.dialects.math import RsqrtOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms import get_all_passes
from xdsl.utils.exceptions import ArgSpecParseError

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp, LaunchOp
from timetile.lowering.pipelines import FpContract
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.lowering.universe import PASSES
from timetile.passes.simplify_cells import FpDivision
from timetile.runtime.cache import Cache
from timetile.runtime.comparison import difference
from timetile.runtime.compile import compile as compile_program
from timetile.runtime.doctor import examine
from timetile.runtime.executors import loop_handler
from timetile.runtime.explain import Explanation
from timetile.runtime.gpu import device, gpu_is_available
from timetile.runtime.host import Host
from timetile.runtime.inputs import Arguments, label, read_arrays, write_arrays
from timetile.runtime.kernels import Halos, Kernel, loops_of
from timetile.runtime.planning import planned_function
from timetile.runtime.plotting import check_picture, plot
from timetile.runtime.program import CompiledProgram, Executor, RunResult
from timetile.runtime.terminal import Log, answer_console, progress, say
from timetile.runtime.usage import UsageError


class Options(argparse.Namespace):
    """The parsed command line; which of these there are depends on the command."""

    command: Callable[[Options, Log], int]
    verbose: bool
    program: Path
    function: str | None
    arch: str | None
    device: int
    depth: int | None
    fp_contract: FpContract
    fp_division: FpDivision
    bound_waits: bool
    halos: Halos
    pipeline: str | None
    steps: int | None
    args: Path | None
    set: list[str]
    random: int | None
    executor: Executor | None
    out: Path | None
    check: bool
    plot: Path | None
    emit: Literal["temporal", "tile", "gpu", "nvvm", "ptx"]
    action: Literal["path", "verify", "clear"]


def parse_passes(spec: str) -> tuple[ModulePass, ...]:
    """The passes of an xdsl-opt style pipeline, xDSL's and ours; UsageError where it is wrong."""
    try:
        return PassPipeline.parse_spec({**get_all_passes(), **PASSES}, spec).passes
    except (ArgSpecParseError, ValueError) as error:
        # The parser's message is a picture whose last line says what is wrong.
        reason = str(error).strip().splitlines()[-1].strip()
        raise UsageError(f"--pipeline {spec!r} cannot be used: {reason}") from error


def compiled(options: Options, executor: Executor | None) -> CompiledProgram:
    """The program that the options name, compiled as they say."""
    if options.pipeline is not None and options.depth is not None:
        raise UsageError(
            "--depth has no effect with --pipeline; write temporal-fusion{depths=N} in the pipeline"
        )
    check_device(options.device, executor)
    try:
        program = compile_program(
            options.program,
            executor=executor,
            depth=options.depth,
            arch=options.arch,
            fp_contract=options.fp_contract,
            fp_division=options.fp_division,
            passes=None if options.pipeline is None else parse_passes(options.pipeline),
            function=options.function,
            bound_waits=options.bound_waits,
            halos=options.halos,
            gpu=options.device,
        )
    except UnicodeDecodeError as error:
        raise UsageError(f"{options.program} is not a text file; give a program in MLIR") from error
    if options.pipeline is not None and executor != "cpu":
        check_kernels(program)
    return program


def check_device(number: int, executor: Executor | None) -> None:
    """UsageError where a GPU is asked for and there is none of that number."""
    if gpu_is_available():
        try:
            device(number)
        except RuntimeError as error:
            raise UsageError(f"--device {number} cannot be opened: {error}") from error
    elif executor == "gpu":
        raise UsageError("no GPU can be used, timetile doctor says why; run with --executor cpu")


def placed_kernels(program: CompiledProgram) -> list[KernelOp]:
    """The kernels of a program at tile level that can be lowered."""
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


# timetile run.


def kernels_of_run(
    program: CompiledProgram, values: Sequence[Any], steps: int | None
) -> Sequence[str]:
    """The kernels that a run with these arguments launches."""
    found: dict[str, None] = {}

    def plan_only(
        loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        plan = planned_function(loop, program.kernels.facts_of(loop), steps)
        launches = [op for op in plan.walk() if isinstance(op, LaunchOp)]
        found.update(dict.fromkeys(launch.kernel.string_value() for launch in launches))
        return buffers

    Host(loop_handler(plan_only, steps, [], program.loops)).run(program.function, list(values))
    return list(found)


def compile_kernels(program: CompiledProgram, names: Sequence[str]) -> list[Kernel]:
    """Compile kernels, those that the cache does not have."""
    kernels: list[Kernel] = []
    with progress("compiling", len(names)) as advance:
        for name in names:
            kernels.append(program.kernels.kernel(name))
            advance(len(kernels), len(names))
    return kernels


def prepare(program: CompiledProgram, values: Sequence[Any], steps: int | None) -> None:
    """Compile what a run needs, and load it on the GPU, before the clock starts."""
    kernels = compile_kernels(program, kernels_of_run(program, values, steps))
    gpu = device(program.gpu)
    with gpu.current():
        for kernel in kernels:
            gpu.load(kernel)


def gathered(program: CompiledProgram, options: Options) -> list[Any]:
    """A value for every argument of the program."""
    arguments = Arguments(program)
    if options.args is not None:
        arguments.add_arrays(read_arrays(options.args), str(options.args))
    for setting in options.set:
        arguments.add_setting(setting)
    arguments.add_steps(options.steps)
    if options.random is not None:
        arguments.add_random(options.random)
    return arguments.all()


def execute(program: CompiledProgram, values: Sequence[Any], steps: int | None) -> RunResult:
    """Run a program on NumPy arrays, in place, with a progress bar."""
    if program.executor == "gpu":
        prepare(program, values, steps)
    with progress(f"running on {program.executor}") as advance:
        return program(*values, steps=steps, progress=advance)


def report(program: CompiledProgram, result: RunResult) -> None:
    """Say what a run did."""
    say(
        f"@{program.function.sym_name.data} on {program.executor}: {sum(result.steps)} steps, "
        f"{result.cells} cells updated in {result.seconds:.6g} s, "
        f"{result.gcells_per_second:.4g} GCells/s"
    )
    for number, positions in enumerate(result.latest):
        loop = f" of time loop {number}" if len(result.latest) > 1 else ""
        holders = ", ".join(label(program.parameters[k]) for k in positions)
        say(f"the last time level{loop} is in {holders or 'no argument'}")


def compare(program: CompiledProgram, values: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether two runs left the same bits in every field, said to the user."""
    same = True
    fields = [p for p in program.parameters if p.bounds is not None]
    for parameter in fields:
        found = difference(values[parameter.position], expected[parameter.position])
        if found is not None:
            same = False
            say(f"check: {label(parameter)}, {program.executor} and cpu: {found}")
    if same:
        say(f"check: all {len(fields)} fields equal those of the CPU executor, bit for bit")
    elif any(isinstance(op, RsqrtOp) for op in program.module.walk()):
        say("check: the program uses math.rsqrt, which a GPU does not round correctly")
    return same


def check_outputs(options: Options) -> None:
    """What the run is to leave can be written: OSError or UsageError before it begins."""
    if options.plot is not None:
        check_picture(options.plot)
    for path in (options.out, options.plot):
        if path is not None:
            existed = path.exists()
            path.open("ab").close()
            if not existed:
                path.unlink()


def run(options: Options, log: Log) -> int:
    """`timetile run`."""
    program = compiled(options, options.executor)
    if options.check and program.executor == "cpu":
        raise UsageError(
            "--check compares with the CPU executor; run with --executor gpu, planes or simt"
        )
    values = gathered(program, options)
    check_outputs(options)
    copies = [np.copy(value) if np.ndim(value) else value for value in values]
    result = execute(program, values, options.steps)
    report(program, result)
    same = True
    if options.check:
        on_cpu = CompiledProgram(program.module, program.kernels, "cpu")
        execute(on_cpu, copies, options.steps)
        same = compare(program, values, copies)
    if options.out is not None:
        write_arrays(options.out, program, values)
        say(f"wrote {options.out}")
    if options.plot is not None:
        latest = [k for positions in result.latest for k in positions]
        shown = latest or [p.position for p in program.parameters if p.bounds is not None]
        plot({label(program.parameters[k]): values[k] for k in shown}, options.plot)
        say(f"wrote {options.plot}")
    return 0 if same else 1


# timetile compile and explain.


def kernel_names(program: CompiledProgram) -> list[str]:
    """All kernels of a program."""
    return [kernel.name for kernels in program.kernels.facts for kernel in kernels]


def lowered(program: CompiledProgram, *, to_nvvm: bool) -> ModuleOp:
    """All kernels per thread, or as nvvm, in one module."""
    names = kernel_names(program)
    kernels: list[Operation] = []
    with progress("lowering", len(names)) as advance:
        for name in names:
            if to_nvvm:
                ops = program.kernels.nvvm(name, verify=True).ops
                kernels += [op.clone() for op in ops if isinstance(op, GpuModuleOp)]
            else:
                kernels.append(program.kernels.threads(name).clone())
            advance(len(kernels), len(names))
    return ModuleOp(kernels)


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
            return printed(lowered(program, to_nvvm=False))
        case "nvvm":
            return printed(lowered(program, to_nvvm=True))
        case _:
            arch = program.kernels.options.target
            kernels = kernels_of(lowered(program, to_nvvm=True))
            bound = program.kernels.options.bound_waits
            return print_module(kernels, arch.ptx_version, arch.name, bound_waits=bound)


def compile(options: Options, log: Log) -> int:
    """`timetile compile`."""
    text = emitted(compiled(options, None), options.emit)
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text)
    return 0


def explain(options: Options, log: Log) -> int:
    """`timetile explain`."""
    console = answer_console()
    log.prints_remarks = False
    try:
        program = compiled(options, None)
        compile_kernels(program, kernel_names(program))
        Explanation(console, program, options.steps).show()
    finally:
        if log.remarks:
            console.print("\n[bold]Not done, and why[/]")
        for remark in log.remarks:
            say(f"  {remark}")
    if not log.remarks:
        say("\nEverything was done: there are no remarks.")
    return 0


# timetile cache and doctor.


def cache(options: Options, log: Log) -> int:
    """`timetile cache`."""
    store = Cache.default()
    match options.action:
        case "path":
            say(str(store.directory))
        case "clear":
            say(f"removed {store.clear()} entries from {store.directory}")
        case "verify":
            damaged = store.damaged()
            for key in damaged:
                say(f"damaged: {store.entry(key)}")
            say(f"{len(store.keys())} entries in {store.directory}, {len(damaged)} damaged")
            if damaged:
                say("a damaged entry is made again when it is needed")
                return 1
    return 0


def doctor(options: Options, log: Log) -> int:
    """`timetile doctor`."""
    for finding in examine():
        say(f"{finding.what:<12} {'found' if finding.found else 'none':<6} {finding.text}")
    return 0
