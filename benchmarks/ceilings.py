"""The speed of a kernel whose busiest resource never waits: what its schedule leaves to reach."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.tile import KernelOp
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.facts import KernelFacts, facts_of, field_bytes
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.step import step_cycles
from timetile.passes.cost.terms import Limit
from timetile.passes.targets.hardware import LANES
from timetile.passes.targets.target import Target


@dataclass(frozen=True)
class Ceiling:
    """
    GCells/s, and the resource that sets them: a copy of the fields once a launch, the
    floating-point pipe, the issue slots, or the bandwidth of shared memory.
    """

    gcells_per_s: float
    resource: Limit


def copied_gcells(facts: KernelFacts, target: Target) -> float:
    """GCells/s of launches that load and store each field once, at the speed of a copy."""
    loaded = dict.fromkeys(load.field for load in facts.loads)
    moved = sum(map(field_bytes, (*loaded, *facts.stored)))
    return facts.steps * target.part.copy_tb_per_s * 1e3 / moved


def ceiling_of(kernel: KernelOp, module: ModuleOp, target: Target) -> Ceiling:
    """The ceiling of a placed kernel with variants: the overlap of tiles is computed, too."""
    facts, setting = facts_of(kernel, module), Setting.of_kernel(kernel)
    cycles, valid = step_cycles(facts, setting, target), 1.0
    known = {Limit.PIPE: cycles.pipe}
    if not kernel.reads_memory:
        valid = prod(axis.useful / axis.layout.extent for axis in Geometry(kernel).axes)
        known |= {Limit.ISSUE: cycles.issue, Limit.SHARED: cycles.shared}
    cells = facts.steps * valid * LANES * setting.thread_cells
    a_second = cells * target.multiprocessors * target.part.clock_ghz
    speeds = {name: a_second / taken for name, taken in known.items() if taken}
    speeds[Limit.MEMORY] = copied_gcells(facts, target)
    lowest = min(speeds, key=speeds.__getitem__)
    return Ceiling(round(speeds[lowest], 1), lowest)
