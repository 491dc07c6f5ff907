"""The resource running out where one more step in a launch makes a program much slower: registers,
shared memory, cells, blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.scheduling.candidates import Candidate, Trials
from timetile.passes.scheduling.choose_schedule import CLIFF, fitting
from timetile.passes.targets.target import Target


@dataclass(frozen=True)
class Drop:
    """A depth predicted to be much slower than the depth before, and the reason."""

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
    why = (
        lacking(trials, before.schedule, depth)
        or spills(trials, before, depth)
        or overlaps(trials, before, depth)
    )
    return Drop(before.cost.gcells_per_second, speed, why)


def lacking(trials: Trials, schedule: Schedule, depth: int) -> str | None:
    """
    The resource missing for a kernel of a depth under a schedule, with numbers; None if the kernel
    fits.
    """
    trial = trials.trial(schedule, depth)
    if trial is None:
        return None
    geometry = trial.geometry
    if geometry is None:
        return "cells: the overlap leaves no cell of its tile"
    room = trial.room(trial.spare)
    if trial.registers > room:
        return (
            f"registers: its tile takes {trial.registers} a thread and has {room}, without the "
            "registers for guards"
        )
    ahead = min(schedule.ahead, 1)
    if not trial.fits_shared(geometry, ahead):
        taken = trial.shared_bytes(geometry, ahead)
        return f"shared memory: its tile takes {taken} bytes a block"
    return None


def spills(trials: Trials, before: Candidate, depth: int) -> str | None:
    """
    The registers missing at this depth for the tile of the depth before; None if none is missing.
    """
    trial = trials.trial(before.schedule, depth)
    if trial is None or trial.registers <= trial.room():
        return None
    return f"registers: its tile takes {trial.registers} a thread and has {trial.room()}"


def overlaps(trials: Trials, before: Candidate, depth: int) -> str:
    """The share of a tile's cells stored, at the depth before and at this depth."""
    deeper = trials.attempt(before.schedule, depth)
    if isinstance(deeper, str):
        return (
            "code: the levels of a resident tile are unrolled, and resident tiles are tried at few "
            "depths"
        )
    return (
        f"cells: {deeper.cost.valid:.0%} of its tile are stored, and {before.cost.valid:.0%} with "
        f"{before.depth} steps"
    )
