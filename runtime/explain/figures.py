"""Figures about a program and its kernels, computed from the IR, for `timetile explain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.tile import LANES, KernelOp, LoadOp, StoreOp
from timetile.lowering.plan_launches import PlannedKernel, parts_of_step, plan_kernels
from timetile.passes.analysis.cells.cell_functions import named_function
from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.launches.liveness import loop_rotation
from timetile.passes.cost.papers.an5d import alu_utilisation
from timetile.passes.raising.narrow_fields import read_field
from timetile.passes.targets.target import Target
from timetile.runtime.kernels.kernel import Kernel


def flops_of(op: Operation) -> int:
    """
    Floating-point operations of one operation; signs, comparisons and selections count for nothing.
    """
    known = CELL_OPERATIONS.get(type(op))
    return 0 if known is None else known.flops


def arithmetic(function: FuncOp) -> Counter[str]:
    """The floating-point operations of a cell function, by name without the dialect."""
    names = (op.name.partition(".")[2] for op in function.walk() if flops_of(op))
    return Counter(names)


def flops(function: FuncOp) -> int:
    """Floating-point operations of one cell; a fused multiply-add counts as two."""
    return sum(map(flops_of, function.walk()))


def loop_alu_utilisation(loop: LoopOp) -> float:
    """How far fused multiply-adds make up a cell's arithmetic (AN5D, section 5)."""
    counts: Counter[str] = Counter()
    for update in loop.updates:
        counts += arithmetic(named_function(update))
    fused = counts.pop("fma", 0)
    return alu_utilisation(fused, counts.total())


def loop_flops(loop: LoopOp) -> int:
    """Floating-point operations of one cell and step."""
    return sum(flops(named_function(update)) for update in loop.updates)


def offset_ranges(updates: Sequence[UpdateOp]) -> list[tuple[int, int]]:
    """How far the updates look along each axis: the least and the greatest offset."""
    offsets = [tap.offset for update in updates for tap in update.tap_list]
    return [(min(0, *column), max(0, *column)) for column in zip(*offsets)] if offsets else []


def loop_radius(loop: LoopOp) -> int:
    """The largest distance, in cells along an axis, of a step's reads from the own cell."""
    return max((max(-low, high) for low, high in offset_ranges(loop.updates)), default=0)


def read_fields(loop: LoopOp) -> list[SSAValue]:
    """
    The fields read by a step before the step writes them, without fields of fewer axes read in
    place: these have few cells.
    """
    written: set[SSAValue] = set()
    found: dict[SSAValue, None] = {}
    for update in loop.updates:
        read = (s for s in update.sources if read_field(s).axes is None)
        found.update(dict.fromkeys(s for s in read if s not in written))
        written.update(update.targets)
    return list(found)


def written_fields(loop: LoopOp) -> list[SSAValue]:
    """The fields written by a step."""
    return list(dict.fromkeys(t for update in loop.updates for t in update.targets))


def bytes_of_cells(fields: Sequence[SSAValue]) -> int:
    """Bytes that one cell takes in all fields together."""
    return sum(CELL_BYTES[element_type(field)] for field in fields)


def copy_bound(loop: LoopOp, target: Target) -> float:
    """GCells/s of one step per launch, bound by memory alone."""
    return (
        target.part.copy_tb_per_s
        * 1e3
        / bytes_of_cells([*read_fields(loop), *written_fields(loop)])
    )


def traffic(kernel: KernelOp) -> float:
    """
    Bytes per cell and step unavoidable for a kernel: each field of all axes once in or out per
    launch.
    """
    loads = [stage for stage in kernel.stages if isinstance(stage, LoadOp)]
    loaded = {load.data for load in loads if load.data is not None and load.axes is None}
    stored = {stage.field for stage in kernel.stages if isinstance(stage, StoreOp)}
    return bytes_of_cells([*loaded, *stored]) / kernel.steps.data


@dataclass(frozen=True)
class Redundancy:
    """
    Computed over useful cells of every stage: across the tiles' overlap, and along the stream.
    """

    plane: float
    stream: float

    @property
    def total(self) -> float:
        """Computed cells over useful cells."""
        return self.plane * self.stream


def chunk_heights(kernel: KernelOp) -> str:
    """
    How many planes chunks have, in the order in which the kernel starts them, with any fixed number
    of columns and joined planes.
    """
    heights: list[str] = []
    for variant in Geometry(kernel).used_variants:
        columns, joined = variant.columns.data, variant.joined.data
        part = f" in {columns}" if columns else ""
        heights.append(f"{variant.planes.data}{part}" + (f", {joined} joined" if joined else ""))
    return " / ".join(heights)


def redundancy(kernel: KernelOp) -> Redundancy:
    """The work of a placed kernel done more often than once, or outside the bounds."""
    geometry = Geometry(kernel)
    useful = prod(geometry.upper[axis.axis] - geometry.lower[axis.axis] for axis in geometry.axes)
    computed = geometry.plane_tiles * prod(axis.layout.extent for axis in geometry.axes)
    steps = 0
    for variant in geometry.used_variants:
        planes, joined = variant.planes.data, variant.joined.data
        # The first and the last chunk of a column have fewer planes if planes are missing.
        steps += geometry.variant_tiles(variant) * geometry.steps(planes)
        steps -= geometry.columns(variant) * geometry.missing(planes, joined)
    return Redundancy(computed / useful, steps / geometry.plane_tiles / geometry.planes)


@dataclass(frozen=True)
class Occupancy:
    """Blocks of a multiprocessor, the warps of each, and the limiting resource."""

    blocks: int
    warps: int
    limit: str


def occupancy(kernel: Kernel, target: Target) -> Occupancy:
    """How many blocks of an assembled kernel fit a multiprocessor."""
    warps = kernel.block // LANES
    registers = target.isa.taken_registers(kernel.registers) * LANES * warps
    candidates = {
        "registers": target.isa.registers_per_multiprocessor // registers,
        "shared memory": target.isa.shared_per_multiprocessor
        // (kernel.shared_bytes + target.isa.shared_overhead),
        "warps": target.isa.warps_per_multiprocessor // warps,
    }
    limit = min(candidates, key=lambda name: candidates[name])
    return Occupancy(candidates[limit], warps, limit)


@dataclass(frozen=True)
class LaunchCounts:
    """How often a plan launches each kernel, and what else the plan needs."""

    launches: Counter[str]
    scratch: int
    copies: int


def launch_counts(loop: LoopOp, kernels: Sequence[PlannedKernel], steps: int) -> LaunchCounts:
    """
    The counted plan of a loop for a number of steps. `kernels` are the loop's own, with single
    steps last.
    """
    parts = parts_of_step(kernels)
    found = plan_kernels(loop_rotation(loop), kernels, steps)
    counts: Counter[str] = Counter()
    for position, launch in enumerate(found.launches):
        repeated = found.first <= position < found.first + found.length
        for kernel in kernels:
            if kernel in parts if launch.final else kernel.steps == launch.steps:
                counts[kernel.name] += found.repeats if repeated else 1
    return LaunchCounts(counts, len(found.scratch_like), len(found.copies))
