"""Constraints on the choice of a schedule: fields of `#tile.schedule` with given values.

A field leaves the compared schedules with the given value. If no schedule has the value, the value
replaces the schedules' own, except for fields that name a kind of kernel (`KINDS`). Fields that are
decided behind the comparison of layouts (`DECIDED_LATE`) are replaced in the chosen schedule, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.kinds import Storage
from timetile.dialects.tile.schedule import (
    Decision,
    Schedule,
    ScheduleAttr,
    entry_text,
    verify_schedule,
)
from timetile.passes.analysis.block_memory import BlockMemory
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.diagnostics import CompileError, muted_remarks
from timetile.passes.loops.temporal_fusion import write_depths
from timetile.passes.scheduling.candidates import Candidate
from timetile.passes.targets.target import Target
from timetile.passes.tiling.carry_halos import CarryHalosPass
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.peel_boundaries import PeelBoundariesPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass
from timetile.passes.tiling.split_sums import SplitSumsPass

DECIDED_LATE = ("blocks", "ahead", "period", "guards", "columns_alone", "blocks_alone")
"""Fields that a candidate gets after its layout is compared."""


KINDS = ("tile", "resident", "reads_memory")
"""Fields that name a kind of kernel: schedules of other kinds have other sizes."""

LAYOUT = ("cells", "lanes", "warps", "pack", "occupancy")
"""Fields with an effect on kernels that read memory."""


@dataclass(frozen=True)
class Constraints:
    """Values that some fields of a schedule must have."""

    values: Mapping[str, Decision] = field(default_factory=dict[str, Decision])

    def __bool__(self) -> bool:
        return bool(self.values)

    def __str__(self) -> str:
        return ", ".join(entry_text(name, value) for name, value in self.values.items())

    def without(self, name: str) -> Constraints:
        """The constraints less one."""
        return Constraints({key: value for key, value in self.values.items() if key != name})

    def among(self, schedules: Iterable[Schedule]) -> list[Schedule]:
        """The schedules under the constraints, each once, in the order of the schedules."""
        found = list(schedules)
        for name, value in self.values.items():
            same = [each for each in found if getattr(each, name) == value]
            found = same or list(replaced(found, name, value))
        return list(dict.fromkeys(found))

    def late(self, schedule: Schedule) -> Schedule:
        """A chosen schedule with the given values of fields decided late."""
        own = {name: self.values[name] for name in DECIDED_LATE if name in self.values}
        return replace(schedule, **own)

    def holds(self, loop: LoopOp, module: ModuleOp, candidate: Candidate, target: Target) -> bool:
        """
        Whether a candidate's kernels, placed, fit the shared memory. Comparisons count planes in
        registers: planes asked for in shared memory are placed on a copy.
        """
        if self.values.get("storage") is not Storage.SHARED:
            return True
        chosen = self.late(candidate.schedule)
        if chosen.has_several_blocks and (chosen.resident or not chosen.meets_at_barriers):
            # Blocks with rings of their own meet at barriers of the grid, step by step.
            return False
        isa, schedule = target.isa, chosen
        room = isa.shared_per_multiprocessor // schedule.occupancy - isa.shared_overhead
        try:
            kernels = kernels_placed_by(loop, module, candidate.depth, schedule, target)
            sizes = [BlockMemory.of(Geometry(kernel)).bytes for kernel in kernels]
        except CompileError:
            return False
        return bool(sizes) and max(sizes) <= min(room, isa.shared_per_block)


def replaced(schedules: Iterable[Schedule], name: str, value: Decision) -> Iterator[Schedule]:
    """The schedules with another value of a field, where a kernel can have the value."""
    if name in KINDS:
        return
    for schedule in schedules:
        if schedule.reads_memory and name not in LAYOUT:
            continue
        made = replace(schedule, **{name: value})
        try:
            verify_schedule(made)
        except VerifyException:
            continue
        yield made


def kernels_placed_by(
    loop: LoopOp, module: ModuleOp, depth: int, schedule: Schedule, target: Target
) -> list[KernelOp]:
    """The placed kernels of a loop with a schedule, made on a copy; the deepest first."""
    copied = module.clone()
    own = next(copy for original, copy in zip(module.walk(), copied.walk()) if original is loop)
    assert isinstance(own, LoopOp)
    own.schedule = ScheduleAttr(schedule)
    write_depths(own, [depth])
    passes = (
        DeviceTilingPass(),
        SplitSumsPass(),
        MultiQueueBufferingPass(),
        RegisterStreamingPass(),
        CarryHalosPass(),
        PeelBoundariesPass(target.part.name, multiprocessors=target.multiprocessors),
    )
    with muted_remarks():
        PassPipeline(passes).apply(Context(), copied)
    named = {op.sym_name.data: op for op in copied.ops if isinstance(op, KernelOp)}
    return [named[name] for name in own.kernel_names]
