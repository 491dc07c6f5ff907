"""Lists of points in NumPy: made of cells and weights, and used on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.stencil import StencilBoundsAttr

from timetile.dialects.boxes import CellBox
from timetile.dialects.point_lists import PointLayout
from timetile.dialects.temporal import PointKind, PointSet
from timetile.runtime.arithmetic.cells import Array


@dataclass(frozen=True)
class PointEntries:
    """
    The entries of a list in order, as arrays: `cells` of shape (axes, entries), counted from the
    field's first cell, `columns`, and `order`, the number of each entry before the entries were put
    in order.
    """

    cells: Array
    columns: Array
    order: Array


def packed_list(layout: PointLayout, cells: Array, columns: Array) -> tuple[Array, Array]:
    """
    The integers of a list, and the order of the entries in it. `cells` has shape (entries, axes).
    Entries of one bucket keep their order.
    """
    count, rank = cells.shape
    buckets = cells // np.array(layout.buckets)
    flat = buckets @ np.array(layout.strides)
    order = np.argsort(flat, kind="stable")
    found = np.zeros(layout.size, np.int32)
    ends = np.cumsum(np.bincount(flat, minlength=layout.following - 1))
    found[1 : layout.following] = ends
    rows = layout.counts[0]
    is_used = np.bincount(buckets[:, 0], minlength=rows).astype(bool)
    places = np.arange(rows)
    after = np.where(is_used, places, rows)[::-1]
    found[layout.following : layout.following + rows] = np.minimum.accumulate(after)[::-1]
    found[layout.following + rows] = rows
    before = np.maximum.accumulate(np.where(is_used, places + 1, 0))
    found[layout.preceding + 1 : layout.preceding + rows + 1] = before
    for axis in range(rank):
        start = layout.coordinates(axis)
        found[start : start + count] = cells[order, axis]
    found[layout.columns : layout.columns + count] = columns[order]
    return found, order


def entries_in(
    made: PointSet, places: Array, box: StencilBoundsAttr, first: Sequence[int] | None = None
) -> PointEntries:
    """
    The entries of a list with cells in a box of the field, counted from the cell `first`, by
    default the field's first cell.
    """
    layout = made.layout
    count = int(places[layout.following - 1])
    lowest, inside = CellBox.of(made.bounds).lower, CellBox.of(box)
    begins = (layout.coordinates(axis) for axis in range(len(lowest)))
    cells = np.stack([places[begin : begin + count] for begin in begins]).astype(np.int64)
    cells += np.array(lowest)[:, None]
    low, high = np.array(inside.lower)[:, None], np.array(inside.upper)[:, None]
    kept = ((cells >= low) & (cells < high)).all(axis=0)
    cells -= np.array(lowest if first is None else first)[:, None]
    columns = places[layout.columns : layout.columns + count]
    return PointEntries(cells[:, kept], columns[kept], np.flatnonzero(kept))


def use_entries(made: PointSet, entries: PointEntries, arrays: Sequence[Array], step: int) -> None:
    """
    Add values to the cells of an array, or note cells. `arrays` are the field's cells, the weights
    and the table.
    """
    field, weights, table = arrays
    at, row = tuple(entries.cells), table.reshape(-1, made.columns)[step]
    with np.errstate(all="ignore"):
        if made.kind is PointKind.INJECT:
            np.add.at(field, at, weights[entries.order] * row[entries.columns])
        else:
            row[entries.order] = weights[entries.order] * field[at]


def use_points(made: PointSet, arrays: Sequence[Array], box: StencilBoundsAttr, step: int) -> None:
    """
    Add values to the cells of an array, or note cells, in a box. `arrays` are the field's, the
    list's, the weights' and the table's.
    """
    field, places, weights, table = arrays
    use_entries(made, entries_in(made, places, box), (field, weights, table), step)
