"""multi-queue-buffering: a home for every queue.

Before: `%u1 = tile.apply @cell(...) else %h1 : !tile.queue<f64, lag 1>`
After, with `storage=registers`:
`%u1 = tile.apply @cell(...) else %h1 home #tile.registers<depth 2, period 2> : ...`
After, with `storage=shared addressing=computed` (EBISU's circular multi-queue, section 4.2):
`%u1 = tile.apply @cell(...) else %h1 home #tile.shared<slots 8, computed, base 3, reader tile> : ...`

The result is a complete, runnable kernel whatever the storage. Halos are read from memory where they
are needed. With registers, exchanges keep their mail in shared memory; with shared storage every
neighbour is read from the queue's own ring and the exchanges vanish.

Where the device holds a tile (EBISU's device tiling, section 4.3), each block has the ring of its own part, and rows
around it: exchanges stay for what crosses blocks, at barriers of the grid, of which one serves `every` steps.
`%e1 = tile.exchange %u1 what edges delay 2 home #tile.mail<slots 4, computed, every 2, space global, sync grid>`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, LoadOp, StoreOp, taps_of
from timetile.dialects.tile_attributes import (
    Addressing,
    MailAttr,
    MemoryAttr,
    RegistersAttr,
    SharedAttr,
)
from timetile.passes.analysis.lags import assign_lags, oldest_age
from timetile.passes.diagnostics import check_options, refuse, remark
from timetile.passes.schedule import Schedule


def schedule_of(kernel: KernelOp, module: ModuleOp) -> Schedule:
    """The schedule of the loop that a kernel belongs to."""
    for loop in module.walk():
        if isinstance(loop, LoopOp) and kernel.sym_name.data in loop.kernel_names:
            return Schedule.from_attribute(loop.schedule)
    return Schedule()


def is_tapped(queue: SSAValue) -> bool:
    """Some stage computes with the queue; otherwise it is only stored, as it is made."""
    return any(not isinstance(use.operation, StoreOp) for use in queue.uses)


def kept_queues(kernel: KernelOp) -> list[SSAValue]:
    """The queues that need storage: all but what is read from memory, exchanges and what is only stored."""
    queues: list[SSAValue] = []
    for stage in kernel.stages:
        if isinstance(stage, LoadOp) and stage.keeps_no_plane:
            continue
        if isinstance(stage, LoadOp | ApplyOp):
            queues += [result for result in stage.results if is_tapped(result)]
    return queues


def natural_period(kernel: KernelOp) -> int:
    """
    The unrolling at which planes age by renaming alone: the most planes that a queue keeps. One more
    would be needed were it not that `order-threads` reads the oldest plane before the newest arrives.
    """
    stream = kernel.stream_axis
    return max((oldest_age(queue, stream) for queue in kept_queues(kernel)), default=1) or 1


LONGEST_LOOP = 1650
"""Taps that a thread makes in one turn of the unrolled loop, beyond which moves cost less than code."""


def taps_of_step(kernel: KernelOp) -> int:
    """Taps that a thread makes in one stream step."""
    assert kernel.layout is not None
    cells = 1
    for axis in kernel.layout.axis_layouts:
        cells *= axis.cells
    return cells * sum(len(s.tap_list) for s in kernel.stages if isinstance(s, ApplyOp))


def chosen_period(kernel: KernelOp) -> int:
    """The unrolling of a kernel's stream loop."""
    return fitting_period(natural_period(kernel), taps_of_step(kernel))


def fitting_period(natural: int, size: int) -> int:
    """
    The natural unrolling, or the largest divisor of it that keeps the loop short enough, where a step
    makes `size` taps.
    """
    fitting = [p for p in range(1, natural + 1) if natural % p == 0 and p * size <= LONGEST_LOOP]
    return max(fitting, default=1)


def power_of_two(count: int) -> int:
    """The least power of two that is not below `count`."""
    return 1 << (count - 1).bit_length() if count > 1 else 1


def copies_slots(
    kernel: KernelOp, exchange: ExchangeOp, ahead: int, *, split: bool, every: int = 1
) -> int:
    """
    Slots from the oldest plane that is read to the newest that is on its way. Where a plane is read in
    the step of its arrival, the synchronisation stands behind the next copies, and they need a slot
    more. So they do where warps may still read after they arrived: in tiles of several blocks, and where
    inner rows read along the row, if the tile's warps synchronise in two halves (`split`). Where only one step in
    `every` begins with a barrier, they need one less than that at least.
    """
    assert kernel.layout is not None
    behind = exchange.hold + exchange.delay.data
    youngest = behind + min(tapped_ages(exchange))
    late = youngest == 0 or kernel.layout.blocks > 1 or (split and exchange.edges[-1] > 0)
    later = max(late, every - 1)
    return ahead + 1 + behind + oldest_age(exchange.result, kernel.stream_axis) + later


def copies_home(kernel: KernelOp, exchange: ExchangeOp, schedule: Schedule) -> MailAttr:
    """The home of an exchange that a load's copies serve."""
    split = schedule.sync != "barrier"
    every = barrier_steps(kernel, schedule)
    slots = copies_slots(kernel, exchange, schedule.ahead, split=split, every=every)
    return MailAttr(slots, "computed" if slots == power_of_two(slots) else "shifting", every)


def tapped_ages(exchange: ExchangeOp) -> list[int]:
    """The ages, in stream steps, at which readers tap an exchange."""
    return [reader.age(tap) for reader, tap in taps_of(exchange.result)]


def mail_home(
    exchange: ExchangeOp,
    stream: int | None,
    addressing: Addressing,
    least: int,
    every: int = 1,
    period: int = 1,
) -> MailAttr:
    """
    Slots for what is on its way, and as many more as steps pass until what was read may be overwritten: one where
    there is a synchronisation in each. At least as many as messages between blocks need.
    """
    slots = exchange.delay.data + every + oldest_age(exchange.result, stream)
    slots = max(slots, 2, least) if stream is not None else 1
    if addressing == "computed":
        slots = power_of_two(slots)
    elif addressing == "fixed" and every > 1:
        # The loop is unrolled until planes, slots and barriers are all back where they were: the shorter the better.
        slots = min(range(slots, 2 * slots + 1), key=lambda n: lcm(n, period, every))
    return MailAttr(slots, addressing, every)


def barrier_steps(kernel: KernelOp, schedule: Schedule) -> int:
    """Steps between two synchronisations: several only where the blocks of a tile meet at barriers of the grid."""
    assert kernel.layout is not None
    meets = kernel.layout.has_messages and schedule.sync == "grid"
    return schedule.every if meets and kernel.stream_axis is not None else 1


def check_every(kernel: KernelOp, asked: int | None, schedule: Schedule) -> None:
    """Refuse steps between barriers that were asked for where there is a synchronisation in each."""
    if asked is not None and (asked < 1 or barrier_steps(kernel, schedule) != asked):
        refuse(
            kernel,
            f"every={asked} was asked for, and only blocks of a streamed tile that meet at barriers of the grid "
            "synchronise once in several steps; use tile=device and sync=grid, or every=1",
        )


def place_in_registers(kernel: KernelOp, schedule: Schedule) -> None:
    """Own cells in registers, mail in shared memory."""
    assert kernel.layout is not None
    stream = kernel.stream_axis
    period = 1 if stream is None else schedule.period or chosen_period(kernel)
    for stage in kernel.stages:
        match stage:
            case LoadOp() if stage.keeps_no_plane:
                stage.home = MemoryAttr()
            case LoadOp():
                stage.home = RegistersAttr(oldest_age(stage.result, stream), period)
                stage.ahead = IntAttr(schedule.ahead if stream is not None else 0)
            case ApplyOp():
                depth = max(oldest_age(result, stream) for result in stage.res)
                stage.home = RegistersAttr(depth, period)
            case ExchangeOp() if stage.publishes_copies:
                stage.home = copies_home(kernel, stage, schedule)
            case ExchangeOp():
                flags = kernel.layout.has_messages and schedule.sync != "grid"
                least, every = 2 * stage.delay.data * flags, barrier_steps(kernel, schedule)
                stage.home = mail_home(stage, stream, schedule.addressing, least, every, period)
            case StoreOp():
                pass


def dissolve_exchanges(kernel: KernelOp) -> None:
    """Let the readers of an exchange without delay read the queue itself."""
    for stage in kernel.stages:
        if isinstance(stage, ExchangeOp):
            stage.result.replace_all_uses_with(stage.queue)
            Rewriter.erase_op(stage)
    assign_lags(kernel)


def keep_edges(kernel: KernelOp, every: int) -> None:
    """Let exchanges publish the edges of a block's part, and wait as many steps as pass between barriers."""
    for stage in kernel.stages:
        if isinstance(stage, ExchangeOp):
            stage.what, stage.delay = StringAttr("edges"), IntAttr(every)
    assign_lags(kernel)


def ring_window(queue: SSAValue, stream: int | None) -> int:
    """
    Slots that a queue occupies: its planes, and as many more as are written until the next barrier, one where there
    is one in each step; a single one where it is only stored.
    """
    if not is_tapped(queue) or stream is None:
        return 1 + oldest_age(queue, stream)
    exchanges = [use.operation for use in queue.uses if isinstance(use.operation, ExchangeOp)]
    return oldest_age(queue, stream) + 1 + max([1, *(e.delay.data for e in exchanges)])


def ring_slots(kernel: KernelOp, kept: Sequence[SSAValue]) -> int:
    """Slots of the circular multi-queue: the windows of all results of stages that keep planes."""
    return sum(
        sum(ring_window(result, kernel.stream_axis) for result in stage.results)
        for stage in kernel.stages
        if any(result in kept for result in stage.results)
    )


def rings_apart(kernel: KernelOp, schedule: Schedule) -> bool:
    """
    Every block of a streamed tile has a ring of its own. (Blocks that exchange by flags, and tiles that stay, are refused
    by the lowering unless their planes move to registers before.)
    """
    assert kernel.layout is not None
    streamed = kernel.layout.has_messages and kernel.stream_axis is not None
    return schedule.storage == "shared" and streamed and schedule.sync != "flags"


def meeting(kernel: KernelOp, schedule: Schedule) -> Schedule:
    """The schedule as it holds for a kernel: blocks that have rings of their own meet at barriers of the grid."""
    return replace(schedule, sync="grid") if rings_apart(kernel, schedule) else schedule


def place_in_shared(kernel: KernelOp, schedule: Schedule) -> None:
    """
    Every plane in shared memory, where all threads of the tile read it, or those of a block of it, which takes from
    the blocks beside what they look at around its part, at barriers of the grid, however warps wait elsewhere.
    """
    stream, apart = kernel.stream_axis, rings_apart(kernel, schedule)
    schedule = meeting(kernel, schedule)
    every = barrier_steps(kernel, schedule)
    if apart:
        keep_edges(kernel, every)
    else:
        dissolve_exchanges(kernel)
    kept = kept_queues(kernel)
    ring = power_of_two(ring_slots(kernel, kept))
    head = ring
    for stage in kernel.stages:
        if isinstance(stage, LoadOp) and stage.keeps_no_plane:
            stage.home = MemoryAttr()
        elif isinstance(stage, LoadOp | ApplyOp):
            if not any(result in kept for result in stage.results):
                stage.home = RegistersAttr(0, 1)
            elif schedule.addressing == "computed":
                # One result's window after the other: result k's head is k windows further down.
                stage.home = SharedAttr(ring, "computed", head - 1, "tile")
                head -= sum(ring_window(result, stream) for result in stage.results)
            else:
                slots = max(ring_window(result, stream) for result in stage.results)
                stage.home = SharedAttr(slots, schedule.addressing, 0, "tile")
            if isinstance(stage, LoadOp):
                stage.ahead = IntAttr(0)
        elif isinstance(stage, ExchangeOp):
            home = mail_home(stage, stream, schedule.addressing, 0, every)
            stage.home = home.synchronised_by("grid", "global")


MOST_TURNS = 64
"""Turns of a loop until all its slots are back where they began, beyond which they are shifted: its code would be too long."""


def turns_of_slots(kernel: KernelOp) -> int:
    """Stream steps until the slots of all planes in shared memory are back where they began."""
    homes = [getattr(stage, "home", None) for stage in kernel.stages]
    return lcm(*(home.slots.data for home in homes if isinstance(home, SharedAttr)))


@dataclass(frozen=True)
class MultiQueueBufferingPass(ModulePass):
    """Place every queue; see the module's documentation."""

    name = "multi-queue-buffering"

    storage: Literal["registers", "shared"] | None = None
    addressing: Literal["fixed", "shifting", "computed"] | None = None
    ahead: int | None = None
    period: int | None = None
    every: int | None = None

    def say_what_is_ignored(self, kernel: KernelOp) -> None:
        """A remark for each option that planes in shared memory have no use for."""
        if self.ahead:
            remark(
                kernel,
                f"ahead={self.ahead} is ignored: planes in shared memory are fetched in the step that needs them; use "
                "storage=registers",
            )
        if self.period:
            remark(
                kernel,
                f"period={self.period} is ignored: the slots of planes in shared memory say how often a loop is unrolled; "
                "use storage=registers, or addressing=computed",
            )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, ahead=0, period=0)
        own = {
            name: value
            for name in ("storage", "addressing", "ahead", "period", "every")
            if (value := getattr(self, name)) is not None
        }
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            schedule = replace(schedule_of(kernel, op), **own)
            check_every(kernel, self.every, meeting(kernel, schedule))
            if schedule.storage == "shared":
                self.say_what_is_ignored(kernel)
                place_in_shared(kernel, schedule)
                turns = turns_of_slots(kernel)
                if schedule.addressing == "fixed" and turns > MOST_TURNS:
                    remark(
                        kernel,
                        f"a loop with slots at fixed places would be unrolled {turns} times, until all are back where they "
                        "began: slots are shifted; use addressing=computed for a ring of a power of two",
                    )
                    place_in_shared(kernel, replace(schedule, addressing="shifting"))
            else:
                place_in_registers(kernel, schedule)
