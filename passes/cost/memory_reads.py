"""The cost of a step whose kernels read every tap from memory.

Nothing is kept from step to step of a stream: fields pass through the memory once, and once more
through L2 for cells read by several blocks. The pipes compute meanwhile. The largest of the three
times decides, together with the others as a norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.tile import ApplyOp, KernelOp, LoadOp, queue_type
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.instructions import divides, operations
from timetile.passes.analysis.cells.pressure import live_words
from timetile.passes.analysis.geometry.field_shapes import register_bytes
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.facts import field_bytes
from timetile.passes.cost.terms import Cost, StepCycles
from timetile.passes.targets.hardware import LANES, SCHEDULERS, SECTOR_BYTES
from timetile.passes.targets.target import Target


@dataclass(frozen=True)
class PartCost:
    """The prediction for one kernel of a step: registers of a thread, and seconds by resource."""

    registers: int
    memory_seconds: float
    compute_seconds: float
    cycles: StepCycles


def loads_of(kernel: KernelOp) -> dict[SSAValue, list[tuple[int, ...]]]:
    """The distances of the cells loaded from each field of all axes."""
    found: dict[SSAValue, list[tuple[int, ...]]] = {}
    for stage in kernel.stages:
        if isinstance(stage, LoadOp) and stage.axes is None:
            found.setdefault(stage.field, []).append(stage.offset or (0,) * kernel.rank)
    return found


def block_bytes(geometry: Geometry, offsets: Sequence[tuple[int, ...]], size: int) -> int:
    """
    Bytes of a field loaded by a block through L2, each cell once: whole sectors of rows, and a
    sector beyond each end of the rows that some tap reaches.
    """
    *others, last = [axis.layout.block_extent for axis in geometry.axes]
    rows = {
        tuple(place + moved for place, moved in zip(at, offset))
        for offset in {offset[:-1] for offset in offsets}
        for at in product(*map(range, others))
    }
    ends = [offset[-1] for offset in offsets]
    beyond = SECTOR_BYTES * ((min(ends) < 0) + (max(ends) > 0))
    return len(rows) * (last * size + beyond)


def moved_seconds(geometry: Geometry, target: Target) -> float:
    """Seconds of a launch for moving cells through the memory and through L2."""
    kernel, reading = geometry.kernel, target.parameters.reading
    cells = prod(high - low for low, high in zip(geometry.lower, geometry.upper))
    loads = loads_of(kernel)
    stored = sum(map(field_bytes, geometry.stored_fields))
    block = prod(axis.layout.block_extent for axis in geometry.axes)
    through = sum(
        block_bytes(geometry, offsets, field_bytes(field)) for field, offsets in loads.items()
    )
    from_memory = cells * (sum(map(field_bytes, loads)) + stored)
    from_l2 = cells * (through / block + stored)
    memory = from_memory / (reading.memory * target.part.copy_tb_per_s * 1e12)
    second = from_l2 / (reading.l2_bytes_per_cycle * target.part.clock_ghz * 1e9)
    power, last = reading.overlap_power, geometry.axes[-1].layout.cells
    alone = last * field_bytes(geometry.stored_fields[0]) <= 4
    speed = reading.one_word if alone else 1.0
    return (memory**power + second**power) ** (1 / power) / speed


def pipe_cycles(kernel: KernelOp, module: ModuleOp, target: Target) -> StepCycles:
    """Cycles of a multiprocessor's pipes for one cell of each lane of a warp."""
    pipe, issued = 0.0, float(len(kernel.stages))
    for stage in kernel.stages:
        if isinstance(stage, ApplyOp):
            work, beside = operations(cell_function(module, stage))
            size = CELL_BYTES[queue_type(stage.res[0]).element]
            pipe += work * LANES / target.isa.fma_per_cycle[size]
            issued += work + beside
    return StepCycles(pipe, issued / SCHEDULERS, 0.0, 0.0)


def registers_of(kernel: KernelOp, module: ModuleOp, geometry: Geometry, target: Target) -> int:
    """
    The registers of a thread: its results, written after all cells are read, a cell's own values,
    a pointer for each field, and vectors of cells beside the own.
    """
    reading, cells = target.parameters.reading, len(geometry.thread_positions)
    results = sum(register_bytes(field) // 4 for field in geometry.stored_fields)
    stages = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
    own = max(live_words(cell_function(module, stage)) for stage in stages)
    if any(divides(module, stage) for stage in stages):
        own += reading.dividing * register_bytes(geometry.stored_fields[0]) // 4
    rows = loads_of(kernel)
    vectors = 0
    if geometry.axes[-1].layout.cells > 1:
        vectors = cells * sum(register_bytes(field) // 4 for field in rows)
    fixed = reading.registers[register_bytes(geometry.stored_fields[0])]
    return round(fixed + cells * results + own + reading.vector * vectors)


def part_cost(kernel: KernelOp, module: ModuleOp, target: Target) -> PartCost:
    """The prediction for one kernel with a layout."""
    geometry = Geometry(kernel)
    cells = prod(high - low for low, high in zip(geometry.lower, geometry.upper))
    cycles = pipe_cycles(kernel, module, target)
    warps = cells / LANES / target.multiprocessors
    computing = warps * cycles.total / (target.part.clock_ghz * 1e9)
    return PartCost(
        registers_of(kernel, module, geometry, target),
        moved_seconds(geometry, target),
        computing / target.parameters.reading.pipes,
        cycles,
    )


def memory_cost(
    kernels: Sequence[KernelOp], module: ModuleOp, target: Target, updates: int
) -> Cost:
    """The cost of a step in parts, launched one after the other; `updates`: cells of the step."""
    parts, waiting = [part_cost(k, module, target) for k in kernels], target.parameters.waiting
    return Cost(
        registers=max(part.registers for part in parts),
        shared_bytes=0,
        steps=1,
        cycles=max((part.cycles for part in parts), key=lambda cycles: cycles.total),
        compute_seconds=sum(part.compute_seconds for part in parts),
        memory_seconds=sum(part.memory_seconds for part in parts),
        updates=updates,
        valid=1.0,
        waiting_seconds=0.0,
        overlap_power=target.parameters.reading.overlap_power,
        # A launch begins with a load and ends with a store that no other work hides.
        launch_seconds=(waiting.launch + 2 * waiting.latency) * len(parts),
    )
