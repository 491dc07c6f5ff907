"""The time of a stream step: the pipes of a multiprocessor, the memory, and waiting for other warps."""

from __future__ import annotations

from functools import cached_property
from math import ceil, log2, prod

from xdsl.ir import SSAValue

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import ApplyOp, ExchangeOp, queue_type, taps_of
from timetile.dialects.tile_attributes import LANES
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import VECTOR_BYTES, vector_cells
from timetile.passes.analysis.geometry.residency import SCHEDULERS
from timetile.passes.analysis.queues.storage import fitting_period
from timetile.passes.analysis.queues.synchronisation import words_of_cell
from timetile.passes.cost.facts import CellFacts, StageFacts, cell_bytes, neighbours, wavefronts
from timetile.passes.cost.rim import has_copies
from timetile.passes.cost.space import KernelSpace
from timetile.passes.cost.terms import StepCycles
from timetile.passes.schedule import Guards


def is_read_beside(queue: SSAValue) -> bool:
    """Some stage reads the queue at another cell than its own, if through an exchange."""
    exchanged = any(isinstance(use.operation, ExchangeOp) for use in queue.uses)
    return exchanged or any(any(tap.offset) for _, tap in taps_of(queue))


class KernelTime(KernelSpace):
    """What a step of a kernel with its present layout takes."""

    guards: Guards = "rim"
    """Which tiles run the copy with guards, where there are two."""
    joins = True
    """Planes may be joined with those of other columns."""

    def moved_bytes(self, geometry: Geometry) -> tuple[float, float]:
        """
        Bytes that a multiprocessor loads and stores in one stream step. A part of the cells that tiles
        load in common are found in L2.
        """
        kernel = self.kernel
        assert kernel.layout is not None
        tiles = kernel.layout.pack.data * kernel.blocks_per_multiprocessor
        held, around, useful = 1.0, 1.0, 1.0
        for axis, pad in zip(geometry.axes, geometry.pads):
            held *= axis.layout.block_extent
            around *= axis.layout.block_extent + 2 * pad
            useful *= axis.useful / axis.layout.blocks
        stored = sum(useful * CELL_BYTES[element_type(field)] for field in self.stored)
        if has_copies(geometry, self.guards):
            found = self.parameters.moving.found_in_l2
        else:
            found = (
                self.parameters.moving.found_together
                if self.replaced_levels
                else self.parameters.moving.found_beside
            )
        loaded = 0.0
        for load in self.loads:
            cells = around if load.result in self.published else held
            loaded += (cells - found * (cells - useful)) * cell_bytes(load.result)
        return loaded * tiles, float(stored * tiles)

    @property
    def memory_share(self) -> float:
        """Bytes a second that a multiprocessor moves when all do."""
        row = self.layouts[-1].extent * 4 * self.words
        speed = 1.0
        while row < self.parameters.moving.short_row_bytes:
            row, speed = 2 * row, self.parameters.moving.short_row * speed
        return speed * self.target.part.copy_tb_per_s * 1e12 / self.target.multiprocessors

    def moving_seconds(self, geometry: Geometry, tiles: int, ahead: int) -> float:
        """Loads and stores of one stream step of a launch's tiles, whose planes are fetched so early."""
        moving = min(1.0, tiles / self.residency.tiles)
        slow = len(self.layouts) == 2 and any(
            geometry.is_dealt(load.data) for load in self.loads if load.data is not None
        )
        speed = self.parameters.moving.dealt if slow else 1.0
        if self.kernel.rank == 1:
            speed *= self.parameters.moving.two_vectors ** log2(
                self.row_cells * 4 * self.words / VECTOR_BYTES
            )
        if ahead == 1 and len(self.layouts) == 2:
            speed *= self.parameters.moving.one_ahead
        if self.is_in_l2(geometry):
            speed *= self.parameters.moving.l2
        return sum(self.moved_bytes(geometry)) * moving / (speed * self.memory_share)

    def is_in_l2(self, geometry: Geometry) -> bool:
        """
        What a launch loads and stores is there from the one before: three quarters of L2 hold it (two fields of
        1500^2 in FP64 are; what messages cost was fitted without).
        """
        assert self.kernel.layout is not None
        sizes = [cell_bytes(load.result) for load in self.loads]
        sizes += [CELL_BYTES[element_type(field)] for field in self.stored]
        fields = sum(sizes) * prod(high - low for low, high in zip(geometry.lower, geometry.upper))
        return (
            fields <= self.parameters.moving.l2_share * self.target.part.l2_bytes
            and not self.kernel.layout.has_messages
        )

    def saturating_ahead(self, geometry: Geometry) -> int:
        """
        Steps ahead of their use at which enough bytes are on their way to saturate the memory: latency
        times bandwidth, by Little's law (EBISU, section 6.1).
        """
        loaded, stored = self.moved_bytes(geometry)
        if not loaded:
            return 1
        on_their_way = self.parameters.waiting.latency * self.memory_share
        # Planes of tiles with two axes are large: stores keep the memory busy meanwhile (measured: a box
        # in 3D at 162 GCells/s with one plane ahead, at 153 with two).
        step = loaded if len(self.layouts) == 1 else loaded + stored
        return max(1, ceil(on_their_way / step))

    def computing_seconds(self, cycles: StepCycles, tiles: int) -> float:
        """One stream step on the multiprocessor that has most of a launch's tiles."""
        blocks = self.residency.blocks(tiles)
        busy = cycles.total * self.residency.busy_warps(tiles)
        if blocks > 1:
            busy /= self.parameters.computing.several_blocks
        seconds = busy / (self.target.part.clock_ghz * 1e9)
        if self.dividing:
            # Fewer do by the third root of their share (measured: 8 and 12 of 12 in FP64).
            enough = self.parameters.computing.dividing_warps[4 * self.words]
            seconds *= (
                max(1.0, enough / self.residency.warps) ** self.parameters.computing.dividing_power
            )
        if not self.exchanges:
            return seconds / self.parameters.computing.pipe_efficiency
        if self.stays_in_a_block:
            return (
                seconds * cycles.pipe / cycles.total / self.parameters.computing.staying_efficiency
            )
        if self.row_cells == 1:
            seconds /= self.parameters.computing.one_cell_speed
        if self.residency.warps > self.parameters.computing.few_warps:
            seconds /= self.parameters.computing.many_warps_speed
        # Blocks that share a multiprocessor hide each other's waits.
        return seconds + self.parameters.waiting.tile_step + self.waiting_seconds / blocks

    @cached_property
    def replaced_levels(self) -> int:
        """Levels whose cells outside the bounds are replaced, as neighbours read them."""
        return sum(
            isinstance(stage, ApplyOp)
            and stage.replaces_cells
            and any(map(is_read_beside, stage.res))
            for stage in self.kernel.stages
        )

    @property
    def guard_instructions(self) -> float:
        """Instructions of a thread's guards in a step, where all tiles have them; a few tiles' are in the makespan."""
        if self.guards == "rim":
            return 0.0
        levels, words = self.replaced_levels, self.words
        beside = levels * self.parameters.computing.guard_instructions
        if self.sums_early and levels:
            beside = words * (
                self.parameters.computing.guard_instructions
                + (levels - 1) * self.parameters.computing.sum_guard_instructions
            )
        return self.thread_cells * (levels * words + beside)

    @property
    def stays_in_a_block(self) -> bool:
        """The tile is a plate in the registers of one block."""
        layout = self.kernel.layout
        assert layout is not None
        return self.is_staying_plate and not layout.has_messages

    @property
    def waiting_seconds(self) -> float:
        """
        What a stream step waits for the other warps of its tile, of the block and of the blocks beside; a tile
        without a stream does for each of its exchanges, but for those of one block (`STAYING_EFFICIENCY` has that).
        """
        layout = self.kernel.layout
        assert layout is not None
        if not self.exchanges or self.stays_in_a_block:
            return 0.0
        if self.kernel.stream_axis is None:
            apart = (
                self.message_seconds
                + self.message_bytes / self.parameters.waiting.message_bytes_per_second
            )
            return len(self.exchanges) * (self.parameters.waiting.barrier + apart)
        # Exchanges that are delayed share a barrier with others.
        barriers = max(1, sum(not facts.exchange.delay.data for facts in self.exchanges))
        if self.split:
            # Between arriving and waiting a warp has its inner rows to do, if there are any, and sums that
            # planes enter as they arrive.
            widest = max(facts.edges[0] for facts in self.exchanges)
            barriers = 0.0 if self.rows > 2 * widest or self.sums_early else 1.0
            if self.kernel.steps.data > 1 and widest > 2:
                # Wide edges of one level are published while those of another are awaited (measured: radius 3).
                barriers /= 2
        inside = barriers * self.parameters.waiting.barrier
        if layout.has_cluster:
            return inside + self.parameters.waiting.cluster
        sent = any(not facts.copies for facts in self.exchanges)
        return inside + (self.message_seconds if sent else 0.0)

    @property
    def message_seconds(self) -> float:
        """What waiting for the other blocks of a tile adds to a step; nothing in tiles of one, or of a cluster."""
        assert self.kernel.layout is not None
        if not self.kernel.layout.has_messages:
            return 0.0
        return self.parameters.waiting.message["grid" if self.meets else "flags"] / self.every

    @property
    def message_bytes(self) -> float:
        """The most that a block sends and takes of one exchange: edges on both sides, in words of 64 bits."""
        assert self.kernel.layout is not None
        if not self.kernel.layout.has_messages:
            return 0.0
        layer = prod(axis.block_extent for axis in self.layouts[1:])
        return max(
            2 * 2 * facts.edges[0] * layer * 8 * words_of_cell(facts.element, meets=self.meets)
            for facts in self.exchanges
        )

    def step_cycles(self) -> StepCycles:
        """What one stream step of one warp keeps busy."""
        target, cells = self.target, self.thread_cells
        pipe, work, beside, moved, shared = (
            0.0,
            0.0,
            0.0,
            float(self.parameters.computing.fixed_instructions),
            0.0,
        )
        for stage in self.stages:
            operations, helpers = self.stage_work(stage)
            work += operations
            beside += helpers
            pipe += operations * LANES / target.isa.fma_per_cycle[stage.cell_bytes]
        for facts, shuffled, vectors in self.fetches():
            moved += shuffled * (facts.cell_bytes // 4) + vectors
            group = vector_cells(self.row_cells, facts.element)
            shared += shuffled * (facts.cell_bytes // 4)
            shared += vectors * wavefronts(group, facts.cell_bytes)
        for load in self.loads:
            size = cell_bytes(load.result)
            moved += 2 * cells * size / VECTOR_BYTES
            shared += 2 * wavefronts(cells, size)
        for facts in self.exchanges:
            if not facts.copies and len(self.layouts) > 1:
                whole = facts.exchange.what.data == "plane"
                published = self.thread_cells if whole else 2 * facts.edges[0] * self.row_cells
                moved += published * facts.cell_bytes / VECTOR_BYTES
                shared += wavefronts(published, facts.cell_bytes)
        moved += sum(cells * CELL_BYTES[element_type(f)] / VECTOR_BYTES for f in self.stored)
        if (
            self.long_constants > self.parameters.computing.constants_at_hand
            and len(self.layouts) == 1
        ):
            moved += 2 * self.long_constants
        period = self.period
        if period < self.natural_period:
            # Planes that outlive a turn are moved at its end.
            outlive = 1 / period - 1 / self.natural_period
            moved += (self.words_per_cell - self.words) * cells * outlive
        loop = (work + beside + moved) * period
        narrow = 4 * self.words * self.row_cells <= VECTOR_BYTES and not self.exchanges
        long = (
            loop > self.parameters.computing.long_loop
            and self.residency.warps <= self.parameters.computing.few_warps
        )
        fetching = self.parameters.computing.long_loop_factor if narrow and long else 1.0
        issue, unhidden = (
            fetching * (work + beside + moved) / SCHEDULERS,
            (self.parameters.computing.overhead_share * moved + self.guard_instructions)
            / SCHEDULERS,
        )
        return StepCycles(pipe, issue, shared, unhidden)

    def stage_work(self, stage: StageFacts) -> tuple[float, float]:
        """
        Instructions of a stage for a thread's cells in a step, on the floating-point pipe and beside it: what they
        compute in common, side by side or from step to step, counts once.
        """
        if stage.sharing is None:
            return self.thread_cells * stage.operations, self.thread_cells * stage.helpers
        # Of a row more, what the row before has not computed.
        pipe, beside = stage.sharing((2, *self.patch))
        alone = stage.sharing((1, *self.patch))
        return pipe - alone[0], beside - alone[1]

    @property
    def period(self) -> int:
        """Stream steps of a turn of the loop."""
        return fitting_period(self.natural_period, self.taps_of_step())

    def taps_of_step(self) -> int:
        """Taps that a thread makes in one stream step."""
        return self.thread_cells * sum(len(stage.taps) for stage in self.stages)

    def fetches(self) -> list[tuple[CellFacts, int, int]]:
        """
        What a thread fetches of every queue that it taps: cells by shuffles, and aligned vectors from
        shared memory. (Queues of different levels are tapped alike; that is worked out once.)
        """
        found: list[tuple[CellFacts, int, int]] = []
        for queue, taps in self.tapped.items():
            facts = CellFacts(queue_type(queue).element)
            group = vector_cells(self.row_cells, facts.element)
            key = (taps, self.patch, group)
            if key not in self.fetched:
                self.fetched[key] = neighbours(*key)
            found.append((facts, *self.fetched[key]))
        return found
