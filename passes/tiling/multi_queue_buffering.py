"""multi-queue-buffering: every queue gets a home.

Before: `%u1 = tile.apply @cell(...) else %h1 : !tile.queue<f64, lag 1>`
After, with `storage=registers`:
```
%u1 = tile.apply @cell(...) else %h1 home #tile.registers<depth 2, period 2> : ...
```
After, with `storage=shared addressing=computed` (EBISU's circular multi-queue, section 4.2):
```
%u1 = tile.apply @cell(...) else %h1
    home #tile.shared<slots 8, computed, ring 0 base 3, reader tile> : ...
```

After, with `storage=shared addressing=computed ahead=3`: copies land in the ring, three steps early
```
%u0 = tile.load %src ahead 3 home #tile.registers<depth 2, period 1>
%e0 = tile.exchange %u0 what copies delay 0
    home #tile.exchange_buffer<slots 16, computed, ring 0 base 12, every 1, ...>
```

The result is a complete, runnable kernel for either storage. Halos are read from memory. With
registers, exchanges keep their slots in shared memory. With shared storage every neighbour is read
from the queue's ring, and exchanges vanish; queues read at the own cell alone (partial sums,
coefficients) stay in registers.

If the device holds a tile (EBISU's device tiling, section 4.3), each block has the ring of its own
part, with rows around. Exchanges stay for cells across blocks, at barriers of the grid, one for
`every` steps. With `delay=1`, the warps of a block read each other's planes a step late, by
exchanges without memory (lazy streaming, section 4.3.2), or `every` steps late. The planes of a
tile without a stream share a ring of two slots (`shared_rings.py`; DTB):
```
%e1 = tile.exchange %u1 what edges delay 2
    home #tile.exchange_buffer<slots 4, computed, every 2, space global, sync grid>
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from timetile.dialects.tile import (
    ApplyOp,
    CommonRingAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    MemoryAttr,
    RegistersAttr,
    SharedAttr,
)
from timetile.dialects.tile.kinds import (
    Addressing,
    Published,
    PublishedAttr,
    Reader,
    Space,
    Storage,
    Sync,
)
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.extents import served_by_copies
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.lags import assign_lags, oldest_age
from timetile.passes.analysis.queues.storage import (
    chosen_period,
    kept_queues,
    power_of_two,
    ring_slots,
    ring_window,
    stays_at_own_cell,
)
from timetile.passes.diagnostics import check_options, remark
from timetile.passes.enum_options import EnumOptionsPass
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.tiling.exchanges import copies_suffice, publish_copies
from timetile.passes.tiling.loop_length import (
    bounded_period,
    check_step,
    given_period,
    place_in_bounds,
)
from timetile.passes.tiling.queue_homes import (
    check_every,
    copies_home,
    exchange_home,
    fetched_ahead,
    place_in_registers,
)
from timetile.passes.tiling.shared_rings import fills_rings, share_rings


def dissolve_exchanges(kernel: KernelOp) -> None:
    """
    Let the readers of an exchange without delay read the queue itself. Copies stay an exchange.
    """
    for stage in kernel.stages:
        if isinstance(stage, ExchangeOp) and not stage.publishes_copies:
            stage.result.replace_all_uses_with(stage.queue)
            Rewriter.erase_op(stage)
    assign_lags(kernel)


def keep_edges(kernel: KernelOp, every: int) -> None:
    """
    Let exchanges publish the edges of a block's part, and wait as many steps as pass between
    barriers; none without a stream.
    """
    delay = 0 if kernel.stream_axis is None else every
    for stage in kernel.stages:
        if isinstance(stage, ExchangeOp):
            if not stage.publishes_copies:
                stage.what = PublishedAttr(Published.EDGES)
            stage.delay = IntAttr(delay)
    assign_lags(kernel)


def fetch_into_rings(kernel: KernelOp, ahead: int) -> None:
    """
    Let asynchronous copies bring the planes that several warps of a block read, and the cells
    around the tile, into rings.
    """
    for stage in kernel.stages:
        if isinstance(stage, ExchangeOp) and copies_suffice(kernel, stage.queue, ahead):
            publish_copies(kernel, stage, along_lanes=True)
    assign_lags(kernel)


RINGS_MEET = "use device-tiling tile=device and storage=shared"
"""A way to several steps between two barriers, for planes in shared memory."""


def rings_apart(kernel: KernelOp, schedule: Schedule) -> bool:
    """
    Whether every block of a device tile has a ring of its own. (Lowering refuses rings in
    streamed tiles whose blocks exchange by flags, unless planes move to registers before.)
    """
    resident = kernel.stream_axis is None
    meets = layout_of(kernel).has_messages and (resident or schedule.sync is not Sync.FLAGS)
    return schedule.storage is Storage.SHARED and meets


def is_streamed_block(kernel: KernelOp) -> bool:
    """Whether the tile is a block of several warps, and is streamed."""
    layout = layout_of(kernel)
    return layout.blocks == 1 and layout.warps > 1 and kernel.stream_axis is not None


def meeting(kernel: KernelOp, schedule: Schedule) -> Schedule:
    """
    The schedule of a kernel: blocks with rings of their own meet at barriers of the grid; blocks of
    a tile without a stream also exchange by flags, if asked for.
    """
    meets = rings_apart(kernel, schedule) and schedule.sync is not Sync.FLAGS
    return replace(schedule, sync=Sync.GRID) if meets else schedule


def period_beside_rings(kernel: KernelOp, own: Sequence[SSAValue], addressing: Addressing) -> int:
    """
    The unrolling for the queues in registers beside rings: as renaming asks for if slots at fixed
    places unroll the loop, else none. A copy of the body for each step has addresses of its own:
    registers of a thread, and blocks of a multiprocessor, weigh more than a move for each plane.
    """
    unrolls = addressing is Addressing.FIXED and kernel.stream_axis is not None
    return chosen_period(kernel, own) if own and unrolls else 1


def place_in_shared(
    kernel: KernelOp, schedule: Schedule, *, delay: int = 0, ahead: int = 0
) -> None:
    """
    Put planes with cells read by other threads into shared memory. Sums and coefficients, read at
    the own cell alone, stay in registers. All threads of the tile read a plane. In a tile of
    several blocks, the threads of a block read the block's part and rows around, taken from
    neighbouring blocks. With a `delay`, the warps of a streamed block read each other's planes as
    many steps late, and one barrier a step serves all levels. Of such a block, planes of fields are
    fetched `ahead` steps early by asynchronous copies into the ring.
    """
    stream, apart = kernel.stream_axis, rings_apart(kernel, schedule)
    schedule = replace(meeting(kernel, schedule), ahead=ahead if is_streamed_block(kernel) else 0)
    fetch_into_rings(kernel, schedule.ahead)
    every = schedule.steps_between_barriers
    if apart:
        keep_edges(kernel, every)
    elif (delay > 0 or every > 1) and is_streamed_block(kernel):
        keep_edges(kernel, max(delay, every))
    else:
        dissolve_exchanges(kernel)
    own = [queue for queue in kept_queues(kernel) if stays_at_own_cell(kernel, queue)]
    kept = [queue for queue in kept_queues(kernel) if queue not in own]
    copies = {stage: copies_home(kernel, stage, schedule) for stage in served_by_copies(kernel)}
    arriving = sum(home.slots.data for home in copies.values())
    ring = power_of_two(ring_slots(kernel, kept) + arriving)
    head, period = ring, period_beside_rings(kernel, own, schedule.addressing)
    for stage in kernel.stages:
        if isinstance(stage, LoadOp) and stage.keeps_no_plane:
            stage.home = MemoryAttr()
        elif isinstance(stage, LoadOp | ApplyOp):
            if not any(result in kept for result in stage.results):
                oldest = max(oldest_age(result, stream) for result in stage.results)
                stage.home = RegistersAttr(oldest, period if oldest else 1)
            elif schedule.addressing is Addressing.COMPUTED:
                # The results' windows follow each other in the ring: each head lies below the
                # windows before.
                common = CommonRingAttr(0, head - 1)
                stage.home = SharedAttr(ring, Addressing.COMPUTED, Reader.TILE, common)
                head -= sum(ring_window(result, stream) for result in stage.results)
            else:
                slots = max(ring_window(result, stream) for result in stage.results)
                stage.home = SharedAttr(slots, schedule.addressing, Reader.TILE)
            if isinstance(stage, LoadOp):
                early = isinstance(stage.home, RegistersAttr)
                stage.ahead = IntAttr(fetched_ahead(kernel, stage, schedule) if early else 0)
        elif isinstance(stage, ExchangeOp) and (home := copies.get(stage)) is not None:
            stage.home = home
            if schedule.addressing is Addressing.COMPUTED and fills_rings(stage):
                # Copies of a plane to come go to the head of the window.
                common = CommonRingAttr(0, head - 1 - schedule.ahead)
                stage.home = home.addressed(Addressing.COMPUTED).in_ring(common, ring)
                head -= home.slots.data
        elif isinstance(stage, ExchangeOp):
            home = exchange_home(stage, stream, schedule.addressing, every=every)
            stage.home = home.synchronised_by(schedule.sync, Space.GLOBAL) if apart else home
    if stream is None:
        share_rings(kernel)


@dataclass(frozen=True)
class MultiQueueBufferingPass(EnumOptionsPass):
    """Place every queue; see the module's documentation."""

    name = "multi-queue-buffering"

    storage: Storage | None = None
    addressing: Addressing | None = None
    ahead: int | None = None
    period: int | None = None
    every: int | None = None
    delay: int | None = None

    def say_what_is_ignored(self, kernel: KernelOp, schedule: Schedule) -> None:
        """Remark on each option without an effect on a kernel."""
        resident, shared = kernel.stream_axis is None, schedule.storage is Storage.SHARED
        nothing = "nothing is streamed; leave out the option"
        if self.ahead and (resident or (shared and not is_streamed_block(kernel))):
            why = (
                "planes in shared memory are fetched early by the warps of a streamed block, and "
                "in the step that needs them by other tiles; use storage=registers"
            )
            remark(kernel, f"ahead={self.ahead} is ignored: {nothing if resident else why}")
        if self.period and (resident or shared):
            why = (
                "the slots of planes in shared memory say how often a loop is unrolled; use "
                "storage=registers"
            )
            remark(kernel, f"period={self.period} is ignored: {nothing if resident else why}")
        has_slots = shared or any(isinstance(stage, ExchangeOp) for stage in kernel.stages)
        if self.addressing is not None and not has_slots:
            remark(
                kernel,
                f"addressing={self.addressing} is ignored: planes in registers have no slots, and "
                "a tile of one warp exchanges nothing; use storage=shared, or device-tiling "
                "tile=block",
            )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, ahead=0, period=0, every=1, delay=0)
        own = {
            name: value
            for name in ("storage", "addressing", "ahead", "every")
            if (value := getattr(self, name)) is not None
        }
        kernels = [k for k in op.ops if isinstance(k, KernelOp)]
        if not kernels:
            remark_without_loops(self, op, "raise-time-loop,device-tiling")
        for kernel in kernels:
            schedule = given_period(replace(kernel.decisions, **own), self.period)
            check_every(kernel, self.every, meeting(kernel, schedule), RINGS_MEET)
            self.say_what_is_ignored(kernel, schedule)
            check_step(kernel, op)
            schedule = bounded_period(kernel, op, schedule)
            shared = partial(place_in_shared, delay=self.delay or 0, ahead=self.ahead or 0)
            place = shared if schedule.storage is Storage.SHARED else place_in_registers
            place_in_bounds(kernel, op, schedule, place)
