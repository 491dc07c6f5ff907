"""Computes the lags of a kernel's queues. No other file computes lags.

A queue with lag L holds, at stream step i, planes up to i - L. An apply waits for the newest plane
tapped by the apply, or read as an image behind a mirror: its lag is the longest path over the
stages. An apply of fields alone, whose results are stored and nothing else, waits for a later apply
of a common field, if no shared queue keeps planes longer: both then read the field at one time. A
load takes the largest lag that its readers allow: no plane is kept longer than needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from timetile.dialects.taps import Tap
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    Published,
    StoreOp,
    queue_type,
    taps_of,
)
from timetile.dialects.tile.integers import ints
from timetile.dialects.tile.queues import made_queue_type
from timetile.passes.analysis.edges import images_of

PlaneReads = list[tuple[SSAValue, int]]
"""The queues read by a stage, with the offset of each read along the streaming axis, in planes."""


def distances(stage: ApplyOp, tap: Tap, stream: int) -> list[int]:
    """The offsets of a tap along the streaming axis: its own, and of images behind a mirror."""
    own, kernel = tap.offset[stream], stage.kernel
    if kernel.beyond is None:
        return [own]
    return [own, *(image for _, image in images_of(own, kernel.sides(stream)))]


def ages(stage: ApplyOp, tap: Tap, stream: int | None) -> list[int]:
    """The ages of the planes read by a tap: of its own, and of images behind a mirror."""
    age = stage.age(tap)
    if stream is None:
        return [age]
    return [age + tap.offset[stream] - other for other in distances(stage, tap, stream)]


def reads(
    stage: ApplyOp | ExchangeOp | StoreOp, stream: int | None
) -> Iterator[tuple[SSAValue, int]]:
    """
    The queues read by a stage, each with the offset of the read along the streaming axis, in
    planes.
    """
    if isinstance(stage, ApplyOp):
        queues = stage.queues
        for tap in stage.tap_list:
            for offset in [0] if stream is None else distances(stage, tap, stream):
                yield queues[tap.operand], offset
        for queue in stage.outside:
            yield queue, 0
    else:
        yield stage.queue, 0


def assign_lags(kernel: KernelOp) -> None:
    """Recompute the lag of every queue of the kernel, and write the lags to the types."""
    stream = kernel.stream_axis
    lags: dict[SSAValue, int] = {}
    known: dict[ApplyOp, PlaneReads] = {}
    stages = kernel.stages
    for stage in stages:
        match stage:
            case LoadOp():
                lags[stage.result] = 0
            case ApplyOp():
                known[stage] = list(reads(stage, stream))
                lag = max((lags[q] + offset for q, offset in known[stage]), default=0)
                lags.update(dict.fromkeys(stage.results, lag))
            case ExchangeOp():
                lags[stage.result] = lags[stage.queue] + stage.delay.data
            case StoreOp():
                pass
    for stage, lag in later_lags(known, lags).items():
        lags.update(dict.fromkeys(stage.results, lag))
    latest: dict[SSAValue, int] = {}
    for stage in reversed(stages):
        match stage:
            case LoadOp():
                lags[stage.result] = latest[stage.result]
            case ExchangeOp():
                # Planes wait in the source's home, and take no slots of the exchange.
                lags[stage.result] = latest[stage.result]
                at = lags[stage.result] - stage.delay.data
                latest[stage.queue] = min(latest.get(stage.queue, at), at)
            case ApplyOp():
                lag = lags[stage.results[0]]
                for queue, offset in known[stage]:
                    at = lag - offset
                    latest[queue] = min(latest.get(queue, at), at)
            case StoreOp():
                latest.setdefault(stage.queue, lags[stage.queue])
    for value, lag in lags.items():
        old = queue_type(value)
        if old.lag.data != lag:
            new = made_queue_type(old.element, lag, ints(old.edges))
            Rewriter.replace_value_with_new_type(value, new)


def loaded_field(queue: SSAValue) -> SSAValue | None:
    """The field behind a loaded queue, or behind its exchange; None for other queues."""
    source = queue.owner.queue.owner if isinstance(queue.owner, ExchangeOp) else queue.owner
    return source.data if isinstance(source, LoadOp) else None


def later_lags(
    reads_of: Mapping[ApplyOp, PlaneReads], lags: Mapping[SSAValue, int]
) -> dict[ApplyOp, int]:
    """
    The lags of applies that wait for the last apply with a common field: of fields alone, with
    results for stores alone, and as long as no queue keeps more planes. `reads_of`: the reads of
    all applies; `lags`: without waiting.
    """
    fields = {
        stage: {loaded_field(queue) for queue, _ in reads} for stage, reads in reads_of.items()
    }
    waiting: dict[ApplyOp, int] = {}
    for stage in reads_of:
        if may_wait(stage) and None not in fields[stage]:
            alike = (lags[each.res[0]] for each in reads_of if fields[each] & fields[stage])
            if (lag := max(alike, default=0)) > lags[stage.res[0]]:
                waiting[stage] = lag
    while waiting:
        before, after = spans(reads_of, lags, {}), spans(reads_of, lags, waiting)
        longer = {queue for queue in before if after[queue] > before[queue]}
        kept = [s for s in waiting if not any(queue in longer for queue, _ in reads_of[s])]
        if len(kept) == len(waiting):
            break
        waiting = {stage: waiting[stage] for stage in kept}
    return waiting


def may_wait(stage: ApplyOp) -> bool:
    """Whether the results of an apply are stored, and nothing else."""
    users = (use.operation for each in stage.res for use in each.uses)
    return not stage.outside and all(isinstance(user, StoreOp) for user in users)


def spans(
    reads_of: Mapping[ApplyOp, PlaneReads],
    lags: Mapping[SSAValue, int],
    waiting: Mapping[ApplyOp, int],
) -> dict[SSAValue, int]:
    """How many steps pass between the first and the last read of a plane, by queue."""
    read: dict[SSAValue, list[int]] = {}
    for stage, reads in reads_of.items():
        lag = waiting.get(stage, lags[stage.res[0]])
        for queue, offset in reads:
            read.setdefault(queue, []).append(lag - offset)
    return {queue: max(steps) - min(steps) for queue, steps in read.items()}


def is_early_sum(queue: SSAValue) -> bool:
    """
    Whether a queue is a partial sum, completed by later stream steps: every reader reads its own
    cell alone, and one reader reads an older plane.
    """
    taps = list(taps_of(queue))
    own = isinstance(queue.owner, ApplyOp) and not any(any(tap.offset) for _, tap in taps)
    return own and any(reader.age(tap) > 0 for reader, tap in taps)


def keeps_sums(kernel: KernelOp) -> bool:
    """Whether planes enter sums on arrival, and later stream steps complete the sums."""
    return any(is_early_sum(queue) for stage in kernel.stages for queue in stage.results)


def carries_sums(kernel: KernelOp) -> bool:
    """Whether several partial sums pass from one part of a sum to the next."""
    applies = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
    return any(len(stage.res) > 1 and all(map(is_early_sum, stage.res)) for stage in applies)


def lanes_meet_between_levels(kernel: KernelOp) -> bool:
    """
    Whether a level reads beside the newest cells of the level before: lanes exchange these cells,
    and quotients of the two levels share no branch.
    """
    return any(
        stage.age(tap) == 0 and any(kernel.in_plane(tap.offset))
        for stage in kernel.stages
        if isinstance(stage, ApplyOp)
        for tap in stage.tap_list
        if isinstance(stage.queue_of(tap).owner, ApplyOp)
    )


def oldest_age(queue: SSAValue, stream: int | None) -> int:
    """
    The age, in stream steps, of the oldest plane needed by a reader of the queue. The reader of an
    exchange of edges reads own cells from the queue itself: the queue keeps planes for the
    exchange's readers, too.
    """
    oldest = 0
    for use in queue.uses:
        stage = use.operation
        if isinstance(stage, ExchangeOp):
            oldest = max(oldest, stage.hold)
            if stage.what.data is not Published.PLANE:
                behind = stage.lag - queue_type(queue).lag.data
                oldest = max(oldest, behind + oldest_age(stage.result, stream))
        elif isinstance(stage, ApplyOp | StoreOp):
            least = min(offsets_of_operand(stage, use.index, stream))
            oldest = max(oldest, stage.lag - queue_type(queue).lag.data - least)
    return oldest


def offsets_of_operand(stage: ApplyOp | StoreOp, index: int, stream: int | None) -> list[int]:
    """The offsets along the streaming axis, in planes, of the reads of a queue among operands."""
    if stream is None or isinstance(stage, StoreOp):
        return [0]
    taps = (tap for tap in stage.tap_list if tap.operand == index)
    # Operands without taps are read by `else`, at the own cell.
    return [offset for tap in taps for offset in distances(stage, tap, stream)] or [0]
