"""A schedule: every decision about how a time loop becomes kernels.

`choose-schedule` writes it on the loop as a dictionary; the later passes read it unless their own
options say otherwise.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute

from timetile.dialects.syntax import Integers, decode_integers, encode_integers
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile_attributes import (
    LANES,
    Addressing,
    AxisLayout,
    LayoutAttr,
    TileLevel,
)

Sync = Literal["barrier", "mbarrier", "flags", "grid"]
"""How the warps of a tile wait for each other."""


Form = Literal["none", "rows", "halves", "lanes"]
"""How a sum is cut into stages: not at all, one plane each, two halves, or one column each (`split-sums`)."""

Guards = Literal["rim", "all"]
"""Which tiles run the copy with guards for cells outside the bounds: those that touch them, or all."""

Reads = Literal["memory"]
"""Where taps are read if not in what a tile holds: in the fields themselves, whatever their reach."""

ColumnsAlone = Literal["alone"]
"""No planes of a column are joined with those of others (`peel-boundaries`)."""


@dataclass(frozen=True)
class Schedule:
    """
    `tile`: the threads that hold a tile. `cells`, `lanes`, `warps`: how the cells of each in-plane
    axis are spread over a thread, a warp and a block; `blocks`, over a cluster or the device, where a tile
    is held by one (no numbers stand for one block). `pack`: warp tiles per block. `form`: how sums
    are split into stages. `storage` and `addressing`: where queues live. `ahead`: planes fetched
    early. `period`: unrolling of the stream loop (0: as many as the planes need). `delay`: steps
    between publishing and reading across warps. `every`: steps between two barriers of the whole
    grid, where blocks meet at those. `sync`: how warps wait for each other, at a `barrier` or, in two
    halves, at an `mbarrier`; where the device holds a tile, how its blocks do: by `flags` in what they send each other, or at a barrier of the whole `grid`. `guards`: which tiles
    run the copy with guards; where no cell is replaced, all do. `stream`: none
    where a tile stays in its threads' registers for all steps instead of being streamed. `columns`: alone where no chunk goes
    on in the next column, which takes registers. `occupancy`: blocks per multiprocessor. `reads`: `memory` where
    kernels of single steps read every tap from the fields and keep nothing, so that no reach is too far; `cuts`: the
    numbers of the updates before which such a step is cut into kernels of its own.
    """

    tile: TileLevel = "warp"
    cells: tuple[int, ...] = (4,)
    lanes: tuple[int, ...] = (LANES,)
    warps: tuple[int, ...] = (1,)
    blocks: tuple[int, ...] = ()
    pack: int = 4
    form: Form = "none"
    storage: str = "registers"
    addressing: Addressing = "fixed"
    ahead: int = 3
    period: int = 0
    delay: int = 1
    every: int = 1
    sync: Sync = "barrier"
    occupancy: int = 2
    guards: Guards = "rim"
    stream: Literal["none"] | None = None
    columns: ColumnsAlone | None = None
    reads: Reads | None = None
    cuts: tuple[int, ...] = ()

    @property
    def stays(self) -> bool:
        """Nothing is streamed: a tile keeps its place for all steps."""
        return self.stream == "none"

    def layout(self) -> LayoutAttr:
        """The layout attribute of the kernels."""
        blocks = self.blocks or (1,) * len(self.cells)
        axes = [AxisLayout(*n) for n in zip(self.cells, self.lanes, self.warps, blocks)]
        return LayoutAttr(self.tile, axes, self.pack if self.tile == "warp" else 1)

    def to_attribute(self) -> DictionaryAttr:
        """The schedule as an attribute, one entry a field."""
        entries: dict[str, Attribute] = {}
        for name, value in asdict(self).items():
            if value is None or value == ():
                continue
            if isinstance(value, tuple):
                entries[name] = encode_integers(cast(tuple[int, ...], value))
            elif isinstance(value, int):
                entries[name] = IntegerAttr(value, i64)
            else:
                entries[name] = StringAttr(str(value))
        return DictionaryAttr(entries)

    @staticmethod
    def from_attribute(attribute: DictionaryAttr | None) -> Schedule:
        """The schedule that an attribute describes; defaults where it is silent."""
        if attribute is None:
            return Schedule()
        values: dict[str, Any] = {}
        for name, entry in attribute.data.items():
            match entry:
                case StringAttr():
                    values[name] = entry.data
                case IntegerAttr():
                    values[name] = entry.value.data
                case _:
                    values[name] = decode_integers(cast(Integers, entry))
        return Schedule(**values)


def schedule_of(kernel: KernelOp, module: ModuleOp) -> Schedule:
    """The schedule of the loop that a kernel belongs to; the defaults where no loop of the module does."""
    for loop in module.walk():
        if isinstance(loop, LoopOp) and kernel.sym_name.data in loop.kernel_names:
            return Schedule.from_attribute(loop.schedule)
    return Schedule()
