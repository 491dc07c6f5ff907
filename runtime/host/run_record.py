"""The record of a run: the steps of each time loop, and the buffers written last."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from timetile.passes.diagnostics import CompileError


@dataclass
class LoopRun:
    """One run of a time loop: the steps, the updated cells, and the buffers written last."""

    steps: int
    cells: int
    written: list[Any]
    is_sweep: bool = False


@dataclass
class RunRecord:
    """The time loops made by a run, in order."""

    runs: list[LoopRun] = field(default_factory=list[LoopRun])
    outer: list[LoopRun] = field(default_factory=list[LoopRun])
    """The time loops of the host running now, the innermost last."""

    def add(self, run: LoopRun) -> None:
        """Add a loop that has run. Sweeps inside a time loop of the host are part of the loop."""
        if not self.outer:
            self.runs.append(run)
            return
        loop = self.outer[-1]
        loop.cells += run.cells
        loop.written = [*run.written, *(b for b in loop.written if not among(b, run.written))]

    @contextmanager
    def time_loop(self, steps: int) -> Generator[LoopRun]:
        """Count the loops run in the block as one time loop of the host."""
        self.outer.append(LoopRun(steps, 0, []))
        yield self.outer[-1]
        self.add(self.outer.pop())

    def with_what_ran(self, error: CompileError) -> CompileError:
        """A refusal in the middle of a run, with the loops that have changed fields before."""
        if not self.runs:
            return error
        loops = f"{len(self.runs)} loop{'s' if len(self.runs) > 1 else ''}"
        return CompileError(
            f"{error}. The fields have changed: {loops} ran before the refusal",
            reason=error.reason,
            operation=error.operation,
            file=error.file,
            line=error.line,
        )

    @property
    def time_loops(self) -> list[LoopRun]:
        """The time loops; for a program without a time loop, the sweeps."""
        loops = [run for run in self.runs if not run.is_sweep]
        return loops or self.runs


def among(buffer: Any, others: Sequence[Any]) -> bool:
    """Whether a buffer is one of the others, by identity."""
    return any(buffer is other for other in others)
