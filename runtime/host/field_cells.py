"""Parts of a field's cells, as arrays: spread along axes, at computed places, in a box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.dialects.boxes import sizes_of
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import BroadcastOp, GatherOp, ReduceOp

Array = NDArray[Any]


def spread_box(op: BroadcastOp) -> tuple[slice, ...]:
    """The cells of a field of fewer axes that are spread along more axes."""
    own, wide = field_bounds(op.source).lb, field_bounds(op.field)
    ends = zip(own, ((tuple(wide.lb)[axis], tuple(wide.ub)[axis]) for axis in op.axis_list))
    return tuple(slice(low - first, high - first) for first, (low, high) in ends)


def wide_cells(op: BroadcastOp, source: Array) -> Array:
    """The cells of a field spread along more axes: a view, with strides of 0 along the others."""
    shape, axes = sizes_of(field_bounds(op.field)), op.axis_list
    along = tuple(slice(None) if axis in axes else None for axis in range(len(shape)))
    return np.broadcast_to(source[spread_box(op)][along], shape)


def narrow_cells(op: BroadcastOp, spread: Array) -> Array:
    """The field of fewer axes behind a spread field; cells that are not spread are 0."""
    source = np.zeros(sizes_of(field_bounds(op.source)), spread.dtype)
    axes = op.axis_list
    along = tuple(slice(None) if axis in axes else 0 for axis in range(spread.ndim))
    source[spread_box(op)] = spread[along]
    return source


def gathered(op: GatherOp, source: Array, places: Sequence[Array]) -> Array:
    """The cells of a field at places, each coordinate the nearest one in the field."""
    bounds = field_bounds(op.source)
    at = [
        np.clip(place, low, high - 1) - low
        for place, low, high in zip(places, bounds.lb, bounds.ub)
    ]
    return source[tuple(at)]


def box_cells(op: ReduceOp, cells: Array) -> Array:
    """The part of a field's cells that lies in the reduction's box."""
    lows = field_bounds(op.field).lb
    return cells[tuple(slice(a - c, b - c) for a, b, c in zip(op.box.lb, op.box.ub, lows))]
