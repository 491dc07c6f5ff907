"""Tells the user once about rotating buffers with different halos: mostly one buffer was allocated,
and not filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.launches.liveness import loop_rotation
from timetile.passes.diagnostics import remark
from timetile.passes.raising.memory import memory_of
from timetile.runtime.host.halos import compared_in_turn, halos_differ, written_box


def reads_around(loop: LoopOp, role: int) -> bool:
    """Whether a step reads buffers, in turn with a role's, outside the box of their writes."""
    box, args = written_box(loop, role), loop.body.block.args
    turns = [args[k] for k in loop_rotation(loop).cycle_of(role)]
    return any(
        CellBox.of(update.box).moved(tap.offset) not in box
        for update in loop.updates
        for tap in update.tap_list
        if update.sources[tap.operand] in turns
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

    def say(self, loop: LoopOp, role: int) -> None:
        """Give the notice: buffers in turn with a role's differ around the box of their writes."""
        if not self.wanted or not reads_around(loop, role):
            return
        self.wanted = False
        turns = loop_rotation(loop).cycle_of(role)
        names = " and ".join(name_of(loop.buffers[each]) for each in turns)
        bounds = written_box(loop, role)
        box = " x ".join(f"[{low}, {high})" for low, high in zip(bounds.lower, bounds.upper))
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
        for frame, first, other in compared_in_turn(loop):
            if halos_differ(frame, buffers[first], buffers[other]):
                self.say(loop, first)
