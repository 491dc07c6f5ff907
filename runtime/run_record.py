"""What a run did: the steps of each time loop, and the buffers that hold what it wrote last."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class LoopRun:
    """One run of a time loop: its steps, the cells that it updated, the buffers that it wrote last."""

    steps: int
    cells: int
    written: list[Any]
    is_sweep: bool = False


@dataclass
class RunRecord:
    """The time loops that a run has made, in order."""

    runs: list[LoopRun] = field(default_factory=list[LoopRun])
    outer: list[LoopRun] = field(default_factory=list[LoopRun])
    """The time loops of the host that are running now, the innermost last."""

    def add(self, run: LoopRun) -> None:
        """A loop has run; sweeps inside a time loop of the host are part of that one."""
        if not self.outer:
            self.runs.append(run)
            return
        loop = self.outer[-1]
        loop.cells += run.cells
        loop.written = [*run.written, *(b for b in loop.written if not among(b, run.written))]

    @contextmanager
    def time_loop(self, steps: int) -> Generator[LoopRun]:
        """The loops that run meanwhile are those of one time loop of the host."""
        self.outer.append(LoopRun(steps, 0, []))
        yield self.outer[-1]
        self.add(self.outer.pop())

    @property
    def time_loops(self) -> list[LoopRun]:
        """The time loops; the sweeps of a program that has no time loop."""
        loops = [run for run in self.runs if not run.is_sweep]
        return loops or self.runs


def among(buffer: Any, others: Sequence[Any]) -> bool:
    """One of the others is this very buffer."""
    return any(buffer is other for other in others)
