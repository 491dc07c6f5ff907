"""
Computes extents: how far beyond the cells that a tile stores the cells of each queue must be right.
No other file computes extents.

Beyond the bounds fewer cells are needed than beyond a tile's stored cells: a stage taking cells
outside the bounds from its `else` operand reads taps inside the bounds only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.ir import Operation, SSAValue

from timetile.dialects.temporal.boundary import MIRRORS
from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, LoadOp, StoreOp, taps_of


@dataclass(frozen=True)
class Extent:
    """
    Cells beyond the stored cells, for each axis: `low` below and `high` above. Negative if fewer
    cells than the stored ones are needed, as for sums travelling through lanes, which lie beside
    their cells.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]

    @staticmethod
    def zero(rank: int) -> Extent:
        """The extent of exactly the stored cells, for a domain of `rank` axes."""
        return Extent((0,) * rank, (0,) * rank)

    def shifted(self, offset: tuple[int, ...]) -> Extent:
        """The extent needed of a queue tapped at `offset` by a reader with this extent."""
        return Extent(
            tuple(a - d for a, d in zip(self.low, offset)),
            tuple(b + d for b, d in zip(self.high, offset)),
        )

    def at_sides(self, sides: Sequence[tuple[bool, bool]]) -> Extent:
        """The extent at some sides of each axis, and at most nothing at others."""
        return Extent(
            tuple(n if below else min(n, 0) for n, (below, _) in zip(self.low, sides)),
            tuple(n if above else min(n, 0) for n, (_, above) in zip(self.high, sides)),
        )

    def union(self, other: Extent) -> Extent:
        """The smallest extent containing both."""
        return Extent(tuple(map(max, self.low, other.low)), tuple(map(max, self.high, other.high)))


def extents(kernel: KernelOp, *, outside: bool = False) -> dict[SSAValue, Extent]:
    """
    The cells that each queue must hold for all stores to be right, computed backwards:
    needed(queue) is the union of needed(reader), moved by the offset of the tap, over all readers.
    With `outside`, the cells beyond the kernel's bounds.
    """
    rank = kernel.rank
    zero = Extent.zero(rank)
    needed: dict[SSAValue, Extent] = {}

    def need(queue: SSAValue, extent: Extent) -> None:
        # Only computed cells may lie beside the stored cells: loaded and stored cells place the
        # tile.
        first = extent if isinstance(queue.owner, ApplyOp) else zero
        needed[queue] = needed.get(queue, first).union(extent)

    for stage in reversed(kernel.stages):
        match stage:
            case StoreOp():
                need(stage.queue, zero)
            case ExchangeOp():
                need(stage.queue, needed.get(stage.result, zero))
            case ApplyOp():
                for made in stage.point_sets:
                    # The tile that stores a cell notes the cell, wherever others read.
                    result = stage.res[made.target]
                    needed[result] = needed.get(result, zero).union(zero)
                tapped = tapped_from(stage, needed, zero, outside=outside)
                queues = stage.queues
                for tap in stage.tap_list:
                    need(queues[tap.operand], tapped.shifted(tap.offset))
                for queue in stage.outside:
                    need(queue, stage_extent(stage, needed, zero))
            case _:
                pass
    return needed


def held_extent(
    queue: SSAValue, needed: dict[SSAValue, Extent], *, outside: bool = False
) -> Extent | None:
    """
    The extent needed by readers of a queue, without reads through an exchange; None if no reader
    needs a cell.
    """
    kernel = queue.owner.parent_op() if isinstance(queue.owner, Operation) else None
    assert isinstance(kernel, KernelOp)
    zero = Extent.zero(kernel.rank)
    parts: list[Extent] = []
    for stage, tap in taps_of(queue):
        parts.append(tapped_from(stage, needed, zero, outside=outside).shifted(tap.offset))
    for stage in dict.fromkeys(use.operation for use in queue.uses):
        if isinstance(stage, ApplyOp) and queue in stage.outside:
            parts.append(stage_extent(stage, needed, zero))
    return reduce(Extent.union, parts) if parts else None


def stage_extent(stage: ApplyOp, needed: dict[SSAValue, Extent], zero: Extent) -> Extent:
    """The extent computed by a stage for correct results."""
    return reduce(Extent.union, [needed.get(result, zero) for result in stage.results])


def tapped_from(
    stage: ApplyOp, needed: dict[SSAValue, Extent], zero: Extent, *, outside: bool
) -> Extent:
    """
    The extent of cells computed by a stage, and of the reads at each tap; outside the bounds a
    stage computes along periodic axes, and without `else` along axes that do not go on.
    """
    extent = stage_extent(stage, needed, zero)
    return extent.at_sides(computed_sides(stage)) if outside else extent


def computed_sides(stage: ApplyOp) -> list[tuple[bool, bool]]:
    """Whether a stage computes cells outside the bounds below and above each axis."""
    kernel = stage.kernel
    everywhere, continued = not stage.outside, kernel.continued_axes
    sides: list[tuple[bool, bool]] = []
    for axis in range(kernel.rank):
        computed = kernel.is_periodic(axis) if axis in continued else everywhere
        sides.append((computed, computed))
    return sides


def served_by_copies(kernel: KernelOp) -> list[ExchangeOp]:
    """The exchanges served by a load's asynchronous copies."""
    exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
    return [exchange for exchange in exchanges if exchange.publishes_copies]


def held_by_tile(kernel: KernelOp, needed: dict[SSAValue, Extent], *, outside: bool) -> Extent:
    """The part, computed or loaded by a tile, of the needed cells around the stored cells."""
    # Cells read through asynchronous copies lie around the tile, too, and cells read from memory at
    # use lie anywhere.
    copies = served_by_copies(kernel)
    beside = {queue for e in copies for queue in (e.queue, e.result)}
    beside |= {s.result for s in kernel.stages if isinstance(s, LoadOp) and s.is_read_at_use}
    held = [extent for queue, extent in needed.items() if queue not in beside]
    around = (held_extent(e.queue, needed, outside=outside) for e in copies)
    held += [extent for extent in around if extent is not None]
    return reduce(Extent.union, held, Extent.zero(kernel.rank))


@dataclass(frozen=True)
class Needs:
    """
    The needs of a kernel, independent of the layout. `around`: cells of each queue beyond the cells
    stored by a tile. `overlap`: the part of `around` in the tile itself. `outside`: cells held by
    the tile beyond the kernel's bounds.
    """

    around: dict[SSAValue, Extent]
    overlap: Extent
    outside: Extent

    @staticmethod
    def of(kernel: KernelOp) -> Needs:
        """The needs of a kernel's queues, in cells."""
        around, beyond = extents(kernel), extents(kernel, outside=True)
        overlap = held_by_tile(kernel, around, outside=False)
        outside = held_by_tile(kernel, beyond, outside=True)
        # Across a mirror a tap reads the image, a cell inside.
        pairs = (kernel.sides(axis) for axis in range(kernel.rank))
        read = [(below not in MIRRORS, above not in MIRRORS) for below, above in pairs]
        return Needs(around, overlap, outside.at_sides(read))
