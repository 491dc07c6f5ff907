"""Extents: how far beyond the cells that a tile stores each of its queues must be right."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, StoreOp


@dataclass(frozen=True)
class Extent:
    """Cells beyond the stored ones, per axis: `low` below and `high` above, both 0 or more."""

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


def extents(kernel: KernelOp) -> dict[SSAValue, Extent]:
    """
    What each queue must hold for the stores to be right: backwards, needed(queue) is the union over
    its readers of needed(reader) moved by the tap's offset.
    """
    rank = kernel.rank
    zero = Extent.zero(rank)
    needed: dict[SSAValue, Extent] = {}

    def need(queue: SSAValue, extent: Extent) -> None:
        needed[queue] = needed.get(queue, zero).union(extent)

    for stage in reversed(kernel.stages):
        match stage:
            case StoreOp():
                need(stage.queue, zero)
            case ExchangeOp():
                need(stage.queue, needed.get(stage.result, zero))
            case ApplyOp():
                own = zero
                for result in stage.res:
                    own = own.union(needed.get(result, zero))
                for tap in stage.tap_list:
                    need(stage.queues[tap.operand], own.shifted(tap.offset))
                for queue in stage.otherwise:
                    need(queue, own)
            case _:
                pass
    return needed


def held_extent(queue: SSAValue, needed: dict[SSAValue, Extent]) -> Extent | None:
    """What the readers of a queue need of it beside what they tap through an exchange."""
    kernel = queue.owner.parent_op() if isinstance(queue.owner, Operation) else None
    assert isinstance(kernel, KernelOp)
    held: Extent | None = None
    for stage in dict.fromkeys(use.operation for use in queue.uses):
        if not isinstance(stage, ApplyOp):
            continue
        own = Extent.zero(kernel.rank)
        for result in stage.res:
            own = own.union(needed.get(result, own))
        taps = [tap.offset for tap in stage.tap_list if stage.queues[tap.operand] is queue]
        parts = [own.shifted(offset) for offset in taps]
        parts += [own] * (queue in stage.otherwise)
        for part in parts:
            held = part if held is None else held.union(part)
    return held


def total_extent(kernel: KernelOp) -> Extent:
    """The union over all queues: the overlap of neighbouring tiles."""
    result = Extent.zero(kernel.rank)
    for extent in extents(kernel).values():
        result = result.union(extent)
    return result
