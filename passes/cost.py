"""What a kernel costs: the model that `choose-schedule` compares candidates with.

Terms: the floating-point pipe and the issue slots of one stream step (per warp), the steps of the
slowest slot (chunks, waves, guarded tiles: `analysis/makespan.py`), DRAM traffic with overlap, and a
fixed latency per step where the warps of a tile wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.traits import SymbolTable

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, LoadOp, StoreOp, queue_type
from timetile.passes.analysis.extents import extents
from timetile.passes.analysis.geometry import FieldShape, Geometry
from timetile.passes.analysis.lags import oldest_age
from timetile.passes.arch import Arch
from timetile.passes.multi_queue_buffering import chosen_period, copies_slots, kept_queues
from timetile.passes.peel_boundaries import choose_chunks, edge_weight, resident_tiles

SCHEDULERS = 4
"""Warp schedulers of a multiprocessor."""

PIPE_EFFICIENCY = 0.75
"""Share of the busier pipe that streaming kernels reach (measured: 0.71 to 0.8)."""

LAUNCH_SECONDS = 4e-6
"""What a launch costs besides its work: on small domains it is what depth saves."""

MANY_TAPS = 20
"""Taps of a stage from which its neighbours in a plane are counted as registers."""

OVERHEAD_SHARE = 0.3
"""Share of the instructions without arithmetic that the busier pipe does not hide (measured on boxes)."""

LONG_LOOP, LONG_LOOP_FACTOR = 1000, 1.25
"""Instructions of an unrolled loop from which fetching them limits (measured: FP32, 8 cells a lane)."""

FIXED_INSTRUCTIONS = 20
"""Addresses, slots, masks and the loop itself, per stream step."""

EXCHANGE_SECONDS = 0.45e-6
"""What a synchronisation of a block's warps adds to a stream step (measured: 0.4 to 0.5 us)."""

FIXED_REGISTERS = 30
"""Addresses, masks, counters and what is in flight, in a thread that streams."""


@dataclass(frozen=True)
class Cost:
    """
    The prediction for one launch: `registers` per thread, `shared_bytes` per block, the time to
    compute and the time for DRAM traffic, and the cell updates that it makes.
    """

    registers: int
    shared_bytes: int
    compute_seconds: float
    memory_seconds: float
    updates: int

    @property
    def gcells_per_second(self) -> float:
        return self.updates / self.seconds / 1e9

    @property
    def seconds(self) -> float:
        """One launch. Computing and memory overlap in part: less than their sum, more than the larger."""
        return LAUNCH_SECONDS + hypot(self.compute_seconds, self.memory_seconds)


def operations(module: ModuleOp, apply: ApplyOp) -> int:
    """Arithmetic operations of one cell of a stage."""
    function = SymbolTable.lookup_symbol(module, apply.cell)
    assert isinstance(function, FuncOp)
    return sum(not isinstance(op, ReturnOp | arith.ConstantOp) for op in function.body.block.ops)


def shuffles(kernel: KernelOp, apply: ApplyOp, fetched: set[tuple[SSAValue, int, int, int]]) -> int:
    """Values that a stage takes from other lanes, per thread; what an earlier stage took counts once."""
    assert kernel.layout is not None
    layouts = kernel.layout.axis_layouts
    cells = layouts[-1].cells
    rows = layouts[0].cells if len(layouts) == 2 else 1
    axis = kernel.plane_axes[-1]
    count = 0
    for tap in apply.tap_list:
        queue = apply.queues[tap.operand]
        for cell in range(cells):
            position = cell + tap.offset[axis]
            if 0 <= position < cells:
                continue
            row = tap.offset[kernel.plane_axes[0]] if len(layouts) == 2 else 0
            key = (queue, apply.age(tap), position, row)
            if key not in fetched:
                fetched.add(key)
                count += rows
    return count


def thread_cells(kernel: KernelOp) -> int:
    """Cells of a plane that one thread holds."""
    assert kernel.layout is not None
    cells = 1
    for axis in kernel.layout.axis_layouts:
        cells *= axis.cells
    return cells


def thread_words(kernel: KernelOp) -> int:
    """32-bit registers that the planes of all queues take, per cell of a thread."""
    if kernel.stream_axis is None:
        # A tile without a stream holds the plane that it reads and the one that it makes.
        return 2 * largest_words(kernel)
    words = largest_words(kernel)
    for queue in kept_queues(kernel):
        size = CELL_BYTES[queue_type(queue).element] // 4
        words += size * oldest_age(queue, kernel.stream_axis)
    return words


def neighbour_registers(kernel: KernelOp) -> int:
    """Registers for neighbours that are at hand at once, where a cell has many of them in one plane."""
    assert kernel.layout is not None
    most = 0
    for stage in kernel.stages:
        if not isinstance(stage, ApplyOp) or len(stage.tap_list) <= MANY_TAPS:
            continue
        around, own = largest_words(kernel), largest_words(kernel)
        for axis, layout in zip(kernel.plane_axes, kernel.layout.axis_layouts):
            offsets = [tap.offset[axis] for tap in stage.tap_list]
            around *= layout.cells + max(offsets) - min(offsets)
            own *= layout.cells
        most = max(most, around - own)
    return most


def largest_words(kernel: KernelOp) -> int:
    """32-bit registers of the widest cell."""
    return max(CELL_BYTES[queue_type(q).element] // 4 for s in kernel.stages for q in s.results)


def shared_bytes(kernel: KernelOp, ahead: int) -> int:
    """Shared memory of a block: the rings of loads that are fetched early, and the mail."""
    assert kernel.layout is not None
    axes = kernel.layout.axis_layouts
    plane = kernel.layout.pack.data
    for axis in axes:
        plane *= axis.extent
    published = {
        stage.queue
        for stage in kernel.stages
        if isinstance(stage, ExchangeOp) and stage.publishes_copies
    }
    total = 0
    for stage in kernel.stages:
        if isinstance(stage, LoadOp) and stage.data is not None and kernel.stream_axis is not None:
            if stage.result not in published:
                slots = 1 << ahead.bit_length() if ahead else 0
                total += slots * plane * CELL_BYTES[element_type(stage.data)]
        elif isinstance(stage, ExchangeOp) and stage.publishes_copies:
            total += padded_plane_bytes(stage) * copies_slots(stage, kernel.stream_axis, ahead)
        elif isinstance(stage, ExchangeOp):
            slots = stage.delay.data + 1 + oldest_age(stage.result, kernel.stream_axis)
            for k, axis in enumerate(axes):
                if axis.warps > 1:
                    row = axes[-1].extent if k != len(axes) - 1 else 1
                    size = CELL_BYTES[queue_type(stage.result).element]
                    total += max(slots, 2) * (axis.warps + 2) * 2 * stage.edges[k] * row * size
    return total


def padded_plane_bytes(exchange: ExchangeOp) -> int:
    """Bytes of a plane of the tile with the cells around it that its readers look at."""
    kernel = exchange.parent_op()
    assert isinstance(kernel, KernelOp)
    assert kernel.layout is not None
    *rows, last = kernel.layout.axis_layouts
    cells = last.extent + 2 * Geometry.padded(exchange.result, exchange.edges[-1])
    for axis, edge in zip(rows, exchange.edges):
        cells *= axis.extent + 2 * edge
    return cells * CELL_BYTES[queue_type(exchange.result).element]


def step_cycles(kernel: KernelOp, module: ModuleOp, arch: Arch) -> float:
    """Cycles of one warp scheduler for one stream step of one warp."""
    cells = thread_cells(kernel)
    pipe, issued, work_total = 0.0, float(FIXED_INSTRUCTIONS), 0.0
    fetched: set[tuple[SSAValue, int, int, int]] = set()
    for stage in kernel.stages:
        if isinstance(stage, ApplyOp):
            size = CELL_BYTES[queue_type(stage.res[0]).element]
            work = cells * operations(module, stage)
            lanes = arch.fma_per_cycle[size] / SCHEDULERS
            pipe += work * 32 / lanes
            work_total += work
            issued += work + shuffles(kernel, stage, fetched) * (size // 4)
        elif isinstance(stage, LoadOp) and stage.data is not None:
            issued += 2 * cells * CELL_BYTES[element_type(stage.data)] / 16
        elif isinstance(stage, StoreOp):
            issued += cells * CELL_BYTES[element_type(stage.field)] / 16
    cycles = max(pipe, issued) + OVERHEAD_SHARE * (issued - work_total)
    loop = issued * chosen_period(kernel)
    return cycles * (LONG_LOOP_FACTOR if loop > LONG_LOOP else 1)


class KernelCost:
    """
    The cost of one kernel under different layouts: what does not depend on the layout is computed
    once. The kernel has exchanges where its layouts need them, and lags.
    """

    def __init__(self, kernel: KernelOp, module: ModuleOp, arch: Arch):
        self.kernel, self.module, self.arch = kernel, module, arch
        self.extents = extents(kernel)
        self.exchanges = any(isinstance(stage, ExchangeOp) for stage in kernel.stages)
        self.registers = thread_words(kernel)

    def predict(self, ahead: int) -> Cost:
        """The cost of one launch with the kernel's present layout and occupancy."""
        kernel, arch = self.kernel, self.arch
        assert kernel.layout is not None
        geometry = Geometry(kernel, self.extents)
        occupancy = 1 if kernel.occupancy is None else kernel.occupancy.data
        chunks = choose_chunks(geometry, resident_tiles(kernel, arch), edge_weight(geometry))
        warps = kernel.layout.threads // 32 * occupancy / SCHEDULERS
        cycles = step_cycles(kernel, self.module, arch) * max(1.0, warps) / PIPE_EFFICIENCY
        step = cycles / (arch.clock_ghz * 1e9)
        if self.exchanges:
            # Blocks that share a multiprocessor hide each other's waits.
            step += EXCHANGE_SECONDS / occupancy
        loaded = sum(axis_overlap(geometry) * field_bytes(f) for f in loaded_fields(kernel))
        stored = sum(field_bytes(f) for f in geometry.stored_fields)
        cells = thread_cells(kernel)
        updates = kernel.steps.data
        for low, high in zip(geometry.lower, geometry.upper):
            updates *= high - low
        return Cost(
            FIXED_REGISTERS + self.registers * cells,
            shared_bytes(kernel, ahead),
            chunks.time * step,
            (loaded + stored) / (arch.copy_tb_per_s * 1e12),
            updates,
        )


def loaded_fields(kernel: KernelOp) -> list[SSAValue]:
    """The fields that a kernel loads as data, each as often as it does."""
    return [s.data for s in kernel.stages if isinstance(s, LoadOp) and s.data is not None]


def field_bytes(field: SSAValue) -> int:
    """The size of a field."""
    return FieldShape.of(field).cells * CELL_BYTES[element_type(field)]


def axis_overlap(geometry: Geometry) -> float:
    """Cells that tiles load over cells that they store; L2 serves part of it, so half counts."""
    ratio = 1.0
    for axis in geometry.axes:
        ratio *= axis.layout.extent / axis.useful
    return 1 + (ratio - 1) / 2
