"""What a kernel costs: the model that `choose-schedule` compares candidates with.

Terms of one stream step: the floating-point pipe, the issue slots, and the shared-memory pipe (shuffles,
exchanges, prefetched planes); a fixed latency where the warps of a tile wait for each other. Then the
steps of the slowest slot (chunks, waves, guarded tiles: `analysis/geometry/makespan.py`), and DRAM traffic with
overlap.
"""

from __future__ import annotations

from math import prod

from timetile.passes.analysis.geometry.chunks import choose_chunks
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.residency import SCHEDULERS
from timetile.passes.cost.rim import edge_weight
from timetile.passes.cost.step import KernelTime
from timetile.passes.cost.terms import Cost, StepCycles


class KernelCost(KernelTime):
    """The cost of one kernel under different layouts."""

    def predict(self, geometry: Geometry, ahead: int) -> Cost:
        """The cost of one launch with the kernel's present layout and occupancy."""
        residency = self.residency
        sums, planes = self.sums_early, self.natural_period
        weight = edge_weight(geometry, self.guards, self.parameters.rim, sums=sums, planes=planes)
        chunks = choose_chunks(geometry, residency, weight, sums=sums, joins=self.joins)
        updates = self.kernel.steps.data
        for low, high in zip(geometry.lower, geometry.upper):
            updates *= high - low
        cycles, registers = self.step_cycles(), self.registers()
        spilling = 1 + self.parameters.computing.spill_instructions * self.spilled(registers) / (
            cycles.issue * SCHEDULERS
        )
        return Cost(
            registers,
            self.shared_bytes(geometry, ahead),
            chunks.steps,
            cycles,
            spilling * self.computing_seconds(cycles, chunks.tiles),
            self.moving_seconds(geometry, chunks.tiles, ahead),
            updates,
            prod(axis.useful / axis.layout.extent for axis in geometry.axes),
            self.waiting_seconds,
            # A tile that stays has nothing to fetch ahead; other blocks may compute meanwhile.
            self.parameters.moving.overlap_power
            if self.kernel.stream_axis is not None or self.kernel.blocks_per_multiprocessor > 1
            else 1,
            self.launch_seconds(cycles),
            self.exposed_seconds(ahead),
        )

    def spilled(self, registers: int) -> int:
        """Registers of so many that a thread has no room for."""
        assert self.kernel.layout is not None
        threads = self.kernel.layout.threads * self.kernel.blocks_per_multiprocessor
        room = min(
            self.target.isa.registers_per_thread,
            self.target.isa.registers_per_multiprocessor // threads,
        )
        return max(0, registers - room)

    def exposed_seconds(self, ahead: int) -> float:
        """What a step waits for planes that are fetched so early; all of a tile that stays are there at once."""
        late = self.kernel.stream_axis is not None and bool(self.loads) and ahead == 0
        return (
            self.parameters.waiting.exposed_latency * self.parameters.waiting.latency
            if late
            else 0.0
        )

    def launch_seconds(self, cycles: StepCycles) -> float:
        """What a launch costs besides its steps, by the cycles of one."""
        streams = self.kernel.stream_axis is not None
        if not (streams and self.exchanges and self.kernel.steps.data > 1):
            return self.parameters.waiting.launch
        more = max(0.0, cycles.issue * SCHEDULERS - self.parameters.waiting.long_step)
        return self.parameters.waiting.launch + self.parameters.waiting.long_step_instruction * more
