"""
Queues that share a ring of planes in shared memory: the base of each, and who overwrites whom.

A step writes a plane of a queue to slot `step + base`, modulo the slots of the ring. A queue of
another base writes the slot as many steps later as the bases differ, around the ring; a queue of
the base of an earlier stage in the same step. Asynchronous copies write the slot of a plane as many
steps early as the plane is fetched ahead.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, SSAValue

from timetile.dialects.tile import (
    ApplyOp,
    CommonRingAttr,
    ExchangeBufferAttr,
    ExchangeOp,
    HomeAttr,
    KernelOp,
    LoadOp,
    SharedAttr,
    queue_home,
    queue_type,
)
from timetile.passes.analysis.queues.storage import ring_window


def common_ring(home: HomeAttr | None) -> CommonRingAttr | None:
    """The common ring of a home; None for a home of a queue's own."""
    if isinstance(home, SharedAttr | ExchangeBufferAttr):
        return home.common if isinstance(home.common, CommonRingAttr) else None
    return None


def ring_base(queue: SSAValue, stream: int | None) -> int:
    """
    The slots by which a queue is ahead in the ring: each result of a stage lies below the windows
    of the results before.
    """
    common, maker = common_ring(queue_home(queue)), queue.owner
    if common is None:
        return 0
    base = common.base.data
    if isinstance(maker, LoadOp | ApplyOp):
        results: list[SSAValue] = list(maker.results)
        earlier = results[: results.index(queue)]
        base -= sum(ring_window(each, stream) for each in earlier)
    return base


def ring_slots_of(queue: SSAValue) -> int:
    """The slots of a queue's ring in shared memory."""
    home = queue_home(queue)
    assert isinstance(home, SharedAttr | ExchangeBufferAttr)
    return home.slots.data


def ring_key(queue: SSAValue) -> tuple[int, Attribute] | None:
    """What names the common ring of a queue, if any: its number, and the type of cells."""
    common = common_ring(queue_home(queue))
    return None if common is None else (common.number.data, queue_type(queue).element)


def shares_ring(queue: SSAValue, other: SSAValue) -> bool:
    """Whether two queues have one ring."""
    return queue is other or (ring_key(queue) is not None and ring_key(queue) == ring_key(other))


def copied_load(queue: SSAValue) -> LoadOp | None:
    """The load whose asynchronous copies write the planes of a queue; None for other queues."""
    maker = queue.owner
    if isinstance(maker, ExchangeOp) and maker.publishes_copies:
        load = maker.queue.owner
        return load if isinstance(load, LoadOp) else None
    return None


def steps_early(queue: SSAValue) -> int:
    """How many steps before the arrival of a plane its slot is written: 0 unless by copies."""
    load = copied_load(queue)
    return 0 if load is None else load.planes_ahead


def writing_stages(kernel: KernelOp) -> dict[SSAValue, int]:
    """
    The number of the stage that writes the planes of each queue: copies arrive, and later copies
    start, at the place of their load.
    """
    numbers = {stage: n for n, stage in enumerate(kernel.stages)}
    return {
        queue: n if (load := copied_load(queue)) is None else numbers[load]
        for stage, n in numbers.items()
        for queue in stage.results
    }


def next_writer(
    queue: SSAValue, position: Mapping[SSAValue, int], stream: int | None
) -> tuple[int, int] | None:
    """
    The steps from the writing of a queue's plane until the plane is overwritten, and the
    overwriting stage, by the `position` of writing stages; None without a stream if no later stage
    writes the slot.
    """
    slots, base = ring_slots_of(queue), ring_base(queue, stream) + steps_early(queue)
    found: list[tuple[int, int]] = []
    for other, at in position.items():
        if shares_ring(queue, other):
            steps = (base - ring_base(other, stream) - steps_early(other)) % slots
            if steps == 0 and at <= position[queue]:
                steps = slots
            found.append((steps, at))
    following = min(found)
    return None if stream is None and following[0] else following
