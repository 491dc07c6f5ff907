"""What the model needs to know of a kernel: taps, queues, exchanges, and its present layout."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    QueueType,
    StoreOp,
    queue_type,
)
from timetile.dialects.tile_attributes import LANES, AxisLayout
from timetile.passes.analysis.cells.instructions import (
    approximates,
    cell_function,
    divides,
    long_constants,
    operations,
)
from timetile.passes.analysis.cells.pressure import live_words, value_words
from timetile.passes.analysis.cells.sharing import Work, distinct_work
from timetile.passes.analysis.geometry.extents import Needs
from timetile.passes.analysis.geometry.plane_geometry import Row, moved_by
from timetile.passes.analysis.geometry.residency import Residency
from timetile.passes.analysis.queues.lags import keeps_sums, oldest_age
from timetile.passes.analysis.queues.storage import kept_queues, natural_period
from timetile.passes.analysis.queues.synchronisation import (
    meets_at_barriers,
    steps_between_barriers,
)
from timetile.passes.targets.isa import SHARED_BYTES_PER_CYCLE
from timetile.passes.targets.target import Target


@dataclass(frozen=True)
class TapFacts:
    """A tap of a queue: the plane's age, and cells from the own one along every in-plane axis."""

    age: int
    offset: tuple[int, ...]
    shared: bool
    """Beyond the own cells it is read from shared memory: an exchange has whole planes there."""


Taps = frozenset[TapFacts]


@dataclass(frozen=True)
class CellFacts:
    """What the cells of a queue are."""

    element: Attribute

    @property
    def cell_bytes(self) -> int:
        """The size of a cell."""
        return CELL_BYTES[self.element]


Sharing = Callable[[tuple[int, ...]], Work]
"""
The instructions of a patch of cells, along the stream and every in-plane axis: less than so many cells' where some
compute the same.
"""


@dataclass(frozen=True)
class StageFacts(CellFacts):
    """
    An apply: instructions a cell on the floating-point pipe and beside it, and its taps.
    """

    operations: int
    helpers: int
    taps: tuple[tuple[SSAValue, TapFacts], ...]
    """With the queue that each reads."""
    sharing: Sharing | None
    """None where cells never compute the same."""


@dataclass(frozen=True)
class ExchangeFacts(CellFacts):
    """An exchange: how wide its edges are, and the slots of its mail."""

    exchange: ExchangeOp
    edges: tuple[int, ...]
    copies: bool
    slots: int
    """Of mail; those of copies depend on how early planes are fetched."""


def cell_bytes(queue: SSAValue) -> int:
    """The size of a queue's cells."""
    return CELL_BYTES[queue_type(queue).element]


def span(offsets: list[int]) -> int:
    """From the smallest offset to the largest."""
    return max(offsets) - min(offsets)


def wavefronts(cells: int, cell_bytes: int) -> float:
    """
    Cycles of the shared-memory pipe for `cells` consecutive cells of every lane. A shuffle of a word
    takes one, too.
    """
    return cells * cell_bytes * LANES / SHARED_BYTES_PER_CYCLE


def cells_around(patch: tuple[int, ...], taps: Collection[TapFacts]) -> int:
    """Cells of a patch, and those around it that taps of its cells read, in the box that holds them all."""
    return prod(n + span([tap.offset[k] for tap in taps]) for k, n in enumerate(patch))


def neighbours(taps: Taps, patch: tuple[int, ...], group: int) -> tuple[int, int]:
    """
    What a thread of a patch of cells fetches of a queue: cells by shuffles, and aligned vectors of `group` cells from
    shared memory, each once. Where planes are not in shared memory, other warps' rows are: they are shuffled like the
    own ones.
    """
    *others, cells = patch
    own_rows = set(product(*map(range, others)))
    shuffled: set[tuple[int, Row, int]] = set()
    vectors: set[tuple[int, Row, int]] = set()
    for tap in taps:
        *moved, cell = tap.offset
        for own in own_rows:
            row = moved_by(own, moved)
            own_row = row in own_rows
            if tap.shared and not (own_row and cell == 0):
                first, last = cell // group, (cell + cells - 1) // group
                for number in range(first, last + 1):
                    if not (own_row and 0 <= number * group < cells):
                        vectors.add((tap.age, row, number))
                continue
            if not own_row:
                vectors.update((tap.age, row, number) for number in range(cells // group))
            beyond = range(cell, 0) if cell < 0 else range(cells, cells + cell)
            shuffled.update((tap.age, row, place) for place in beyond)
    return len(shuffled), len(vectors)


def most_alive(kernel: KernelOp) -> int:
    """The most planes that a tile without a stream holds at once: those that are read later, and what is made."""
    first: dict[SSAValue, int] = {}
    last: dict[SSAValue, int] = {}
    for place, stage in enumerate(kernel.stages):
        for value in (*stage.operands, *stage.results):
            # Own cells are read where they are, not where neighbours find them.
            queue = value.owner.queue if isinstance(value.owner, ExchangeOp) else value
            is_halo = isinstance(queue.owner, LoadOp) and queue.owner.data is None
            if isinstance(queue.type, QueueType) and not is_halo:
                first.setdefault(queue, place)
                last[queue] = place
    places = range(len(kernel.stages))
    return max(sum(first[queue] <= now <= last[queue] for queue in first) for now in places)


class KernelFacts:
    """
    One kernel under different layouts: what does not depend on the layout is collected once. The kernel has
    exchanges where its layouts need them, and lags.
    """

    meets: bool
    """The blocks of a tile wait for each other at barriers of the grid, and not for each other's words."""
    every: int
    """Stream steps from one of those barriers to the next."""

    def __init__(
        self, kernel: KernelOp, module: ModuleOp, target: Target, *, split: bool | None = None
    ):
        """`split`: its warps synchronise in two halves; None where the homes of its exchanges say it."""
        self.kernel, self.module, self.target = kernel, module, target
        self.parameters = target.parameters
        self.needs = Needs.of(kernel)
        self.sharings: dict[Hashable, Sharing | None] = {}
        applies = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
        self.stages = [self.stage_facts(stage) for stage in applies]
        self.taps = [tap for stage in self.stages for _, tap in stage.taps]
        self.long_constants = long_constants(module, applies)
        self.exchanges = [
            self.exchange_facts(s) for s in kernel.stages if isinstance(s, ExchangeOp)
        ]
        self.loads = [s for s in kernel.stages if isinstance(s, LoadOp) and s.data is not None]
        self.stored = [s.field for s in kernel.stages if isinstance(s, StoreOp)]
        homes = [e.exchange.home for e in self.exchanges if e.exchange.home is not None]
        self.split = any(h.sync.data != "barrier" for h in homes) if split is None else split
        self.meets = meets_at_barriers(e.exchange for e in self.exchanges)
        self.every = steps_between_barriers(e.exchange for e in self.exchanges)
        self.published = {e.exchange.queue for e in self.exchanges if e.copies}
        self.natural_period = natural_period(kernel)
        self.boxed = sum(isinstance(s, ApplyOp) and s.box is not None for s in kernel.stages)
        self.dividing = sum(divides(module, stage) for stage in applies)
        self.live_words = max((live_words(cell_function(module, s)) for s in applies), default=0)
        scalars = dict.fromkeys(scalar for stage in applies for scalar in stage.scalars)
        self.scalar_words = sum(map(value_words, scalars))
        self.approximates = any(approximates(module, stage) for stage in applies)
        self.sums_early = keeps_sums(kernel)
        self.words = max(cell_bytes(q) // 4 for s in kernel.stages for q in s.results)
        self.words_per_cell = self.plane_words()
        self.tapped = self.taps_by_queue()
        self.fetched: dict[tuple[Taps, tuple[int, ...], int], tuple[int, int]] = {}

    # What is collected once.

    def stage_facts(self, stage: ApplyOp) -> StageFacts:
        taps: list[tuple[SSAValue, TapFacts]] = []
        for tap in stage.tap_list:
            queue = stage.queues[tap.operand]
            age, exchange = stage.age(tap), queue.owner
            shared = isinstance(exchange, ExchangeOp) and exchange.what.data != "edges"
            if isinstance(exchange, ExchangeOp) and not shared:
                queue, age = exchange.queue, age + exchange.delay.data + exchange.hold
            taps.append((queue, TapFacts(age, self.kernel.in_plane(tap.offset), shared)))
        element = queue_type(stage.res[0]).element
        return StageFacts(
            element, *operations(self.module, stage), tuple(taps), self.sharing_of(stage)
        )

    def sharing_of(self, stage: ApplyOp) -> Sharing | None:
        """What the cells of a thread compute in common for a stage."""
        stream = self.kernel.stream_axis

        def place(offset: tuple[int, ...]) -> tuple[int, ...]:
            along = 0 if stream is None else offset[stream]
            return along, *self.kernel.in_plane(offset)

        function = cell_function(self.module, stage)
        taps = [(tap.operand, place(tap.offset)) for tap in stage.tap_list]
        # Levels are alike: what their cells have in common is found out once.
        key = (stage.cell, tuple(taps))
        if key in self.sharings:
            return self.sharings[key]

        @cache
        def work(patch: tuple[int, ...]) -> Work:
            return distinct_work(function, taps, patch)

        around = 1 + len(self.kernel.plane_axes)
        alone, together = work((1,) * around), work((2,) * around)
        self.sharings[key] = work if together[0] < 2**around * alone[0] else None
        return self.sharings[key]

    def exchange_facts(self, exchange: ExchangeOp) -> ExchangeFacts:
        slots = exchange.delay.data + 1 + oldest_age(exchange.result, self.kernel.stream_axis)
        return ExchangeFacts(
            queue_type(exchange.result).element,
            exchange,
            exchange.edges,
            exchange.publishes_copies,
            max(slots, 2),
        )

    def plane_words(self) -> int:
        """32-bit registers that the planes of all queues take, per cell of a thread."""
        if self.kernel.stream_axis is None:
            return self.words * most_alive(self.kernel)
        return self.words + sum(
            cell_bytes(queue) // 4 * oldest_age(queue, self.kernel.stream_axis)
            for queue in kept_queues(self.kernel)
        )

    def taps_by_queue(self) -> dict[SSAValue, Taps]:
        """The taps of every queue, whoever makes them."""
        taps: dict[SSAValue, set[TapFacts]] = {}
        for stage in self.stages:
            for queue, tap in stage.taps:
                taps.setdefault(queue, set()).add(tap)
        return {queue: frozenset(found) for queue, found in taps.items()}

    # What the layout decides.

    @property
    def residency(self) -> Residency:
        """How many tiles the device holds."""
        return Residency.of(self.kernel, self.target)

    @property
    def layouts(self) -> tuple[AxisLayout, ...]:
        assert self.kernel.layout is not None
        return self.kernel.layout.axis_layouts

    @property
    def patch(self) -> tuple[int, ...]:
        """Cells of a plane that one thread holds, along every in-plane axis."""
        return tuple(axis.cells for axis in self.layouts)

    @property
    def rows(self) -> int:
        """Rows of a plane that one thread holds."""
        return prod(self.patch[:-1])

    @property
    def row_cells(self) -> int:
        """Cells of a row that one thread holds."""
        return self.layouts[-1].cells

    @property
    def thread_cells(self) -> int:
        """Cells of a plane that one thread holds."""
        return self.rows * self.row_cells
