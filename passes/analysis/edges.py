"""
Time loops with continued fields, and the loops whose kernels continue the fields themselves.

Along a periodic axis a kernel computes images: a cell outside the bounds is computed at each level
like the cell that it is an image of. The kernel reads memory at the first level only, at the cell
behind the image. A tap across a mirror reads the image inside the bounds instead, and a cell beyond
a side with a value is the number. A loop is fit if

- every update writes all cells of the bounds, and reads fields beyond the bounds by one boundary,
  with both sides of an axis kept or both continued;
- a field read beyond the bounds has exactly the cells of the bounds along the axis;
- images behind a mirror lie no farther from the reader than other taps of the field.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.boundary import MIRRORS, BoundaryAttr, Kind, Side

SidePair = tuple[Side, Side]


def mirrored_axes(boundary: BoundaryAttr, rank: int) -> tuple[int, ...]:
    """The axes with a mirrored side."""
    return tuple(
        axis for axis in range(rank) if any(side in MIRRORS for side in boundary.of_axis(axis))
    )


def images_of(distance: int, sides: SidePair) -> Iterator[tuple[int, int]]:
    """
    The images of taps at a distance along an axis that cross a mirror: the reader's distance from
    the outermost cell, and the distance of the image from the reader.
    """
    side, reach = sides[distance > 0], abs(distance)
    if side not in MIRRORS:
        return
    face, sign = (1 if side is Kind.MIRROR else 0), (-1 if distance > 0 else 1)
    for inside in range(reach):
        yield inside, sign * (-inside if side is Kind.CLAMP else reach - 2 * inside - face)


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
        field = update.known_cells(tap.operand)
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
    axes = mirrored_axes(boundary, len(box.lower))
    fits = (keeps_images(update, axis, box, boundary) for update in updates for axis in axes)
    return boundary if all(fits) else None


def why_split(loop: LoopOp) -> str:
    """Why kernels of several steps do not continue the fields of a loop that reads beyond them."""
    updates = loop.updates
    box = CellBox.of(updates[0].box)
    for axis in range(len(box.lower)):
        pairs = [pair for update in updates for pair in sides_read(update, axis)]
        if len(set(map(repr, pairs))) > 1:
            return f"along axis {axis} fields go on by different boundaries"
        if any((below is Kind.KEEP) != (above is Kind.KEEP) for below, above in pairs):
            return f"along axis {axis} one side is kept and the other is not"
        if any(side in MIRRORS for pair in pairs for side in pair):
            boundaries = (each for update in updates for each in update.continued)
            for update, boundary in product(updates, boundaries):
                if not keeps_images(update, axis, box, boundary):
                    return f"along axis {axis} a mirrored cell lies farther away than other reads"
    return "an update writes a part of the cells only, or fields end elsewhere"


def keeps_images(update: UpdateOp, axis: int, box: CellBox, boundary: BoundaryAttr) -> bool:
    """
    Whether a kernel holds the images of an update's taps along a mirrored axis anyway: no farther
    from the cell than other taps of the field, and inside the bounds.
    """
    size, sides = box.upper[axis] - box.lower[axis], boundary.of_axis(axis)
    for number in range(len(update.sources)):
        found = {tap.offset[axis] for tap in update.tap_list if tap.operand == number}
        if any(abs(distance) >= size for distance in found):
            return False
        for distance in found:
            images = [image for _, image in images_of(distance, sides)]
            if images and not min(found) <= min(images) <= max(images) <= max(found):
                return False
    return True


def continues_in_kernels(loop: LoopOp) -> bool:
    """Whether kernels of several steps continue the fields of a loop."""
    return loop_boundary(loop) is not None
