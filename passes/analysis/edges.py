"""
Time loops with continued fields, and the loops whose kernels continue the fields themselves.

A kernel computes images: a cell outside the bounds is computed at each level like the cell that it
is an image of, from images. The kernel reads memory at the first level only, at the cell behind the
image. A loop is fit if

- every update writes all cells of the bounds, and reads fields beyond the bounds by one boundary,
  with both sides of an axis kept or both continued;
- a field read beyond the bounds has exactly the cells of the bounds along the axis;
- along a mirrored axis the taps of an update are alike in both directions: an image of a cell taps
  to the other side.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.boundary import BoundaryAttr, Kind, Side

MIRRORS = (Kind.MIRROR, Kind.REFLECT)
"""Kinds whose images lie in reversed order."""

SidePair = tuple[Side, Side]


def mirrored_axes(boundary: BoundaryAttr, rank: int) -> tuple[int, ...]:
    """The axes with a mirrored side."""
    return tuple(
        axis for axis in range(rank) if any(side in MIRRORS for side in boundary.of_axis(axis))
    )


def turned_tap(tap: Tap, axes: tuple[int, ...]) -> Tap:
    """The tap of an image reversed along some axes."""
    offset = tuple(-d if axis in axes else d for axis, d in enumerate(tap.offset))
    return Tap(tap.operand, offset)


def turns(tap: Tap, axes: tuple[int, ...]) -> Iterator[Tap]:
    """The taps of all images of a cell, reversed along one or more of the axes."""
    moved = [axis for axis in axes if tap.offset[axis]]
    for count in range(1, len(moved) + 1):
        for some in combinations(moved, count):
            yield turned_tap(tap, some)


def sides_read(update: UpdateOp, axis: int) -> Iterator[SidePair]:
    """The boundary of each source that an update taps beside the cell along an axis."""
    for number, boundary in enumerate(update.continued):
        taps = (tap for tap in update.tap_list if tap.operand == number)
        if any(tap.offset[axis] for tap in taps):
            yield boundary.of_axis(axis)


def covers_bounds(update: UpdateOp, box: CellBox, boundary: BoundaryAttr) -> bool:
    """
    Whether an update writes all of the bounds, and the fields it reads beside the cell end with the
    bounds where the bounds are continued.
    """
    if CellBox.of(update.box) != box or update.outside is not None:
        return False
    for tap in update.tap_list:
        field = CellBox.of(field_bounds(update.sources[tap.operand]))
        for axis in (axis for axis, d in enumerate(tap.offset) if d):
            ends = field.lower[axis], field.upper[axis]
            continues = Kind.KEEP not in boundary.of_axis(axis)
            if continues and ends != (box.lower[axis], box.upper[axis]):
                return False
    return True


def loop_boundary(loop: LoopOp) -> BoundaryAttr | None:
    """The boundary by which kernels of a loop continue all fields; None if kernels cannot."""
    updates = loop.updates
    if all(update.beyond is None for update in updates):
        return None
    box, sides = CellBox.of(updates[0].box), list[Side]()
    for axis in range(len(box.lower)):
        found = list(dict.fromkeys(map(repr, (p for u in updates for p in sides_read(u, axis)))))
        pairs = [pair for update in updates for pair in sides_read(update, axis)]
        if len(found) > 1:
            return None
        below, above = pairs[0] if pairs else (Kind.KEEP, Kind.KEEP)
        if (below is Kind.KEEP) != (above is Kind.KEEP):
            return None
        sides += below, above
    boundary = BoundaryAttr(*sides)
    if boundary.keeps_all or not all(covers_bounds(update, box, boundary) for update in updates):
        return None
    mirrored = mirrored_axes(boundary, len(box.lower))
    for update in updates:
        taps = set(update.tap_list)
        for tap in taps:
            if not taps.issuperset(turns(tap, mirrored)):
                return None
            sizes = (box.upper[axis] - box.lower[axis] for axis in mirrored)
            if any(abs(tap.offset[axis]) >= size for axis, size in zip(mirrored, sizes)):
                return None
    return boundary


def continues_in_kernels(loop: LoopOp) -> bool:
    """Whether kernels of several steps continue the fields of a loop."""
    return loop_boundary(loop) is not None
