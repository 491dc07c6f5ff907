"""
Lags of stages, with which many steps of a time loop pass over a field at once.

A *stage* is an update of a step. Stages are in program order: step by step, and within a step
update by update. A stage s has a lag along an axis, and the cell of s at x has the *place*
c = x + lag(s). Places are taken in ascending order, some at a time; for the same places all stages
run, in program order.

Let s come before s' in program order, let both access the same cell of the same buffer, and let at
least one access be a write: then s must come first. The cell lies at offset d from the cell
computed by s, and at offset d' from the cell computed by s'. Lags satisfy

    lag(s') >= lag(s) + d' - d                                            (1)

and therefore c' >= c: s comes first. If several axes are skewed, c' >= c holds along each axis.
Rotating buffers need no further rule: a write by step t + 1 to a buffer read by step t is a pair of
accesses like any other.

Threads share the places of the outermost axis. For threads, *mirrored* lags satisfy

    mirrored(s') >= mirrored(s) + d - d'                                  (2)

With e = x - mirrored(s), (1) and (2) give e' <= e <= c <= c': the span of s' from e' to c' contains
the span of s from e to c. Each thread has a block of places. Blocks meet at borders b. No block is
narrower than the widest span, and so no span has two borders (a border in a span: e < b <= c). In a
first phase each thread computes the cells of a block whose spans have no border. In a second phase
the same thread computes the cells whose spans have the border at the start of the block. All
threads wait for each other after each phase. If s' runs in the first phase, the span of s' has no
border, so the span of s has none and lies in the same block. If s' runs in the second phase, s runs
in the first phase, or the span of s has the same border. In both cases s comes first: in an earlier
phase, or on the same thread.
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
    The lags of stages along an axis, in cells: update k of the updates run together lags
    `t * step + updates[k]` in step t.
    """

    step: int
    updates: tuple[int, ...]

    def most(self, steps: int) -> int:
        """The largest lag in a number of steps."""
        return (steps - 1) * self.step + max(self.updates, default=0)


@dataclass(frozen=True)
class BufferAccess:
    """
    An access of an update to a buffer: a write at offset 0, or reads at offsets from `low` to
    `high`.
    """

    update: int
    low: int
    high: int
    writes: bool


Accesses = Sequence[Sequence[BufferAccess]]
"""The accesses of a step, for each argument of the loop's body."""


def access_of(update: UpdateOp, number: int, field: SSAValue, axis: int) -> BufferAccess | None:
    """
    The access of an update to a field, along an axis. An update reads a field written by the same
    update at offset 0 only.
    """
    taps = (tap for tap in update.tap_list if update.sources[tap.operand] is field)
    offsets = [tap.offset[axis] if axis < update.rank else 0 for tap in taps]
    if field in update.targets:
        return BufferAccess(number, 0, 0, True)
    return BufferAccess(number, min(offsets), max(offsets), False) if offsets else None


def accesses_of(loop: LoopOp, axis: int, updates: Sequence[UpdateOp]) -> Accesses:
    """The accesses of some updates of a step."""
    found = (
        [access_of(update, k, argument, axis) for k, update in enumerate(updates)]
        for argument in loop.body.block.args
    )
    return [[access for access in row if access is not None] for row in found]


def conflicts(
    accesses: Accesses, names: Sequence[int]
) -> Iterator[tuple[BufferAccess, BufferAccess]]:
    """
    Pairs of accesses to one buffer, by an earlier and a later step, at least one a write. Argument
    k of the later step names the buffer that argument `names[k]` of the earlier step names.
    """
    for name, others in zip(names, accesses, strict=True):
        for later in others:
            for earlier in accesses[name]:
                if earlier.writes or later.writes:
                    yield earlier, later


def needed_lags(rotation: Sequence[int], accesses: Accesses, count: int) -> Lags:
    """
    The least lags that satisfy (1): one for each of a step's `count` updates, and how far each
    step lags behind the step before.
    """
    updates = [0] * count
    pairs = conflicts(accesses, range(len(rotation)))
    inside = [(earlier, later) for earlier, later in pairs if earlier.update < later.update]
    for earlier, later in sorted(inside, key=lambda pair: pair[1].update):
        needed = updates[earlier.update] + later.high - earlier.low
        updates[later.update] = max(updates[later.update], needed)
    step, names = 0, rotation
    # Buffers return to their first names after a cycle of the rotation. A conflict at a distance of
    # n steps needs a lag of 1/n for each step.
    for distance in range(1, len(rotation) + 1):
        for earlier, later in conflicts(accesses, names):
            needed = updates[earlier.update] - updates[later.update] + later.high - earlier.low
            step = max(step, -(-needed // distance))
        names = tuple(names[source] for source in rotation)
    return Lags(step, tuple(updates))


def turned(accesses: Accesses) -> Accesses:
    """The accesses along the axis turned around: (1) for the result is (2) for the accesses."""
    return [
        [BufferAccess(access.update, -access.high, -access.low, access.writes) for access in row]
        for row in accesses
    ]


def extent_of(box: StencilBoundsAttr, axis: int) -> tuple[int, int]:
    """Start and end of a box along an axis. A missing axis has a single cell, at 0."""
    if axis >= len(box.lb):
        return 0, 1
    return tuple(box.lb)[axis], tuple(box.ub)[axis]


@dataclass(frozen=True)
class Skew:
    """
    An axis of updates run together: the lags of the stages, and start and end of the places of a
    step.
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
        """For all updates of a step, or for some consecutive updates."""
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
        """The number of further cells of a field touched by a step at a single place."""
        accesses = [access_of(u, k, field, self.axis) for k, u in enumerate(self.updates)]
        known = [access for access in accesses if access is not None]
        lows = [access.low - self.lags.updates[access.update] for access in known]
        highs = [access.high - self.lags.updates[access.update] for access in known]
        return max(highs) - min(lows) if known else 0
