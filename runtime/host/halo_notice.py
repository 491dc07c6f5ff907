"""Tells the user once about rotating buffers with different halos: mostly one buffer was allocated,
and not filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.launches.liveness import loop_rotation, written_bounds
from timetile.passes.diagnostics import remark
from timetile.passes.raising.memory import memory_of
from timetile.runtime.host.halos import compared_in_turn, halos_differ


def reads_around(loop: LoopOp) -> bool:
    """Whether a step reads cells outside the box written by the loop."""
    box = written_bounds(loop)
    return any(
        low + offset < least or high + offset > most
        for update in loop.updates
        for tap in update.tap_list
        for low, high, offset, least, most in zip(
            update.box.lb, update.box.ub, tap.offset, box.lb, box.ub
        )
    )


def name_of(field: SSAValue) -> str:
    """`%u`, as the program calls a field."""
    memory = memory_of(field)
    name = memory.name_hint or field.name_hint
    return "a field" if name is None else f"%{name}"


class HaloNotice:
    """A program's notice of different halos, given once, unless switched off."""

    def __init__(self, wanted: bool):
        self.wanted = wanted
        self.looked: set[LoopOp] = set()
        """The loops compared for the notice alone."""

    def say(self, loop: LoopOp) -> None:
        """Give the notice that rotating buffers of a loop differ around the written cells."""
        if not self.wanted or not reads_around(loop):
            return
        self.wanted = False
        turns = next(turn for turn in loop_rotation(loop).turns if len(turn) > 1)
        names = " and ".join(name_of(loop.buffers[role]) for role in turns)
        bounds = written_bounds(loop)
        box = " x ".join(f"[{low}, {high})" for low, high in zip(bounds.lb, bounds.ub))
        remark(
            loop,
            f"{names} take turns, and differ outside {box}, where successive steps read different "
            "buffers; fill the halo of each, or confirm the difference with --halos apart "
            "(halos='apart' in Python)",
        )

    def look(self, loop: LoopOp, steps: int, buffers: Sequence[Any]) -> None:
        """Compare the buffers of a loop, given as arrays, at its first run of several steps."""
        if not self.wanted or steps < 2 or loop in self.looked:
            return
        self.looked.add(loop)
        if any(halos_differ(f, buffers[a], buffers[b]) for f, a, b in compared_in_turn(loop)):
            self.say(loop)
