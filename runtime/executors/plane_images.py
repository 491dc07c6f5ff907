"""
Cells of planes outside the bounds along axes that go on: images are loaded, and computed along
periodic axes; taps across a mirror read the image inside the bounds; beyond a side with a value the
cells are the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal.boundary import MIRRORS, BoundaryAttr, Kind, Side, image
from timetile.dialects.tile import KernelOp, LoadOp
from timetile.runtime.arithmetic.boxes import coordinates
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.executors.homes import MarkedCells


def axis_shape(axis: int, rank: int) -> tuple[int, ...]:
    """The shape of numbers along one axis of a domain."""
    return tuple(-1 if k == axis else 1 for k in range(rank))


def place_along(axis: int, place: Any) -> tuple[Any, ...]:
    """The index of a place along an axis, and of all places along the axes before."""
    return (*(slice(None) for _ in range(axis)), place)


class PlaneImages:
    """The images of a kernel with a boundary. Boxes are one plane thick."""

    def __init__(self, kernel: KernelOp, beyond: BoundaryAttr):
        self.kernel, self.beyond, self.rank = kernel, beyond, kernel.rank
        self.bounds = list(zip(kernel.bounds.lb, kernel.bounds.ub))
        self.sides = [beyond.of_axis(axis) for axis in range(self.rank)]
        self.tapped_places: dict[tuple[int, int, int, int], list[int]] = {}
        """Places along an axis tapped from a range at a distance: many planes need the same."""

    def images(self, axis: int, places: Sequence[int]) -> list[int | float]:
        """The image of each place along an axis that goes on."""
        return [image(p, *self.bounds[axis], self.sides[axis]) for p in places]

    def load(
        self,
        stage: LoadOp,
        box: StencilBoundsAttr,
        values: Mapping[SSAValue, Any],
        cells: MarkedCells,
    ) -> MarkedCells:
        """
        Fill the unset cells of a box from a load's fields: images outside the bounds along some
        axes, data or halo elsewhere.
        """
        offset = stage.offset or (0,) * self.rank
        places = [list(range(a + d, b + d)) for a, b, d in zip(box.lb, box.ub, offset)]
        constants: list[tuple[int, int, float]] = []
        for axis in self.kernel.continued_axes:
            found = self.images(axis, places[axis])
            for k, place in enumerate(found):
                if isinstance(place, float):
                    constants.append((axis, k, place))
            first = self.bounds[axis][0]
            places[axis] = [first if isinstance(place, float) else place for place in found]
        inside = np.full(cells.data.shape, stage.halo is None)
        if stage.halo is not None:
            spans = zip(places, self.bounds)
            inside[np.ix_(*([a <= p < b for p in along] for along, (a, b) in spans))] = True
        for field, where in ((stage.data, inside), (stage.halo, ~inside)):
            if field is not None:
                self.copy(values[field], field, stage.axes, places, where, cells)
        for axis, k, constant in constants:
            if stage.axes is None or axis in stage.axes:
                at = place_along(axis, k)
                cells.data[at], cells.known[at] = constant, True
        return cells

    def copy(
        self,
        source: MarkedCells,
        field: SSAValue,
        axes: Sequence[int] | None,
        places: Sequence[Sequence[int]],
        where: Array,
        cells: MarkedCells,
    ) -> None:
        """Copy the cells of a field at some places along each axis, where a mask is on."""
        own = range(self.rank) if axes is None else axes
        bounds = field_bounds(field)
        spans = dict(zip(own, zip(bounds.lb, bounds.ub)))
        has = [
            [k not in spans or spans[k][0] <= p < spans[k][1] for p in along]
            for k, along in enumerate(places)
        ]
        at = np.ix_(*([p - spans[k][0] for p, held in zip(places[k], has[k]) if held] for k in own))
        shape = [sum(has[k]) if k in spans else 1 for k in range(self.rank)]
        to = np.ix_(*has)
        for mine, given in ((cells.data, source.data), (cells.known, source.known)):
            mine[to] = np.where(where[to], given[at].reshape(shape), mine[to])

    def coordinates(self, box: StencilBoundsAttr, axis: int) -> Array:
        """The coordinate along an axis of each cell, or of the cell's image."""
        own = coordinates(box, axis)
        if axis not in self.kernel.continued_axes:
            return own
        found = self.images(axis, self.places(box, axis))
        first = self.bounds[axis][0]
        along = np.array([first if isinstance(place, float) else place for place in found])
        return np.broadcast_to(along.reshape(axis_shape(axis, self.rank)), own.shape)

    def places(self, box: StencilBoundsAttr, axis: int) -> range:
        """The coordinates of the cells of a box along an axis."""
        return range(tuple(box.lb)[axis], tuple(box.ub)[axis])

    def beyond_sides(self, box: StencilBoundsAttr, axis: int) -> Iterator[tuple[Side, list[bool]]]:
        """Both sides of an axis that goes on, and the places of a box beyond each."""
        (low, high), (below, above) = self.bounds[axis], self.sides[axis]
        places = self.places(box, axis)
        yield below, [place < low for place in places]
        yield above, [place >= high for place in places]

    def tapped(
        self,
        box: StencilBoundsAttr,
        frame: StencilBoundsAttr,
        offset: Sequence[int],
        plane_at: Callable[[int], MarkedCells],
    ) -> tuple[Array, Array]:
        """
        The cells that a box taps at an offset, and which are set: images where the tap crosses a
        mirror. `plane_at` gives the plane at a distance along the stream.
        """
        stream, distance = self.kernel.stream_axis, self.kernel.along_stream(offset)
        places: list[list[int]] = []
        for axis, (shift, start) in enumerate(zip(offset, frame.lb)):
            found = self.seen(axis, self.places(box, axis), shift)
            if axis == stream:
                distance = found[0] - tuple(box.lb)[axis]
                found = [start]
            places.append([place - start for place in found])
        cells, at = plane_at(distance), np.ix_(*places)
        return cells.data[at], cells.known[at]

    def seen(self, axis: int, places: range, shift: int) -> list[int]:
        """The places tapped along an axis: images where the tap crosses a mirror."""
        key = axis, places.start, places.stop, shift
        if key not in self.tapped_places:
            crosses = set(MIRRORS) & set(self.sides[axis])
            self.tapped_places[key] = [
                self.mirrored(axis, place, shift) if crosses else place + shift for place in places
            ]
        return self.tapped_places[key]

    def mirrored(self, axis: int, place: int, shift: int) -> int:
        """The place tapped along a mirrored axis from a place inside the bounds, or the image."""
        (low, high), far = self.bounds[axis], place + shift
        sides = self.sides[axis]
        side = sides[far >= high]
        crosses = low <= place < high and not low <= far < high and side in MIRRORS
        seen = image(far, low, high, sides) if crosses else far
        assert isinstance(seen, int)
        return seen

    def set_values(self, cells: MarkedCells, box: StencilBoundsAttr, to: tuple[slice, ...]) -> None:
        """Set the cells of a box beyond sides with a value; the last axis decides about corners."""
        for axis in self.kernel.continued_axes:
            for side, beyond in self.beyond_sides(box, axis):
                if not isinstance(side, Kind):
                    at = place_along(axis, np.array(beyond))
                    cells.data[to][at], cells.known[to][at] = side, True
