"""The shapes of fields in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.ir import SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import cell_type, field_bounds
from timetile.dialects.tile import LoadOp


@dataclass(frozen=True)
class FieldShape:
    """
    A field's bounds and strides (cells). Along an axis that the field lacks, bounds are unknown and
    the stride is 0.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    missing: frozenset[int] = frozenset()
    """The domain's axes along which the field has no cells of its own."""

    @staticmethod
    def of(field: SSAValue) -> FieldShape:
        """The shape of a field of all axes."""
        bounds = field_bounds(field)
        return FieldShape(tuple(bounds.lb), tuple(bounds.ub))

    @staticmethod
    def along(field: SSAValue, axes: Sequence[int], rank: int) -> FieldShape:
        """The shape of a field that has cells along `axes` alone, in a domain of `rank` axes."""
        bounds = field_bounds(field)
        lower, upper = [0] * rank, [1] * rank
        for axis, low, high in zip(axes, bounds.lb, bounds.ub, strict=True):
            lower[axis], upper[axis] = low, high
        return FieldShape(tuple(lower), tuple(upper), frozenset(range(rank)) - set(axes))

    @staticmethod
    def loaded(load: LoadOp, rank: int) -> FieldShape:
        """The shape of the field of a load, in a domain of `rank` axes."""
        if load.axes is None:
            return FieldShape.of(load.field)
        return FieldShape.along(load.field, load.axes, rank)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return tuple(high - low for low, high in zip(self.lower, self.upper))

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The distance in memory, in cells, between neighbours along each axis."""
        strides = [1]
        for size in reversed(self.sizes[1:]):
            strides.insert(0, strides[0] * size)
        return tuple(0 if axis in self.missing else n for axis, n in enumerate(strides))

    def nearest(self, place: Sequence[int]) -> int:
        """The number, in memory, of the field's cell nearest to a place of the program."""
        bounds = zip(place, self.lower, self.sizes, self.strides, strict=True)
        return sum(min(max(at - low, 0), size - 1) * stride for at, low, size, stride in bounds)

    @cached_property
    def cells(self) -> int:
        """The number of cells of the field."""
        return prod(self.sizes)


def register_bytes(field: SSAValue) -> int:
    """Bytes of the register of a field's cell."""
    return CELL_BYTES[cell_type(field)]
