"""A trial: a schedule at a depth, its kernel, and the available registers and shared memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from timetile.dialects.tile.kinds import Form
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.cost.facts import KernelFacts
from timetile.passes.cost.register_facts import (
    RegisterFacts,
    least_register_facts,
    with_bodies,
)
from timetile.passes.cost.registers import registers, spare_registers
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.shared_memory import shared_bytes
from timetile.passes.cost.traffic import comes_late, saturating_ahead
from timetile.passes.scheduling.trial_kernels import TrialKernels
from timetile.passes.targets.target import Target


@dataclass(frozen=True)
class Trial:
    """A schedule at a depth; a changed schedule is another trial."""

    kernels: TrialKernels
    target: Target
    schedule: Schedule
    depth: int
    facts: KernelFacts

    def with_schedule(self, schedule: Schedule) -> Trial:
        """The trial of another schedule, for the same form of kernel."""
        return self if schedule == self.schedule else replace(self, schedule=schedule)

    @property
    def shape(self) -> TileShape:
        """The shape of a tile."""
        return self.facts.shape

    @cached_property
    def setting(self) -> Setting:
        """The schedule's layout, guards and waits, for the cost model."""
        return Setting.of(self.schedule)

    @cached_property
    def least(self) -> RegisterFacts:
        """The numbers that decide the registers of a thread, but for values shared by cells."""
        return least_register_facts(self.facts, self.setting)

    @cached_property
    def counted(self) -> RegisterFacts:
        """The numbers that decide the registers of a thread."""
        return with_bodies(self.least, self.facts, self.setting)

    @cached_property
    def least_registers(self) -> int:
        """Registers of a thread without values shared by cells, which take long to count."""
        return registers(self.least, self.target.parameters.registers)

    @cached_property
    def registers(self) -> int:
        """Registers of a thread."""
        return registers(self.counted, self.target.parameters.registers)

    def room(self, spare: int = 0) -> int:
        """Registers of a thread, less `spare` registers."""
        return self.target.isa.registers_for(self.least.threads) - spare

    @cached_property
    def spare(self) -> int:
        """Registers to spare for copies with guards."""
        return spare_registers(self.least, self.target.parameters)

    @cached_property
    def is_scarce(self) -> bool:
        """Whether a strip that keeps sums has too few registers for chunks with joined planes."""
        if self.shape is not TileShape.STRIP or self.schedule.form is not Form.ROWS:
            return False
        parameters = self.target.parameters
        return self.registers > self.room(parameters.spare.tight + parameters.registers.joining)

    @cached_property
    def geometry(self) -> Geometry | None:
        """The geometry of the kernel; None if the overlap is as wide as the tile."""
        try:
            return Geometry(self.facts.kernel, self.facts.outline, self.setting.layout)
        except ValueError:
            return None

    @property
    def shared_room(self) -> int:
        """Bytes of shared memory for each of the schedule's `occupancy` blocks."""
        isa = self.target.isa
        share = isa.shared_per_multiprocessor // self.schedule.occupancy - isa.shared_overhead
        return min(isa.shared_per_block, share)

    def shared_bytes(self, geometry: Geometry, ahead: int) -> int:
        """Bytes of shared memory of a block whose planes are fetched `ahead` stream steps early."""
        return shared_bytes(self.facts, self.setting, geometry, ahead)

    def fits_shared(self, geometry: Geometry, ahead: int) -> bool:
        """Whether the schedule's `occupancy` blocks fit the shared memory of a multiprocessor."""
        return self.shared_bytes(geometry, ahead) <= self.shared_room

    def fitting_ahead(self, geometry: Geometry) -> int | None:
        """
        The number of stream steps by which planes are fetched early: enough to saturate the memory,
        within the schedule's `ahead` and the shared memory. None if no number fits.
        """
        wanted = saturating_ahead(self.facts, self.setting, geometry, self.target)
        if len(self.facts.loads) > 1:
            # Planes of a single field that come late were measured slower with two planes ahead.
            wanted += comes_late(self.facts, self.setting, geometry, self.target, wanted)
        if self.shape is TileShape.PENCIL and (self.depth > 1 or self.facts.carries_sums):
            wanted = max(wanted, self.target.parameters.worth.least_ahead)
        wanted = min(self.schedule.ahead, wanted)
        early = range(wanted, min(wanted, 1) - 1, -1)
        return next((ahead for ahead in early if self.fits_shared(geometry, ahead)), None)
