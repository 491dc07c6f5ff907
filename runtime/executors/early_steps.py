"""Steps of a run before its schedule is chosen.

The first steps run in kernels of a single step, in pieces of a few hundredths of a second, while a
process chooses schedules and makes kernels. After each piece the run looks for the choice, and its
other steps are launched as a run of the chosen kernels. Each piece leaves all buffers as the plain
loop does, so that no bit depends on the moment.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from timetile.dialects.temporal import LoopOp
from timetile.passes.diagnostics import LOGGER
from timetile.runtime.executors.edge_runs import later
from timetile.runtime.kernels.edge_kernels import Outside

if TYPE_CHECKING:
    from timetile.runtime.executors.runners import PlannedRunner

FIRST_STEPS = 8
"""Steps of the first piece."""

FEW_STEPS = 8
"""Steps of all runs together for which no schedule is chosen."""

PIECE_SECONDS = 0.02
"""The time of a piece, up to twice as long."""


class EarlySteps:
    """Runs time loops of a runner, and begins before the schedule is chosen where allowed."""

    def __init__(self, own: PlannedRunner):
        self.own = own
        self.quick: PlannedRunner | None = None
        """The runner of kernels of a single step."""
        self.asked = 0
        """The steps of all runs before the choice."""

    def taken(self) -> PlannedRunner | None:
        """The runner of kernels of a single step, if any; none is kept."""
        quick, self.quick = self.quick, None
        return quick

    def run(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: Outside
    ) -> Sequence[Any]:
        """Run a number of steps: until the schedule is chosen, one at a time."""
        done, beside = 0, self.own.kernels.beside
        if steps and beside.may_begin(loop) and self.own.begins_early():
            self.asked += steps
            if self.asked <= FEW_STEPS:
                return self.steps(loop, steps, buffers, outside)
            beside.begin(loop, steps)
            done, buffers = self.until_chosen(loop, steps, buffers, outside)
            if done == steps:
                return buffers
            outside = later(outside, done)
        return self.own.rivals.run(loop, steps - done, steps, buffers, outside)

    def until_chosen(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: Outside
    ) -> tuple[int, Sequence[Any]]:
        """
        Run steps until the schedule is chosen: the number of the steps, and the buffers as they
        leave them. The number of the other steps suits the chosen kernels.
        """
        beside, done, piece = self.own.kernels.beside, 0, FIRST_STEPS
        while done < steps and not beside.is_ready:
            start, count = time.perf_counter(), min(piece, steps - done)
            buffers = self.steps(loop, count, buffers, later(outside, done))
            if done + count < steps:
                self.own.wait()
                # The first piece waits for its kernels.
                piece = next_piece(piece, time.perf_counter() - start) if done else piece
            done += count
        if done < steps:
            left = beside.steps_left(loop, steps, steps - done)
            count = steps - left - done
            if count:
                buffers = self.steps(loop, count, buffers, later(outside, done))
            done += count
            LOGGER.info("%d of %d steps ran one by one, until the choice", done, steps)
        return done, buffers

    def steps(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: Outside
    ) -> Sequence[Any]:
        """Run steps one at a time."""
        if self.quick is None:
            self.quick = self.own.with_kernels(self.own.kernels.beside.quick)
        return self.quick.run(loop, steps, buffers, list(outside.values()))


def next_piece(steps: int, seconds: float) -> int:
    """The steps of the piece after one of some steps, which took some seconds."""
    if seconds < PIECE_SECONDS:
        return 2 * steps
    return max(1, steps // 2) if seconds > 2 * PIECE_SECONDS else steps
