"""register-streaming: own cells in registers, edges for neighbours, and the wait a step later.

Before (`storage=shared`):
```
%u1 = tile.apply ... home #tile.shared<slots 4, fixed, reader tile>
```
After:
```
%u1 = tile.apply ... home #tile.registers<depth 2, period 2>
%e1 = tile.exchange %u1 what edges delay 1 home #tile.exchange_buffer<slots 3, fixed, every 1, ...>
```
1. A queue in shared memory moves to registers if stages tap its own cells. Other warps of the tile
   tap an exchange, which keeps the cells read by them in shared memory: redundant register
   streaming (EBISU, section 4.3.3). A tile of one warp has no exchange, as shuffles read other
   lanes. Between blocks of a device tile, edges pass through global memory.
2. A field fetched ahead is published by its asynchronous copies: all threads of the tile read the
   place of the copies, which includes cells around the tile. An exchange along one axis publishes
   edges only. An exchange in planes of three axes, or along several axes, publishes the whole
   plane, whatever was asked for. With `loads=copies`, copies serve the readers of fields, and
   `what` is published of computed queues alone.
3. An exchange waits `delay` steps if no queue gets a larger lag: one synchronisation a step then
   serves all levels (lazy streaming, EBISU, section 4.3.2).
4. Lags, depths, slots and the unrolling are computed anew.
5. With `sync=mbarrier` the tile's warps synchronise in two halves, if all orders are kept: warps
   arrive once their edges are published, and wait before reading neighbours' edges in the next
   step. All exchanges then take their delay, at any cost in lag: levels no longer wait for each
   other. The blocks of a cluster always synchronise in two halves.
6. With `ring=shared`, exchanges share a ring: without a delay two planes serve any number of
   levels, with a barrier for each level in a step (the double buffer of AN5D); with a delay the
   planes of all levels lie one behind the other (the circular multi-queue of EBISU), and copies
   land in the ring.
7. Edges between the blocks of a device tile go through global memory: as messages with numbered
   words (`sync=flags`), or between barriers of all blocks of the tile (`sync=grid`), one for the
   planes of `every` steps and of all levels. Exchanges are then delayed by as many steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import SSAValue

from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    Published,
    RegistersAttr,
    SharedAttr,
    Space,
    Storage,
    Sync,
    queue_lag,
)
from timetile.dialects.tile.kinds import RingUse
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.placed import home_of, layout_of
from timetile.passes.analysis.queues.common_rings import common_ring
from timetile.passes.analysis.queues.lags import assign_lags
from timetile.passes.analysis.queues.storage import chosen_period
from timetile.passes.analysis.queues.synchronisation import (
    collect_orders,
    split_keeps,
    steps_between_barriers,
)
from timetile.passes.diagnostics import check_options, refuse, remark
from timetile.passes.enum_options import EnumOptionsPass
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.tiling.exchanges import add_exchanges, publish
from timetile.passes.tiling.loop_length import bounded_period, given_period, place_in_bounds
from timetile.passes.tiling.queue_homes import check_every, place_in_registers
from timetile.passes.tiling.shared_rings import share_rings

EDGES_MEET = "use device-tiling tile=device and sync=grid"
"""A way to several steps between two barriers, for edges that are exchanged."""


def streams_through_registers(kernel: KernelOp) -> bool:
    """Some queue lives in shared memory only."""
    return any(
        isinstance(stage, LoadOp | ApplyOp) and isinstance(stage.home, SharedAttr)
        for stage in kernel.stages
    )


def placed_addressing(kernel: KernelOp, default: Addressing) -> Addressing:
    """
    The addressing of planes in shared memory, or of exchanges, if already placed; otherwise the
    default.
    """
    for stage in kernel.stages:
        if isinstance(stage, ExchangeOp) and stage.publishes_copies:
            continue
        home = stage.home
        if isinstance(home, SharedAttr | ExchangeBufferAttr):
            return home.addressing.data
    return default


def placed_period(kernel: KernelOp, default: int | None) -> int | None:
    """
    The period written in the homes. The default if the homes have the automatic period, or no
    period.
    """
    homes = [stage.home for stage in kernel.stages]
    periods = [home.period.data for home in homes if isinstance(home, RegistersAttr)]
    if any(isinstance(home, SharedAttr) for home in homes) or not periods:
        return default
    return default if max(periods) == chosen_period(kernel) else max(periods)


def planes_ahead(kernel: KernelOp, default: int) -> int:
    """
    How early loads into registers are fetched by now; the default where none is. Narrow loads are
    not fetched early, whatever the other loads do.
    """
    loads = [stage for stage in kernel.stages if isinstance(stage, LoadOp)]
    early = [load.planes_ahead for load in loads if isinstance(load.home, RegistersAttr)]
    return max(early, default=default)


def set_delay(exchange: ExchangeOp, delay: int) -> None:
    """Change the delay; lags follow."""
    exchange.delay = IntAttr(delay)


def total_lag(kernel: KernelOp) -> int:
    """The sum of all lags, in stream steps. Delaying exchanges must not raise the sum."""
    assign_lags(kernel)
    return sum(queue_lag(result) for stage in kernel.stages for result in lagging(stage))


def lagging(stage: object) -> tuple[SSAValue, ...]:
    """The results of a stage whose lags count: those of applies."""
    return tuple(stage.res) if isinstance(stage, ApplyOp) else ()


def delay_exchanges(kernel: KernelOp, delay: int, *, always: bool) -> None:
    """Delay every exchange if the sum of lags stays, or with `always` in any case."""
    exchanges = [s for s in kernel.stages if isinstance(s, ExchangeOp)]
    if kernel.stream_axis is None or not exchanges:
        return
    before = total_lag(kernel)
    for exchange in exchanges:
        set_delay(exchange, delay)
    if total_lag(kernel) == before or always:
        return
    # Delaying all exchanges raises the lag: delay only exchanges that leave the sum of lags alone.
    for exchange in exchanges:
        set_delay(exchange, 0)
    for exchange in exchanges:
        set_delay(exchange, delay)
        if total_lag(kernel) > before:
            set_delay(exchange, 0)
    assign_lags(kernel)


def split_barrier(kernel: KernelOp, *, asked: bool) -> None:
    """
    Let the exchanges synchronise by one split barrier a step, if all orders are kept; otherwise
    remark on a split barrier that was asked for.
    """
    if kernel.stream_axis is None or not split_keeps(collect_orders(kernel)):
        if asked and any(isinstance(stage, ExchangeOp) for stage in kernel.stages):
            remark(
                kernel,
                "sync=mbarrier is left out: warps read exchanged cells in the publishing step; "
                "use sync=barrier, or a streamed tile, with delay=1 or more",
            )
        return
    synchronise(kernel, Sync.MBARRIER, Sync.MBARRIER)


def synchronise(kernel: KernelOp, inside: Sync, between: Sync) -> None:
    """
    Let exchanges synchronise the warps `inside` a block, and the exchanges of edges also
    synchronise `between` the blocks of a device tile.
    """
    space = Space.GLOBAL if layout_of(kernel).has_messages else Space.SHARED
    for exchange in [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]:
        home = home_of(exchange)
        if exchange.publishes_copies:
            exchange.home = home.synchronised_by(inside)
        else:
            exchange.home = home.synchronised_by(between, space)


@dataclass(frozen=True)
class RegisterStreamingPass(EnumOptionsPass):
    """Stream through registers; see the module's documentation."""

    name = "register-streaming"

    delay: int | None = None
    period: int | None = None
    what: Published | None = None
    loads: Published | None = None
    sync: Sync | None = None
    every: int | None = None
    ring: RingUse | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, delay=0, period=0, every=1)
        kernels = [k for k in op.ops if isinstance(k, KernelOp)]
        if not kernels:
            remark_without_loops(self, op, "raise-time-loop,device-tiling")
        for kernel in kernels:
            schedule = kernel.decisions
            if schedule.storage is Storage.SHARED and self == RegisterStreamingPass():
                # The schedule asks for shared storage, and the pass has no options.
                continue
            self.stream(kernel, op, schedule)

    def stream(self, kernel: KernelOp, module: ModuleOp, schedule: Schedule) -> None:
        """Rewrite one kernel of a module."""
        schedule = replace(
            schedule,
            period=placed_period(kernel, schedule.period),
            addressing=placed_addressing(kernel, schedule.addressing),
        )
        schedule = given_period(schedule, self.period)
        if streams_through_registers(kernel):
            add_exchanges(kernel)
            assign_lags(kernel)
        sync, every = self.sync or schedule.sync, self.every
        if every is None:
            # Without an option, keep the number of steps between barriers of the placed exchanges.
            exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
            every = max(schedule.every, steps_between_barriers(exchanges))
        ahead = planes_ahead(kernel, schedule.ahead)
        schedule = replace(schedule, ahead=ahead, sync=sync, every=every)
        check_every(kernel, self.every, schedule, EDGES_MEET)
        self.say_what_is_ignored(kernel)
        publish(kernel, self.what, schedule.ahead, self.loads)
        delay = schedule.delay if self.delay is None else self.delay
        apart = layout_of(kernel).blocks > 1
        batched = schedule.steps_between_barriers > 1
        always = self.delay is not None or apart or batched or sync is Sync.MBARRIER
        least = schedule.steps_between_barriers if apart or batched else 0
        delay_exchanges(kernel, max(delay, least), always=always)
        schedule = bounded_period(kernel, module, schedule)
        place_in_bounds(kernel, module, schedule, self.place)
        self.synchronise(kernel, sync)

    def place(self, kernel: KernelOp, schedule: Schedule) -> None:
        """Place the queues of a kernel; with `ring=shared` the exchanges in common rings."""
        place_in_registers(kernel, schedule)
        if self.ring is not RingUse.SHARED or kernel.stream_axis is None:
            return
        share_rings(kernel)
        if kernel.steps.data > 1 and not any(common_ring(stage.home) for stage in kernel.stages):
            remark(
                kernel,
                "ring=shared is ignored: no two exchanges have planes of one type and width in the "
                "memory of a block; use what=plane",
            )

    def synchronise(self, kernel: KernelOp, sync: Sync) -> None:
        """Say how the warps and the blocks of a placed kernel's tile wait for each other."""
        layout = layout_of(kernel)
        if layout.has_messages:
            if self.sync is Sync.BARRIER:
                refuse(
                    kernel,
                    "the blocks of the tile cannot meet at a block's barrier; give "
                    "register-streaming sync=flags or sync=grid",
                )
            whole = sync is Sync.GRID or kernel.stream_axis is None
            inside = Sync.BARRIER if whole else Sync.MBARRIER
            synchronise(kernel, inside, Sync.GRID if sync is Sync.GRID else Sync.FLAGS)
        elif sync is Sync.MBARRIER or layout.blocks > 1:
            split_barrier(kernel, asked=self.sync is Sync.MBARRIER)

    def say_what_is_ignored(self, kernel: KernelOp) -> None:
        """Remark on each option that has no effect on a kernel."""
        exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
        if kernel.stream_axis is None:
            for name, value in (("delay", self.delay), ("period", self.period)):
                if value:
                    remark(
                        kernel,
                        f"{name}={value} is ignored: nothing is streamed; leave out the option",
                    )
        if exchanges:
            return
        for name, value in (("delay", self.delay), ("what", self.what), ("sync", self.sync)):
            if value:
                remark(
                    kernel,
                    f"{name}={value} is ignored: the warps exchange nothing; leave out the "
                    "option, or give device-tiling tile=block",
                )
