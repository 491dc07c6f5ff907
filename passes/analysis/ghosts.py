"""
Ghost zones: how far around a part of a domain cells must be known, so that the part is right after
some steps.

A rank computes a step on all cells with known reads. Cells next to a face of the part would need
cells beyond the ghost zone: after each step a margin of cells at the outer end of the zone is
stale. For each buffer and each side of an axis, margins follow the updates of a step in order:

- The margin of a target is the largest of `margin of the source + distance` over the taps.
- A target keeps its margin outside the box, unless the step overwrites all changing cells of the
  buffer before any read.
- Buffers rotate after a step, and margins rotate with the buffers.

The ghost zone of k steps is as wide as the widest margin after 1 to k steps: for one update of
radius r, k * r. Where loops take turns, a step of one begins with what others left: each field,
captured fields too, may have the margin of all steps before. Only this file computes ghost zones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox, sizes_of
from timetile.dialects.decomposition import Ghosts, is_covered
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.boundary import MIRRORS, BoundaryAttr, Kind
from timetile.passes.analysis.launches.liveness import loop_rotation

NO_GHOSTS = (0, 0)


def wider(first: Ghosts, other: Ghosts) -> Ghosts:
    """The smallest ghost zone around both."""
    return tuple(
        (max(below, low), max(above, high)) for (below, above), (low, high) in zip(first, other)
    )


def tap_distances(
    offset: Sequence[int], boundary: BoundaryAttr, extents: Sequence[int], unrolled: Sequence[int]
) -> list[tuple[int, int]]:
    """
    The distances below and above, along each axis, at which a tap reads cells; negative where all
    cells lie on the other side. A mirrored side reads the image instead. `extents`: the cells of
    the field along each axis, crossed by a read beyond a periodic end, except along `unrolled`
    axes, whose places go on beyond the ends.
    """
    reaches: list[tuple[int, int]] = []
    for axis, distance in enumerate(offset):
        sides = boundary.of_axis(axis)
        below, above = -distance, distance
        if distance and any(side in MIRRORS for side in sides):
            below = above = abs(distance)
        if distance and Kind.PERIODIC in sides and axis not in unrolled:
            below = above = extents[axis]
        reaches.append((below, above))
    return reaches


@dataclass(frozen=True)
class StepMargins:
    """
    The margins of a loop's buffers, step by step. `unrolled` are periodic axes whose places go on
    beyond the ends.
    """

    loop: LoopOp
    unrolled: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.loop.updates[0].rank

    @cached_property
    def replaced(self) -> frozenset[int]:
        """The roles whose buffers a step overwrites before any read."""
        return overwritten_roles(self.loop)

    def after_step(self, margins: Sequence[Ghosts], captured: Ghosts | None = None) -> list[Ghosts]:
        """
        The margins of the loop's arguments after a step, from margins before, and one of all
        captured fields.
        """
        args = self.loop.body.block.args
        none: Ghosts = (NO_GHOSTS,) * self.rank
        known: dict[SSAValue, Ghosts] = {
            arg: none if role in self.replaced else margins[role] for role, arg in enumerate(args)
        }
        known |= dict.fromkeys(self.loop.captures, none if captured is None else captured)
        for update in self.loop.updates:
            reached = self.reach(update, known)
            for target in update.targets:
                known[target] = wider(known[target], reached)
        found = [known[arg] for arg in args]
        return [found[source] for source in self.loop.rotation]

    def reach(self, update: UpdateOp, known: dict[SSAValue, Ghosts]) -> Ghosts:
        """The margin of the cells computed by an update."""
        none: Ghosts = (NO_GHOSTS,) * self.rank
        reached = none
        sources, continued = update.sources, update.continued
        for tap in update.tap_list:
            source = sources[tap.operand]
            bounds = field_bounds(source)
            extents = sizes_of(bounds)
            boundary = continued[tap.operand]
            taken = tap_distances(tap.offset, boundary, extents, self.unrolled)
            pairs = zip(known[source], taken)
            reached = wider(reached, tuple((b + low, a + high) for (b, a), (low, high) in pairs))
        return reached

    def zones(self) -> Iterator[Ghosts]:
        """The ghost zones of 1, 2, 3, ... steps; those of a sweep are equal."""
        none: Ghosts = (NO_GHOSTS,) * self.rank
        margins, widest = [none] * len(self.loop.buffers), none
        while True:
            if widest is none or self.loop.sweep is None:
                margins = self.after_step(margins)
                for margin in margins:
                    widest = wider(widest, margin)
            yield widest


def zones_of_turns(loops: Sequence[LoopOp], unrolled: tuple[int, ...]) -> Iterator[Ghosts]:
    """The ghost zones of 1, 2, 3, ... steps, each of any of several loops."""
    each_of = [StepMargins(loop, unrolled) for loop in loops]
    widest: Ghosts = (NO_GHOSTS,) * each_of[0].rank
    none = widest
    while True:
        before = widest
        for margins in each_of:
            # A sweep begins with fresh ghosts.
            begin = before if margins.loop.sweep is None else none
            found = margins.after_step([begin] * len(margins.loop.buffers), begin)
            widest = reduce(wider, found, widest)
        yield widest


def overwritten_roles(loop: LoopOp) -> frozenset[int]:
    """
    The roles whose buffers a step overwrites before any read: each cell written by any step, in any
    of the roles that take turns.
    """
    return frozenset(role for role in range(len(loop.buffers)) if replaces_changes(loop, role))


def replaces_changes(loop: LoopOp, role: int) -> bool:
    """Whether a step overwrites all changing cells of a role's buffer before any read."""
    args = loop.body.block.args
    field, written = CellBox.of(field_bounds(args[role])), list[CellBox]()
    for update in loop.updates:
        if args[role] in update.sources:
            break
        if args[role] in update.targets:
            written.append(CellBox.of(update.box))
    changing = [box & field for box in changing_boxes(loop, role)]
    return bool(written) and all(is_covered(box, written) for box in changing)


def changing_boxes(loop: LoopOp, role: int) -> list[CellBox]:
    """The boxes of the updates of a role's buffer, and of those that take turns with it."""
    args = loop.body.block.args
    cycle = {args[other] for other in loop_rotation(loop).cycle_of(role)}
    return [CellBox.of(update.box) for update in loop.updates if cycle & set(update.targets)]


def exchanged_roles(loop: LoopOp) -> list[int]:
    """The roles whose ghost zones a step reads."""
    replaced = overwritten_roles(loop)
    return [role for role in range(len(loop.buffers)) if role not in replaced]
