"""
How far stages lag behind each other, so that many steps of a time loop pass over a field at once.

A *stage* is one update of one step. Stages are in program order: step by step, and within a step
update by update. Each stage s has a lag along an axis, and its cell at x has the *place* c = x +
lag(s). Places are taken in ascending order, some at a time; of the same places all stages take
theirs, in program order.

Let s come before s' in program order, let both access one cell of one buffer, and let one of the
two accesses be a write: then s must come first. The cell lies at offset d from the cell that s
computes, and at offset d' from the cell that s' computes. Lags are such that

    lag(s') >= lag(s) + d' - d                                            (1)

and so c' >= c: s comes first. Where several axes are skewed c' >= c holds along each of them.
Buffers that take turns need no rule of their own: that step t + 1 writes what step t reads is one
more pair of accesses to one cell.

Threads share the places of the outermost axis. They need *mirrored* lags, too, such that

    mirrored(s') >= mirrored(s) + d - d'                                  (2)

With e = x - mirrored(s), (1) and (2) say e' <= e <= c <= c': the span of s' from e' to c' contains
the span of s from e to c. Each thread has a block of places. The blocks meet at borders b, and none
is narrower than the widest span, so that a span has one border at most (e < b <= c). In a first
phase each thread does the cells of its block whose spans have no border; in a second phase, the
cells whose spans have the border at which its block begins. All threads wait for each other after
each phase. If s' is of the first phase, its span has no border, so the span of s has none and lies
in the same block. If s' is of the second phase, s is of the first phase, or the span of s has the
same border. In both cases s comes first: in an earlier phase, or on the same thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp, UpdateOp


@dataclass(frozen=True)
class Lags:
    """
    The lags of stages along an axis, in cells: the update numbered k of those that are run together
    lags `t * step + updates[k]` in step t.
    """

    step: int
    updates: tuple[int, ...]

    def most(self, steps: int) -> int:
        """The largest lag in so many steps."""
        return (steps - 1) * self.step + max(self.updates, default=0)


@dataclass(frozen=True)
class Access:
    """
    What an update does with a buffer: it writes at offset 0, or reads at offsets from `low` to
    `high`.
    """

    update: int
    low: int
    high: int
    writes: bool


Accesses = Sequence[Sequence[Access]]
"""The accesses of a step, by the argument of the loop's body that names the buffer."""


def access_of(update: UpdateOp, number: int, field: SSAValue, axis: int) -> Access | None:
    """
    What an update does with a field, along an axis. A field that it writes it reads at offset 0
    only.
    """
    taps = (tap for tap in update.tap_list if update.sources[tap.operand] is field)
    offsets = [tap.offset[axis] if axis < update.rank else 0 for tap in taps]
    if field in update.targets:
        return Access(number, 0, 0, True)
    return Access(number, min(offsets), max(offsets), False) if offsets else None


def accesses_of(loop: LoopOp, axis: int, updates: Sequence[UpdateOp]) -> Accesses:
    """The accesses of some updates of a step."""
    found = (
        [access_of(update, k, argument, axis) for k, update in enumerate(updates)]
        for argument in loop.body.block.args
    )
    return [[access for access in row if access is not None] for row in found]


def conflicts(accesses: Accesses, names: Sequence[int]) -> Iterator[tuple[Access, Access]]:
    """
    An access of a step and one of a later step to the same buffer, where one of them writes.
    Argument k of the later step names the buffer that argument `names[k]` of the step named.
    """
    for name, others in zip(names, accesses, strict=True):
        for later in others:
            for earlier in accesses[name]:
                if earlier.writes or later.writes:
                    yield earlier, later


def needed_lags(rotation: Sequence[int], accesses: Accesses, count: int) -> Lags:
    """
    The least lags of a step's updates, so many, and of each step behind the step before, for which
    (1) holds.
    """
    updates = [0] * count
    pairs = conflicts(accesses, range(len(rotation)))
    inside = [(earlier, later) for earlier, later in pairs if earlier.update < later.update]
    for earlier, later in sorted(inside, key=lambda pair: pair[1].update):
        needed = updates[earlier.update] + later.high - earlier.low
        updates[later.update] = max(updates[later.update], needed)
    step, names = 0, rotation
    # Conflicts return after a cycle of the rotation, when each step needs to lag by less.
    for distance in range(1, len(rotation) + 1):
        for earlier, later in conflicts(accesses, names):
            needed = updates[earlier.update] - updates[later.update] + later.high - earlier.low
            step = max(step, -(-needed // distance))
        names = tuple(names[source] for source in rotation)
    return Lags(step, tuple(updates))


def turned(accesses: Accesses) -> Accesses:
    """The accesses along the axis turned around: with them (1) is (2)."""
    return [
        [Access(access.update, -access.high, -access.low, access.writes) for access in row]
        for row in accesses
    ]


def extent_of(box: StencilBoundsAttr, axis: int) -> tuple[int, int]:
    """Where a box begins and ends along an axis. An axis that it lacks has one cell, at 0."""
    if axis >= len(box.lb):
        return 0, 1
    return tuple(box.lb)[axis], tuple(box.ub)[axis]


@dataclass(frozen=True)
class Skew:
    """
    One axis of the updates of a loop that are run together: the lags of their stages, and where the
    places of one step begin and end.
    """

    updates: tuple[UpdateOp, ...]
    axis: int
    lags: Lags
    spans: Lags
    """The widths of the spans of stages: lag and mirrored lag."""
    low: int
    high: int

    @staticmethod
    def of(loop: LoopOp, axis: int, updates: Sequence[UpdateOp] | None = None) -> Skew:
        """Of all updates of a step, or of some that follow each other."""
        together = tuple(loop.updates if updates is None else updates)
        accesses = accesses_of(loop, axis, together)
        lags = needed_lags(loop.rotation, accesses, len(together))
        mirrored = needed_lags(loop.rotation, turned(accesses), len(together))
        widths = tuple(a + b for a, b in zip(lags.updates, mirrored.updates))
        boxes = [extent_of(update.box, axis) for update in together]
        low = min((low + lag for (low, _), lag in zip(boxes, lags.updates)), default=0)
        high = max((high + lag for (_, high), lag in zip(boxes, lags.updates)), default=0)
        spans = Lags(lags.step + mirrored.step, widths)
        return Skew(together, axis, lags, spans, low, max(low, high))

    def places(self, steps: int) -> int:
        """How many places the cells of some steps have."""
        return self.high - self.low + (steps - 1) * self.lags.step

    def reach(self, field: SSAValue) -> int:
        """How many cells of a field beyond one a step touches while it takes one place."""
        accesses = [access_of(u, k, field, self.axis) for k, u in enumerate(self.updates)]
        known = [access for access in accesses if access is not None]
        lows = [access.low - self.lags.updates[access.update] for access in known]
        highs = [access.high - self.lags.updates[access.update] for access in known]
        return max(highs) - min(lows) if known else 0
