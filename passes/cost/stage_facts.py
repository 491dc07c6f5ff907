"""The facts of computing stages for the cost model: taps, instructions, work shared by cells."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    Published,
    queue_type,
)
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.instructions import is_approximate, is_dividing, operations
from timetile.passes.analysis.cells.pressure import live_words
from timetile.passes.analysis.cells.sharing import SharedCells
from timetile.passes.cost.taps import TapFacts

TapPlaces = tuple[tuple[int, tuple[int, ...]], ...]
"""The operand and the place of each tap of a stage, the distance along the stream first."""


@dataclass(frozen=True)
class CellFacts:
    """The facts of a cell function, equal in all of its stages."""

    operations: int
    """Instructions of a cell on the floating-point pipe."""
    helpers: int
    """Instructions of a cell beside the floating-point pipe."""
    live_words: int
    """32-bit words of a cell's own values alive at once."""
    quotients: int
    """Quotients and roots of the cell, slow for special operands."""
    approximates: bool
    """Whether the cell has quotients or roots with permission to be approximate."""

    @staticmethod
    def of(function: FuncOp) -> CellFacts:
        """The facts of a cell function."""
        pipe, beside = operations(function)
        ops = function.body.block.ops
        return CellFacts(
            pipe,
            beside,
            live_words(function),
            sum(map(is_dividing, ops)),
            any(map(is_approximate, ops)),
        )


class KnownCells:
    """
    The cell functions of a module, with the facts found so far: levels are alike, and so are the
    kernels of a loop.
    """

    def __init__(self):
        self.facts: dict[SymbolRefAttr, CellFacts] = {}
        self.sharing: dict[tuple[SymbolRefAttr, TapPlaces], SharedCells | None] = {}

    def of(self, stage: ApplyOp, module: ModuleOp) -> CellFacts:
        """The facts of a stage's cell function."""
        if stage.cell not in self.facts:
            self.facts[stage.cell] = CellFacts.of(cell_function(module, stage))
        return self.facts[stage.cell]

    def shared(self, stage: ApplyOp, kernel: KernelOp, module: ModuleOp) -> SharedCells | None:
        """
        The values shared by the cells of a thread in a stage; None where cells never compute the
        same.
        """
        taps = tuple(
            (tap.operand, (kernel.along_stream(tap.offset), *kernel.in_plane(tap.offset)))
            for tap in stage.tap_list
        )
        key = (stage.cell, taps)
        if key not in self.sharing:
            cells = SharedCells(cell_function(module, stage), taps)
            around = 1 + len(kernel.plane_axes)
            alone, together = cells.work((1,) * around), cells.work((2,) * around)
            shares = together[0] < 2**around * alone[0]
            self.sharing[key] = cells if shares else None
        return self.sharing[key]


@dataclass(frozen=True)
class StageFacts:
    """A computing stage."""

    element: Attribute
    cell: CellFacts
    operations: int
    """Instructions of a cell on the floating-point pipe."""
    helpers: int
    """Instructions of a cell beside the floating-point pipe."""
    taps: tuple[tuple[SSAValue, TapFacts], ...]
    """Each tap, with its queue."""
    sharing: SharedCells | None
    """None where cells never compute the same."""

    @property
    def cell_bytes(self) -> int:
        """Bytes of a cell."""
        return CELL_BYTES[self.element]


def stage_facts(
    stage: ApplyOp, kernel: KernelOp, module: ModuleOp, known: KnownCells
) -> StageFacts:
    """The facts of a computing stage."""
    taps: list[tuple[SSAValue, TapFacts]] = []
    for tap in stage.tap_list:
        queue = stage.queue_of(tap)
        age, exchange = stage.age(tap), queue.owner
        if isinstance(exchange, LoadOp) and exchange.is_read_at_use:
            continue
        shared = isinstance(exchange, ExchangeOp) and exchange.what.data is not Published.EDGES
        if isinstance(exchange, ExchangeOp) and not shared:
            queue, age = exchange.queue, age + exchange.delay.data + exchange.hold
        taps.append((queue, TapFacts(age, kernel.in_plane(tap.offset), shared)))
    element = queue_type(stage.res[0]).element
    cell, sharing = known.of(stage, module), known.shared(stage, kernel, module)
    helpers = cell.helpers + reads_at_use(stage)
    return StageFacts(element, cell, cell.operations, helpers, tuple(taps), sharing)


def reads_at_use(stage: ApplyOp) -> int:
    """
    Loads of a cell from memory in every stream step: taps of fields of fewer axes with the
    streaming axis among them.
    """
    loads = [stage.queue_of(tap).owner for tap in stage.tap_list]
    stream = stage.kernel.stream_axis
    return sum(isinstance(o, LoadOp) and o.axes is not None and stream in o.axes for o in loads)
