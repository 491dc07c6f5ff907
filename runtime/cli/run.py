"""`timetile run`: a program on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.math import RsqrtOp

from timetile.runtime.ahead import kernels_of_run
from timetile.runtime.cli.compiled import compile_kernels, compiled
from timetile.runtime.cli.inputs import Arguments, label, read_arrays, write_arrays
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.outputs import check_output
from timetile.runtime.cli.plotting import check_picture, plot
from timetile.runtime.cli.terminal import Log, progress, say
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.comparison import difference
from timetile.runtime.gpu import device
from timetile.runtime.program import CompiledProgram, Executor, RunResult


def prepare(program: CompiledProgram, values: Sequence[Any], steps: int | None) -> None:
    """Compile what a run needs, and load it on the GPU, before the clock starts."""
    kernels = compile_kernels(kernels_of_run(program, values, steps))
    gpu = device(program.gpu)
    with gpu.current():
        for kernel in kernels:
            gpu.load(kernel)


def gathered(program: CompiledProgram, options: Options) -> list[Any]:
    """A value for every argument of the program."""
    arguments = Arguments(program)
    arguments.check_size()
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


def compare(
    program: CompiledProgram, values: Sequence[Any], expected: Sequence[Any], judge: Executor
) -> bool:
    """Whether two runs left the same bits in every field, said to the user."""
    same = True
    fields = [p for p in program.parameters if p.bounds is not None]
    for parameter in fields:
        found = difference(values[parameter.position], expected[parameter.position])
        if found is not None:
            same = False
            say(f"check: {label(parameter)}, {program.executor} and {judge}: {found}")
    if same:
        name = "NumPy" if judge == "numpy" else "CPU"
        say(f"check: all {len(fields)} fields equal those of the {name} executor, bit for bit")
    elif any(isinstance(op, RsqrtOp) for op in program.module.walk()):
        say("check: the program uses math.rsqrt, which a GPU does not round correctly")
    return same


def check(
    program: CompiledProgram, values: Sequence[Any], copies: Sequence[Any], steps: int | None
) -> bool:
    """Whether another executor leaves the same: the CPU's, or the NumPy executor for the CPU's own runs."""
    judge: Executor = "numpy" if program.executor == "cpu" else "cpu"
    other = CompiledProgram(program.module, program.kernels, judge)
    execute(other, copies, steps)
    return compare(program, values, copies, judge)


def check_outputs(options: Options, values: Sequence[Any]) -> None:
    """What the run is to leave can be written: OSError or UsageError before it begins."""
    if options.plot is not None:
        check_picture(options.plot)
        check_output(options.plot)
    if options.out is not None:
        check_output(options.out, sum(value.nbytes for value in values if np.ndim(value)))


def run(options: Options, log: Log) -> int:
    """`timetile run`."""
    program = compiled(options, options.executor, options.threads)
    if options.threads is not None and program.executor != "cpu":
        raise UsageError(
            f"--threads has no effect on the {program.executor} executor; run with --executor cpu"
        )
    if options.check and program.executor == "numpy":
        raise UsageError(
            "--check compares with another executor, and numpy is the last; run with --executor gpu, cpu, "
            "planes, simt or ptx"
        )
    values = gathered(program, options)
    # Random halos differ, and nobody takes them for anything else.
    program.kernels.notice.wanted &= options.random is None
    check_outputs(options, values)
    copies: list[Any] = []
    if options.check:
        copies = [np.copy(value) if np.ndim(value) else value for value in values]
    result = execute(program, values, options.steps)
    report(program, result)
    same = not options.check or check(program, values, copies, options.steps)
    if options.out is not None:
        write_arrays(options.out, program, values)
        say(f"wrote {options.out}")
    if options.plot is not None:
        latest = [k for positions in result.latest for k in positions]
        shown = latest or [p.position for p in program.parameters if p.bounds is not None]
        plot({label(program.parameters[k]): values[k] for k in shown}, options.plot)
        say(f"wrote {options.plot}")
    return 0 if same else 1
