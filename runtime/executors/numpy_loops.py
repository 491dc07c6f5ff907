"""The NumPy executor, the judge of all others: time loops step by step, each update vectorised over
its box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.series import is_series
from timetile.dialects.syntax import cell_type, field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, PointSet, UpdateOp
from timetile.dialects.temporal.boundary import image
from timetile.passes.analysis.cells.cell_functions import named_function
from timetile.runtime.arithmetic.boxes import box_slices, coordinates
from timetile.runtime.arithmetic.cells import Array, call, dtype_of
from timetile.runtime.arithmetic.points import PointEntries, entries_in, use_entries

CELLS_AT_ONCE = 1 << 15
"""Cells whose temporaries are made together."""

Progress = Callable[[int, int], None]
"""A callback with the number of steps done, and the number of all steps."""


def slabs(box: StencilBoundsAttr) -> Iterator[StencilBoundsAttr]:
    """
    The box, cut along its outermost axis into parts with temporaries small enough for a cache.
    """
    (low, high), *others = zip(box.lb, box.ub)
    planes = max(1, CELLS_AT_ONCE // max(1, prod(upper - lower for lower, upper in others)))
    for start in range(low, high, planes):
        yield StencilBoundsAttr.from_bounds([(start, min(start + planes, high)), *others])


def tapped(
    update: UpdateOp, tap: Tap, box: StencilBoundsAttr, buffers: dict[SSAValue, Array]
) -> Array:
    """The cells read by a tap from a box, by the field's boundary beyond its cells."""
    source = update.sources[tap.operand]
    array, bounds = buffers[source], field_bounds(source)
    if update.beyond is None:
        return array[box_slices(bounds, box, tap.offset)]
    places: list[list[int]] = []
    constants: list[tuple[int, list[float | None]]] = []
    known = update.known_cells(tap.operand)
    spans = zip(box.lb, box.ub, known.lower, known.upper, bounds.lb, strict=True)
    for axis, (low, high, first, last, origin) in enumerate(spans):
        sides = update.beyond.data[tap.operand].of_axis(axis)
        shift = tap.offset[axis]
        seen = [image(place + shift, first, last, sides) for place in range(low, high)]
        places.append([0 if isinstance(place, float) else place - origin for place in seen])
        constants.append((axis, [place if isinstance(place, float) else None for place in seen]))
    cells = array[np.ix_(*places)]
    # The last axis outside the field decides about a corner.
    for axis, along in constants:
        for place, constant in enumerate(along):
            if constant is not None:
                cells[(slice(None),) * axis + (place,)] = constant
    return cells


def as_computed(cells: Array, field: SSAValue) -> Array:
    """Cells of a field as the numbers that cells compute with."""
    return cells.astype(dtype_of(cell_type(field)), copy=False)


def run_update(
    update: UpdateOp,
    function: FuncOp,
    buffers: dict[SSAValue, Array],
    scalars: dict[SSAValue, Any],
    points: Sequence[PointEntries],
) -> None:
    """
    Apply one update to NumPy arrays, in place, some planes at a time: an update reads its targets
    at the cell itself only. `points`: the entries of the update's lists in its box.
    """
    for box in slabs(update.box):
        run_slab(update, function, box, buffers, scalars)
    for made, entries in zip(update.point_sets, points, strict=True):
        target = update.targets[made.target]
        arrays = [buffers[field] for field in (target, made.weights, made.table)]
        use_entries(made, entries, arrays, int(scalars[update.points[0]]))


def run_slab(
    update: UpdateOp,
    function: FuncOp,
    box: StencilBoundsAttr,
    buffers: dict[SSAValue, Array],
    scalars: dict[SSAValue, Any],
) -> None:
    """Apply one update to the cells of a box, independent of other boxes."""
    arguments = [
        as_computed(tapped(update, tap, box, buffers), update.sources[tap.operand])
        for tap in update.tap_list
    ]
    shape = sizes_of(box)
    arguments += [np.broadcast_to(np.asarray(scalars[s]), shape) for s in update.scalars]
    arguments += [coordinates(box, axis) for axis in update.index_axes]
    results = call(function, arguments)
    zero = (0,) * update.rank
    # Compute every result before writing any target: a target may be read at its own cell.
    results = [np.array(np.broadcast_to(r, shape)) for r in results]
    for target, result in zip(update.targets, results):
        buffers[target][box_slices(field_bounds(target), box, zero)] = result


def first_of_target(update: UpdateOp, made: PointSet) -> tuple[int, ...]:
    """Where a set's points begin in the field that holds the whole list."""
    return tuple(field_bounds(update.targets[made.target]).lb)


def run_loop(
    loop: LoopOp,
    steps: int,
    buffers: Sequence[Array],
    outside: dict[SSAValue, Any],
    progress: Progress | None = None,
) -> list[Array]:
    """
    Run a time loop on arrays, in place, and return the buffers named by the results. `outside` maps
    captured fields and scalars, and series to a number for each step.
    """
    names = list(buffers)
    functions = {update: named_function(update) for update in loop.updates}
    changing = [scalar for scalar in loop.scalars if is_series(scalar)]
    # A loop never writes a list of points.
    points = {
        update: [
            entries_in(made, outside[made.places], update.box, first_of_target(update, made))
            for made in update.point_sets
        ]
        for update in functions
    }
    for step in range(steps):
        known: dict[SSAValue, Any] = dict(outside)
        known.update(zip(loop.body.block.args, names))
        known.update({series: outside[series][step] for series in changing})
        for update, function in functions.items():
            run_update(update, function, known, known, points[update])
        names = [names[source] for source in loop.rotation]
        if progress is not None:
            progress(step + 1, steps)
    return names
