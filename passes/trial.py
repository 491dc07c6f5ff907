"""
One trial: a schedule at a depth, with the kernel that it would have, and the room that its threads
and blocks have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.facts import KernelFacts
from timetile.passes.cost.registers import guard_registers, registers, room
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.shared_memory import shared_bytes
from timetile.passes.cost.traffic import saturating_ahead
from timetile.passes.schedule import Schedule
from timetile.passes.targets.target import Target
from timetile.passes.trial_kernels import TrialKernels


@dataclass(frozen=True)
class Trial:
    """A schedule at a depth; a changed schedule is another trial."""

    kernels: TrialKernels
    target: Target
    schedule: Schedule
    depth: int
    facts: KernelFacts

    def with_schedule(self, schedule: Schedule) -> Trial:
        """The trial of another schedule of the kernel's form."""
        return replace(self, schedule=schedule)

    @cached_property
    def setting(self) -> Setting:
        """What the schedule decides of the kernel."""
        return Setting.of(self.schedule)

    @cached_property
    def registers(self) -> int:
        """Registers of a thread."""
        return registers(self.facts, self.setting, self.target)

    def room(self, spare: int = 0) -> int:
        """Registers that a thread has, with some to spare."""
        return room(self.setting, self.target) - spare

    @cached_property
    def spare(self) -> int:
        """Registers to spare for the copies with guards."""
        parameters = self.target.parameters.spare
        guards = guard_registers(self.facts, self.setting, self.target)
        if self.kernels.rank == 2 and not self.schedule.is_resident:
            # In 1D no plane is kept in registers; in 3D up to a third of the tiles may be guarded.
            return min(guards, parameters.tight)
        # Early sums need more spare registers than other kernels in FP32, and fewer in FP64.
        return parameters.sums if self.facts.sums_early else guards

    @cached_property
    def is_scarce(self) -> bool:
        """
        A strip that keeps sums has no registers left for chunks that go on in the next column.
        """
        if self.kernels.rank != 2 or self.schedule.form != "rows":
            return False
        parameters = self.target.parameters
        return self.registers > self.room(parameters.spare.tight + parameters.registers.joining)

    @cached_property
    def geometry(self) -> Geometry | None:
        """The geometry of the kernel; None where the overlap leaves no cell of a tile."""
        try:
            return Geometry(self.facts.kernel, self.facts.needs, self.setting.layout)
        except ValueError:
            return None

    def shared_bytes(self, geometry: Geometry, ahead: int) -> int:
        """Bytes of shared memory of a block whose planes are fetched `ahead` stream steps early."""
        return shared_bytes(self.facts, self.setting, geometry, ahead)

    def fits_shared(self, geometry: Geometry, ahead: int) -> bool:
        """As many blocks as the schedule asks for fit the shared memory of a multiprocessor."""
        isa = self.target.isa
        share = isa.shared_per_multiprocessor // self.schedule.occupancy - isa.shared_overhead
        return self.shared_bytes(geometry, ahead) <= min(isa.shared_per_block, share)

    def fitting_ahead(self, geometry: Geometry) -> int | None:
        """
        How many stream steps early planes are fetched: as many as saturate the memory, at most as
        many as the schedule has, and as fit the shared memory; None where none fits.
        """
        wanted = saturating_ahead(self.facts, self.setting, geometry, self.target)
        if self.kernels.rank == 3 and self.depth > 1:
            wanted = max(wanted, self.target.parameters.worth.least_ahead)
        wanted = min(self.schedule.ahead, wanted)
        early = range(wanted, min(wanted, 1) - 1, -1)
        return next((ahead for ahead in early if self.fits_shared(geometry, ahead)), None)


Rule = Callable[[Trial], str | None]
"""
Why a schedule is not considered at a depth, in a few words; None where the rule has nothing against
it.
"""
