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
from timetile.passes.cost.space import KernelSpace
from timetile.passes.cost.terms import StepCycles
from timetile.passes.peel_boundaries import has_copies
from timetile.passes.schedule import Guards

PIPE_EFFICIENCY = 0.85
"""
Share of the busiest pipe that streaming kernels of one warp a tile reach where memory does not limit them (fitted).
"""

ONE_CELL_SPEED = 0.92
"""What is reached of that in planes of two axes with one cell of a row a lane (measured: boxes in FP64)."""

STAYING_EFFICIENCY = 0.69
"""
The same where plates stay, with all that they wait for: a chain of levels of which each begins when the one before is
done (fitted to 430 schedules of nine small plates).
"""

MANY_WARPS_SPEED = 1.07
"""What three warps a scheduler reach of that in tiles of several warps, by what two do (fitted to schedules in 3D)."""

TILE_STEP_SECONDS = 0.1e-6
"""
What a step of a tile of several warps takes beside its pipe: chains at the warps' edges, slots, the loop (fitted to
99 schedules in 3D).
"""

SEVERAL_BLOCKS_EFFICIENCY = 0.94
"""
Share of that with several blocks: schedulers favour the oldest, and the last is left alone with pipes that
it cannot fill (measured).
"""

SHORT_ROW_BYTES, SHORT_ROW_SPEED = 512, 0.85
"""
Rows of a tile that are shorter than this are moved at this share of the memory's speed, those shorter than half
of it at this share of that, and so on (fitted: rows of 256 and 128 bytes).
"""

FOUND_IN_L2, FOUND_BESIDE = 0.5, 0.6
"""
The share of the cells that tiles load in common which is found in L2; where all tiles run the same copy they
advance together, and it is more (fitted to wide stars in 3D).
"""

FOUND_TOGETHER = 0.85
"""The same in kernels of several steps whose tiles all have guards (fitted to stars in 3D)."""

GUARD_INSTRUCTIONS, SUM_GUARD_INSTRUCTIONS = 1.4, 7.1
"""
Instructions of a guard beside a select for each word of the cell, where all tiles have them; beside each select of a
level beyond the first, where planes enter sums as they arrive. Nothing hides them (fitted in 3D).
"""

ONE_AHEAD_SPEED = 0.85
"""The share of the memory's speed where one plane of two axes is fetched ahead (measured: wide stars)."""

DEALT_SPEED = 0.85
"""
The same where lanes copy narrower vectors than they hold, for planes of two axes (measured: j3d7pt FP64 on rows of
513 cells takes 1.14 times as long as on rows of 514).
"""

TWO_VECTORS_SPEED = 0.88
"""
The same where a lane holds two vectors of a row of one dimension, each of which touches half of every sector; squared
where it holds four (measured: 16, 32 and 64 bytes a lane 255, 233 and 167 GCells/s at a depth of one, 2950 and 3344 at 16).
"""

CLUSTER_SECONDS = 0.13e-6
"""What waiting for another block of the cluster adds to a stream step (measured: stars in 3D)."""

MESSAGE_SECONDS: dict[str, float] = {"flags": 0.5e-6, "grid": 1.25e-6}
"""
What waiting for another block's message adds to a stream step, and for a barrier of the grid (fitted to 16 tiles of the
device whose planes are in registers).
"""

MESSAGE_BYTES_PER_SECOND = 60e9
"""What a multiprocessor sends and takes, where it has nothing else to do meanwhile (fitted to volumes that stay)."""

OVERHEAD_SHARE = 0.3
"""Share of the instructions without arithmetic that the busier pipe does not hide (measured on boxes)."""

LONG_LOOP, LONG_LOOP_FACTOR = 1100, 1.08
"""
Instructions of an unrolled loop from which fetching them limits, for tiles of one warp whose lanes hold 16 bytes of a
row: more have more to do side by side (fitted to stars, FP32).
"""

FEW_WARPS = 2 * SCHEDULERS
"""Warps of a multiprocessor up to which that shows: three a scheduler hide it (measured: FP32)."""

CONSTANTS_AT_HAND = 30
"""
Long constants that the registers of a warp keep; of more every step makes all anew, a word each time (fitted to boxes
in 2D).
"""

FIXED_INSTRUCTIONS = 20
"""Addresses, slots, masks and the loop itself, per stream step."""

BARRIER_SECONDS = 0.1e-6
"""
What waiting for the block's other warps at a barrier adds to a stream step (fitted to boxes in 3D); where warps
arrive and have something left to do before they wait, it adds nothing.
"""


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
            found = FOUND_IN_L2
        else:
            found = FOUND_TOGETHER if self.replaced_levels else FOUND_BESIDE
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
        while row < SHORT_ROW_BYTES:
            row, speed = 2 * row, SHORT_ROW_SPEED * speed
        return speed * self.arch.copy_tb_per_s * 1e12 / self.arch.multiprocessors

    def moving_seconds(self, geometry: Geometry, tiles: int, ahead: int) -> float:
        """Loads and stores of one stream step of a launch's tiles, whose planes are fetched so early."""
        moving = min(1.0, tiles / self.residency.tiles)
        slow = len(self.layouts) == 2 and any(
            geometry.is_dealt(load.data) for load in self.loads if load.data is not None
        )
        speed = DEALT_SPEED if slow else 1.0
        if self.kernel.rank == 1:
            speed *= TWO_VECTORS_SPEED ** log2(self.row_cells * 4 * self.words / VECTOR_BYTES)
        if ahead == 1 and len(self.layouts) == 2:
            speed *= ONE_AHEAD_SPEED
        if self.is_in_l2(geometry):
            speed *= self.arch.l2_speed
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
        return 4 * fields <= 3 * self.arch.l2_bytes and not self.kernel.layout.has_messages

    def saturating_ahead(self, geometry: Geometry) -> int:
        """
        Steps ahead of their use at which enough bytes are on their way to saturate the memory: latency
        times bandwidth, by Little's law (EBISU, section 6.1).
        """
        loaded, stored = self.moved_bytes(geometry)
        if not loaded:
            return 1
        on_their_way = self.arch.latency_seconds * self.memory_share
        # Planes of tiles with two axes are large: stores keep the memory busy meanwhile (measured: a box
        # in 3D at 162 GCells/s with one plane ahead, at 153 with two).
        step = loaded if len(self.layouts) == 1 else loaded + stored
        return max(1, ceil(on_their_way / step))

    def computing_seconds(self, cycles: StepCycles, tiles: int) -> float:
        """One stream step on the multiprocessor that has most of a launch's tiles."""
        blocks = self.residency.blocks(tiles)
        busy = cycles.total * self.residency.busy_warps(tiles)
        if blocks > 1:
            busy /= SEVERAL_BLOCKS_EFFICIENCY
        seconds = busy / (self.arch.clock_ghz * 1e9)
        if self.dividing:
            # Fewer do by the third root of their share (measured: 8 and 12 of 12 in FP64).
            enough = self.arch.dividing_warps[4 * self.words]
            seconds *= max(1.0, enough / self.residency.warps) ** (1 / 3)
        if not self.exchanges:
            return seconds / PIPE_EFFICIENCY
        if self.stays_in_a_block:
            return seconds * cycles.pipe / cycles.total / STAYING_EFFICIENCY
        if self.row_cells == 1:
            seconds /= ONE_CELL_SPEED
        if self.residency.warps > FEW_WARPS:
            seconds /= MANY_WARPS_SPEED
        # Blocks that share a multiprocessor hide each other's waits.
        return seconds + TILE_STEP_SECONDS + self.waiting_seconds / blocks

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
        beside = levels * GUARD_INSTRUCTIONS
        if self.sums_early and levels:
            beside = words * (GUARD_INSTRUCTIONS + (levels - 1) * SUM_GUARD_INSTRUCTIONS)
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
            apart = self.message_seconds + self.message_bytes / MESSAGE_BYTES_PER_SECOND
            return len(self.exchanges) * (BARRIER_SECONDS + apart)
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
        inside = barriers * BARRIER_SECONDS
        if layout.has_cluster:
            return inside + CLUSTER_SECONDS
        sent = any(not facts.copies for facts in self.exchanges)
        return inside + (self.message_seconds if sent else 0.0)

    @property
    def message_seconds(self) -> float:
        """What waiting for the other blocks of a tile adds to a step; nothing in tiles of one, or of a cluster."""
        assert self.kernel.layout is not None
        if not self.kernel.layout.has_messages:
            return 0.0
        return MESSAGE_SECONDS["grid" if self.meets else "flags"] / self.every

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
        arch, cells = self.arch, self.thread_cells
        pipe, work, beside, moved, shared = 0.0, 0.0, 0.0, float(FIXED_INSTRUCTIONS), 0.0
        for stage in self.stages:
            operations, helpers = self.stage_work(stage)
            work += operations
            beside += helpers
            pipe += operations * LANES / arch.fma_per_cycle[stage.cell_bytes]
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
        if self.long_constants > CONSTANTS_AT_HAND and len(self.layouts) == 1:
            moved += 2 * self.long_constants
        period = self.period
        if period < self.natural_period:
            # Planes that outlive a turn are moved at its end.
            outlive = 1 / period - 1 / self.natural_period
            moved += (self.words_per_cell - self.words) * cells * outlive
        loop = (work + beside + moved) * period
        narrow = 4 * self.words * self.row_cells <= VECTOR_BYTES and not self.exchanges
        long = loop > LONG_LOOP and self.residency.warps <= FEW_WARPS
        fetching = LONG_LOOP_FACTOR if narrow and long else 1.0
        issue, unhidden = (
            fetching * (work + beside + moved) / SCHEDULERS,
            (OVERHEAD_SHARE * moved + self.guard_instructions) / SCHEDULERS,
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
