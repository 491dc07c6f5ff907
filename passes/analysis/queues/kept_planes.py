"""
Whether the homes of a kernel keep every plane until the last read.

A plane of age a is read a stream steps after its making. Until the read, no other plane may take
the slot. Sizes of homes and distances of taps are static; the answer is static, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from timetile.dialects.tile import (
    ApplyOp,
    CopiesAttr,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    Published,
    RegistersAttr,
    SharedAttr,
    StageOp,
    StoreOp,
    queue_home,
    queue_type,
)
from timetile.passes.analysis.queues.common_rings import (
    copied_load,
    next_writer,
    ring_key,
    steps_early,
    writing_stages,
)
from timetile.passes.analysis.queues.lags import offsets_of_operand, oldest_age
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
    Refuse queues of a common ring with homes of several kinds, and queues that overwrite each
    other's planes before a read.
    """
    numbers, position = stage_numbers(kernel), writing_stages(kernel)
    known, stream = dict[tuple[int, Attribute], SSAValue](), kernel.stream_axis
    for stage in kernel.stages:
        for queue in stage.results:
            if (key := ring_key(queue)) is None:
                continue
            check_alike(stage, known.setdefault(key, queue))
            following = next_writer(queue, position, stream)
            if following is not None and last_read_of_slot(queue, numbers, stream) >= following:
                refuse(
                    stage,
                    "another queue of the ring overwrites a plane before the last read; run "
                    "multi-queue-buffering for new slots and bases",
                )


def stage_numbers(kernel: KernelOp) -> dict[Operation, int]:
    """The stages of a kernel, each with its number."""
    return {stage: n for n, stage in enumerate(kernel.stages)}


def check_alike(stage: StageOp, other: SSAValue) -> None:
    """Refuse a home that differs in more than the base from another home in the ring."""
    home, beside = stage.home, queue_home(other)
    assert isinstance(home, SharedAttr | ExchangeBufferAttr)
    assert isinstance(beside, SharedAttr | ExchangeBufferAttr)
    if isinstance(stage, ExchangeOp) and stage.element != queue_type(stage.result).element:
        refuse(
            stage,
            f"copies of {stage.element} cells arrive in a ring of their own; leave out the ring of "
            "its home",
        )
    if home.slots != beside.slots:
        refuse(
            stage,
            f"queues of the ring have homes of {home.slots.data} and {beside.slots.data} slots; "
            "give the ring one size",
        )
    alike = home.addressing == beside.addressing
    if copied_load(stage.results[0]) is None and copied_load(other) is None:
        alike = alike and type(home) is type(beside)
        if isinstance(stage, ExchangeOp) and isinstance(maker := other.owner, ExchangeOp):
            alike = alike and (stage.what, stage.edges) == (maker.what, maker.edges)
    if not alike:
        refuse(
            stage,
            "queues of the ring have several homes, addressings or edges; give the ring one of "
            "each",
        )


def last_read_of_slot(
    queue: SSAValue, numbers: Mapping[Operation, int], stream: int | None
) -> tuple[int, int]:
    """
    The last read of a queue's plane: steps behind the writing of its slot, and the reading stage.
    The slot of a copy is written early, and a plane is published when the copy has arrived.
    """
    steps, reader = last_read(queue, numbers, stream)
    if isinstance(maker := queue.owner, ExchangeOp) and maker.publishes_copies:
        steps += maker.hold
    return steps + steps_early(queue), reader


def last_read(
    queue: SSAValue, numbers: Mapping[Operation, int], stream: int | None
) -> tuple[int, int]:
    """
    The last read of a queue's plane: steps behind the writing, and the reading stage. Who reads an
    exchange of edges also reads the queue's ring.
    """
    found = [(0, 0)]
    for use in queue.uses:
        stage = use.operation
        if isinstance(stage, ExchangeOp):
            found.append((stage.hold, numbers[stage]))
            if stage.what.data is not Published.PLANE:
                behind, reader = last_read(stage.result, numbers, stream)
                found.append((behind + stage.hold, reader))
        elif isinstance(stage, ApplyOp | StoreOp):
            least = min(offsets_of_operand(stage, use.index, stream))
            behind = stage.lag - queue_type(queue).lag.data - least
            found.append((behind + delay_of(queue), numbers[stage]))
    return max(found)


def delay_of(queue: SSAValue) -> int:
    """Steps from the writing of a plane until the first read: the delay of an exchange."""
    maker = queue.owner
    return maker.delay.data if isinstance(maker, ExchangeOp) else 0
