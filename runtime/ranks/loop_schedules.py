"""The schedules of a program's loops, chosen for one part of a domain and written on others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from timetile.dialects.syntax import encode_integers
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile.schedule import ScheduleAttr
from timetile.passes.tiling.step_parts import missing_cut
from timetile.runtime.cache.keys import key_of
from timetile.runtime.kernels.kernel import Parts
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.loading.modules import make_context


@dataclass(frozen=True)
class LoopSchedule:
    """The chosen schedule of a loop; the schedule is empty for a loop without updates."""

    depths: tuple[int, ...]
    schedule: str
    gcells_per_second: float = 0.0
    """The predicted speed of the deepest kernel; 0 without a prediction, as for given schedules."""

    @property
    def attribute(self) -> ScheduleAttr:
        """The schedule."""
        found = Parser(make_context(), self.schedule).parse_attribute()
        assert isinstance(found, ScheduleAttr)
        return found

    def serves(self, loop: LoopOp, updates: str) -> bool:
        """
        Whether the schedule, chosen for a loop with `updates`, is one for a loop, too. Kernels that
        read memory are cut between updates, and updates and their boxes differ where parts have
        other edges.
        """
        if not loop.updates or not self.schedule:
            return True
        schedule = self.attribute.data
        if not schedule.reads_memory:
            return True
        return computed_by(loop) == updates and missing_cut(loop, schedule.cuts) is None


def encode_schedules(schedules: Sequence[LoopSchedule]) -> Parts:
    """Schedules as parts of a cache entry."""
    rows = [[list(each.depths), each.schedule, each.gcells_per_second] for each in schedules]
    return {"loops.json": json.dumps(rows).encode()}


def decode_schedules(parts: Parts) -> list[LoopSchedule]:
    """
    The schedules encoded by `encode_schedules`. Raises TypeError or ValueError for other parts.
    """
    rows = json.loads(parts["loops.json"])
    return [LoopSchedule(tuple(depths), text, float(speed)) for depths, text, speed in rows]


def schedules_of(kernels: ProgramKernels) -> list[LoopSchedule]:
    """The schedules of a program's loops, chosen now or kept in the cache."""
    key, cache = key_of(kernels.key, "schedules of parts"), kernels.cache
    kept = None if cache is None else cache.decoded(key, decode_schedules)
    loops = kernels.loops
    if kept is not None and len(kept) == len(loops):
        return kept
    made = [
        LoopSchedule(
            loop.depth_list,
            "" if loop.schedule is None else str(loop.schedule),
            0.0 if choice is None else choice.chosen.cost.gcells_per_second,
        )
        for loop, choice in zip(loops_of(kernels.tiled), kernels.model_choices, strict=True)
    ]
    if cache is not None:
        cache.write(key, encode_schedules(made))
    return made


def deepest_of(schedules: Sequence[LoopSchedule]) -> int:
    """The steps of the deepest launch."""
    return max((max(each.depths, default=1) for each in schedules), default=1)


def write_schedules(module: ModuleOp, schedules: Sequence[LoopSchedule]) -> None:
    """Give the loops of a module schedules."""
    for loop, chosen in zip(loops_of(module), schedules, strict=True):
        if not loop.updates or not chosen.schedule:
            continue
        loop.schedule, loop.depths = chosen.attribute, encode_integers(chosen.depths)


def computed_by(loop: LoopOp) -> str:
    """What the updates of a loop compute, from which fields: equal for loops of other extents."""
    names = {value: f"b{number}" for number, value in enumerate(loop.body.block.args)}
    names |= {value: f"c{number}" for number, value in enumerate(loop.captures)}
    return str(
        [
            (
                update.cell.string_value(), str(update.taps),
                [names[field] for field in (*update.targets, *update.sources)],
            )
            for update in loop.updates
        ]
    )  # fmt: skip


def without_idle_loops(module: ModuleOp) -> ModuleOp:
    """A module with a function for each loop that has updates."""
    for function in [op for op in module.ops if isinstance(op, FuncOp)]:
        if any(isinstance(op, LoopOp) and not op.updates for op in function.body.walk()):
            function.detach()
            function.erase(safe_erase=False)
    return module
