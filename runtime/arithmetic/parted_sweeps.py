"""Sweeps in parts with NumPy: the order of terms is that of a GPU's kernels, for all executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from timetile.dialects.syntax import cell_type, field_bounds
from timetile.dialects.temporal import SweepOp
from timetile.dialects.temporal.sweep import PART_PLACES
from timetile.passes.analysis.cells.recurrences import Recurrence, recurrence_of_sweep
from timetile.runtime.arithmetic.boxes import box_slices, coordinates
from timetile.runtime.arithmetic.cells import Array, call, dtype_of

Changes = list[Array]
"""The numbers of changes, side by side."""


def run_parts(
    op: SweepOp, function: FuncOp, fields: Mapping[SSAValue, Array], numbers: Mapping[SSAValue, Any]
) -> None:
    """Run a sweep in parts on NumPy arrays, in place. `numbers` are the scalars."""
    recurrence = recurrence_of_sweep(op, function)
    places = len(op.places)
    parts = -(-places // PART_PLACES)
    given = arguments_of(op, fields, numbers)
    (target,) = op.targets
    own = box_slices(field_bounds(target), op.box, (0,))
    edge = op.places[0] - next(iter(field_bounds(target).lb)) + (-1 if op.is_ascending else 1)
    first = fields[target][edge : edge + 1]
    carried = values_before(recurrence, [a for a in given if a is not None], parts, first)
    results = np.empty(places, first.dtype)
    for place in range(PART_PLACES):
        at = slice(place, None, PART_PLACES)
        carried = carried[: len(results[at])]
        arguments = [carried if a is None else a[at] for a in given]
        carried = results[at] = spread_out(call(function, arguments), len(carried))[0]
    fields[target][own] = results if op.is_ascending else results[::-1]


def arguments_of(
    op: SweepOp, fields: Mapping[SSAValue, Array], numbers: Mapping[SSAValue, Any]
) -> list[Array | None]:
    """The arguments of all cells, in the order of the sweep; None for the value before."""
    order = slice(None, None, 1 if op.is_ascending else -1)
    found: list[Array | None] = []
    for tap in op.tap_list:
        if op.is_result(tap):
            found.append(None)
            continue
        source = op.sources[tap.operand]
        cells = fields[source][box_slices(field_bounds(source), op.box, tap.offset)]
        found.append(cells.astype(dtype_of(cell_type(source)))[order])
    places = len(op.places)
    found += [np.broadcast_to(np.asarray(numbers[scalar]), places) for scalar in op.scalars]
    found += [coordinates(op.box, axis)[order] for axis in op.index_axes]
    return found


def spread_out(values: Sequence[Any], count: int) -> Changes:
    """The results of a function as arrays of cells."""
    return [np.array(np.broadcast_to(value, (count,))) for value in values]


def values_before(
    recurrence: Recurrence, given: Sequence[Array], parts: int, first: Array
) -> Array:
    """The value before each part; `first` is the value before the line."""
    places = len(given[0]) if given else 0
    whole = (parts - 1) * PART_PLACES
    before = np.broadcast_to(first, (parts,)).copy()
    if parts > 1:
        changes = spread_out(call(recurrence.part, [a[:whole] for a in given]), min(whole, places))
        totals = folded(recurrence.join, changes, parts - 1)
        found = [change[1:] for change in changes_before(recurrence.join, totals, parts)]
        before[1:] = spread_out(call(recurrence.after, [*found, before[1:]]), parts - 1)[0]
    return before


def folded(join: FuncOp, changes: Changes, groups: int) -> Changes:
    """The change of each group of 16, joined from the first on."""
    rows = [change.reshape(groups, PART_PLACES) for change in changes]
    found = [row[:, 0] for row in rows]
    for place in range(1, PART_PLACES):
        found = spread_out(call(join, [*found, *(row[:, place] for row in rows)]), groups)
    return found


def changes_before(join: FuncOp, changes: Changes, count: int) -> Changes:
    """
    For each of `count` changes, the joined change of all before it. The last change may be missing;
    the first has none before it, and gets any number.
    """
    groups = -(-count // PART_PLACES)
    padding = groups * PART_PLACES - len(changes[0])
    rows = [np.pad(change, (0, padding), "edge") for change in changes]
    rows = [row.reshape(groups, PART_PLACES) for row in rows]
    found = [np.empty_like(row) for row in rows]
    total = [row[:, 0] for row in rows]
    for place in range(1, PART_PLACES):
        for own, number in zip(found, total):
            own[:, place] = number
        total = spread_out(call(join, [*total, *(row[:, place] for row in rows)]), groups)
    if groups > 1:
        larger = changes_before(join, total, groups)
        for place in range(1, PART_PLACES):
            own = [number[1:, place] for number in found]
            made = call(join, [*(change[1:] for change in larger), *own])
            for number, more in zip(found, spread_out(made, groups - 1)):
                number[1:, place] = more
        for number, more in zip(found, larger):
            number[1:, 0] = more[1:]
    found = [number.reshape(-1)[:count] for number in found]
    for number in found:
        number[0] = number[min(1, count - 1)]
    return found
