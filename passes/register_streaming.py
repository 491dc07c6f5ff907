"""register-streaming: own cells in registers, edges to neighbours, and the wait a step later.

Before (`storage=shared`): `%u1 = tile.apply ... home #tile.shared<slots 4, fixed, base 0, reader tile>`
After:
```
%u1 = tile.apply ... home #tile.registers<depth 2, period 2>
%e1 = tile.exchange %u1 what edges delay 1 home #tile.mail<slots 3, fixed, every 1, ...>
```
1. A queue in shared memory whose own cells are tapped moves to registers. Other warps of its tile tap an exchange, which
   keeps in shared memory what they look at: redundant register streaming (EBISU, section 4.3.3). A tile of one warp has no
   exchange, as lanes are read by shuffles. Between the blocks of a tile that the device holds the
   edges pass through global memory.
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

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from timetile.dialects.tile import ApplyOp, ExchangeOp, KernelOp, LoadOp, queue_lag
from timetile.dialects.tile_attributes import Addressing, MailAttr, RegistersAttr, SharedAttr
from timetile.passes.analysis.queues.lags import assign_lags
from timetile.passes.analysis.queues.synchronisation import (
    collect_orders,
    split_keeps,
    steps_between_barriers,
)
from timetile.passes.diagnostics import check_options, refuse
from timetile.passes.exchanges import Published, add_exchanges, publish
from timetile.passes.queue_homes import barrier_steps, check_every, place_in_registers
from timetile.passes.schedule import Schedule, Sync, schedule_of


def streams_through_registers(kernel: KernelOp) -> bool:
    """Some queue lives in shared memory only."""
    return any(
        isinstance(stage, LoadOp | ApplyOp) and isinstance(stage.home, SharedAttr)
        for stage in kernel.stages
    )


def placed_addressing(kernel: KernelOp, default: Addressing) -> Addressing:
    """How slots are found that planes have in shared memory by now, or that mail has; the default where none has."""
    choices: dict[str, Addressing] = {
        "fixed": "fixed",
        "shifting": "shifting",
        "computed": "computed",
    }
    for stage in kernel.stages:
        if isinstance(stage, ExchangeOp) and stage.publishes_copies:
            continue
        home = getattr(stage, "home", None)
        if isinstance(home, SharedAttr | MailAttr):
            return choices[home.addressing.data]
    return default


def planes_ahead(kernel: KernelOp, default: int) -> int:
    """How early loads into registers are fetched by now; the default where none is."""
    for stage in kernel.stages:
        if isinstance(stage, LoadOp) and isinstance(stage.home, RegistersAttr):
            return stage.planes_ahead
    return default


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
        schedule = replace(schedule, addressing=placed_addressing(kernel, schedule.addressing))
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
