"""Boxes of cells in NumPy's arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.stencil import StencilBoundsAttr

from timetile.runtime.arithmetic.cells import Array


def box_slices(
    bounds: StencilBoundsAttr, box: StencilBoundsAttr, offset: Sequence[int]
) -> tuple[slice, ...]:
    """The place of a box, moved by an offset, in the array of a field with these bounds."""
    return tuple(
        slice(low + d - origin, high + d - origin)
        for low, high, d, origin in zip(box.lb, box.ub, offset, bounds.lb)
    )


def coordinates(box: StencilBoundsAttr, axis: int) -> Array:
    """The coordinate along an axis of every cell of a box."""
    lower, upper = tuple(box.lb), tuple(box.ub)
    shape = [1] * len(lower)
    shape[axis] = upper[axis] - lower[axis]
    line = np.arange(lower[axis], upper[axis], dtype=np.int64).reshape(shape)
    return np.broadcast_to(line, [high - low for low, high in zip(lower, upper)])
