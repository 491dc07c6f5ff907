"""The resource running out where one more step in a launch makes a program much slower: registers,
shared memory, cells, blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.temporal import LoopOp
from timetile.passes.scheduling.candidates import Candidate, Trials
from timetile.passes.scheduling.choose_schedule import CLIFF, fitting
from timetile.passes.scheduling.reasons import UNTRIED, Reason, Resource
from timetile.passes.targets.target import Target


@dataclass(frozen=True)
class Drop:
    """A depth predicted to be much slower than a step less, and the reason."""

    before: float
    """GCells/s with a step less."""
    now: float
    why: str


def drop_at(loop: LoopOp, module: ModuleOp, target: Target, depth: int) -> Drop | None:
    """
    The resource running out at a depth; None if the depth is about as fast as the depth before, or
    faster.
    """
    if depth < 2:
        return None
    before, now = (fitting(loop, module, target, each) for each in (depth - 1, depth))
    return None if before is None else drop_between(Trials(loop, module, target), before, now)


def drop_between(trials: Trials, before: Candidate, now: Candidate | None) -> Drop | None:
    """
    The resource running out between the schedules of two consecutive depths; None if none does.
    """
    depth = before.depth + 1
    speed = 0.0 if now is None else now.cost.gcells_per_second
    if speed >= CLIFF * before.cost.gcells_per_second:
        return None
    return Drop(before.cost.gcells_per_second, speed, why_slower(trials, before, depth))


def why_slower(trials: Trials, before: Candidate, depth: int) -> str:
    """
    The resource missing at a depth for the schedule of the depth before; for a schedule that fits,
    the share of a tile's cells stored at both depths.
    """
    if depth not in trials.depths(before.schedule, depth):
        return str(Reason(UNTRIED))
    deeper = trials.attempt(before.schedule, depth)
    if isinstance(deeper, Reason):
        return str(deeper)
    return (
        f"{Resource.CELLS}: {deeper.cost.valid:.0%} of a tile are stored, and "
        f"{before.cost.valid:.0%} with {before.depth} steps"
    )
