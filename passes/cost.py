"""What a kernel costs: the model that `choose-schedule` compares candidates with.

Terms of one stream step: the floating-point pipe, the issue slots, and the shared-memory pipe (shuffles,
exchanges, prefetched planes); a fixed latency where the warps of a tile wait for each other. Then the
steps of the slowest slot (chunks, waves, guarded tiles: `analysis/makespan.py`), and DRAM traffic with
overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    StoreOp,
    queue_lag,
    queue_type,
)
from timetile.dialects.tile_attributes import LANES, AxisLayout
from timetile.passes.analysis.attainable import concurrency
from timetile.passes.analysis.extents import extents
from timetile.passes.analysis.geometry import SLICE_ALIGNMENT, VECTOR_BYTES, Geometry, vector_cells
from timetile.passes.analysis.instructions import operations
from timetile.passes.analysis.lags import oldest_age
from timetile.passes.analysis.residency import SCHEDULERS, Residency
from timetile.passes.arch import SHARED_BYTES_PER_CYCLE, Arch
from timetile.passes.multi_queue_buffering import (
    copies_slots,
    fitting_period,
    kept_queues,
    natural_period,
)
from timetile.passes.peel_boundaries import choose_chunks, edge_weight

PIPE_EFFICIENCY = 0.85
"""Share of the busiest pipe that streaming kernels reach where memory does not limit them (fitted)."""

SEVERAL_BLOCKS_EFFICIENCY = 0.94
"""
Share of that with several blocks: schedulers favour the oldest, and the last is left alone with pipes that
it cannot fill (measured).
"""

OVERLAP_POWER = 4
"""How well computing and memory traffic of a step overlap: its time is their norm of this order (fitted)."""

SHORT_ROW_BYTES, SHORT_ROW_SPEED = 512, 0.75
"""Rows of a tile that are shorter than this are moved at this share of the memory's speed (measured)."""

DEALT_SPEED = 0.7
"""
The same where lanes copy narrower vectors than they hold, for planes of two axes (measured: FP32, four
cells a lane and rows of 514 cells take 1.3 to 2 times as long).
"""

CLUSTER_SECONDS = 0.13e-6
"""What waiting for another block of the cluster adds to a stream step (measured: stars in 3D)."""

MESSAGE_SECONDS = 0.4e-6
"""What waiting for another block's message adds to a stream step (measured: stars in 3D)."""

LAUNCH_SECONDS = 4e-6
"""What a launch costs besides its work: on small domains it is what depth saves."""

MANY_TAPS = 20
"""Taps of a stage from which its neighbours in a plane are counted as registers."""

OVERHEAD_SHARE = 0.3
"""Share of the instructions without arithmetic that the busier pipe does not hide (measured on boxes)."""

LONG_LOOP, LONG_LOOP_FACTOR = 1000, 1.25
"""Instructions of an unrolled loop from which fetching them limits (measured: FP32, 8 cells a lane)."""

FEW_WARPS = 2 * SCHEDULERS
"""Warps of a multiprocessor up to which that shows: three a scheduler hide it (measured: FP32)."""

FIXED_INSTRUCTIONS = 20
"""Addresses, slots, masks and the loop itself, per stream step."""

EXCHANGE_SECONDS = 0.15e-6
"""What waiting for the block's other warps adds to a stream step (fitted to stars in 3D)."""

LOAD_REGISTERS = 4
"""Addresses of a load beside the first."""

FIXED_REGISTERS = 30
"""Addresses, masks, counters and what is in flight, in a thread that streams."""


DIVIDING_REGISTERS: dict[int, int] = {8: 2, 4: 1}
"""Per cell and level that divides or takes roots, by bytes of the element (fitted to assembled kernels)."""

DIVIDING_MORE = 6
"""What such kernels need besides."""


@dataclass(frozen=True)
class StepCycles:
    """
    Cycles of a multiprocessor for one stream step of one warp: of the floating-point `pipe`, of the
    schedulers' `issue` slots, of the `shared`-memory pipe, and what the busiest does not hide.
    """

    pipe: float
    issue: float
    shared: float
    unhidden: float

    @property
    def limit(self) -> str:
        """What is busiest."""
        return max(("pipe", "issue", "shared"), key=lambda name: getattr(self, name))

    @property
    def total(self) -> float:
        return max(self.pipe, self.issue, self.shared) + self.unhidden


@dataclass(frozen=True)
class Cost:
    """
    The prediction for one launch: `registers` per thread, `shared_bytes` per block, the `steps` of the
    slot that is done last, the `cycles` of a step, the seconds in which a step of all tiles computes
    and moves its cells, and the cell updates of the launch.
    """

    registers: int
    shared_bytes: int
    steps: float
    cycles: StepCycles
    compute_seconds: float
    memory_seconds: float
    updates: int
    valid: float
    """The share of a tile's cells that are stored: what overlap leaves (EBISU, equations 8 and 9)."""
    waiting_seconds: float
    """What of a step's computing is waiting for other warps of the tile (its synchronisation, equation 11)."""
    overlaps: bool = True
    """A step computes while others' cells are moved."""

    @property
    def limit(self) -> str:
        """What a step spends most of its time on."""
        if self.memory_seconds > self.compute_seconds:
            return "memory"
        return self.cycles.limit

    @property
    def gcells_per_second(self) -> float:
        return self.updates / self.seconds / 1e9

    @property
    def step_seconds(self) -> float:
        """One stream step."""
        power = OVERLAP_POWER if self.overlaps else 1
        return (self.compute_seconds**power + self.memory_seconds**power) ** (1 / power)

    @property
    def seconds(self) -> float:
        """One launch."""
        return LAUNCH_SECONDS + self.steps * self.step_seconds


@dataclass(frozen=True)
class TapFacts:
    """A tap of a queue: the plane's age, and rows and cells from the own cell."""

    age: int
    row: int
    cell: int
    shared: bool
    """Beyond the own cells it is read from shared memory: the queue is an exchange's."""


Taps = frozenset[TapFacts]


@dataclass(frozen=True)
class CellFacts:
    """What the cells of a queue are."""

    element: Attribute

    @property
    def cell_bytes(self) -> int:
        """The size of a cell."""
        return CELL_BYTES[self.element]


@dataclass(frozen=True)
class StageFacts(CellFacts):
    """
    An apply: instructions a cell on the floating-point pipe and beside it, and its taps.
    """

    operations: int
    helpers: int
    taps: tuple[tuple[SSAValue, TapFacts], ...]
    """With the queue that each reads."""


@dataclass(frozen=True)
class ExchangeFacts(CellFacts):
    """An exchange: how wide its edges are, and the slots of its mail."""

    exchange: ExchangeOp
    edges: tuple[int, ...]
    copies: bool
    slots: int
    """Of mail; those of copies depend on how early planes are fetched."""


def cell_bytes(queue: SSAValue) -> int:
    """The size of a queue's cells."""
    return CELL_BYTES[queue_type(queue).element]


def span(offsets: list[int]) -> int:
    """From the smallest offset to the largest."""
    return max(offsets) - min(offsets)


def wavefronts(cells: int, cell_bytes: int) -> float:
    """
    Cycles of the shared-memory pipe for `cells` consecutive cells of every lane. A shuffle of a word
    takes one, too.
    """
    return cells * cell_bytes * LANES / SHARED_BYTES_PER_CYCLE


def neighbours(taps: Taps, rows: int, cells: int, group: int) -> tuple[int, int]:
    """
    What a thread of `rows` x `cells` cells fetches of a queue: cells by shuffles, and aligned vectors of
    `group` cells from shared memory, each once.
    """
    shuffled: set[tuple[int, int, int]] = set()
    vectors: set[tuple[int, int, int]] = set()
    for tap in taps:
        for row in range(tap.row, tap.row + rows):
            own_row = 0 <= row < rows
            if tap.shared and not (own_row and tap.cell == 0):
                first, last = tap.cell // group, (tap.cell + cells - 1) // group
                for number in range(first, last + 1):
                    if not (own_row and 0 <= number * group < cells):
                        vectors.add((tap.age, row, number))
                continue
            beyond = range(tap.cell, 0) if tap.cell < 0 else range(cells, cells + tap.cell)
            shuffled.update((tap.age, row, cell) for cell in beyond)
    return len(shuffled), len(vectors)


class KernelCost:
    """
    The cost of one kernel under different layouts: what does not depend on the layout is collected
    once. The kernel has exchanges where its layouts need them, and lags.
    """

    def __init__(self, kernel: KernelOp, module: ModuleOp, arch: Arch):
        self.kernel, self.module, self.arch = kernel, module, arch
        self.extents = extents(kernel)
        self.stages = [self.stage_facts(s) for s in kernel.stages if isinstance(s, ApplyOp)]
        self.exchanges = [
            self.exchange_facts(s) for s in kernel.stages if isinstance(s, ExchangeOp)
        ]
        self.loads = [s for s in kernel.stages if isinstance(s, LoadOp) and s.data is not None]
        self.stored = [s.field for s in kernel.stages if isinstance(s, StoreOp)]
        self.published = {e.exchange.queue for e in self.exchanges if e.copies}
        self.natural_period = natural_period(kernel)
        self.boxed = sum(isinstance(s, ApplyOp) and s.box is not None for s in kernel.stages)
        self.sums_early = any(queue_lag(q) < 0 for s in kernel.stages for q in s.results)
        self.words = max(cell_bytes(q) // 4 for s in kernel.stages for q in s.results)
        self.words_per_cell = self.plane_words()
        self.tapped = self.taps_by_queue()
        self.fetched: dict[tuple[Taps, int, int, int], tuple[int, int]] = {}

    # What is collected once.

    def stage_facts(self, stage: ApplyOp) -> StageFacts:
        axes = self.kernel.plane_axes
        taps: list[tuple[SSAValue, TapFacts]] = []
        for tap in stage.tap_list:
            queue = stage.queues[tap.operand]
            row = tap.offset[axes[0]] if len(axes) == 2 else 0
            shared = isinstance(queue.owner, ExchangeOp)
            facts = TapFacts(stage.age(tap), row, tap.offset[axes[-1]], shared)
            taps.append((queue, facts))
        element = queue_type(stage.res[0]).element
        return StageFacts(element, *operations(self.module, stage), tuple(taps))

    def exchange_facts(self, exchange: ExchangeOp) -> ExchangeFacts:
        slots = exchange.delay.data + 1 + oldest_age(exchange.result, self.kernel.stream_axis)
        return ExchangeFacts(
            queue_type(exchange.result).element,
            exchange,
            exchange.edges,
            exchange.publishes_copies,
            max(slots, 2),
        )

    def plane_words(self) -> int:
        """32-bit registers that the planes of all queues take, per cell of a thread."""
        if self.kernel.stream_axis is None:
            # A tile without a stream holds the plane that it reads and the one that it makes.
            return 2 * self.words
        return self.words + sum(
            cell_bytes(queue) // 4 * oldest_age(queue, self.kernel.stream_axis)
            for queue in kept_queues(self.kernel)
        )

    def taps_by_queue(self) -> dict[SSAValue, Taps]:
        """The taps of every queue, whoever makes them."""
        taps: dict[SSAValue, set[TapFacts]] = {}
        for stage in self.stages:
            for queue, tap in stage.taps:
                taps.setdefault(queue, set()).add(tap)
        return {queue: frozenset(found) for queue, found in taps.items()}

    # What the layout decides.

    @property
    def residency(self) -> Residency:
        """How many tiles the device holds."""
        return Residency.of(self.kernel, self.arch)

    @property
    def layouts(self) -> tuple[AxisLayout, ...]:
        assert self.kernel.layout is not None
        return self.kernel.layout.axis_layouts

    @property
    def rows(self) -> int:
        """Rows of a plane that one thread holds."""
        return self.layouts[0].cells if len(self.layouts) == 2 else 1

    @property
    def row_cells(self) -> int:
        """Cells of a row that one thread holds."""
        return self.layouts[-1].cells

    @property
    def thread_cells(self) -> int:
        """Cells of a plane that one thread holds."""
        return self.rows * self.row_cells

    def registers(self) -> int:
        """Registers of a thread: planes, what arrives, neighbours, and the guards of every level."""
        planes = self.words_per_cell * self.thread_cells
        levels = self.words * self.kernel.steps.data // 2
        if self.kernel.stream_axis is not None:
            planes = ceil(planes * self.arch.registers_per_word)
        arriving = self.words * self.thread_cells + LOAD_REGISTERS
        if self.sums_early:
            # The newest plane is at hand beside the sums that it enters.
            planes += self.words * self.thread_cells
        levels += self.words * self.boxed
        dividing = sum(stage.helpers > 0 for stage in self.stages)
        if dividing:
            each = DIVIDING_REGISTERS[4 * self.words]
            planes += self.thread_cells * each * dividing + DIVIDING_MORE
        others = len(self.loads) - 1 if self.loads and self.kernel.stream_axis is not None else 0
        return FIXED_REGISTERS + planes + levels + others * arriving + self.neighbour_registers()

    @property
    def spare_registers(self) -> int:
        """Registers that the guarded copies need beside the planes."""
        return self.arch.spare_registers[4 * self.words]

    def neighbour_registers(self) -> int:
        """
        Registers for neighbours that are at hand at once, where a cell has many taps: all of a plane
        that are shuffled, a row's where they are read from shared memory. Sums that a plane enters as it
        arrives take the neighbours of one level.
        """
        most = 0
        if self.sums_early and len(self.layouts) == 2:
            taps = [tap for stage in self.stages for _, tap in stage.taps]
            around = self.rows + span([tap.row for tap in taps])
            around *= self.row_cells + span([tap.cell for tap in taps])
            most = self.words * (around - self.thread_cells)
        for stage in self.stages:
            served = [tap for queue, tap in stage.taps if queue in self.served]
            taps = [tap for queue, tap in stage.taps if queue not in self.served]
            if len(served) > MANY_TAPS:
                cells = self.row_cells + span([tap.cell for tap in served])
                most = max(most, self.words * self.rows * cells * 3 // 2)
            elif len(taps) > MANY_TAPS:
                around = self.rows + span([tap.row for tap in taps])
                around *= self.row_cells + span([tap.cell for tap in taps])
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
        for facts in self.exchanges:
            if facts.copies:
                slots = copies_slots(self.kernel, facts.exchange, ahead)
                total += slots * self.padded_plane_bytes(facts)
                continue
            for k, axis in enumerate(self.layouts):
                if axis.tile_warps > 1:
                    row = self.layouts[-1].block_extent if k != len(self.layouts) - 1 else 1
                    edges = 2 * facts.edges[k] * (axis.warps + 2)
                    total += facts.slots * edges * row * facts.cell_bytes
        return total

    def padded_plane_bytes(self, facts: ExchangeFacts) -> int:
        """Bytes of a plane of the tile with the cells around it that its readers look at."""
        *rows, last = self.layouts
        cells = last.block_extent + 2 * Geometry.padded(facts.element, facts.edges[-1])
        for axis, edge in zip(rows, facts.edges):
            cells *= axis.block_extent + 2 * edge
        return cells * facts.cell_bytes

    def moved_bytes(self, geometry: Geometry) -> tuple[float, float]:
        """
        Bytes that a multiprocessor loads and stores in one stream step. Half of the cells that tiles
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
        loaded = 0.0
        for load in self.loads:
            cells = around if load.result in self.published else held
            loaded += (cells + useful) / 2 * cell_bytes(load.result)
        return loaded * tiles, float(stored * tiles)

    @property
    def memory_share(self) -> float:
        """Bytes a second that a multiprocessor moves when all do."""
        row = self.layouts[-1].extent * 4 * self.words
        speed = SHORT_ROW_SPEED if row < SHORT_ROW_BYTES else 1.0
        return speed * self.arch.copy_tb_per_s * 1e12 / self.arch.multiprocessors

    def moving_seconds(self, geometry: Geometry, tiles: int) -> float:
        """Loads and stores of one stream step of a launch's tiles."""
        moving = min(1.0, tiles / self.residency.tiles)
        slow = len(self.layouts) == 2 and any(
            geometry.is_dealt(load.data) for load in self.loads if load.data is not None
        )
        speed = DEALT_SPEED if slow else 1.0
        return sum(self.moved_bytes(geometry)) * moving / (speed * self.memory_share)

    def saturating_ahead(self, geometry: Geometry) -> int:
        """
        Steps ahead of their use at which enough bytes are on their way to saturate the memory: latency
        times bandwidth, by Little's law (EBISU, section 6.1).
        """
        loaded, stored = self.moved_bytes(geometry)
        if not loaded:
            return 1
        on_their_way = concurrency(self.arch.latency_seconds, self.memory_share)
        # Planes of tiles with two axes are large: stores keep the memory busy meanwhile (measured: a box
        # in 3D at 162 GCells/s with one plane ahead, at 153 with two).
        step = loaded if len(self.layouts) == 1 else loaded + stored
        return max(1, ceil(on_their_way / step))

    def computing_seconds(self, cycles: StepCycles, tiles: int) -> float:
        """One stream step on the multiprocessor that has most of a launch's tiles."""
        blocks = self.residency.blocks(tiles)
        busy = cycles.total * self.residency.busy_warps(tiles) / PIPE_EFFICIENCY
        if blocks > 1:
            busy /= SEVERAL_BLOCKS_EFFICIENCY
        seconds = busy / (self.arch.clock_ghz * 1e9)
        if not self.exchanges:
            return seconds
        # Blocks that share a multiprocessor hide each other's waits.
        return seconds + self.waiting_seconds / blocks

    @property
    def waiting_seconds(self) -> float:
        """
        What a stream step waits for the other warps of its tile, of the block and of the blocks beside; a tile
        without a stream does for each of its exchanges.
        """
        layout = self.kernel.layout
        assert layout is not None
        if not self.exchanges:
            return 0.0
        if self.kernel.stream_axis is None:
            apart = MESSAGE_SECONDS if layout.has_messages else 0.0
            return len(self.exchanges) * (EXCHANGE_SECONDS + apart)
        if layout.has_cluster:
            return EXCHANGE_SECONDS + CLUSTER_SECONDS
        sent = any(not facts.copies for facts in self.exchanges)
        return EXCHANGE_SECONDS + (MESSAGE_SECONDS if layout.has_messages and sent else 0.0)

    def step_cycles(self) -> StepCycles:
        """What one stream step of one warp keeps busy."""
        arch, cells = self.arch, self.thread_cells
        pipe, work, beside, moved, shared = 0.0, 0.0, 0.0, float(FIXED_INSTRUCTIONS), 0.0
        for stage in self.stages:
            work += cells * stage.operations
            beside += cells * stage.helpers
            pipe += cells * stage.operations * LANES / arch.fma_per_cycle[stage.cell_bytes]
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
            if not facts.copies and len(self.layouts) == 2:
                published = 2 * facts.edges[0] * self.row_cells
                moved += published * facts.cell_bytes / VECTOR_BYTES
                shared += wavefronts(published, facts.cell_bytes)
        moved += sum(cells * CELL_BYTES[element_type(f)] / VECTOR_BYTES for f in self.stored)
        period = self.period
        if period < self.natural_period:
            # Planes that do not come round to their registers in a turn are moved.
            moved += (self.words_per_cell - self.words) * cells / period
        loop = (work + beside + moved) * period
        fetching = (
            LONG_LOOP_FACTOR if loop > LONG_LOOP and self.residency.warps <= FEW_WARPS else 1.0
        )
        issue, unhidden = (
            fetching * (work + beside + moved) / SCHEDULERS,
            OVERHEAD_SHARE * moved / SCHEDULERS,
        )
        return StepCycles(pipe, issue, shared, unhidden)

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
            key = (taps, self.rows, self.row_cells, group)
            if key not in self.fetched:
                self.fetched[key] = neighbours(*key)
            found.append((facts, *self.fetched[key]))
        return found

    def predict(self, geometry: Geometry, ahead: int) -> Cost:
        """The cost of one launch with the kernel's present layout and occupancy."""
        residency = self.residency
        chunks = choose_chunks(geometry, residency, edge_weight(geometry))
        updates = self.kernel.steps.data
        for low, high in zip(geometry.lower, geometry.upper):
            updates *= high - low
        cycles = self.step_cycles()
        return Cost(
            self.registers(),
            self.shared_bytes(geometry, ahead),
            chunks.steps,
            cycles,
            self.computing_seconds(cycles, chunks.tiles),
            self.moving_seconds(geometry, chunks.tiles),
            updates,
            prod(axis.useful / axis.layout.extent for axis in geometry.axes),
            self.waiting_seconds,
            # A tile that stays has nothing to fetch ahead; other blocks may compute meanwhile.
            self.kernel.stream_axis is not None or self.kernel.blocks_per_multiprocessor > 1,
        )
