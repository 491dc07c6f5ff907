"""
How a time loop passes over its fields on a processor: how many steps at once, and how much of a
field at a time.

`passes/analysis/skews.py` says in which order cells may be computed; any choice here is right. The
choice that moves the fewest bytes between the cache of a core and the memory behind it is taken:

- A pass of `depth` steps moves each field once. If it takes `columns` places of the second axis at
  a time, what the steps reach beyond `columns` places is moved once more for the next ones.
- The cache must keep, of each field, the rows that are not done with: `rows`, and as many more as
  the steps of a pass reach and lag. If one step of all columns does not fit, a row is moved for
  each row that reads it.
- In the second phase of a pass one thread waits, for half of a span on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.skews import Skew
from timetile.runtime.arithmetic import dtype_of

MOST_DEPTH = 16
"""Steps of a pass: moving a field once for so many steps takes less time than computing them."""

CELLS_AT_ONCE = 1 << 12
"""Cells that are worth a call of an update's function: they take a few microseconds."""

FEWEST_COLUMNS = 8
"""Places of the second axis that are taken at a time, at least."""


@dataclass(frozen=True)
class Blocking:
    """
    `depth` steps pass over the fields at once, `rows` times `columns` places of the outermost axes
    at a time.
    """

    depth: int
    rows: int
    columns: int
    together: bool = True
    """The updates of a step are done together, or each on its whole box before the next one."""


@dataclass(frozen=True)
class Use:
    """
    What steps do with a field: the bytes of one place of the two outermost axes, all its bytes, and
    how many places beyond its own a step touches along the two axes.
    """

    unit: int
    bytes: int
    reaches: tuple[int, int]

    @staticmethod
    def of(field: SSAValue, skews: tuple[Skew, Skew]) -> Use:
        bounds = field_bounds(field)
        sides = [high - low for low, high in zip(bounds.lb, bounds.ub)]
        cell = dtype_of(element_type(field)).itemsize
        reaches = (skews[0].reach(field), skews[1].reach(field))
        return Use(cell * prod(sides[2:]), cell * prod(sides), reaches)


class BlockingRule:
    """Chooses how a loop passes over its fields, on cores that have `cache` bytes for them."""

    def __init__(self, loop: LoopOp, cache: int):
        self.skews = (Skew.of(loop, 0), Skew.of(loop, 1))
        fields = (*loop.body.block.args, *loop.captures)
        self.uses = [Use.of(field, self.skews) for field in fields]
        self.cache = cache
        # What a call of an update's function has in all columns.
        row = self.skews[1].places(1) * max((use.unit for use in self.uses), default=1) // 8
        self.rows = max(1, CELLS_AT_ONCE // max(1, row))

    def most_threads(self, depth: int) -> int:
        """
        As many threads as passes of some steps have blocks for, none narrower than the widest span.
        """
        skew = self.skews[0]
        return skew.places(depth) // max(1, skew.spans.most(depth))

    def choice(self, steps: int, threads: int) -> Blocking:
        """How so many steps are done by so many threads."""
        together = threads <= max(1, self.most_threads(1))
        everything = Blocking(1, self.rows, max(1, self.skews[1].places(1)), together)
        if not together:
            return everything
        if sum(use.bytes for use in self.uses) <= self.cache * threads:
            return everything
        candidates = [everything, *self.blocked(min(steps, MOST_DEPTH), threads)]
        return min(candidates, key=lambda blocking: self.moved(blocking, threads))

    def blocked(self, steps: int, threads: int) -> Iterator[Blocking]:
        """For each depth the most columns that the cache has place for."""
        for depth in range(1, steps + 1):
            if threads > max(1, self.most_threads(depth)):
                return
            places, most = self.skews[1].places(depth), self.columns_kept(depth)
            if most >= min(FEWEST_COLUMNS, places):
                # As many blocks as there must be, all alike.
                blocks = -(-places // most)
                yield Blocking(depth, self.rows, -(-places // blocks))

    def beyond(self, use: Use, axis: int, depth: int) -> int:
        """How many places beyond its own a pass of some steps touches of a field along an axis."""
        return use.reaches[axis] + (depth - 1) * self.skews[axis].lags.step

    def columns_kept(self, depth: int) -> int:
        """
        The places of the second axis of which the cache keeps what a pass of some steps needs.
        """
        column, around = 0, 0
        for use in self.uses:
            rows = min(self.rows + self.beyond(use, 0, depth), self.skews[0].places(depth))
            column += rows * use.unit
            around += rows * use.unit * self.beyond(use, 1, depth)
        return (self.cache - around) // max(1, column)

    def moved(self, blocking: Blocking, threads: int) -> float:
        """
        The bytes that are moved for one place and step, and what waiting is worth beside them.
        """
        depth, columns = blocking.depth, blocking.columns
        total = 0.0
        for use in self.uses:
            again = 0.0
            if columns > self.columns_kept(depth):
                again = use.reaches[0]
            elif columns < self.skews[1].places(depth):
                again = self.beyond(use, 1, depth) / columns
            total += use.unit * (1 + again) / depth
        places = max(1, self.skews[0].places(depth))
        waiting = self.skews[0].spans.most(depth) / 2 * threads / places if threads > 1 else 0.0
        return total * (1 + waiting)
