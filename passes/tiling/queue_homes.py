"""
Homes of queues: own cells in registers, exchanges in slots of a buffer, early planes in rings.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    CopiesAttr,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    MemoryAttr,
    Published,
    RegistersAttr,
    StoreOp,
    Sync,
)
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.plane_geometry import PlaneGeometry
from timetile.passes.analysis.geometry.shared_layout import PrefetchLayout
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.lags import oldest_age
from timetile.passes.analysis.queues.shared_coefficients import oldest_copy
from timetile.passes.analysis.queues.storage import (
    ReadAges,
    chosen_period,
    copies_slots,
    exchanged_slots,
    fixed_slots,
    power_of_two,
)
from timetile.passes.diagnostics import refuse
from timetile.passes.targets.hardware import LEAST_COPY
from timetile.passes.tiling.exchanges import publish
from timetile.passes.tiling.shared_rings import share_rings


def check_every(kernel: KernelOp, asked: int | None, schedule: Schedule, way_out: str) -> None:
    """
    Refuse a given `every` if every step has a barrier. The way out is named if the device can hold
    a streamed tile.
    """
    if asked is not None and schedule.steps_between_barriers != asked:
        possible = TileShape.of(kernel) is TileShape.PENCIL
        refuse(
            kernel,
            f"every={asked} was asked for, and only the warps of a streamed block, and blocks of "
            "a streamed tile that meet at barriers, synchronise once in several steps; leave it "
            f"out{f', or {way_out}' if possible else ''}",
        )


def copies_home(kernel: KernelOp, exchange: ExchangeOp, schedule: Schedule) -> ExchangeBufferAttr:
    """The ring of an exchange filled by a load's asynchronous copies."""
    every = schedule.steps_between_barriers
    slots = copies_slots(
        ReadAges.of(exchange, kernel.stream_axis),
        schedule.ahead,
        blocks=layout_of(kernel).blocks,
        split=schedule.splits,
        every=every,
    )
    computed = slots == power_of_two(slots)
    return ExchangeBufferAttr(
        slots, Addressing.COMPUTED if computed else Addressing.SHIFTING, every
    )


def exchange_home(
    exchange: ExchangeOp,
    stream: int | None,
    addressing: Addressing,
    *,
    flags: bool = False,
    every: int = 1,
    period: int = 1,
) -> ExchangeBufferAttr:
    """
    The home of an exchange; `flags` and `every` as for `exchanged_slots`. `period`: unrolling of
    the stream loop.
    """
    ages, planes = ReadAges.of(exchange, stream), exchange.what.data is Published.PLANE
    slots = exchanged_slots(ages, flags=flags, every=every, planes=planes)
    if addressing is Addressing.COMPUTED:
        slots = power_of_two(slots)
    elif addressing is Addressing.FIXED:
        slots = fixed_slots(slots, period=period, every=every)
    return ExchangeBufferAttr(slots, addressing, every)


def fetched_ahead(kernel: KernelOp, load: LoadOp, schedule: Schedule) -> int:
    """
    The stream steps by which a load's planes are fetched early. Asynchronous copies have four bytes
    or more: narrower accesses are loads when due.
    """
    if kernel.stream_axis is None or not schedule.ahead or load.data is None:
        return schedule.ahead if kernel.stream_axis is not None else 0
    bytes = CELL_BYTES[element_type(load.field)]
    if bytes >= LEAST_COPY:
        return schedule.ahead
    # Taps may reach beyond a tile until exchanges publish copies, which bring the cells around it.
    trial = kernel.clone()
    copied = next(b for a, b in zip(kernel.stages, trial.stages) if a is load)
    assert isinstance(copied, LoadOp)
    publish(trial, None, schedule.ahead)
    width = PlaneGeometry(trial).access_width(copied.field)
    return schedule.ahead if width * bytes >= LEAST_COPY else 0


def place_in_registers(kernel: KernelOp, schedule: Schedule) -> None:
    """
    Keep the own cells of every queue in registers, and the slots of exchanges in shared memory.
    Coefficients that serve several levels stay in the copies of their load.
    """
    stream = kernel.stream_axis
    period = 1 if stream is None else schedule.period or chosen_period(kernel)
    for stage in kernel.stages:
        match stage:
            case LoadOp() if stage.keeps_no_plane:
                stage.home = MemoryAttr()
            case LoadOp() if fetched_ahead(kernel, stage, schedule) and (
                oldest := oldest_copy(kernel, stage)
            ):
                ring = PrefetchLayout.of(layout_of(kernel), schedule.ahead, oldest)
                stage.home, stage.ahead = CopiesAttr(ring.slots), IntAttr(schedule.ahead)
            case LoadOp():
                stage.home = RegistersAttr(oldest_age(stage.result, stream), period)
                stage.ahead = IntAttr(fetched_ahead(kernel, stage, schedule))
            case ApplyOp():
                depth = max(oldest_age(result, stream) for result in stage.res)
                stage.home = RegistersAttr(depth, period)
            case ExchangeOp() if stage.publishes_copies:
                stage.home = copies_home(kernel, stage, schedule)
            case ExchangeOp():
                flags = layout_of(kernel).has_messages and schedule.sync is not Sync.GRID
                every = schedule.steps_between_barriers
                stage.home = exchange_home(
                    stage, stream, schedule.addressing, flags=flags, every=every, period=period
                )
            case StoreOp():
                pass
    if stream is None:
        share_rings(kernel)
