"""The cost of a step whose kernels read every tap from memory.

Nothing is kept from step to step of a stream: fields pass through the memory once, and once more
through L2 for cells read by several blocks. The pipes compute meanwhile, and the first-level cache
gives each thread the cells around its own. The largest of the times decides, together with the
others as a norm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.cell_types import CELL_BYTES, STORED_TYPES
from timetile.dialects.series import number_type
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import ApplyOp, KernelOp, RoleKind, StoreOp, queue_type
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.instructions import divides, operations
from timetile.passes.analysis.cells.pressure import live_words
from timetile.passes.analysis.geometry.block_reads import loaded_bytes
from timetile.passes.analysis.geometry.field_shapes import register_bytes
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.outline import Outline
from timetile.passes.analysis.launches.accesses import (
    CellAccess,
    collide,
    kernel_accesses,
    longest_chain,
    predecessors,
)
from timetile.passes.analysis.placed import layout_of
from timetile.passes.cost.facts import field_bytes
from timetile.passes.cost.shared_work import PlacedWork, places_of_thread, vectors_of
from timetile.passes.cost.terms import Cost, StepCycles
from timetile.passes.targets.hardware import LANES, SCHEDULERS
from timetile.passes.targets.target import Target

FEW_CELLS = 1 / 256
"""
The share of a step's cells below which a kernel adds nothing to a prediction: edges and corners of
layers run beside other kernels.
"""

SHORT_ROW = 512
"""Bytes of a row below which the memory moves far more than the row."""

ROW_ENDS = 128
"""
Bytes moved beside a short row: on an H200, layers with rows of 40 bytes ran four times as long as
layers with long rows.
"""

FOUND = 1 / 2
"""
The part of the cells read for a tile before, by a block with tiles in turn, found in the
first-level cache. One H200: two kernels of a coupled operator of order 8 find all and a quarter.
"""

CACHE_WORD = 4
"""Bytes of a word that the first-level cache gives each lane of a warp in a cycle."""


@dataclass(frozen=True)
class PartCost:
    """The prediction for one kernel of a step: registers of a thread, and seconds by resource."""

    registers: int
    memory_seconds: float
    compute_seconds: float
    cycles: StepCycles


@dataclass(frozen=True)
class PartFacts:
    """What is known of a kernel for every layout."""

    outline: Outline
    work: PlacedWork
    operations: Mapping[int, tuple[int, int, int]]
    """Of each work: instructions on the pipe and beside, and the bytes of a result."""
    own: int
    """The most registers of a cell's own values."""
    divides: bool
    """Whether some cell has a quotient."""

    @staticmethod
    def of(kernel: KernelOp, module: ModuleOp) -> PartFacts:
        """The facts of a kernel, with the cell functions of a module."""
        work = PlacedWork(kernel)
        stages = [stage for stage, _ in work.results.values()]
        counted = {
            number: (
                *operations(cell_function(module, stage)),
                CELL_BYTES[queue_type(stage.res[0]).element],
            )
            for number, (stage, _) in work.results.items()
        }
        own = max(
            live_words(cell_function(module, stage)) + scalar_words(stage) for stage in stages
        )
        quotients = any(divides(module, stage) for stage in stages)
        return PartFacts(Outline(kernel), work, counted, own, quotients)


def moved_seconds(geometry: Geometry, work: PlacedWork, target: Target) -> float:
    """Seconds of a launch for moving cells through the memory and through L2."""
    reading, loads = target.parameters.reading, work.loads
    cells = prod(high - low for low, high in zip(geometry.lower, geometry.upper))
    stored = sum(map(field_bytes, geometry.stored_fields))
    first, *others = [axis.layout.block_extent for axis in geometry.axes]
    through = loaded_bytes((first, *others), loads)
    if (turn := geometry.tiles_in_turn) > 1:
        through -= FOUND * (through - loaded_bytes((turn * first, *others), loads))
    from_memory = cells * (sum(map(field_bytes, loads)) + stored)
    row = (geometry.upper[-1] - geometry.lower[-1]) * field_bytes(geometry.stored_fields[0])
    if row < SHORT_ROW:
        from_memory *= 1 + ROW_ENDS / row
    from_l2 = cells * (through + stored)
    memory = from_memory / (reading.memory * target.part.copy_tb_per_s * 1e12)
    second = from_l2 / (reading.l2_bytes_per_cycle * target.part.clock_ghz * 1e9)
    power, last = reading.overlap_power, geometry.axes[-1].layout.cells
    alone = last * field_bytes(geometry.stored_fields[0]) <= 4
    speed = reading.one_word if alone else 1.0
    return (memory**power + second**power) ** (1 / power) / speed


def arriving_seconds(geometry: Geometry, threads: int, registers: int, target: Target) -> float:
    """
    Seconds of a launch for cells to arrive, by Little's law: a multiprocessor's threads have their
    own cells under way at once. One cell of FP32 a thread is few: images on an H200 run at 203
    GCells/s with one cell a thread, and at 388 with four.
    """
    isa = target.isa
    held = min(
        isa.warps_per_multiprocessor * LANES // threads,
        isa.registers_per_multiprocessor // (threads * isa.taken_registers(registers)),
    )
    own = max(1, held) * threads * len(geometry.thread_positions)
    cells = prod(high - low for low, high in zip(geometry.lower, geometry.upper))
    return target.parameters.reading.latency * cells / (own * target.multiprocessors)


def loads_of_thread(geometry: Geometry, work: PlacedWork) -> dict[SSAValue, int]:
    """Loads of a thread from each field of all axes: the vectors around all of its cells."""
    positions, width = geometry.thread_positions, geometry.axes[-1].layout.cells
    return {
        field: len(vectors_of(places_of_thread(places, positions), width))
        for field, places in work.loads.items()
    }


def pipe_cycles(geometry: Geometry, facts: PartFacts, target: Target, *, alone: bool) -> StepCycles:
    """
    Cycles of a multiprocessor's pipes for one cell of each lane of a warp, with the values shared
    by a thread's cells. The first-level cache gives a lane's word in each cycle, and takes longer
    for vectors of 4-byte cells of a step in one kernel (`alone`).
    """
    positions = geometry.thread_positions
    share, width = 1 / len(positions), geometry.axes[-1].layout.cells
    pipe, words = 0.0, 0.0
    issued = float(sum(isinstance(stage, StoreOp) for stage in geometry.kernel.stages))
    for number, (_, places) in facts.work.results.items():
        computed = share * len(places_of_thread(places, positions))
        on_pipe, beside, size = facts.operations[number]
        pipe += computed * on_pipe * LANES / target.isa.fma_per_cycle[size]
        issued += computed * (on_pipe + beside)
    for field, vectors in loads_of_thread(geometry, facts.work).items():
        # Each narrow cell has a conversion.
        converted = vectors * width if element_type(field) in STORED_TYPES else 0
        issued += share * (vectors + converted)
        size = field_bytes(field)
        slow = alone and width > 1 and size <= CACHE_WORD
        taken = target.parameters.reading.vector_word if slow else 1.0
        words += taken * share * vectors * width * size / CACHE_WORD
    return StepCycles(pipe, issued / SCHEDULERS, words, 0.0)


def scalar_words(stage: ApplyOp) -> int:
    """Registers of the scalars of a stage."""
    return sum(CELL_BYTES.get(number_type(scalar), 4) // 4 for scalar in stage.scalars)


def registers_of(geometry: Geometry, facts: PartFacts, target: Target) -> int:
    """
    The registers of a thread: its results, written after all cells are read, a cell's own values,
    a pointer for each field, and vectors of cells beside the own.
    """
    reading, cells = target.parameters.reading, len(geometry.thread_positions)
    results = sum(register_bytes(field) // 4 for field in geometry.stored_fields)
    own: float = facts.own
    if facts.divides:
        own += reading.dividing * register_bytes(geometry.stored_fields[0]) // 4
    rows = facts.work.loads
    vectors = 0.0
    if geometry.axes[-1].layout.cells > 1:
        # Narrow cells lie side by side in a register, until each is converted.
        vectors = cells * sum(map(field_bytes, rows)) / 4
    fixed = reading.registers[register_bytes(geometry.stored_fields[0])]
    return round(fixed + cells * results + own + reading.vector * vectors)


def part_cost(
    kernel: KernelOp,
    module: ModuleOp,
    target: Target,
    known: PartFacts | None = None,
    *,
    alone: bool = False,
) -> PartCost:
    """
    The prediction for one kernel with a layout. `known`: facts found before; `alone`: the kernel is
    a whole step.
    """
    facts = known or PartFacts.of(kernel, module)
    geometry, work = Geometry(kernel, facts.outline), facts.work
    cells = prod(high - low for low, high in zip(geometry.lower, geometry.upper))
    cycles = pipe_cycles(geometry, facts, target, alone=alone)
    warps = cells / LANES / target.multiprocessors
    reading, registers = target.parameters.reading, registers_of(geometry, facts, target)
    slowest = max(max(cycles.pipe, cycles.issue) / reading.pipes, cycles.shared)
    loads = sum(loads_of_thread(geometry, work).values())
    slower = max(1.0, loads / reading.loads) ** reading.loads_power
    if kernel.blocks_per_multiprocessor == 1:
        slower /= reading.one_block
    moved = moved_seconds(geometry, work, target)
    if alone:
        threads = layout_of(kernel).threads
        moved = max(moved, arriving_seconds(geometry, threads, registers, target))
    return PartCost(
        registers,
        slower * moved,
        slower * warps * slowest / (target.part.clock_ghz * 1e9),
        cycles,
    )


def launches_in_turn(kernels: Sequence[KernelOp], rotation: Sequence[int]) -> int:
    """
    The longest chain of launches of a step, each with a wait for the launch before, in a loop with
    a rotation.
    """
    if len(kernels) == 1:
        return 1

    def touched(kernel: KernelOp) -> dict[tuple[RoleKind, int], CellAccess]:
        found: dict[tuple[RoleKind, int], CellAccess] = {}
        for (kind, index), access in zip((r.role for r in kernel.roles), kernel_accesses(kernel)):
            is_target = kind is RoleKind.TARGET
            key = (RoleKind.SOURCE, rotation[index]) if is_target else (kind, index)
            known = found.get(key, CellAccess())
            found[key] = CellAccess(known.reads or access.reads, known.writes or access.writes)
        return found

    accesses = [touched(kernel) for kernel in kernels]

    def must_wait(later: int, earlier: int) -> bool:
        one, other = accesses[later], accesses[earlier]
        return any(collide(one[key], other[key]) for key in one.keys() & other.keys())

    return longest_chain(predecessors(len(kernels), must_wait))


def memory_cost(
    kernels: Sequence[KernelOp],
    module: ModuleOp,
    target: Target,
    updates: int,
    in_turn: int = 1,
    known: Mapping[KernelOp, PartFacts] | None = None,
) -> Cost:
    """
    The cost of a step in parts. `updates`: cells of the step; `in_turn`: the longest chain of
    waiting launches (`launches_in_turn`); `known`: facts of the kernels found before.
    """
    found, waiting = known or {}, target.parameters.waiting
    least = FEW_CELLS * updates if len(kernels) > 1 else 0
    large = [kernel for kernel in kernels if cells_of(CellBox.of(kernel.bounds)) >= least]
    # Many kernels of few cells each are all counted.
    large = large or kernels
    alone = len(kernels) == 1
    parts = [part_cost(kernel, module, target, found.get(kernel), alone=alone) for kernel in large]
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
        launch_seconds=(waiting.launch + 2 * waiting.latency) * in_turn,
    )
