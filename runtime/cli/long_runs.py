"""Runs of the command line: in one call, or in pieces with a snapshot after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from timetile.passes.diagnostics import LOGGER
from timetile.runtime.cli.compiled import compile_kernels
from timetile.runtime.cli.inputs import label
from timetile.runtime.cli.interrupts import Stopped
from timetile.runtime.cli.options import Options
from timetile.runtime.cli.snapshots import going_on, snapshot_path, write_snapshot
from timetile.runtime.cli.terminal import Advance, progress
from timetile.runtime.device.gpu import device
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.program.ahead import kernels_of_run
from timetile.runtime.program.compiled_program import CompiledProgram, RunResult
from timetile.runtime.program.finite import blow_up, is_finite
from timetile.runtime.program.kept_parts import FileOfSnapshots, file_of_snapshots
from timetile.runtime.program.pieces import check_pieces, in_pieces

WAY_OUT = "take smaller coefficients (--random-range, --set), or a smaller time step"


@dataclass
class Outcome:
    """
    The result of a run, in one piece or in several: the steps of each time loop, the updated cells,
    the seconds, the arguments written last by each loop, by position, and the arguments of a
    continuing call.
    """

    steps: int = 0
    cells: int = 0
    seconds: float = 0.0
    latest: tuple[tuple[int, ...], ...] = ()
    state: list[Any] = field(default_factory=list[Any])

    def add(self, result: RunResult, given: Sequence[Any], values: Sequence[Any]) -> None:
        """
        Add another piece, run on the given arguments. `values` are the arguments of the whole run.
        """
        self.steps += sum(result.steps)
        self.cells += result.cells
        self.seconds += result.seconds
        self.state = list(result.buffers)

        def place(position: int) -> int:
            return next(k for k, value in enumerate(values) if value is given[position])

        self.latest = tuple(tuple(map(place, positions)) for positions in result.latest)

    @property
    def gcells_per_second(self) -> float:
        """Cell updates per nanosecond."""
        return self.cells / self.seconds / 1e9 if self.seconds else 0.0


class FiniteWatch:
    """Warns once of fields with new NaN or infinite cells, and between which steps."""

    def __init__(self, program: CompiledProgram, values: Sequence[Any]):
        self.fields = {
            label(p): values[p.position]
            for p in program.parameters
            if is_numpy_array(values[p.position]) and is_finite(values[p.position])
        }

    def look(self, when: str) -> None:
        """Look at the fields after a piece of the run."""
        text = blow_up(self.fields, when, WAY_OUT)
        if text is not None:
            LOGGER.warning("%s", text)
            self.fields = {}


def prepare(program: CompiledProgram, values: Sequence[Any], steps: int | None) -> None:
    """Compile the kernels of a run, and load them on the GPU, before the clock starts."""
    kernels = compile_kernels(kernels_of_run(program, values, steps))
    gpu = device(program.gpu)
    with gpu.current():
        for kernel in kernels:
            gpu.load(kernel)


def execute(
    program: CompiledProgram,
    values: Sequence[Any],
    steps: int | None,
    first: int = 0,
    shows: bool | None = None,
) -> Outcome:
    """Run a program on NumPy arrays in one call, in place, with a progress bar."""
    if program.executor == "gpu":
        prepare(program, values, steps)
    outcome = Outcome()
    with progress(f"running on {program.executor}", steps, shows=shows) as advance:
        result = program(*values, steps=steps, first_step=first, progress=advance)
    outcome.add(result, values, values)
    return outcome


@dataclass(frozen=True)
class Snapshots:
    """
    The snapshots of a run of some steps: `every` how many steps, the file beside which the
    snapshots are written, and the file that keeps the last time level of all snapshots.
    """

    every: int
    steps: int
    out: Path | None
    keep: Path | None = None

    @property
    def count(self) -> int:
        """The number of snapshots."""
        return -(-self.steps // self.every)


class SnapshotRun:
    """A run in pieces, with a snapshot after each."""

    def __init__(
        self,
        program: CompiledProgram,
        values: Sequence[Any],
        snapshots: Snapshots,
        options: Options,
    ):
        self.program, self.values, self.options = program, values, options
        self.every, self.steps, self.out = snapshots.every, snapshots.steps, snapshots.out
        self.keep = snapshots.keep
        self.kept: FileOfSnapshots | None = None
        self.first = options.first_step or 0
        self.outcome, self.watch = Outcome(state=list(values)), FiniteWatch(program, values)
        self.done = self.first
        self.written: Path | None = None

    def run(self, tell: Callable[[str], None], shows: bool | None, writes: bool = True) -> Outcome:
        """
        Run; of several ranks, a single rank writes. An interruption raises Stopped, with the place,
        and the way to go on.
        """
        every = self.every
        check_pieces(self.program.function)
        if self.program.executor == "gpu":
            prepare(self.program, self.values, min(every, self.steps))
        text = f"running on {self.program.executor}"
        if self.keep is not None:
            self.kept = file_of_snapshots(self.program, self.keep, again=self.first > 0)
        ended = False
        try:
            with progress(text, self.steps, shows=shows) as advance:

                def piece(state: list[Any], count: int, done: int) -> list[Any]:
                    self.piece(state, count, done, advance)
                    return self.outcome.state

                for step, _ in in_pieces(piece, self.outcome.state, self.steps, every, self.first):
                    self.save(step, tell, writes=writes)
            ended = True
        except KeyboardInterrupt as stop:
            raise Stopped(self.where_it_stopped(), stop) from stop
        finally:
            if self.kept is not None:
                self.kept.close(failed=not ended)
        return self.outcome

    def piece(self, state: list[Any], count: int, done: int, advance: Advance) -> None:
        """Run some steps."""
        before = done - self.first

        def shown(part: int, whole: int) -> None:
            advance(before + part, self.steps)

        result = self.program(*state, steps=count, first_step=done, progress=shown)
        self.outcome.add(result, state, self.values)
        advance(before + count, self.steps)
        self.watch.look(f"between steps {done} and {done + count}")

    def save(self, step: int, tell: Callable[[str], None], *, writes: bool) -> None:
        """Write the snapshot of a step; a rank that writes nothing keeps its share."""
        if self.kept is not None:
            self.kept.add(step, self.last_level())
            self.done = step
            if writes:
                tell(f"wrote step {step} to {self.keep}")
        if self.out is not None and writes:
            path = snapshot_path(self.out, step, self.first + self.steps)
            write_snapshot(path, self.program, self.outcome.state, step)
            self.done, self.written = step, path
            tell(f"wrote {path}")

    def last_level(self) -> dict[str, Any]:
        """Copies of the fields of the last time level, by the names of the continuing call."""
        found: dict[str, Any] = {}
        for position in (k for positions in self.outcome.latest for k in positions):
            value = self.values[position]
            place = next(k for k, each in enumerate(self.outcome.state) if each is value)
            found[self.program.parameters[place].name or f"arg{place}"] = np.copy(value)
        return found

    def where_it_stopped(self) -> str:
        """The message about an interrupted run."""
        last = self.first + self.steps
        if self.done == self.first:
            return (
                f"interrupted before the first snapshot of steps {self.first} to {last}; nothing "
                "was written"
            )
        if self.written is None:
            return (
                f"interrupted; {self.keep} has snapshots to step {self.done} of {last}; runs with "
                "--out OUT.npz can go on"
            )
        command = going_on(self.options, self.written, last - self.done)
        return (
            f"interrupted; {self.written} has the fields after step {self.done} of {last}; go on "
            f"with: {command}"
        )
