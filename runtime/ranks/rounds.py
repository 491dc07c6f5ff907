"""Runs the loops of one part by plans of the part's own, for parts with different updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.series import is_series
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import CopyOp, LaunchOp, ScratchOp, StepValueOp
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.executors.series import step_value
from timetile.runtime.host.functions import Host, HostValues
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import planned_function
from timetile.runtime.ranks.cut_program import RankLoop
from timetile.runtime.ranks.part_kernels import PlannedLoop
from timetile.runtime.ranks.parted import PartedField
from timetile.runtime.ranks.sites import Site


def around_loop(
    run: RankLoop, outside: dict[SSAValue, Any], done: int = 0, count: int | None = None
) -> dict[SSAValue, Any]:
    """
    The captured fields and scalars of a part's loop; of series, the numbers of `count` steps after
    `done` steps, or all.
    """
    given: dict[SSAValue, Any] = {}
    for own in (*run.loop.captures, *run.loop.scalars):
        value = outside[run.values[own]]
        is_cut = count is not None and is_series(own)
        given[own] = value[done : done + count] if is_cut and count is not None else value
    return given


class PartRounds:
    """Runs loops of a part on its site."""

    def __init__(self, site: Site, number: int):
        self.site, self.number = site, number
        self.host = Host(
            {
                LaunchOp: self.launch,
                ScratchOp: self.scratch,
                CopyOp: self.copy,
                StepValueOp: step_value,
            }
        )
        self.plans: dict[tuple[LoopOp, int], Any] = {}
        self.scratches: dict[tuple[int, tuple[int, ...], Any], Any] = {}
        self.count = 0
        self.kernels: ProgramKernels | None = None

    def run(
        self,
        planned: PlannedLoop,
        kernels: ProgramKernels,
        steps: int,
        names: Sequence[PartedField],
        around: dict[SSAValue, Any],
    ) -> None:
        """Run some steps of a loop on the part's buffers."""
        loop, facts = planned
        if (loop, steps) not in self.plans:
            self.plans[loop, steps] = planned_function(loop, facts, steps)
        self.kernels, self.count = kernels, 0
        given = [
            value.buffers[self.number] if isinstance(value, PartedField) else value
            for value in (*names, *around.values())
        ]
        self.host.run(self.plans[loop, steps], [steps, *given])

    def launch(self, op: LaunchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Make a launch."""
        assert self.kernels is not None
        self.site.launch(self.kernels, op, operands)
        return []

    def scratch(self, op: ScratchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Scratch buffers are kept from run to run."""
        shape = sizes_of(field_bounds(op.operands[0]))
        dtype = dtype_of(element_type(op.operands[0]))
        key = (self.count, shape, dtype)
        self.count += 1
        if key not in self.scratches:
            self.scratches[key] = self.site.new(shape, dtype)
        return [self.scratches[key]]

    def copy(self, op: CopyOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Copy a buffer."""
        self.site.copy(*operands)
        return []

    def close(self) -> None:
        """Give back scratch buffers."""
        while self.scratches:
            self.site.free(self.scratches.popitem()[1])
