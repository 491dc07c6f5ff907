"""What the model needs to know of a kernel: taps, queues, exchanges, and its present layout."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    StoreOp,
    queue_type,
)
from timetile.dialects.tile_attributes import LANES, AxisLayout
from timetile.passes.analysis.extents import Needs
from timetile.passes.analysis.instructions import (
    cell_function,
    divides,
    long_constants,
    operations,
)
from timetile.passes.analysis.lags import keeps_sums, oldest_age
from timetile.passes.analysis.residency import Residency
from timetile.passes.analysis.sharing import Work, distinct_work
from timetile.passes.arch import SHARED_BYTES_PER_CYCLE, Arch
from timetile.passes.multi_queue_buffering import kept_queues, natural_period


@dataclass(frozen=True)
class TapFacts:
    """A tap of a queue: the plane's age, and rows and cells from the own cell."""

    age: int
    row: int
    cell: int
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


@dataclass(frozen=True)
class StageFacts(CellFacts):
    """
    An apply: instructions a cell on the floating-point pipe and beside it, and its taps.
    """

    operations: int
    helpers: int
    taps: tuple[tuple[SSAValue, TapFacts], ...]
    """With the queue that each reads."""
    sharing: Callable[[int, int, int], Work] | None
    """
    The instructions of a patch of planes, rows and cells, which is less than so many cells' where some compute the same;
    None where they never do.
    """


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


def neighbours(taps: Taps, rows: int, cells: int, group: int) -> tuple[int, int]:
    """
    What a thread of `rows` x `cells` cells fetches of a queue: cells by shuffles, and aligned vectors of
    `group` cells from shared memory, each once. Where planes are not in shared memory, other warps' rows are:
    they are shuffled like the own ones.
    """
    shuffled: set[tuple[int, int, int]] = set()
    vectors: set[tuple[int, int, int]] = set()
    for tap in taps:
        for row in range(tap.row, tap.row + rows):
            own_row = 0 <= row < rows
            if tap.shared and not (own_row and tap.cell == 0):
                first, last = tap.cell // group, (tap.cell + cells - 1) // group
                for number in range(first, last + 1):
                    if not (own_row and 0 <= number * group < cells):
                        vectors.add((tap.age, row, number))
                continue
            if not own_row:
                vectors.update((tap.age, row, number) for number in range(cells // group))
            beyond = range(tap.cell, 0) if tap.cell < 0 else range(cells, cells + tap.cell)
            shuffled.update((tap.age, row, cell) for cell in beyond)
    return len(shuffled), len(vectors)


class KernelFacts:
    """
    One kernel under different layouts: what does not depend on the layout is collected once. The kernel has
    exchanges where its layouts need them, and lags.
    """

    def __init__(
        self, kernel: KernelOp, module: ModuleOp, arch: Arch, *, split: bool | None = None
    ):
        """`split`: its warps synchronise in two halves; None where the homes of its exchanges say it."""
        self.kernel, self.module, self.arch = kernel, module, arch
        self.needs = Needs.of(kernel)
        self.sharings: dict[Hashable, Callable[[int, int, int], Work] | None] = {}
        applies = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
        self.stages = [self.stage_facts(stage) for stage in applies]
        self.long_constants = long_constants(module, applies)
        self.exchanges = [
            self.exchange_facts(s) for s in kernel.stages if isinstance(s, ExchangeOp)
        ]
        self.loads = [s for s in kernel.stages if isinstance(s, LoadOp) and s.data is not None]
        self.stored = [s.field for s in kernel.stages if isinstance(s, StoreOp)]
        homes = [e.exchange.home for e in self.exchanges if e.exchange.home is not None]
        self.split = any(h.sync.data != "barrier" for h in homes) if split is None else split
        self.published = {e.exchange.queue for e in self.exchanges if e.copies}
        self.natural_period = natural_period(kernel)
        self.boxed = sum(isinstance(s, ApplyOp) and s.box is not None for s in kernel.stages)
        self.dividing = sum(divides(module, stage) for stage in applies)
        self.sums_early = keeps_sums(kernel)
        self.words = max(cell_bytes(q) // 4 for s in kernel.stages for q in s.results)
        self.words_per_cell = self.plane_words()
        self.tapped = self.taps_by_queue()
        self.fetched: dict[tuple[Taps, int, int, int], tuple[int, int]] = {}

    # What is collected once.

    def stage_facts(self, stage: ApplyOp) -> StageFacts:
        axes = self.kernel.plane_axes
        taps: list[tuple[SSAValue, TapFacts]] = []
        for tap in stage.tap_list:
            queue = stage.queues[tap.operand]
            row = tap.offset[axes[0]] if len(axes) == 2 else 0
            age, exchange = stage.age(tap), queue.owner
            shared = isinstance(exchange, ExchangeOp) and exchange.what.data != "edges"
            if isinstance(exchange, ExchangeOp) and not shared:
                queue, age = exchange.queue, age + exchange.delay.data + exchange.hold
            facts = TapFacts(age, row, tap.offset[axes[-1]], shared)
            taps.append((queue, facts))
        element = queue_type(stage.res[0]).element
        return StageFacts(
            element, *operations(self.module, stage), tuple(taps), self.sharing_of(stage)
        )

    def sharing_of(self, stage: ApplyOp) -> Callable[[int, int, int], Work] | None:
        """What the cells of a thread compute in common for a stage."""
        axes = self.kernel.plane_axes
        stream = self.kernel.stream_axis

        def place(offset: tuple[int, ...]) -> tuple[int, int, int]:
            along = 0 if stream is None else offset[stream]
            return along, offset[axes[0]] if len(axes) == 2 else 0, offset[axes[-1]]

        function = cell_function(self.module, stage)
        taps = [(tap.operand, place(tap.offset)) for tap in stage.tap_list]
        # Levels are alike: what their cells have in common is found out once.
        key = (stage.cell, tuple(taps))
        if key in self.sharings:
            return self.sharings[key]

        @cache
        def work(planes: int, rows: int, cells: int) -> Work:
            return distinct_work(function, taps, (planes, rows, cells))

        alone, together = work(1, 1, 1), work(2, 2, 2)
        self.sharings[key] = work if together[0] < 8 * alone[0] else None
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
            # A tile without a stream holds the plane that it reads and the one that it makes.
            return 2 * self.words
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
        return Residency.of(self.kernel, self.arch)

    @property
    def layouts(self) -> tuple[AxisLayout, ...]:
        assert self.kernel.layout is not None
        return self.kernel.layout.axis_layouts

    @property
    def rows(self) -> int:
        """Rows of a plane that one thread holds."""
        return self.layouts[0].cells if len(self.layouts) == 2 else 1

    @property
    def row_cells(self) -> int:
        """Cells of a row that one thread holds."""
        return self.layouts[-1].cells

    @property
    def thread_cells(self) -> int:
        """Cells of a plane that one thread holds."""
        return self.rows * self.row_cells
