"""Lists of points in NumPy: made of cells and weights, and used on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from xdsl.dialects.stencil import StencilBoundsAttr

from timetile.dialects.boxes import CellBox
from timetile.dialects.point_lists import GAPS, NEAR, SPOT_WORDS, WIDEST_SPOT, PointLayout
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


def packed_list(
    layout: PointLayout, cells: Array, columns: Array, beside: Array | None = None
) -> tuple[Array, Array]:
    """
    The integers of a list, and the order of the entries in it. `cells` has shape (entries, axes).
    Entries of one bucket keep their order. `beside`: the cells of all lists of the kernels, which
    take time, too; those of the list if none are given.
    """
    count, rank = cells.shape
    buckets = cells // np.array(layout.buckets)
    flat = buckets @ np.array(layout.strides)
    order = np.argsort(flat, kind="stable")
    found = np.zeros(layout.size, np.int32)
    ends = np.cumsum(np.bincount(flat, minlength=layout.following - 1))
    found[1 : layout.following] = ends
    fill_stacks(layout, found, np.unique(flat))
    slow = buckets if beside is None else beside // np.array(layout.buckets)
    used = np.bincount(slow[:, 0], minlength=layout.counts[0]) > 0
    for number, gap in enumerate(GAPS):
        start = layout.cuts(number)
        found[start : start + layout.counts[0] + 1] = moved_rows(used, gap)
    for axis in range(rank):
        start = layout.coordinates(axis)
        found[start : start + count] = cells[order, axis]
    found[layout.columns : layout.columns + count] = columns[order]
    if layout.has_spot:
        near = spot_of_cells(cells if beside is None else beside)
        found[layout.spot : layout.spot + SPOT_WORDS] = near
    lines = lines_of_cells(layout, cells)
    if len(lines):
        found[layout.line_count] = len(lines)
        for axis in range(1, rank):
            start = layout.line(axis)
            found[start : start + len(lines)] = lines[:, axis - 1]
    return found, order


def spot_of_cells(cells: Array) -> Array:
    """
    Where the cells of a plate that make steps with points lie, if near each other: the first row,
    the end of rows, the first cell of a row and the end.
    """
    if not len(cells):
        return np.zeros(SPOT_WORDS, np.int64)
    low, high = cells.min(axis=0), cells.max(axis=0) + 1
    is_small = (high - low <= WIDEST_SPOT).all()
    return np.stack([low, high], axis=1).reshape(-1) * is_small


FEWEST_PLANES = 8
"""Fewest planes with entries of a list with lines: on fewer planes, steps with points are few."""


def lines_of_cells(layout: PointLayout, cells: Array) -> Array:
    """
    The lines along axis 0 on which all cells lie, as places along the other axes, of shape (lines,
    axes - 1). None for few planes, and for more lines than a kernel keeps traces of.
    """
    none = np.zeros((0, len(layout.shape) - 1), np.int64)
    if len(cells) > layout.lines * layout.counts[0]:
        return none
    if not len(cells) or len(np.unique(cells[:, 0])) < FEWEST_PLANES:
        return none
    flat = np.unique(np.ravel_multi_index(tuple(cells.T[1:]), layout.shape[1:]))
    if len(flat) > layout.lines:
        return none
    return np.stack(np.unravel_index(flat, layout.shape[1:]), axis=1)


def cells_of_steps(layout: PointLayout, kind: PointKind, cells: Array) -> Array:
    """The cells of a list whose planes make steps with points: noted cells on lines make none."""
    is_traced = kind is PointKind.SAMPLE and len(lines_of_cells(layout, cells)) > 0
    return cells[:0] if is_traced else cells


STEP_WITH_POINTS = 8.7
"""
The time of a stream step with points, in stream steps without. One H200, FP32, 8 levels of a wave
of order 4 on 4100 x 4100 cells with a source between cells: a launch with equal chunks takes 75 us
more for 16 such steps, and the chunks have 203 steps in 124 us.
"""

STEPS_OF_PLANE = 0.65
"""Steps with points that a plane makes, as a part of the gap that all levels reach across."""


def fill_stacks(layout: PointLayout, found: Array, used: Array) -> None:
    """Fill the parts of a list with a number for each row and stack, from the `used` buckets."""
    rows, (row, stack) = layout.counts[0], np.divmod(used, layout.stacks)
    stacks, place = np.unique(stack, return_inverse=True)
    here = np.zeros((rows + 1, len(stacks)), bool)
    here[row, place] = True
    places = np.arange(rows + 1, dtype=np.int32)[:, None]
    following = next_rows(np.where(here, places, rows))
    after = np.append(following[1:], np.full((1, len(stacks)), 2 * rows + NEAR), axis=0)
    is_last = here & ((after - places - 1 >= NEAR) | (after >= rows))
    ends = next_rows(np.where(is_last, places + 1, rows))
    for start, values in ((layout.following, following), (layout.run_ends, ends)):
        part = found[start : start + (rows + 1) * layout.stacks].reshape(rows + 1, -1)
        part[:] = rows
        part[:, stacks] = values


def next_rows(rows: Array) -> Array:
    """For each row, the least of the numbers of the rows from there on."""
    return np.minimum.accumulate(rows[::-1])[::-1]


def moved_rows(is_used: Array, gap: float) -> Array:
    """
    For each row, and one behind, the row of a cut that equal chunks would have there: steps with
    points take longer, and chunks with such steps have fewer rows. A plane makes steps with points
    as long as any level has it, in each chunk near the plane: both rows a gap away count as all of
    these steps, so that a cut between them costs no chunk more, and a chunk from there on fills its
    levels as others do.
    """
    rows = len(is_used)
    if gap == inf or not is_used.any():
        return np.arange(rows + 1)
    reach, more = int(gap), STEP_WITH_POINTS - 1
    used = np.flatnonzero(is_used)
    ends = np.flatnonzero(np.diff(used) > 2 * reach)
    lows, highs = used[np.append(0, ends + 1)], used[np.append(ends, len(used) - 1)]
    time = np.ones(rows)
    for low, high in zip(lows, highs):
        time[low : high + 1] += more
        for edge in (max(low - reach, 0), min(high + reach, rows - 1)):
            time[edge] += more * reach * STEPS_OF_PLANE
    passed = np.append(0.0, np.cumsum(time))
    # Found from the middle of rows: the ends stay, and rounding errors move no cut of a list
    # without points.
    equal = np.arange(1, rows) * (passed[-1] / rows)
    moved = np.zeros(rows + 1, np.int64)
    moved[1:rows], moved[rows] = np.searchsorted(passed, equal - 0.5), rows
    return moved


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
