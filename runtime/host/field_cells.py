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


def wide_cells(op: BroadcastOp, source: Array) -> Array:
    """The cells of a field spread along more axes: a view, with strides of 0 along the others."""
    own, wide = field_bounds(op.source), field_bounds(op.field)
    axes = op.axis_list
    inner = tuple(
        slice(
            tuple(wide.lb)[axis] - tuple(own.lb)[k],
            tuple(wide.ub)[axis] - tuple(own.lb)[k],
        )
        for k, axis in enumerate(axes)
    )
    shape = sizes_of(wide)
    narrow = source[inner][tuple(slice(None) if a in axes else None for a in range(len(shape)))]
    return np.broadcast_to(narrow, shape)


def gathered(op: GatherOp, source: Array, places: Sequence[Array]) -> Array:
    """The cells of a field at places, each coordinate the nearest one in the field."""
    bounds = field_bounds(op.source)
    at = [
        np.clip(place, low, high - 1) - low
        for place, low, high in zip(places, bounds.lb, bounds.ub)
    ]
    return source[tuple(at)]


def box_cells(op: ReduceOp, cells: Array) -> Array:
    """The cells of a reduction's box, of all cells of the field."""
    lows = field_bounds(op.field).lb
    return cells[tuple(slice(a - c, b - c) for a, b, c in zip(op.box.lb, op.box.ub, lows))]
