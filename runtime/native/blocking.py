"""
The pass of a time loop over fields on a processor: the number of steps at once, and the part of a
field at a time.

Any choice is right by the proof in `passes/analysis/skews.py`. `BlockingRule` takes the choice with
the fewest bytes moved between the cache of a core and the memory behind the cache:

- A pass of `depth` steps moves each field once. With `columns` places of the second axis at a time,
  the cells reached by the steps beyond `columns` places are moved again for the next `columns`.
- The cache must keep the rows of each field until the last step is done with them: `rows`, plus the
  reach and the lags of the steps. If even a single step of all columns does not fit, a row is moved
  for each row reading the row.
- In the second phase of a pass a thread waits, for half of a span on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.passes.analysis.skews import Skew
from timetile.runtime.arithmetic.cells import dtype_of

MOST_DEPTH = 16
"""Most steps of a pass: moving a field once for 16 steps takes less time than the arithmetic."""

CELLS_AT_ONCE = 1 << 10
"""
Cells worth a call of an update's function: about a microsecond. With more rows than needed in a
call, neighbouring rows leave the first-level cache between reads.
"""

FEWEST_COLUMNS = 8
"""The least number of places of the second axis taken at a time."""


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
    """Whether the updates of a step share blocks. Otherwise each update takes a whole box."""


@dataclass(frozen=True)
class Use:
    """
    How a step uses a field: bytes for each place of the two outermost axes, bytes in all, and how
    many further places it touches along the two axes.
    """

    unit: int
    bytes: int
    reaches: tuple[int, int]

    @staticmethod
    def of(field: SSAValue, skews: tuple[Skew, Skew]) -> Use:
        bounds = field_bounds(field)
        sides = sizes_of(bounds)
        cell = dtype_of(element_type(field)).itemsize
        reaches = (skews[0].reach(field), skews[1].reach(field))
        return Use(cell * prod(sides[2:]), cell * prod(sides), reaches)


def cells_inside(update: UpdateOp) -> int:
    """How many cells an update has at each place of the two outermost axes."""
    return prod(high - low for low, high in list(zip(update.box.lb, update.box.ub))[2:])


class BlockingRule:
    """Chooses the passes of a loop, for cores with `cache` bytes for fields."""

    def __init__(self, loop: LoopOp, cache: int):
        self.skews = (Skew.of(loop, 0), Skew.of(loop, 1))
        fields = (*loop.body.block.args, *loop.captures)
        self.uses = [Use.of(field, self.skews) for field in fields]
        self.cache = cache
        # Cells of a call for a single row and all columns.
        row = self.skews[1].places(1) * max(map(cells_inside, loop.updates), default=1)
        self.rows = max(1, CELLS_AT_ONCE // max(1, row))

    def most_threads(self, depth: int) -> int:
        """
        The most threads with a block each in passes of some steps, no block narrower than the
        widest span.
        """
        skew = self.skews[0]
        return skew.places(depth) // max(1, skew.spans.most(depth))

    def choice(self, steps: int, threads: int) -> Blocking:
        """The pass for a number of steps and of threads."""
        together = threads <= max(1, self.most_threads(1))
        everything = Blocking(1, self.rows, max(1, self.skews[1].places(1)), together)
        if not together:
            return everything
        if sum(use.bytes for use in self.uses) <= self.cache * threads:
            return everything
        candidates = [everything, *self.blocked(min(steps, MOST_DEPTH), threads)]
        return min(candidates, key=lambda blocking: self.moved(blocking, threads))

    def blocked(self, steps: int, threads: int) -> Iterator[Blocking]:
        """The passes with the most columns kept by the cache, for each depth."""
        for depth in range(1, steps + 1):
            if threads > max(1, self.most_threads(depth)):
                return
            places, most = self.skews[1].places(depth), self.columns_kept(depth)
            if most >= min(FEWEST_COLUMNS, places):
                # The least number of blocks, with equal widths.
                blocks = -(-places // most)
                yield Blocking(depth, self.rows, -(-places // blocks))

    def beyond(self, use: Use, axis: int, depth: int) -> int:
        """Places of a field beyond a block that a pass of `depth` steps touches, along an axis."""
        return use.reaches[axis] + (depth - 1) * self.skews[axis].lags.step

    def columns_kept(self, depth: int) -> int:
        """
        The most places of the second axis whose cells the cache keeps during a pass of some steps.
        """
        column, around = 0, 0
        for use in self.uses:
            rows = min(self.rows + self.beyond(use, 0, depth), self.skews[0].places(depth))
            column += rows * use.unit
            around += rows * use.unit * self.beyond(use, 1, depth)
        return (self.cache - around) // max(1, column)

    def moved(self, blocking: Blocking, threads: int) -> float:
        """
        The bytes moved for a place and a step. Waiting threads count as if more bytes were moved.
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
