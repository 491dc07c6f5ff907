"""The utilisation of a machine by a kernel (AN5D, section 5), and the limit by registers (section
6.3).

The paper's unit is a thread with one cell of a tile. Threads here hold several cells, so classes
are counted in cells, and for the widest halo, of the deepest level. `passes/cost` decides, and goes
further: it counts issue slots, shuffles and exchanges, lets computing and memory overlap, and
computes the makespan of guarded and other tiles, and registers by kept planes. `timetile explain`
shows the figures of this file beside.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import ceil, prod

from timetile.passes.analysis.geometry.axis_tiling import AxisTiling
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape
from timetile.passes.targets.target import Target

Offset = tuple[int, ...]


@dataclass(frozen=True)
class CellClasses:
    """
    The cells of one plane of all tiles: `valid` cells are computed and stored, `redundant` cells
    computed for neighbours, `boundary` cells read from the halo, and the rest lies `out_of_bound`.
    """

    valid: int
    redundant: int
    boundary: int
    out_of_bound: int

    @property
    def total(self) -> int:
        """The number of all cells."""
        return self.valid + self.redundant + self.boundary + self.out_of_bound


def between(axis: AxisTiling, low: int, high: int) -> int:
    """Cells of all tiles along an axis with a coordinate in [low, high)."""
    count = 0
    for tile in range(axis.count):
        start = axis.origin + tile * axis.useful
        count += max(0, min(high, start + axis.layout.extent) - max(low, start))
    return count


def classify(geometry: Geometry) -> CellClasses:
    """The classes of a kernel's cells, for the first stored field."""
    shape = FieldShape.of(geometry.stored_fields[0])
    bounds = [(geometry.lower[a.axis], geometry.upper[a.axis]) for a in geometry.axes]
    valid = prod(high - low for low, high in bounds)
    inside = prod(between(a, low, high) for a, (low, high) in zip(geometry.axes, bounds))
    field = prod(between(a, shape.lower[a.axis], shape.upper[a.axis]) for a in geometry.axes)
    held = prod(a.count * a.layout.extent for a in geometry.axes)
    return CellClasses(valid, inside - valid, field - inside, held - field)


def alu_utilisation(fused: int, others: int) -> float:
    """
    Floating-point operations of a cell over the most possible for its instructions: fused
    multiply-adds do two, others one.
    """
    return (2 * fused + others) / (2 * (fused + others)) if fused + others else 1.0


def multiprocessor_utilisation(blocks: int, resident: int) -> float:
    """
    The share of a launch with blocks on multiprocessors, for `resident` blocks at once: waves of
    blocks over whole waves. (The paper prints floor over ceiling, 0 for less than a wave.)
    """
    if not resident:
        return 0.0
    waves = blocks / resident
    return waves / ceil(waves)


def thread_reads(taps: Collection[Offset], stream: int, *, cached: bool) -> int:
    """
    Reads of shared memory by a thread of one cell (table 2): all taps except in the own column
    along the stream, kept in registers. With `cached`, one read for every column of a box, as the
    assembler keeps values.
    """
    taps = set(taps)

    def column(tap: Offset) -> Offset:
        return tuple(d for axis, d in enumerate(tap) if axis != stream)

    if cached:
        return len({column(tap) for tap in taps if any(column(tap))})
    return sum(any(column(tap)) for tap in taps)


def registers(depth: int, radius: int, cell_bytes: int) -> int:
    """
    Registers of a thread of one cell (section 6.3): the planes of every level, and a fixed number.
    """
    words = cell_bytes // 4
    return words * depth * (2 * radius + 1) + depth + 10 * (words + 1)


def fits(depth: int, radius: int, cell_bytes: int, threads: int, target: Target) -> bool:
    """Whether the configuration is kept: a block of threads has enough registers."""
    return registers(depth, radius, cell_bytes) <= target.isa.registers_for(threads)
