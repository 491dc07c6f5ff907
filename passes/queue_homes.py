"""
Homes of queues: own cells in registers, exchanges in slots of a buffer, early planes in rings.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr

from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    MemoryAttr,
    RegistersAttr,
    StoreOp,
)
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.lags import oldest_age
from timetile.passes.analysis.queues.storage import (
    ReadAges,
    chosen_period,
    copies_slots,
    exchanged_slots,
    fixed_slots,
    power_of_two,
)
from timetile.passes.diagnostics import refuse
from timetile.passes.schedule import AddressingOption, Schedule


def barrier_steps(kernel: KernelOp, schedule: Schedule) -> int:
    """
    Stream steps between two barriers: above 1 only where the blocks of a tile meet at barriers of
    the grid.
    """
    meets = layout_of(kernel).has_messages and schedule.sync == "grid"
    return schedule.every if meets and kernel.stream_axis is not None else 1


def check_every(kernel: KernelOp, asked: int | None, schedule: Schedule, way_out: str) -> None:
    """
    Refuse a given `every` if every step has a barrier. The way out is named if the device can hold
    a streamed tile.
    """
    if asked is not None and barrier_steps(kernel, schedule) != asked:
        possible = kernel.stream_axis is not None and len(kernel.plane_axes) > 1
        refuse(
            kernel,
            f"every={asked} was asked for, and only blocks of a streamed tile that meet at "
            "barriers of the grid synchronise once in several steps; leave it "
            f"out{f', or {way_out}' if possible else ''}",
        )


def copies_home(kernel: KernelOp, exchange: ExchangeOp, schedule: Schedule) -> ExchangeBufferAttr:
    """The ring of an exchange filled by a load's asynchronous copies."""
    split = schedule.sync != "barrier"
    every = barrier_steps(kernel, schedule)
    slots = copies_slots(
        ReadAges.of(exchange, kernel.stream_axis),
        schedule.ahead,
        blocks=layout_of(kernel).blocks,
        split=split,
        every=every,
    )
    computed = slots == power_of_two(slots)
    return ExchangeBufferAttr(
        slots, Addressing.COMPUTED if computed else Addressing.SHIFTING, every
    )


def exchange_home(
    exchange: ExchangeOp,
    stream: int | None,
    addressing: AddressingOption,
    *,
    flags: bool = False,
    every: int = 1,
    period: int = 1,
) -> ExchangeBufferAttr:
    """
    The home of an exchange; `flags` and `every` as for `exchanged_slots`. `period`: unrolling of
    the stream loop.
    """
    slots = exchanged_slots(ReadAges.of(exchange, stream), flags=flags, every=every)
    if addressing == "computed":
        slots = power_of_two(slots)
    elif addressing == "fixed":
        slots = fixed_slots(slots, period=period, every=every)
    return ExchangeBufferAttr(slots, Addressing(addressing), every)


def place_in_registers(kernel: KernelOp, schedule: Schedule) -> None:
    """
    Keep the own cells of every queue in registers, and the slots of exchanges in shared memory.
    """
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
                flags = layout_of(kernel).has_messages and schedule.sync != "grid"
                every = barrier_steps(kernel, schedule)
                stage.home = exchange_home(
                    stage, stream, schedule.addressing, flags=flags, every=every, period=period
                )
            case StoreOp():
                pass
