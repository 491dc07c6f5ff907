"""Where the threads of a tile wait for each other, derived from the accesses to shared planes.

Stage w writes a plane in step i, stage r reads the plane in step i + distance, and stage w' writes
the slot again `slots - distance` steps later. Each pair of accesses by different threads needs a
synchronisation in between. There are three kinds:

- *Barriers* before a stage, in every step (`place_barriers`).
- Barriers at the start of one step in `every`, for the batch of planes in between (`batches_keep`:
  lazy streaming, EBISU, section 4.3.2).
- One *split* barrier a step. A warp waits for the arrivals of the step before ahead of its first
  access to shared planes, and arrives behind its last access. Inner rows, which touch no other
  warp's cells, come after the arrival: between a warp's arrival and its next wait, other warps may
  be a step ahead or behind. An access of step i is ordered before accesses of step i + 1
  (`split_keeps`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.taps import Tap
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    Published,
    SharedAttr,
    Sync,
    exchanges_of,
    queue_home,
    taps_of,
)
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.common_rings import (
    copied_load,
    next_writer,
    shares_ring,
    steps_early,
    writing_stages,
)
from timetile.passes.analysis.queues.lags import ages


@dataclass(frozen=True)
class AccessOrder:
    """Stage `before` in some step must be separated from stage `after`, `distance` steps later."""

    before: int
    after: int
    distance: int
    inner: bool = False
    """
    Whether the earlier access may be of an inner row, released by a split barrier a step later.
    """

    def is_kept_by(self, barrier: int) -> bool:
        """A barrier before stage `barrier`, in every step, separates the two."""
        if self.distance == 0:
            return self.before < barrier <= self.after
        if self.distance == 1:
            return barrier > self.before or barrier <= self.after
        return True


def place_barriers(orders: Sequence[AccessOrder]) -> tuple[int, ...]:
    """
    The places, as numbers of stages, of the fewest barriers a step keeping all orders. Orders
    within a step come first, each barrier as late as possible. A barrier at the start of the step
    keeps the remaining orders, which cross steps.
    """
    barriers: list[int] = []
    for order in sorted(orders, key=lambda o: o.after):
        if order.distance == 0 and not any(order.is_kept_by(b) for b in barriers):
            barriers.append(order.after)
    if any(not any(order.is_kept_by(b) for b in barriers) for order in orders) or (
        # Any barrier keeps orders across two or more steps, but at least one barrier must exist.
        orders and not barriers
    ):
        barriers.append(0)
    return tuple(sorted(barriers))


def steps_between_barriers(exchanges: Iterable[ExchangeOp]) -> int:
    """Steps between two synchronisations of some exchanges, by their homes; 1 by default."""
    homes = (exchange.home for exchange in exchanges)
    return max((home.every.data for home in homes if home is not None), default=1)


def meets_at_barriers(exchanges: Iterable[ExchangeOp]) -> bool:
    """
    Whether the blocks of a tile with given exchanges wait for each other at barriers of the grid.
    """
    homes = (exchange.home for exchange in exchanges)
    return any(home is not None and home.sync.data is Sync.GRID for home in homes)


def synchronisations(kernel: KernelOp) -> set[Sync]:
    """The ways in which threads wait for each other in a kernel, by the homes of exchanges."""
    homes = (stage.home for stage in kernel.stages if isinstance(stage, ExchangeOp))
    return {home.sync.data for home in homes if home is not None}


def splits(kernel: KernelOp) -> bool:
    """
    Whether threads of a placed kernel announce the end of a stream step, and wait later:
    `Schedule.splits`, for homes.
    """
    return kernel.stream_axis is not None and bool(synchronisations(kernel) - {Sync.BARRIER})


def arrives(kernel: KernelOp) -> bool:
    """
    Whether the warps of a placed kernel's block arrive at words in shared memory, and wait later.
    Blocks that meet at barriers of the grid need no such words.
    """
    return splits(kernel) and Sync.GRID not in synchronisations(kernel)


MESSAGE_BYTES = 4
"""Bytes of a cell in a 64-bit word of a message, beside the message's number."""


def words_of_cell(element: Attribute, *, at_grid_barriers: bool) -> int:
    """
    64-bit words taken by a cell on the way to another block: one, without a number, if blocks meet
    at barriers.
    """
    return 1 if at_grid_barriers else CELL_BYTES[element] // MESSAGE_BYTES


def batches_keep(orders: Sequence[AccessOrder], every: int) -> bool:
    """
    Whether barriers at the start of one step in `every` keep all orders: every order spans `every`
    steps or more.
    """
    return all(order.distance >= every for order in orders)


def split_keeps(orders: Sequence[AccessOrder]) -> bool:
    """Whether one split barrier a step keeps all orders."""
    return all(order.distance >= (2 if order.inner else 1) for order in orders)


def collect_orders(kernel: KernelOp, *, within_warps: bool = False) -> list[AccessOrder]:
    """
    The pairs of accesses to shared planes to be separated by a barrier, by the numbers of stages.
    With `within_warps`, the pairs of accesses for which the lanes of a warp must wait for each
    other. Asynchronous copies arrive, and later copies start, at the place of the load.
    """
    stages, position = list(kernel.stages), writing_stages(kernel)
    stream = kernel.stream_axis
    orders: list[AccessOrder] = []
    for reader, stage in enumerate(stages):
        if isinstance(stage, ApplyOp):
            for tap in stage.tap_list:
                queue = stage.queue_of(tap)
                exchange = queue.owner if isinstance(queue.owner, ExchangeOp) else None
                if exchange is None and not lives_in_ring(queue):
                    continue
                moved = any(tap.offset[axis] for axis in kernel.plane_axes)
                if not moved or stays_in_warp(kernel, queue) != within_warps:
                    if not moved and not within_warps:
                        orders += orders_of_copies_behind(kernel, position, stage, tap)
                    continue
                inner = exchange is None or reads_in_inner_rows(kernel, exchange, tap)
                for age in ages(stage, tap, stream):
                    orders += orders_of_read(kernel, position, reader, queue, age, inner=inner)
    return orders


def orders_of_read(
    kernel: KernelOp,
    position: dict[SSAValue, int],
    reader: int,
    queue: SSAValue,
    age: int,
    *,
    inner: bool,
) -> list[AccessOrder]:
    """How reads of a plane `age` steps old are ordered with the writes of other threads."""
    exchange = queue.owner if isinstance(queue.owner, ExchangeOp) else None
    distance = age
    if exchange is not None:
        distance += exchange.delay.data
        if exchange.publishes_copies:
            distance += exchange.hold
            return copy_orders(kernel, position, reader, queue, distance, inner=inner)
        if lives_in_ring(exchange.queue):
            # Readers read the ring, with the rows sent by neighbouring blocks around.
            distance, queue = distance + exchange.hold, exchange.queue
    written = AccessOrder(position[queue], reader, distance)
    following = next_writer(queue, position, kernel.stream_axis)
    if following is None:
        return [written]
    steps, writer = following
    return [written, AccessOrder(reader, writer, steps - distance, inner)]


def orders_of_copies_behind(
    kernel: KernelOp, position: dict[SSAValue, int], stage: ApplyOp, tap: Tap
) -> list[AccessOrder]:
    """
    The orders between a thread's read of its own cell in a common ring and the asynchronous copies
    that overwrite the cell: any thread may start the copies.
    """
    queue, stream = stage.queue_of(tap), kernel.stream_axis
    if not lives_in_ring(queue) or (following := next_writer(queue, position, stream)) is None:
        return []
    steps, writer = following
    copied = (other for other, at in position.items() if at == writer and copied_load(other))
    if not any(shares_ring(queue, other) for other in copied):
        return []
    reader = position[stage.results[0]]
    return [AccessOrder(reader, writer, steps - age) for age in ages(stage, tap, stream)]


def lives_in_ring(queue: SSAValue) -> bool:
    """A queue's own home is shared memory."""
    return isinstance(queue_home(queue), SharedAttr)


def stays_in_warp(kernel: KernelOp, queue: SSAValue) -> bool:
    """
    Whether a tap of a block's ring reads cells of its own warp only. In a tile of several blocks,
    and of a queue with an exchange, every tap crossing warps goes through an exchange.
    """
    return lives_in_ring(queue) and (layout_of(kernel).has_messages or bool(exchanges_of(queue)))


def reads_in_inner_rows(kernel: KernelOp, exchange: ExchangeOp, tap: Tap) -> bool:
    """
    Whether rows in the middle of a thread make the tap, too, and read cells written by other
    threads.
    """
    return exchange.what.data is not Published.EDGES and tap.offset[kernel.plane_axes[-1]] != 0


def crossing_rows(kernel: KernelOp) -> int:
    """
    The number of rows, at either end of a thread's own rows, with taps across warps, or read by
    other warps.
    """
    if len(kernel.plane_axes) < 2:
        return 1
    rows = kernel.plane_axes[0]
    exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
    for exchange in exchanges:
        if exchange.what.data is Published.PLANE or not (
            exchange.publishes_copies or exchange.edges[0]
        ):
            # Whole planes, and edges across the rows, concern all rows of a thread.
            return layout_of(kernel).axis_layouts[0].cells
    reach = [abs(tap.offset[rows]) for e in exchanges for _, tap in taps_of(e.result)]
    return max([*reach, *(e.edges[0] for e in exchanges)], default=0)


def copy_orders(
    kernel: KernelOp,
    position: dict[SSAValue, int],
    reader: int,
    queue: SSAValue,
    distance: int,
    *,
    inner: bool,
) -> list[AccessOrder]:
    """
    The orders of a plane of copies: the plane arrives before a reader reads the plane, and the
    reader is done before a later plane takes the slot, by copies or by another queue of the ring.
    """
    arrived = AccessOrder(position[queue], reader, distance)
    following = next_writer(queue, position, kernel.stream_axis)
    if following is None:
        return [arrived]
    steps, writer = following
    return [arrived, AccessOrder(reader, writer, steps - steps_early(queue) - distance, inner)]
