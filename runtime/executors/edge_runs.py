"""Runs of loops with edge cells: few steps as written, most with fields continued in kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from timetile.dialects.series import is_series
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.edge_copies import EdgeSteps
from timetile.passes.diagnostics import muted_remarks
from timetile.runtime.kernels.edge_kernels import Outside

if TYPE_CHECKING:
    from timetile.runtime.executors.runners import PlannedRunner


class EdgeRunners:
    """The runners that a runner takes for loops with edge cells."""

    def __init__(self, own: PlannedRunner):
        self.own = own
        self.others: tuple[PlannedRunner, PlannedRunner] | None = None
        """The runners of kernels that continue fields, and of kernels that write edge cells."""

    def taken(self) -> Sequence[PlannedRunner]:
        """The runners taken so far; none are kept."""
        others, self.others = self.others or (), None
        return others

    def run(
        self,
        loop: LoopOp,
        found: tuple[int, EdgeSteps],
        steps: int,
        buffers: Sequence[Any],
        outside: Outside,
    ) -> Sequence[Any]:
        """Run a number of steps, enough for the loop's edge cells."""
        own, (number, edges) = self.own, found
        variants = own.kernels.edges.continued, own.kernels.edges.filling
        if self.others is None:
            continued, filling = (own.with_kernels(each.kernels) for each in variants)
            self.others = continued, filling
        between = steps - edges.first - edges.last
        names = self.as_written(loop, edges.first, buffers, outside)
        there, known = variants[0].outside(number, later(outside, edges.first))
        names = self.others[0].run_as_written(there, between, names, known)
        if edges.fills:
            there, known = variants[1].outside(number, outside)
            with muted_remarks():
                names = self.others[1].run_as_written(there, 1, names, known)
        return self.as_written(loop, edges.last, names, later(outside, steps - edges.last))

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
