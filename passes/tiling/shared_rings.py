"""
Stages that share a ring of shared memory: planes of a later stage lie where planes of an earlier
stage have been read.

```
%e1 = tile.exchange %u1 what plane delay 0
    home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, ...>
%e2 = tile.exchange %u2 what plane delay 0
    home #tile.exchange_buffer<slots 2, fixed, ring 0 base 1, every 1, ...>
%e3 = tile.exchange %u3 what plane delay 0
    home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, ...>
```
1. Planes are read in the step that writes them: exchanges without a delay, and all planes of a tile
   that stays.
2. A stage takes the base of an earlier stage if a barrier stands between the last reader and the
   stage, so that sharing adds no barrier between two levels. Two slots serve any number of levels:
   the double buffer of AN5D, and the two planes of DTB.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    CommonRingAttr,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    Published,
    SharedAttr,
    StageOp,
    queue_type,
)
from timetile.passes.analysis.queues.kept_planes import last_read, numbered
from timetile.passes.analysis.queues.storage import power_of_two
from timetile.passes.analysis.queues.synchronisation import collect_orders, place_barriers


def share_rings(kernel: KernelOp) -> None:
    """Let placed stages of equal planes share rings."""
    groups: dict[tuple[Attribute, ...], list[StageOp]] = {}
    for stage in kernel.stages:
        if (kind := kind_of(kernel, stage)) is not None:
            groups.setdefault(kind, []).append(stage)
    barriers = place_barriers(collect_orders(kernel))
    for number, stages in enumerate(groups.values()):
        bases = shared_bases(kernel, stages, barriers)
        slots = 1 + max(bases)
        if len(stages) < 2 or slots >= sum(own_slots(stage) for stage in stages):
            continue
        for stage, base in zip(stages, bases):
            put_in_ring(stage, CommonRingAttr(number, base), slots)


def own_slots(stage: StageOp) -> int:
    """The slots of a stage's planes in rings of their own."""
    home = stage.home
    assert isinstance(home, SharedAttr | ExchangeBufferAttr)
    return home.slots.data * len(stage.results)


def put_in_ring(stage: StageOp, common: CommonRingAttr, slots: int) -> None:
    """Let a stage's planes lie in a common ring of at least some slots."""
    match stage:
        case LoadOp(home=SharedAttr() as home) | ApplyOp(home=SharedAttr() as home):
            computed = home.addressing.data is Addressing.COMPUTED
            stage.home = home.in_ring(common, power_of_two(slots) if computed else slots)
        case ExchangeOp(home=ExchangeBufferAttr() as home):
            computed = home.addressing.data is Addressing.COMPUTED
            stage.home = home.in_ring(common, power_of_two(slots) if computed else slots)
        case _:
            pass


def kind_of(kernel: KernelOp, stage: StageOp) -> tuple[Attribute, ...] | None:
    """
    What stages with a common ring have in common; None for a stage whose planes are read in other
    steps, or lie elsewhere.
    """
    if isinstance(stage, ExchangeOp) and isinstance(stage.home, ExchangeBufferAttr):
        steps, _ = last_read(stage.result, numbered(kernel), kernel.stream_axis)
        if steps or stage.what.data is Published.COPIES:
            return None
        return stage.what, queue_type(stage.result).element, queue_type(stage.result).edges
    resident = kernel.stream_axis is None
    if isinstance(stage, LoadOp | ApplyOp) and isinstance(stage.home, SharedAttr) and resident:
        return tuple(queue_type(result).element for result in stage.results[:1])
    return None


def shared_bases(kernel: KernelOp, stages: Sequence[StageOp], barriers: Sequence[int]) -> list[int]:
    """
    The bases of stages in a ring, by the barriers of a step: each result takes a slot that no stage
    reads any more, below the slot of the result before.
    """
    numbers = numbered(kernel)
    last_readers: list[int] = []
    bases: list[int] = []
    for stage in stages:
        count, writer = len(stage.results), numbers[stage]
        free = [any(reader < b <= writer for b in barriers) for reader in last_readers]
        high = next(
            (n for n in range(count - 1, len(free)) if all(free[n - count + 1 : n + 1])), None
        )
        if high is None:
            last_readers += [0] * count
            high = len(last_readers) - 1
        for below, result in enumerate(stage.results):
            _, reader = last_read(result, numbers, kernel.stream_axis)
            last_readers[high - below] = max(writer, reader)
        bases.append(high)
    return bases
