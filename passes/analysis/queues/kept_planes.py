"""
Whether the homes of a kernel keep every plane until the last read.

A plane of age a is read a stream steps after its making. Until the read, no other plane may take
the slot. Sizes of homes and distances of taps are static; the answer is static, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    CopiesAttr,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    RegistersAttr,
    SharedAttr,
    StageOp,
    queue_type,
)
from timetile.passes.analysis.queues.lags import oldest_age
from timetile.passes.analysis.queues.storage import ring_window
from timetile.passes.diagnostics import refuse


def check_kept_planes(kernel: KernelOp) -> None:
    """Refuse homes that lose a plane before a read, and registers for planes without a reader."""
    for stage in kernel.stages:
        asked = max((oldest_age(q, kernel.stream_axis) for q in stage.results), default=0)
        match stage.home:
            case RegistersAttr() as home if asked != home.depth.data:
                refuse(
                    stage,
                    f"the home has place for {home.depth.data} older planes, and readers ask for "
                    f"{asked}; use #tile.registers<depth {asked}, period {home.period.data}>",
                )
            case SharedAttr() | CopiesAttr() | ExchangeBufferAttr() as home:
                needed = asked + 1 + planes_before_readers(stage)
                if home.slots.data < needed:
                    refuse(
                        stage,
                        f"its home has {home.slots.data} slots, and {needed} planes are on the "
                        f"way or still read; use slots {needed} or more",
                    )
            case _:
                pass
    check_common_rings(kernel)


def planes_before_readers(stage: StageOp) -> int:
    """Planes of an exchange without a reader so far: published, or fetched ahead."""
    if not isinstance(stage, ExchangeOp):
        return 0
    load = stage.queue.owner
    if stage.publishes_copies and isinstance(load, LoadOp):
        return load.planes_ahead + stage.hold + stage.delay.data
    return stage.delay.data


def check_common_rings(kernel: KernelOp) -> None:
    """
    Refuse queues of a common ring with homes of several sizes, and queues that overwrite each
    other's planes before a read.
    """
    heads = list(ring_heads(kernel))
    for queue, slots, head in heads:
        stage = queue.owner
        assert isinstance(stage, LoadOp | ApplyOp)
        sharing = [
            each for each in heads if queue_type(each[0]).element == queue_type(queue).element
        ]
        sizes = {size for _, size, _ in sharing}
        if len(sizes) > 1:
            refuse(
                stage,
                f"queues of the ring have homes of {slots} and {max(sizes - {slots})} slots; give "
                "the ring one size",
            )
        if any(overwrites(kernel, queue, head, other, at, slots) for other, _, at in sharing):
            refuse(
                stage,
                "another queue of the ring overwrites a plane before the last read; run "
                "multi-queue-buffering for new slots and bases",
            )


def ring_heads(kernel: KernelOp) -> Iterator[tuple[SSAValue, int, int]]:
    """The queues of common rings, each with the slots of its home, and with its head's slot."""
    for stage in kernel.stages:
        home = stage.home
        if isinstance(home, SharedAttr) and home.addressing.data is Addressing.COMPUTED:
            head = home.base.data
            for queue in stage.results:
                yield queue, home.slots.data, head
                # The windows of the results, one after the other.
                head -= ring_window(queue, kernel.stream_axis)


def overwrites(
    kernel: KernelOp, queue: SSAValue, head: int, other: SSAValue, at: int, slots: int
) -> bool:
    """
    Whether another queue of a ring, `at` slots ahead of the step, writes to a slot with a plane of
    a queue that is still to be read. Both queues write a plane each step.
    """
    oldest = oldest_age(queue, kernel.stream_axis)
    # The plane of step 0 is read last in step `oldest`.
    written = range(oldest + 1) if kernel.stream_axis is not None else range(1)
    return other is not queue and any((step + at - head) % slots == 0 for step in written)
