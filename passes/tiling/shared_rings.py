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
1. Planes read in the step of writing, of exchanges without a delay and of a tile without a stream:
   a stage takes the base of an earlier stage if a barrier stands between the last reader and the
   stage. Sharing adds no barrier between two levels. Two slots serve any number of levels: the
   double buffer of AN5D, and the two planes of DTB.
2. Planes of exchanges, read in later steps, lie one behind the other around a ring. The ring has as
   many slots as separate rings together (EBISU, section 4.2). Asynchronous copies of a field land
   in the ring, and write a slot as many steps early as planes are fetched ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import Attribute

from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    CommonRingAttr,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    SharedAttr,
    StageOp,
    queue_type,
)
from timetile.dialects.tile.kinds import Published, PublishedAttr
from timetile.passes.analysis.placed import home_of, layout_of
from timetile.passes.analysis.queues.common_rings import steps_early
from timetile.passes.analysis.queues.kept_planes import last_read, stage_numbers
from timetile.passes.analysis.queues.storage import ReadAges, exchanged_slots, power_of_two
from timetile.passes.analysis.queues.synchronisation import (
    collect_orders,
    lives_in_ring,
    place_barriers,
)


def share_rings(kernel: KernelOp) -> None:
    """Let placed stages of equal planes share rings."""
    groups: dict[RingKind, list[StageOp]] = {}
    for stage in kernel.stages:
        if (kind := ring_kind(kernel, stage)) is not None:
            groups.setdefault(kind, []).append(stage)
    barriers = place_barriers(collect_orders(kernel))
    for number, (kind, stages) in enumerate(groups.items()):
        if kind.late:
            bases, slots = one_behind_the_other(kernel, stages)
        else:
            bases = in_turn(kernel, stages, barriers)
            slots = 1 + max(bases)
        own = sum(own_slots(stage) for stage in stages)
        if len(stages) > 1 and (kind.late or slots < own):
            for stage, base in zip(stages, bases):
                if isinstance(stage, ExchangeOp) and stage.publishes_copies:
                    others = (s for s in stages if not is_of_copies(s))
                    stage.home = home_of(stage).addressed(addressing_of(next(others)))
                put_in_ring(stage, CommonRingAttr(number, base), slots)


def own_slots(stage: StageOp) -> int:
    """The slots of a stage's planes in rings of their own."""
    home = stage.home
    assert isinstance(home, SharedAttr | ExchangeBufferAttr)
    return home.slots.data * len(stage.results)


@dataclass(frozen=True)
class RingKind:
    """What stages with a common ring share; `late`: planes are read in later steps."""

    planes: tuple[Attribute, ...]
    late: bool


def is_of_copies(stage: StageOp) -> bool:
    """Whether a stage publishes the copies of a load."""
    return isinstance(stage, ExchangeOp) and stage.publishes_copies


def addressing_of(stage: StageOp) -> Addressing:
    """How a step finds a slot of a stage's planes."""
    home = stage.home
    assert isinstance(home, SharedAttr | ExchangeBufferAttr)
    return home.addressing.data


def fills_rings(stage: ExchangeOp) -> bool:
    """Whether an exchange's planes may lie beside others: copies bring cells of their queue."""
    return stage.element == queue_type(stage.result).element


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


def ring_kind(kernel: KernelOp, stage: StageOp) -> RingKind | None:
    """
    What a stage shares with others of a ring; None for a stage without planes in a block's memory.
    Blocks of a streamed tile count messages by separate slots.
    """
    resident = kernel.stream_axis is None
    if isinstance(stage, ExchangeOp) and isinstance(stage.home, ExchangeBufferAttr):
        apart = layout_of(kernel).blocks > 1 and not resident
        if apart or lives_in_ring(stage.queue) or not fills_rings(stage):
            return None
        steps, _ = last_read(stage.result, stage_numbers(kernel), kernel.stream_axis)
        if stage.publishes_copies:
            # Copies lie in a ring of whole planes with cells of the type, if there is one.
            kinds = (ring_kind(kernel, each) for each in kernel.stages if not is_of_copies(each))
            return next((k for k in kinds if k and k.late and is_of_planes(k, stage)), None)
        kind = queue_type(stage.result)
        return RingKind((stage.what, kind.element, kind.edges), steps > 0)
    if isinstance(stage, LoadOp | ApplyOp) and isinstance(stage.home, SharedAttr) and resident:
        return RingKind((queue_type(stage.results[0]).element,), late=False)
    return None


def is_of_planes(kind: RingKind, exchange: ExchangeOp) -> bool:
    """Whether stages of a kind have whole planes of the type that an exchange publishes."""
    what, element, *_ = kind.planes
    return what == PublishedAttr(Published.PLANE) and element == exchange.element


def one_behind_the_other(kernel: KernelOp, stages: Sequence[StageOp]) -> tuple[list[int], int]:
    """
    The bases of exchanges with planes read in later steps, and the slots of the ring: each exchange
    has as many slots as alone, and the next stage overwrites the oldest (the circular multi-queue
    of EBISU). Copies write to the head of their window some steps early.
    """
    windows: list[int] = []
    for stage in stages:
        assert isinstance(stage, ExchangeOp)
        if stage.publishes_copies:
            windows.append(home_of(stage).slots.data)
            continue
        ages, every = ReadAges.of(stage, kernel.stream_axis), home_of(stage).every.data
        windows.append(exchanged_slots(ages, flags=False, every=every))
    slots = sum(windows)
    heads = accumulate(windows, initial=0)
    early = [steps_early(stage.results[0]) for stage in stages]
    return [slots - 1 - head - steps for head, steps in zip(heads, early)], slots


def in_turn(kernel: KernelOp, stages: Sequence[StageOp], barriers: Sequence[int]) -> list[int]:
    """
    The bases of stages in a ring, by the barriers of a step: each result takes a slot without a
    reader left, below the slot of the result before.
    """
    numbers = stage_numbers(kernel)
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
