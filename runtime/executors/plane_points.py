"""Points of a stage in the planes executor: the entries of a list in one plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.temporal import PointKind, PointSet
from timetile.dialects.tile import ApplyOp
from timetile.runtime.arithmetic.points import entries_in, use_entries
from timetile.runtime.executors.homes import MarkedCells, PlaneError


def use_in_plane(
    stage: ApplyOp,
    use: PointSet,
    cells: MarkedCells,
    box: StencilBoundsAttr,
    first: tuple[int, ...],
    values: Mapping[SSAValue, Any],
) -> None:
    """
    Add values to the cells of a box in a plane, or note cells. `first` is the first cell of the
    plane's array. PlaneError for an unset cell.
    """
    places, weights, table = (values[field] for field in (use.places, use.weights, use.table))
    entries = entries_in(use, places.data, box, first)
    if use.kind is PointKind.SAMPLE and not cells.known[tuple(entries.cells)].all():
        raise PlaneError(stage, "its points note a cell that was never set")
    row = int(values[stage.points[0]])
    use_entries(use, entries, (cells.data, weights.data, table.data), row)
