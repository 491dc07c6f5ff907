"""How many planes the queues of a kernel keep: the unrolling of the stream loop, and the slots of
rings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod

from xdsl.ir import SSAValue

from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    StoreOp,
    exchanges_of,
    taps_of,
)
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.held_planes import queues_holding_oldest
from timetile.passes.analysis.queues.lags import oldest_age
from timetile.passes.analysis.queues.shared_coefficients import lives_in_copies

MOST_STEPS = 32
"""Most stream steps of one turn of the unrolled loop."""

LONGEST_LOOP = 1650
"""
Most taps made by a thread in one turn of the unrolled loop. A longer loop costs more than the moves
saved by unrolling.
"""


def is_tapped(queue: SSAValue) -> bool:
    """Whether some stage computes with the queue. Other queues are stored as soon as made."""
    return any(not isinstance(use.operation, StoreOp) for use in queue.uses)


def kept_queues(kernel: KernelOp) -> list[SSAValue]:
    """
    The queues in need of storage: results of applies, and of loads keeping planes, if some stage
    taps them.
    """
    queues: list[SSAValue] = []
    for stage in kernel.stages:
        if isinstance(stage, LoadOp) and stage.keeps_no_plane:
            continue
        if isinstance(stage, LoadOp | ApplyOp):
            queues += [result for result in stage.results if is_tapped(result)]
    return queues


def queues_in_registers(kernel: KernelOp) -> list[SSAValue]:
    """The kept queues of a kernel that keeps planes in registers, without copies in rings."""
    return [queue for queue in kept_queues(kernel) if not lives_in_copies(queue)]


@dataclass(frozen=True)
class PlanesInRegisters:
    """The planes that a kernel keeps in registers, without copies in rings."""

    oldest: dict[SSAValue, int]
    """The age of the oldest plane of each kept queue, in stream steps."""
    held: set[SSAValue]
    """The queues whose oldest plane meets the newest in an operation."""

    @staticmethod
    def of(kernel: KernelOp, queues: Sequence[SSAValue] | None = None) -> PlanesInRegisters:
        """The planes kept by a kernel, of some queues if given."""
        stream = kernel.stream_axis
        queues = queues_in_registers(kernel) if queues is None else queues
        oldest = {queue: oldest_age(queue, stream) for queue in queues}
        return PlanesInRegisters(oldest, queues_holding_oldest(kernel, oldest))

    @property
    def period(self) -> int:
        """
        The unrolling, in stream steps a turn, with which planes age by renaming alone: the most
        planes kept by a queue. `order-threads` reads the oldest plane before the newest arrives:
        one register a plane is enough. A queue whose oldest plane meets the newest in an operation
        has one plane more.
        """
        kept = (age + (queue in self.held) for queue, age in self.oldest.items())
        return max(kept, default=1) or 1


def natural_period(kernel: KernelOp) -> int:
    """The unrolling, in stream steps a turn, with which planes age by renaming alone."""
    return PlanesInRegisters.of(kernel).period


def taps_of_cell(kernel: KernelOp) -> int:
    """Taps made in one stream step for a cell of a thread."""
    return sum(len(stage.tap_list) for stage in kernel.stages if isinstance(stage, ApplyOp))


def taps_of_step(kernel: KernelOp) -> int:
    """Taps made in one stream step by a thread of a kernel with a layout."""
    return prod(axis.cells for axis in layout_of(kernel).axis_layouts) * taps_of_cell(kernel)


def chosen_period(kernel: KernelOp, queues: Sequence[SSAValue] | None = None) -> int:
    """
    The unrolling of a kernel's stream loop (stream steps a turn), for all planes in registers or
    for those of some queues.
    """
    return fitting_period(PlanesInRegisters.of(kernel, queues).period, taps_of_step(kernel))


def stays_at_own_cell(kernel: KernelOp, queue: SSAValue) -> bool:
    """
    Whether every reader of a queue reads the plane's cell of its own place. Readers of copies read
    memory of their own.
    """
    taps = (kernel.in_plane(tap.offset) for _, tap in taps_of(queue))
    exchanged = any(not exchange.publishes_copies for exchange in exchanges_of(queue))
    return not any(any(offset) for offset in taps) and not exchanged


def fitting_period(natural: int, size: int) -> int:
    """
    The largest divisor of the `natural` unrolling with at most `LONGEST_LOOP` taps and
    `MOST_STEPS` steps a turn; a step makes `size` taps.
    """
    most = min(natural, MOST_STEPS)
    fitting = [p for p in range(1, most + 1) if natural % p == 0 and p * size <= LONGEST_LOOP]
    return max(fitting, default=1)


def power_of_two(count: int) -> int:
    """The least power of two not below `count`."""
    return 1 << (count - 1).bit_length() if count > 1 else 1


def tapped_ages(exchange: ExchangeOp) -> list[int]:
    """The ages, in stream steps, of the taps of an exchange."""
    return [reader.age(tap) for reader, tap in taps_of(exchange.result)]


@dataclass(frozen=True)
class ReadAges:
    """
    When the readers of an exchange read its planes, in stream steps. `behind`: steps from the
    arrival of a plane to the first step in which readers see the plane. `youngest`: the least age
    of a plane that is read, counted from its arrival. `oldest`: the largest age, counted from the
    publishing.
    """

    behind: int
    youngest: int
    oldest: int
    delay: int
    along_row: bool
    """Whether readers look along the row, across warps."""
    streams: bool
    """Whether the kernel has a streaming axis."""

    @staticmethod
    def of(exchange: ExchangeOp, stream: int | None) -> ReadAges:
        """The ages of the reads of an exchange, in a kernel with or without a streaming axis."""
        behind = exchange.hold + exchange.delay.data
        return ReadAges(
            behind,
            behind + min(tapped_ages(exchange), default=0),
            oldest_age(exchange.result, stream),
            exchange.delay.data,
            exchange.edges[-1] > 0,
            stream is not None,
        )


def copies_slots(ages: ReadAges, ahead: int, *, blocks: int, split: bool, every: int) -> int:
    """
    Slots of the ring filled by a load's asynchronous copies and read by readers of the exchange:
    from the oldest plane read to the newest plane on the way, `ahead` planes early. `blocks`:
    blocks of a tile. `split`: warps arrive at a barrier and wait later. `every`: stream steps
    between two barriers.

    One more slot is needed if a plane is read in the step of arrival, as the barrier then stands
    behind the next copies, and if warps may still read after arriving: in tiles of several blocks,
    and in split barriers if inner rows read along the row. At least `every - 1` more are needed if
    only one step in `every` has a barrier.
    """
    late = ages.youngest == 0 or blocks > 1 or (split and ages.along_row)
    return ahead + 1 + ages.behind + ages.oldest + max(late, every - 1)


def exchanged_slots(ages: ReadAges, *, flags: bool, every: int, planes: bool = False) -> int:
    """
    Slots of an exchange: one for each plane published and not yet read by all readers, one for each
    of the `every` stream steps until the next barrier, and at least two. With `flags`, blocks send
    messages: a sender hears `delay` steps late that a slot was read, and of whole `planes` inner
    rows may still be read after a warp has arrived. One slot without a stream.
    """
    if not ages.streams:
        return 1
    late = flags and planes
    return max(ages.delay + every + ages.oldest + late, 2, 2 * ages.delay * flags)


def fixed_slots(slots: int, *, period: int, every: int) -> int:
    """
    Slots of an exchange at fixed places, at least `slots`. With one barrier in `every` stream steps
    the loop is unrolled until planes, slots and barriers are back at the first place. The number
    taken is the smallest with the shortest loop. `period`: unrolling of the loop for planes.
    """
    if every == 1:
        return slots
    return min(range(slots, 2 * slots + 1), key=lambda n: lcm(n, period, every))


def ring_window(queue: SSAValue, stream: int | None) -> int:
    """
    Slots of a queue in a ring of shared memory: the queue's planes, and one for each step writing
    before the next barrier. A queue only stored has no reader to wait for.
    """
    if not is_tapped(queue) or stream is None:
        return 1 + oldest_age(queue, stream)
    delays = [exchange.delay.data for exchange in exchanges_of(queue)]
    return oldest_age(queue, stream) + 1 + max([1, *delays])


def ring_slots(kernel: KernelOp, kept: Sequence[SSAValue]) -> int:
    """
    Slots of the circular multi-queue: the windows of all queues that keep planes, added up.
    """
    return sum(
        sum(ring_window(result, kernel.stream_axis) for result in stage.results)
        for stage in kernel.stages
        if any(result in kept for result in stage.results)
    )
