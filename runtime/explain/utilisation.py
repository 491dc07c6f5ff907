"""The classes of a kernel's cells (AN5D, section 5).

The paper's unit is a thread with one cell of a tile. Threads here hold several cells, so classes
are counted in cells, and for the widest halo, of the deepest level. `passes/cost` decides, and goes
further: it counts issue slots, shuffles and exchanges, lets computing and memory overlap, and
computes the makespan of guarded and other tiles, and registers by kept planes. `timetile explain`
shows the figures of this file beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from timetile.passes.analysis.geometry.axis_tiling import AxisTiling
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape


@dataclass(frozen=True)
class CellClasses:
    """
    The cells of all tiles in one plane: `valid` cells are computed and stored, `redundant` cells
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
