"""The facts of a kernel for the cost model, independent of the layout: taps, queues and exchanges,
collected once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    Published,
    QueueType,
    StoreOp,
    exchanges_of,
    queue_type,
    taps_of,
)
from timetile.passes.analysis.block_memory import exchange_reach
from timetile.passes.analysis.cells.instructions import long_constants
from timetile.passes.analysis.cells.pressure import value_words
from timetile.passes.analysis.geometry.outline import Outline
from timetile.passes.analysis.geometry.plane_geometry import moved_by
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.queues.lags import (
    carries_sums,
    keeps_sums,
    lanes_meet_between_levels,
)
from timetile.passes.analysis.queues.shared_coefficients import oldest_copy
from timetile.passes.analysis.queues.storage import (
    PlanesInRegisters,
    ReadAges,
    taps_of_cell,
)
from timetile.passes.cost.stage_facts import KnownCells, StageFacts, stage_facts
from timetile.passes.cost.taps import TapFacts, TapSet, span, spans
from timetile.passes.cost.terms import Moves


@dataclass(frozen=True)
class StageSpans:
    """Distances between the farthest taps of a stage, in cells."""

    read: int
    """Taps of planes copied to shared memory."""
    row: int
    """The distance along the last axis between these taps."""
    shuffled: int
    """Taps of other planes."""
    spans: tuple[int, ...]
    """The distance between the other taps along every in-plane axis; empty without taps."""


@dataclass(frozen=True)
class ExchangeFacts:
    """A stage making cells visible to other warps or blocks."""

    exchange: ExchangeOp
    element: Attribute
    edges: tuple[int, ...]
    """Cells read by others beyond a warp's or block's part, along every in-plane axis."""
    reach: tuple[int, ...]
    """Cells of a whole plane around the block's part, along every in-plane axis."""
    copies: bool
    """A load's asynchronous copies serve the readers."""
    whole: bool
    """Whole planes are published, not edges alone."""
    delay: int
    """Stream steps from publishing to reading."""
    ages: ReadAges
    """When readers read the planes."""

    @property
    def cell_bytes(self) -> int:
        """Bytes of a cell."""
        return CELL_BYTES[self.element]


@dataclass(frozen=True)
class FixedCells:
    """
    The cells of a field without the streaming axis, read once by a thread. `words`: 32-bit words of
    a cell. `axes`: the in-plane axes of the field, by number. `offsets`: the distances of all taps
    along these axes.
    """

    words: int
    axes: tuple[int, ...]
    offsets: frozenset[tuple[int, ...]]

    def registers(self, patch: tuple[int, ...]) -> int:
        """The registers of a thread with a patch of cells."""
        own = list(product(*(range(patch[axis]) for axis in self.axes)))
        return self.words * len({moved_by(at, off) for at in own for off in self.offsets})


@dataclass(frozen=True)
class KernelFacts:
    """
    The facts of a kernel unchanged by layouts. The kernel has lags, and the exchanges needed by its
    layouts.
    """

    kernel: KernelOp
    outline: Outline
    stages: tuple[StageFacts, ...]
    exchanges: tuple[ExchangeFacts, ...]
    loads: tuple[LoadOp, ...]
    stored: tuple[SSAValue, ...]
    """Fields."""
    tapped: tuple[tuple[SSAValue, TapSet], ...]
    """Every tapped queue, with all of its taps."""
    words: int
    """32-bit words of the widest cell."""
    words_per_cell: int
    """32-bit registers of the planes of all queues, for each cell of a thread."""
    cell_taps: int
    """Taps of all stages for a cell of a thread."""
    natural_period: int
    """Stream steps of a turn of the loop in which planes age by renaming alone."""
    holds_oldest: bool
    """Some operation reads the oldest plane of a queue when the newest has arrived."""
    long_constants: int
    """Constants too long for an instruction."""
    live_words: int
    """32-bit words of a cell's own values alive at once, in the largest stage."""
    scalar_words: int
    """32-bit words of the scalars read by cells."""
    boxed: int
    """Stages computing a part of the bounds."""
    dividing: int
    """Stages with quotients or roots."""
    quotients: int
    """Quotients and roots of a cell in all stages."""
    approximates: bool
    """Some quotients or roots are approximate."""
    sums_early: bool
    """Whether planes enter sums on arrival."""
    carries_sums: bool
    """Whether several partial sums pass from one part of a sum to the next."""
    replaced_levels: int
    """Levels with replaced cells outside the bounds, read by neighbours."""
    fixed: tuple[FixedCells, ...]
    """The cells of fields of fewer axes in registers for all stream steps."""
    moves: dict[tuple[int, ...], Moves] = field(
        default_factory=dict[tuple[int, ...], Moves], compare=False, repr=False
    )
    """What a warp moves in a stream step, by the patch of a thread, as far as asked for."""

    @property
    def steps(self) -> int:
        """Time steps of a launch."""
        return self.kernel.steps.data

    @cached_property
    def shape(self) -> TileShape:
        """The shape of a tile."""
        return TileShape.of(self.kernel)

    @cached_property
    def is_strip_of_words(self) -> bool:
        """
        Whether a tile is a strip of a warp, of 4-byte cells as in memory, without quotients and
        roots.
        """
        if self.shape is not TileShape.STRIP or self.words > 1 or self.exchanges:
            return False
        return not self.dividing and not any(map(is_widened, self.loads))

    @cached_property
    def taps(self) -> list[TapFacts]:
        """The taps of all stages."""
        return [tap for stage in self.stages for _, tap in stage.taps]

    @cached_property
    def lanes_meet(self) -> bool:
        """Whether lanes exchange cells between levels, which share no branch of quotients then."""
        return lanes_meet_between_levels(self.kernel)

    @cached_property
    def published(self) -> set[SSAValue]:
        """The loads with asynchronous copies for an exchange."""
        return {facts.exchange.queue for facts in self.exchanges if facts.copies}

    @cached_property
    def served(self) -> set[SSAValue]:
        """
        The exchanges served by a load's asynchronous copies: readers fetch each cell when needed.
        """
        return {facts.exchange.result for facts in self.exchanges if facts.copies}

    @cached_property
    def copies_are_narrow(self) -> bool:
        """Whether every exchange is served by copies of cells narrower than values."""
        loads = [load for load in self.loads if load.result in self.published]
        return (
            bool(loads) and len(self.served) == len(self.exchanges) and all(map(is_widened, loads))
        )

    @cached_property
    def own_rings(self) -> tuple[tuple[LoadOp, int], ...]:
        """The loads whose copies serve no exchange, each with the age of the oldest plane read."""
        own = (load for load in self.loads if load.result not in self.published)
        return tuple((load, oldest_copy(self.kernel, load)) for load in own)

    @cached_property
    def kinds_of_exchanges(self) -> tuple[tuple[ExchangeFacts, int], ...]:
        """The exchanges, except of copies: one of each kind, and how many there are."""
        kinds: dict[Hashable, list[ExchangeFacts]] = {}
        for each in self.exchanges:
            if not each.copies:
                kind = each.element, each.edges, each.reach, each.whole, each.ages
                kinds.setdefault(kind, []).append(each)
        return tuple((alike[0], len(alike)) for alike in kinds.values())

    @cached_property
    def spans(self) -> tuple[int, ...]:
        """The distance between the farthest taps along every in-plane axis; empty without taps."""
        return spans(self.taps)

    @cached_property
    def has_corners(self) -> bool:
        """Whether some tap differs from the cell along every in-plane axis."""
        return any(all(tap.offset) for tap in self.taps)

    @cached_property
    def stage_spans(self) -> tuple[StageSpans, ...]:
        """The distances between taps of stages, each kind of stage once."""
        found: list[StageSpans] = []
        for stage in self.stages:
            read = [tap for queue, tap in stage.taps if queue in self.served]
            shuffled = [tap for queue, tap in stage.taps if queue not in self.served]
            row = span([tap.offset[-1] for tap in read]) if read else 0
            found.append(StageSpans(len(read), row, len(shuffled), spans(shuffled)))
        return tuple(dict.fromkeys(found))

    @cached_property
    def row_reach(self) -> int:
        """The largest distance, in cells, of taps along the last axis."""
        return max((abs(tap.offset[-1]) for tap in self.taps), default=0)


def queue_bytes(queue: SSAValue) -> int:
    """Bytes of a queue's cells."""
    return CELL_BYTES[queue_type(queue).element]


def field_bytes(field: SSAValue) -> int:
    """Bytes of a field's cells in memory."""
    return CELL_BYTES[element_type(field)]


def is_widened(load: LoadOp) -> bool:
    """Whether cells of a load's field are converted: registers hold wider numbers."""
    return element_type(load.field) != queue_type(load.result).element


def most_alive(kernel: KernelOp) -> int:
    """
    The most planes held at once by a tile without a stream: planes read later, and new planes.
    """
    first: dict[SSAValue, int] = {}
    last: dict[SSAValue, int] = {}
    for place, stage in enumerate(kernel.stages):
        for value in (*stage.operands, *stage.results):
            # An exchange keeps no own cells: readers of own cells read the exchanged queue.
            queue = value.owner.queue if isinstance(value.owner, ExchangeOp) else value
            is_read = isinstance(queue.owner, LoadOp) and queue.owner.keeps_no_plane
            if isinstance(queue.type, QueueType) and not is_read:
                first.setdefault(queue, place)
                last[queue] = place
    places = range(len(kernel.stages))
    return max(sum(first[queue] <= now <= last[queue] for queue in first) for now in places)


def plane_words(kernel: KernelOp, words: int, kept: PlanesInRegisters) -> int:
    """
    32-bit registers of the planes of all queues, for each cell of a thread; `words`: registers of a
    cell.
    """
    if kernel.stream_axis is None:
        return words * most_alive(kernel)
    return words + sum(queue_bytes(queue) // 4 * age for queue, age in kept.oldest.items())


def is_read_beside(queue: SSAValue) -> bool:
    """Whether some stage reads the queue beside its own cell, directly or through an exchange."""
    return bool(exchanges_of(queue)) or any(any(tap.offset) for _, tap in taps_of(queue))


def fixed_cells(load: LoadOp, kernel: KernelOp) -> FixedCells:
    """The cells of a load of fewer axes in registers; none if the field has the streaming axis."""
    axes = load.axes or ()
    inside = tuple(k for k, axis in enumerate(kernel.plane_axes) if axis in axes)
    taps = () if kernel.stream_axis in axes else taps_of(load.result)
    moved = (kernel.in_plane(tap.offset) for _, tap in taps)
    offsets = frozenset(tuple(offset[k] for k in inside) for offset in moved)
    return FixedCells(queue_bytes(load.result) // 4, inside, offsets)


def exchange_facts(kernel: KernelOp, exchange: ExchangeOp) -> ExchangeFacts:
    """The facts of an exchange."""
    return ExchangeFacts(
        exchange,
        exchange.element,
        exchange.edges,
        exchange_reach(kernel, exchange),
        exchange.publishes_copies,
        exchange.what.data is Published.PLANE,
        exchange.delay.data,
        ReadAges.of(exchange, kernel.stream_axis),
    )


def taps_by_queue(stages: Sequence[StageFacts]) -> tuple[tuple[SSAValue, TapSet], ...]:
    """Every tapped queue, with the taps of all stages."""
    taps: dict[SSAValue, set[TapFacts]] = {}
    for stage in stages:
        for queue, tap in stage.taps:
            taps.setdefault(queue, set()).add(tap)
    return tuple((queue, frozenset(found)) for queue, found in taps.items())


def facts_of(kernel: KernelOp, module: ModuleOp, known: KnownCells | None = None) -> KernelFacts:
    """
    The facts of a kernel, with cell functions in the module. `known`: the facts of cells found so
    far in kernels of the same cell functions.
    """
    applies = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
    loads = [stage for stage in kernel.stages if isinstance(stage, LoadOp)]
    exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
    known = KnownCells() if known is None else known
    stages = tuple(stage_facts(stage, kernel, module, known) for stage in applies)
    words = max(queue_bytes(queue) // 4 for stage in kernel.stages for queue in stage.results)
    kept = PlanesInRegisters.of(kernel)
    scalars = dict.fromkeys(scalar for stage in applies for scalar in stage.scalars)
    replaced = (stage for stage in applies if stage.replaces_cells)
    return KernelFacts(
        kernel=kernel,
        outline=Outline(kernel),
        stages=stages,
        exchanges=tuple(exchange_facts(kernel, each) for each in exchanges),
        loads=tuple(s for s in loads if s.data is not None and s.axes is None),
        fixed=tuple(fixed_cells(s, kernel) for s in loads if s.axes is not None),
        stored=tuple(stage.field for stage in kernel.stages if isinstance(stage, StoreOp)),
        tapped=taps_by_queue(stages),
        words=words,
        words_per_cell=plane_words(kernel, words, kept),
        cell_taps=taps_of_cell(kernel),
        natural_period=kept.period,
        holds_oldest=bool(kept.held),
        long_constants=long_constants(module, applies),
        live_words=max((stage.cell.live_words for stage in stages), default=0),
        scalar_words=sum(map(value_words, scalars)),
        boxed=sum(stage.box is not None for stage in applies),
        dividing=sum(stage.cell.quotients > 0 for stage in stages),
        quotients=sum(stage.cell.quotients for stage in stages),
        approximates=any(stage.cell.approximates for stage in stages),
        sums_early=keeps_sums(kernel),
        carries_sums=carries_sums(kernel),
        replaced_levels=sum(any(map(is_read_beside, stage.res)) for stage in replaced),
    )
