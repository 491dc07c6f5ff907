"""register-streaming: own cells in registers, edges to neighbours, and the wait a step later.

Before (`storage=shared`): `%u1 = tile.apply ... home #tile.shared<slots 4, fixed, base 0, reader tile>`
After:
```
%u1 = tile.apply ... home #tile.registers<depth 2, period 2>
%e1 = tile.exchange %u1 what edges delay 1 home #tile.mail<slots 3, fixed, every 1, ...>
```
1. A queue in shared memory whose own cells are tapped moves to registers; neighbours tap an exchange,
   which keeps the shared copy: redundant register streaming (EBISU, section 4.3.3).
2. A field that is fetched ahead is published by its asynchronous copies: they land where all
   threads of the tile read them, with the cells around the tile that its readers look at. An
   exchange along one axis publishes only the edges that neighbours read; one in planes of three axes, or
   along several, the whole plane, whatever was asked for.
3. An exchange waits `delay` steps where that makes no queue later than its readers allow anyway: then
   one synchronisation per step serves all levels (lazy streaming, EBISU, section 4.3.2).
4. Lags, depths, slots and the unrolling are computed anew.
5. With `sync=mbarrier` the tile's warps synchronise in two halves, where that keeps all orders: they
   arrive once their edges are published, and wait before they read their neighbours' in the next step.
   For that all exchanges take their delay, whatever lag it costs: levels no longer wait for each other.
   The blocks of a cluster always synchronise so.
6. Edges between the blocks of a tile that the device holds go through global memory: as messages whose
   words say which step they are of (`sync=flags`), or between barriers of all its blocks (`sync=grid`), of which
   one serves the planes of `every` steps, and all levels: exchanges are then delayed by as many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, LoadOp, queue_lag, queue_type
from timetile.dialects.tile_attributes import QueueType, RegistersAttr, SharedAttr
from timetile.passes.analysis.lags import assign_lags
from timetile.passes.analysis.plane_geometry import VECTOR_BYTES
from timetile.passes.analysis.synchronisation import (
    collect_orders,
    split_keeps,
    steps_between_barriers,
)
from timetile.passes.device_tiling import add_exchanges, crossing_width, redirect
from timetile.passes.diagnostics import check_options, refuse
from timetile.passes.multi_queue_buffering import (
    barrier_steps,
    check_every,
    place_in_registers,
    schedule_of,
)
from timetile.passes.schedule import Schedule, Sync

Published = Literal["edges", "plane", "copies"]


def streams_through_registers(kernel: KernelOp) -> bool:
    """Some queue lives in shared memory only."""
    return any(
        isinstance(stage, LoadOp | ApplyOp) and isinstance(stage.home, SharedAttr)
        for stage in kernel.stages
    )


def planes_ahead(kernel: KernelOp, default: int) -> int:
    """How early loads into registers are fetched by now; the default where none is."""
    for stage in kernel.stages:
        if isinstance(stage, LoadOp) and isinstance(stage.home, RegistersAttr):
            return stage.planes_ahead
    return default


def crosses_one_axis(kernel: KernelOp) -> bool:
    """Warps lie along one in-plane axis, so that edges are whole rows or single cells."""
    assert kernel.layout is not None
    return sum(axis.tile_warps > 1 for axis in kernel.layout.axis_layouts) == 1


def edges_suffice(kernel: KernelOp, exchange: ExchangeOp) -> bool:
    """Neighbours look no further than the next warp's own cells, so edges serve them."""
    assert kernel.layout is not None
    *rows, last = kernel.layout.axis_layouts
    if len(rows) > 1:
        # Edges are rows: those of planes of three axes would be planes themselves.
        return False
    for axis, edge in zip(kernel.layout.axis_layouts, exchange.edges):
        if edge > axis.cells * axis.lanes:
            return False
    if last.tile_warps > 1 and any(axis.cells > 1 for axis in rows):
        # Edges that cross rows are those of a single row.
        return False
    return crosses_one_axis(kernel)


def publish(kernel: KernelOp, what: Published | None, ahead: int) -> None:
    """
    Let every exchange publish the least that serves its readers, or what was asked for where it does:
    the copies of a load that is fetched ahead, edges, the whole plane.
    """
    for stage in [s for s in kernel.stages if isinstance(s, ExchangeOp)]:
        if what in (None, "copies") and copies_suffice(kernel, stage, ahead):
            publish_copies(kernel, stage)
        else:
            edges = what != "plane" and edges_suffice(kernel, stage)
            stage.what = StringAttr("edges" if edges else "plane")


def copies_suffice(kernel: KernelOp, exchange: ExchangeOp, ahead: int) -> bool:
    """The exchange is of a field that is fetched ahead by asynchronous copies."""
    load = exchange.queue.owner
    is_loaded = isinstance(load, LoadOp) and load.data is not None
    return is_loaded and ahead > 0 and kernel.stream_axis is not None


def publish_copies(kernel: KernelOp, exchange: ExchangeOp) -> None:
    """
    Let the copies of a load serve the taps that cross warps, and those along the lanes where that is
    better than shuffles: where whole vectors are read, or where no other queue asks for an overlap.
    """
    load = exchange.queue.owner
    assert isinstance(load, LoadOp)
    queue, element = load.result, queue_type(load.result).element
    axes = [(axis, k) for k, axis in enumerate(kernel.plane_axes)]
    reach = crossing_width(queue, axes, len(axes))
    assert kernel.layout is not None
    layouts = kernel.layout.axis_layouts
    beside = [
        axis
        for axis, k in axes
        if layouts[k].tile_warps > 1
        or kernel.steps.data == 1
        or reach[k] * CELL_BYTES[element] >= VECTOR_BYTES
    ]
    exchange.what = StringAttr("copies")
    for reader in dict.fromkeys(use.operation for use in queue.uses):
        if isinstance(reader, ApplyOp):
            redirect(reader, queue, exchange.result, beside)
    edges = crossing_width(exchange.result, axes, len(axes))
    wider = QueueType(element, exchange.lag, edges)
    Rewriter.replace_value_with_new_type(exchange.result, wider)


def set_delay(exchange: ExchangeOp, delay: int) -> None:
    """Change the delay; lags follow."""
    exchange.delay = IntAttr(delay)


def total_lag(kernel: KernelOp) -> int:
    """The sum of all lags: what laziness must not raise."""
    assign_lags(kernel)
    return sum(queue_lag(result) for stage in kernel.stages for result in lagging(stage))


def lagging(stage: object) -> tuple[SSAValue, ...]:
    return tuple(stage.res) if isinstance(stage, ApplyOp) else ()


def delay_exchanges(kernel: KernelOp, delay: int, *, always: bool) -> None:
    """Delay every exchange where it costs no lag, or always where that was asked for."""
    exchanges = [s for s in kernel.stages if isinstance(s, ExchangeOp)]
    if kernel.stream_axis is None or not exchanges:
        return
    before = total_lag(kernel)
    for exchange in exchanges:
        set_delay(exchange, delay)
    if total_lag(kernel) == before or always:
        return
    # Together they cost lag: find those that do not.
    for exchange in exchanges:
        set_delay(exchange, 0)
    for exchange in exchanges:
        set_delay(exchange, delay)
        if total_lag(kernel) > before:
            set_delay(exchange, 0)
    assign_lags(kernel)


def split_barrier(kernel: KernelOp) -> None:
    """Let the exchanges synchronise by one split barrier a step, where that keeps all orders."""
    if kernel.stream_axis is None or not split_keeps(collect_orders(kernel)):
        return
    synchronise(kernel, "mbarrier", "mbarrier")


def synchronise(kernel: KernelOp, inside: Sync, apart: Sync) -> None:
    """
    Let the exchanges synchronise the warps of a block, and those of edges the blocks of a tile that the
    device holds as well.
    """
    assert kernel.layout is not None
    space = "global" if kernel.layout.has_messages else "shared"
    for exchange in [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]:
        assert exchange.home is not None
        if exchange.publishes_copies:
            exchange.home = exchange.home.synchronised_by(inside)
        else:
            exchange.home = exchange.home.synchronised_by(apart, space)


@dataclass(frozen=True)
class RegisterStreamingPass(ModulePass):
    """Stream through registers; see the module's documentation."""

    name = "register-streaming"

    delay: int | None = None
    period: int | None = None
    what: Published | None = None
    sync: Sync | None = None
    every: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, delay=0, period=0)
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            schedule = schedule_of(kernel, op)
            if self.period is not None:
                schedule = replace(schedule, period=self.period)
            if schedule.storage == "shared" and self == RegisterStreamingPass():
                # Shared storage was asked for, and nothing else.
                continue
            self.stream(kernel, schedule)

    def stream(self, kernel: KernelOp, schedule: Schedule) -> None:
        """Rewrite one kernel."""
        if streams_through_registers(kernel):
            add_exchanges(kernel)
            assign_lags(kernel)
        sync, every = self.sync or schedule.sync, self.every
        if every is None:
            # What it was placed with stays.
            exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
            every = max(schedule.every, steps_between_barriers(exchanges))
        ahead = planes_ahead(kernel, schedule.ahead)
        schedule = replace(schedule, ahead=ahead, sync=sync, every=every)
        check_every(kernel, self.every, schedule)
        publish(kernel, self.what, schedule.ahead)
        delay = schedule.delay if self.delay is None else self.delay
        assert kernel.layout is not None
        apart = kernel.layout.blocks > 1
        always = self.delay is not None or apart or sync == "mbarrier"
        least = barrier_steps(kernel, schedule) if apart else 0
        delay_exchanges(kernel, max(delay, least), always=always)
        place_in_registers(kernel, schedule)
        if kernel.layout.has_messages:
            if self.sync == "barrier":
                refuse(
                    kernel,
                    "the blocks of its tile cannot meet at a block's barrier; give register-streaming "
                    "sync=flags or sync=grid",
                )
            whole = sync == "grid" or kernel.stream_axis is None
            inside: Sync = "barrier" if whole else "mbarrier"
            synchronise(kernel, inside, "grid" if sync == "grid" else "flags")
        elif sync == "mbarrier" or apart:
            split_barrier(kernel)
