"""Extents: how far beyond the cells that a tile stores each of its queues must be right.

Beyond the bounds less is needed than beyond a tile's stored cells: where a stage takes other cells there
(`else`), its taps are read from inside only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from xdsl.ir import Operation, SSAValue

from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, StoreOp, taps_of


@dataclass(frozen=True)
class Extent:
    """
    Cells beyond the stored ones, per axis: `low` below and `high` above. Negative where fewer than those are needed, as of
    sums that travel: they lie beside the cells that they are for.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]

    @staticmethod
    def zero(rank: int) -> Extent:
        return Extent((0,) * rank, (0,) * rank)

    def shifted(self, offset: tuple[int, ...]) -> Extent:
        """The extent of what a reader with this extent needs at an offset."""
        return Extent(
            tuple(a - d for a, d in zip(self.low, offset)),
            tuple(b + d for b, d in zip(self.high, offset)),
        )

    def union(self, other: Extent) -> Extent:
        """The smallest extent that holds both."""
        return Extent(tuple(map(max, self.low, other.low)), tuple(map(max, self.high, other.high)))


def extents(kernel: KernelOp, *, outside: bool = False) -> dict[SSAValue, Extent]:
    """
    What each queue must hold for the stores to be right: backwards, needed(queue) is the union over
    its readers of needed(reader) moved by the tap's offset. With `outside`, what it must hold beyond the
    kernel's bounds.
    """
    rank = kernel.rank
    zero = Extent.zero(rank)
    needed: dict[SSAValue, Extent] = {}

    def need(queue: SSAValue, extent: Extent) -> None:
        # Only what is computed may lie beside the stored cells: tiles are placed by the cells that they load and store.
        first = extent if isinstance(queue.owner, ApplyOp) else zero
        needed[queue] = needed.get(queue, first).union(extent)

    for stage in reversed(kernel.stages):
        match stage:
            case StoreOp():
                need(stage.queue, zero)
            case ExchangeOp():
                need(stage.queue, needed.get(stage.result, zero))
            case ApplyOp():
                tapped = tapped_from(stage, needed, zero, outside=outside)
                for tap in stage.tap_list:
                    need(stage.queues[tap.operand], tapped.shifted(tap.offset))
                for queue in stage.otherwise:
                    need(queue, stage_extent(stage, needed, zero))
            case _:
                pass
    return needed


def held_extent(
    queue: SSAValue, needed: dict[SSAValue, Extent], *, outside: bool = False
) -> Extent | None:
    """What the readers of a queue need of it beside what they tap through an exchange."""
    kernel = queue.owner.parent_op() if isinstance(queue.owner, Operation) else None
    assert isinstance(kernel, KernelOp)
    zero = Extent.zero(kernel.rank)
    parts: list[Extent] = []
    for stage, tap in taps_of(queue):
        parts.append(tapped_from(stage, needed, zero, outside=outside).shifted(tap.offset))
    for stage in dict.fromkeys(use.operation for use in queue.uses):
        if isinstance(stage, ApplyOp) and queue in stage.otherwise:
            parts.append(stage_extent(stage, needed, zero))
    return reduce(Extent.union, parts) if parts else None


def stage_extent(stage: ApplyOp, needed: dict[SSAValue, Extent], zero: Extent) -> Extent:
    """What a stage must make for all of its results to be right."""
    return reduce(Extent.union, [needed.get(result, zero) for result in stage.res])


def tapped_from(
    stage: ApplyOp, needed: dict[SSAValue, Extent], zero: Extent, *, outside: bool
) -> Extent:
    """Where a stage computes what it must make, and so reads its taps."""
    return zero if outside and stage.otherwise else stage_extent(stage, needed, zero)


def served_by_copies(kernel: KernelOp) -> list[ExchangeOp]:
    """The exchanges that are served by a load's asynchronous copies."""
    exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
    return [exchange for exchange in exchanges if exchange.publishes_copies]


def held_by_tile(kernel: KernelOp, needed: dict[SSAValue, Extent], *, outside: bool) -> Extent:
    """What a tile itself holds of what is needed around the cells that it stores."""
    # What is read through asynchronous copies lies around the tile, too.
    copies = served_by_copies(kernel)
    beside = {queue for e in copies for queue in (e.queue, e.result)}
    held = [extent for queue, extent in needed.items() if queue not in beside]
    around = (held_extent(e.queue, needed, outside=outside) for e in copies)
    held += [extent for extent in around if extent is not None]
    return reduce(Extent.union, held, Extent.zero(kernel.rank))


@dataclass(frozen=True)
class Needs:
    """
    What each queue must hold `around` the cells that a tile stores, what of that the tile itself holds (its
    `overlap`), and what it holds beyond the kernel's bounds (`outside`). None of it depends on the layout.
    """

    around: dict[SSAValue, Extent]
    overlap: Extent
    outside: Extent

    @staticmethod
    def of(kernel: KernelOp) -> Needs:
        around, beyond = extents(kernel), extents(kernel, outside=True)
        overlap = held_by_tile(kernel, around, outside=False)
        return Needs(around, overlap, held_by_tile(kernel, beyond, outside=True))
