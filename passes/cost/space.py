"""The space that a kernel takes: registers of a thread, shared memory of a block."""

from __future__ import annotations

from functools import cached_property
from math import ceil, floor, prod

from xdsl.ir import SSAValue

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import SLICE_ALIGNMENT
from timetile.passes.analysis.queues.storage import copies_slots, power_of_two
from timetile.passes.cost.facts import ExchangeFacts, KernelFacts, cell_bytes, cells_around, span


class KernelSpace(KernelFacts):
    """What a kernel with its present layout holds."""

    @property
    def is_strip(self) -> bool:
        """Planes of one axis are streamed."""
        return self.kernel.stream_axis is not None and len(self.layouts) == 1

    @property
    def is_staying_plate(self) -> bool:
        """Nothing is streamed, and a thread holds rows."""
        return self.kernel.stream_axis is None and len(self.layouts) == 2

    @property
    def is_staying_volume(self) -> bool:
        """The same of planes: the tile has three axes."""
        return self.kernel.stream_axis is None and len(self.layouts) == 3

    @property
    def body_registers(self) -> int:
        """Registers of a cell's own values, and of scalars, beyond those that are at hand anyway."""
        values = max(0, self.live_words - self.parameters.registers.values)
        return values + max(0, self.scalar_words - self.parameters.registers.scalars)

    def staying_registers(self) -> int:
        """Registers of a thread whose plate stays: the planes that are alive at once, and neighbours of boxes."""
        planes = self.words_per_cell * self.thread_cells
        wide = self.parameters.registers.staying_cell * max(0, self.row_cells - 2)
        assert self.kernel.layout is not None
        if self.kernel.layout.has_messages:
            # What the blocks beside send is at hand beside the planes: wide stars spilled without it.
            widest = max((facts.edges[0] for facts in self.exchanges), default=0)
            wide += 2 * widest * self.row_cells * self.words
        if any(all(tap.offset) for tap in self.taps):
            planes += self.words * (cells_around(self.patch, self.taps) - self.thread_cells)
        return self.parameters.registers.staying + planes + wide + self.body_registers

    def registers(self) -> int:
        """Registers of a thread: planes, what arrives, neighbours, and the guards of every level."""
        if self.is_staying_plate:
            return self.staying_registers()
        planes = self.words_per_cell * self.thread_cells
        levels = self.words * self.kernel.steps.data // 2
        if self.kernel.stream_axis is not None:
            planes = ceil(planes * self.parameters.registers.per_word)
        arriving = self.words * self.thread_cells + self.parameters.registers.load
        if self.sums_early:
            # The newest plane is at hand beside the sums that it enters.
            planes += self.words * self.thread_cells
            if len(self.layouts) == 2:
                levels += (
                    self.parameters.registers.sum_level
                    * self.words
                    * max(0, self.kernel.steps.data - 2)
                )
        elif len(self.layouts) == 2:
            levels += self.parameters.registers.level[4 * self.words] * max(
                0, self.kernel.steps.data - 2
            )
        elif self.words == 1 and self.is_strip:
            levels += self.parameters.registers.reach * max(0, self.row_reach - 1)
        levels += self.words * self.boxed
        # The places of slots that are shifted.
        rings = [self.slots(facts, 1) for facts in self.exchanges if facts.copies]
        levels += sum(slots for slots in rings if slots != power_of_two(slots))
        wide = any(facts.copies and facts.edges[0] > 1 for facts in self.exchanges)
        if self.split and wide and self.kernel.steps.data > 1:
            planes += ceil(self.parameters.registers.late_copies * self.words * self.thread_cells)
        if self.dividing:
            each = self.parameters.registers.dividing_cell[4 * self.words]
            planes += self.thread_cells * each * self.dividing + self.parameters.registers.dividing
        if self.approximates and self.is_strip:
            planes += self.parameters.registers.approximating * self.words * self.thread_cells
        others = len(self.loads) - 1 if self.loads and self.kernel.stream_axis is not None else 0
        total = (
            self.parameters.registers.fixed
            + planes
            + levels
            + others * arriving
            + self.neighbour_registers()
        )
        total += self.body_registers
        return ceil(self.parameters.registers.volume * total) if self.is_staying_volume else total

    @property
    def row_reach(self) -> int:
        """How far stages look along the last axis."""
        return max((abs(tap.offset[-1]) for tap in self.taps), default=0)

    @property
    def spare_registers(self) -> int:
        """Registers that the guarded copies need beside what is counted: each level that is kept has its guards."""
        if self.is_staying_plate:
            return self.parameters.spare.staying if self.words_per_cell > 2 * self.words else 0
        if self.is_staying_volume:
            return 0
        if self.dividing:
            return self.parameters.spare.dividing
        one_level = self.kernel.steps.data <= 2 and len(self.layouts) == 2 and self.words == 2
        spare = self.parameters.spare.guards[4 * self.words]
        return self.parameters.spare.one_level if one_level else spare

    def neighbour_registers(self) -> int:
        """
        Registers for neighbours that are at hand at once, where a cell has many taps: all of a plane
        that are shuffled, a row's where they are read from shared memory. Sums that a plane enters as it
        arrives take the neighbours of one level.
        """
        most = 0
        if self.sums_early and len(self.layouts) == 2:
            most = self.words * (cells_around(self.patch, self.taps) - self.thread_cells)
        for stage in self.stages:
            served = [tap for queue, tap in stage.taps if queue in self.served]
            taps = [tap for queue, tap in stage.taps if queue not in self.served]
            if len(served) > self.parameters.registers.many_taps:
                cells = self.row_cells + span([tap.offset[-1] for tap in served])
                most = max(
                    most,
                    floor(self.parameters.registers.shared_row * self.words * self.rows * cells),
                )
            elif len(taps) > self.parameters.registers.many_taps:
                around = cells_around(self.patch, taps)
                most = max(most, self.words * (around - self.thread_cells))
        return most

    @cached_property
    def served(self) -> set[SSAValue]:
        """The exchanges that a load's copies serve: what is read there is read when it is needed."""
        return {e.exchange.result for e in self.exchanges if e.copies}

    def shared_bytes(self, geometry: Geometry, ahead: int) -> int:
        """
        Shared memory of a block: the rings of loads that are fetched early, the mail, and rows that
        change hands before they are stored.
        """
        assert self.kernel.layout is not None
        rows = self.kernel.layout.threads * self.thread_cells
        # Where warps arrive, in a slice of its own.
        total = SLICE_ALIGNMENT if self.exchanges else 0
        total += sum(
            rows * CELL_BYTES[element_type(field)]
            for field in self.stored
            if geometry.is_dealt(field)
        )
        plane = self.kernel.layout.pack.data
        for axis in self.layouts:
            plane *= axis.block_extent
        if ahead and self.kernel.stream_axis is not None:
            slots = 1 << ahead.bit_length()
            own = [load for load in self.loads if load.result not in self.published]
            total += sum(slots * plane * cell_bytes(load.result) for load in own)
        rings = [facts for facts in self.exchanges if facts.copies]
        total += sum(self.slots(facts, ahead) * self.padded_plane_bytes(facts) for facts in rings)
        mail = [self.mail_bytes(facts) for facts in self.exchanges if not facts.copies]
        # Exchanges of a tile that stays take turns.
        return total + (max(mail, default=0) if self.kernel.stream_axis is None else sum(mail))

    def mail_bytes(self, facts: ExchangeFacts) -> int:
        """Shared memory of an exchange of edges, or of a whole plane with what neighbours read around it."""
        if facts.exchange.what.data == "plane":
            return facts.slots * self.padded_plane_bytes(facts)
        total = 0
        for k, axis in enumerate(self.layouts):
            if axis.tile_warps > 1:
                row = self.layouts[-1].block_extent if k != len(self.layouts) - 1 else 1
                edges = 2 * facts.edges[k] * (axis.warps + 2)
                total += facts.slots * edges * row * facts.cell_bytes
        return total

    def slots(self, facts: ExchangeFacts, ahead: int) -> int:
        """Planes of the ring of an exchange that copies serve."""
        return copies_slots(
            facts.exchange,
            ahead,
            blocks=prod(axis.blocks for axis in self.layouts),
            stream=self.kernel.stream_axis,
            split=self.split,
            every=self.every,
        )

    def padded_plane_bytes(self, facts: ExchangeFacts) -> int:
        """Bytes of a plane of the tile with the cells around it that its readers look at."""
        *rows, last = self.layouts
        cells = last.block_extent + 2 * Geometry.padded(facts.element, facts.edges[-1])
        for axis, edge in zip(rows, facts.edges):
            cells *= axis.block_extent + 2 * edge
        return cells * facts.cell_bytes
