"""Runs of loops with ghosts: some steps as written, most steps with fields continued in kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from timetile.dialects.series import is_series
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.ghost_updates import GhostSteps
from timetile.passes.diagnostics import muted_remarks
from timetile.runtime.kernels.ghosts import Outside

if TYPE_CHECKING:
    from timetile.runtime.executors.runners import PlannedRunner


class GhostRunners:
    """The runners that a runner takes for loops with ghosts."""

    def __init__(self, own: PlannedRunner):
        self.own = own
        self.others: tuple[PlannedRunner, PlannedRunner] | None = None
        """The runners of kernels that continue fields, and of kernels that write ghosts."""

    def taken(self) -> Sequence[PlannedRunner]:
        """The runners taken so far; none are kept."""
        others, self.others = self.others or (), None
        return others

    def run(
        self,
        loop: LoopOp,
        found: tuple[int, GhostSteps],
        steps: int,
        buffers: Sequence[Any],
        outside: Outside,
    ) -> Sequence[Any]:
        """Run a number of steps, enough for the loop's ghosts."""
        own, (number, ghosts) = self.own, found
        variants = own.kernels.ghosts.continued, own.kernels.ghosts.filling
        if self.others is None:
            continued, filling = (own.with_kernels(each.kernels) for each in variants)
            self.others = continued, filling
        between = steps - ghosts.first - ghosts.last
        names = self.as_written(loop, ghosts.first, buffers, outside)
        there, known = variants[0].outside(number, later(outside, ghosts.first))
        names = self.others[0].run_as_written(there, between, names, known)
        if ghosts.fills:
            there, known = variants[1].outside(number, outside)
            with muted_remarks():
                names = self.others[1].run_as_written(there, 1, names, known)
        return self.as_written(loop, ghosts.last, names, later(outside, steps - ghosts.last))

    def as_written(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: Outside
    ) -> Sequence[Any]:
        """Run steps as written, if any."""
        if not steps:
            return buffers
        # A few steps may be slow.
        with muted_remarks():
            return self.own.run_as_written(loop, steps, buffers, outside)


def later(outside: Outside, steps: int) -> Outside:
    """What lies outside a loop, some steps later: series begin later."""
    return {v: given[steps:] if is_series(v) else given for v, given in outside.items()}
