"""`timetile run`: a program on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.math import RsqrtOp

from timetile.runtime.cli.compiled import compiled
from timetile.runtime.cli.inputs import (
    STEP,
    Arguments,
    label,
    read_arrays,
    write_arrays,
)
from timetile.runtime.cli.interrupts import Stopped
from timetile.runtime.cli.long_runs import FiniteWatch, Outcome, SnapshotRun, Snapshots, execute
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.outputs import check_output
from timetile.runtime.cli.plotting import Panel, check_picture, panels, plot
from timetile.runtime.cli.ranks import (
    check_options_of_ranks,
    communicator,
    failing_together,
    is_speaker,
)
from timetile.runtime.cli.snapshots import snapshot_path
from timetile.runtime.cli.terminal import Log, say
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.device.gpu import device
from timetile.runtime.host.kept_fields import check_kept_file
from timetile.runtime.program.comparison import difference
from timetile.runtime.program.compiled_program import CompiledProgram, Executor
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.program.written_fields import written_arguments

INTERRUPTED = (
    "interrupted, and nothing was written; with --out OUT.npz --snapshot-every K a run keeps its "
    "fields"
)

Say = Callable[[str], None]


def gathered(program: CompiledProgram, options: Options) -> list[Any]:
    """
    A value for every argument of the program. The number of the first step, if in a snapshot,
    becomes an option.
    """
    arguments = Arguments(program)
    arguments.check_size()
    if options.args is not None:
        arrays = read_arrays(options.args)
        step = arrays.pop(STEP, None)
        if step is not None and options.first_step is None:
            options.first_step = checked_step(step, options.args)
        arguments.add_arrays(arrays, str(options.args))
    for setting in options.set:
        arguments.add_setting(setting)
    arguments.add_steps(options.steps)
    if options.init is not None:
        arguments.add_shape(options.init)
    if options.random is not None:
        arguments.add_random(options.random, options.random_range)
    return arguments.all()


def checked_step(step: Any, path: Path) -> int:
    """The number of a step, from a snapshot. Raises UsageError for no such number."""
    if step.ndim or step.dtype.kind not in "iu" or step < 0:
        raise UsageError(
            f"{path} has {STEP} {step}, and a step is numbered 0 or more; give a snapshot"
        )
    return int(step)


def report(program: CompiledProgram, outcome: Outcome, tell: Say) -> None:
    """Print the result of a run."""
    tell(
        f"@{program.function.sym_name.data} on {program.executor}: {outcome.steps} steps, "
        f"{outcome.cells} cells updated in {outcome.seconds:.6g} s, "
        f"{outcome.gcells_per_second:.4g} GCells/s"
    )
    for number, positions in enumerate(outcome.latest):
        loop = f" of time loop {number}" if len(outcome.latest) > 1 else ""
        holders = ", ".join(label(program.parameters[k]) for k in positions)
        tell(f"the last time level{loop} is in {holders or 'no argument'}")


def compare(
    program: CompiledProgram,
    values: Sequence[Any],
    expected: Sequence[Any],
    judge: Executor,
    tell: Say,
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
        tell(
            f"check: all {len(fields)} fields equal the fields of the {name} executor, bit for bit"
        )
    elif any(isinstance(op, RsqrtOp) for op in program.module.walk()):
        say("check: the program uses math.rsqrt, which a GPU does not round correctly")
    return same


def check(
    program: CompiledProgram,
    values: Sequence[Any],
    copies: Sequence[Any],
    options: Options,
    tell: Say,
) -> bool:
    """
    Whether another executor leaves the same: the CPU's, or the NumPy executor for the CPU's own
    runs.
    """
    judge: Executor = "numpy" if program.executor == "cpu" else "cpu"
    other = CompiledProgram(program.module, program.kernels, judge)
    execute(other, copies, options.steps, options.first_step or 0, options.progress)
    return compare(program, values, copies, judge, tell)


def check_outputs(options: Options, values: Sequence[Any], snapshots: Snapshots | None) -> None:
    """Check the output files of a run. Raises OSError or UsageError before the run."""
    if options.plot is not None:
        check_picture(options.plot)
        check_output(options.plot)
    size = sum(value.nbytes for value in values if np.ndim(value))
    if options.out is not None:
        check_output(options.out, size)
    if options.keep is not None:
        check_file_to_keep(options.keep, again=bool(options.first_step))
    if options.out is None:
        return
    if snapshots is not None:
        last = (options.first_step or 0) + snapshots.steps
        check_output(snapshot_path(options.out, last, last), size * (snapshots.count + 1))


def check_options(options: Options, program: CompiledProgram) -> None:
    """UsageError where options do not go together."""
    if options.threads is not None and program.executor != "cpu":
        raise UsageError(
            f"--threads has no effect on the {program.executor} executor; run with --executor cpu"
        )
    if options.check and program.executor == "numpy":
        raise UsageError(
            "--check compares with another executor, and numpy is the last; run with --executor "
            "gpu, cpu, planes, simt or ptx"
        )
    if options.random_range and options.random is None:
        raise UsageError("--random-range has no effect without --random; give --random SEED, too")


def snapshots_of(options: Options) -> Snapshots | None:
    """The snapshots of a run, if asked for; UsageError without an output or a number of steps."""
    if options.snapshot_every is None:
        if options.keep is not None:
            raise UsageError(
                f"--keep adds fields to {options.keep} after some of --steps; give "
                "--snapshot-every K"
            )
        return None
    has_file = options.out is not None or options.keep is not None
    if not has_file or options.steps is None:
        raise UsageError(
            "--snapshot-every writes beside the file of --out, or to the file of --keep, after "
            "some of --steps; give --steps N, and --out OUT.npz or --keep RUN.zarr"
        )
    return Snapshots(options.snapshot_every, options.steps, options.out, options.keep)


def check_first_step(options: Options) -> None:
    """UsageError where a run begins at a later step, and is not told how many follow."""
    if not options.first_step or options.steps is not None:
        return
    given_by = "--first-step" if options.args is None else f"--first-step or {options.args}"
    raise UsageError(
        f"{given_by} begins at step {options.first_step}; say how many steps follow with --steps N"
    )


def check_file_to_keep(path: Path, *, again: bool) -> None:
    """OSError or UsageError for a file of --keep that is in the way, or cannot be written."""
    try:
        check_kept_file(path, again=again)
    except FileExistsError as problem:
        raise UsageError(
            f"{path} exists; remove it, name another file with --keep, or go on from a snapshot of "
            "the run with --args or --first-step"
        ) from problem
    except ModuleNotFoundError as problem:
        raise UsageError(f"{problem}") from problem
    if not path.exists():
        check_output(path)


class Pictures:
    """The pictures of a run: fields written by steps, at the start and at the end."""

    def __init__(self, program: CompiledProgram, values: Sequence[Any], path: Path):
        self.program, self.values, self.path = program, values, path
        fields = [(p.position, p.bounds) for p in program.parameters]
        self.bounds = {k: bounds for k, bounds in fields if bounds is not None}
        self.written = written_arguments(program.function)
        self.start = {k: self.panels(k) for k in self.written if np.ndim(values[k])}

    def panels(self, position: int) -> list[Panel]:
        """The drawn parts of an argument, at present."""
        value, bounds = self.values[position], self.bounds[position]
        return panels(value, bounds, self.written.get(position))

    def draw(self, outcome: Outcome, first_step: int | None) -> None:
        """Draw the last time level, beside the start."""
        latest = [k for positions in outcome.latest for k in positions]
        begin = f"start (step {first_step})" if first_step else "start"
        shown: dict[str, Mapping[str, Sequence[Panel]]] = {}
        for position in latest or self.bounds:
            # A continued run takes the last time level at the place of the first level of this run.
            place = next(
                k for k, value in enumerate(outcome.state) if value is self.values[position]
            )
            times = {begin: self.start[place]} if place in self.start else {}
            times[f"after {outcome.steps} steps"] = self.panels(position)
            shown[label(self.program.parameters[position])] = times
        where = device(self.program.gpu).name if self.program.executor == "gpu" else "the CPU"
        if self.program.executor not in ("gpu", "cpu"):
            where = f"the executor {self.program.executor}"
        plot(shown, self.path, f"{self.program.name}, {outcome.steps} steps on {where}")


def run(options: Options, log: Log) -> int:
    """`timetile run`, on one process or on all ranks of mpiexec."""
    comm = communicator()
    check_options_of_ranks(comm, options)
    program = compiled(options, options.executor, options.threads, comm)
    with failing_together(program):
        return run_program(program, options)


def run_program(program: CompiledProgram, options: Options) -> int:
    """Run a compiled program; of several ranks, rank 0 says and writes the results."""
    speaks = is_speaker(program)
    tell: Say = say if speaks and not options.quiet else (lambda text: None)
    shows = options.progress if speaks and not options.quiet else False
    check_options(options, program)
    snapshots = snapshots_of(options)
    values = gathered(program, options)
    check_first_step(options)
    # Random fields have random halos: the notice would tell nothing new.
    program.kernels.notice.wanted &= options.random is None
    if speaks:
        # Rank 0 makes the files, maybe before another rank looks.
        check_outputs(options, values, snapshots)
    copies: list[Any] = []
    if options.check:
        copies = [np.copy(value) if np.ndim(value) else value for value in values]
    pictures = None if options.plot is None else Pictures(program, values, options.plot)
    if snapshots is not None:
        outcome = SnapshotRun(program, values, snapshots, options).run(tell, shows, speaks)
    else:
        watch = FiniteWatch(program, values)
        try:
            outcome = execute(program, values, options.steps, options.first_step or 0, shows)
        except KeyboardInterrupt as stop:
            raise Stopped(INTERRUPTED, stop) from stop
        if speaks:
            watch.look(f"after {outcome.steps} steps")
    if not speaks:
        return 0
    report(program, outcome, tell)
    if isinstance(program, PartedProgram) and program.exchange is not None:
        tell(f"predicted on {program.decomposition.count} GPUs: {program.exchange}")
    same = not options.check or check(program, values, copies, options, tell)
    if options.out is not None:
        write_arrays(options.out, program, values)
        tell(f"wrote {options.out}")
    if pictures is not None:
        pictures.draw(outcome, options.first_step)
        tell(f"wrote {options.plot}")
    return 0 if same else 1
