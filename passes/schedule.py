"""A schedule: every decision about how a time loop becomes kernels.

`choose-schedule` writes the schedule on the loop as a dictionary. Later passes read the entries,
unless their own options say otherwise.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute

from timetile.dialects.syntax import Integers, decode_integers, encode_integers
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import (
    LANES,
    AxisLayout,
    KernelOp,
    LayoutAttr,
    TileLevel,
)

TileOption = Literal["warp", "block", "cluster", "device"]
"""The threads that hold a tile, by the name of a `TileLevel`."""

AddressingOption = Literal["fixed", "shifting", "computed"]
"""How a stream step finds a slot of a ring, by the name of an `Addressing`."""

SyncOption = Literal["barrier", "mbarrier", "flags", "grid"]
"""How the threads of a tile wait for each other, by the name of a `Sync`."""


Form = Literal["none", "rows", "halves", "lanes"]
"""
How a sum is cut into stages: not at all, one stage for each plane, two halves, or one stage for
each column (`split-sums`).
"""

Guards = Literal["rim", "all"]
"""The tiles with guards for cells outside the bounds: tiles at the bounds, or all tiles."""

Reads = Literal["memory"]
"""
The place of taps outside a tile: `memory` reads every tap from the field itself, at any reach.
"""

ColumnsAlone = Literal["alone"]
"""No planes of a column are joined with planes of other columns (`peel-boundaries`)."""


@dataclass(frozen=True)
class Schedule:
    """
    The decisions:

    - `tile`: the kind of thread group holding a tile.
    - `cells`, `lanes`, `warps`, `blocks`: how the cells of each in-plane axis are spread over a
      thread, a warp, a block, and over a cluster or the device (empty for one block).
    - `pack`: warp tiles of a block.
    - `form`: how sums are split into stages.
    - `storage`, `addressing`: where queues live.
    - `ahead`: planes fetched early.
    - `period`: unrolling of the stream loop (0: as many steps as planes need).
    - `delay`: steps between publishing and reading across warps.
    - `every`: steps between two barriers of the whole grid, for blocks that meet at barriers.
    - `sync`: how warps wait for each other, at a `barrier` or, in two halves, at an `mbarrier`; for
      a device tile, how blocks wait: by `flags` in messages, or at a barrier of the whole `grid`.
    - `occupancy`: blocks of a multiprocessor.
    - `guards`: the tiles with guards; all tiles if no cell is replaced.
    - `stream`: `none` for resident tiles, held in registers for all steps.
    - `columns`: `alone` if no chunk goes on in the next column, to save registers.
    - `reads`: `memory` for kernels of single steps that read every tap from fields and keep no
      plane.
    - `cuts`: with `reads`, the numbers of the updates before which a step is cut into kernels.
    """

    tile: TileOption = "warp"
    cells: tuple[int, ...] = (4,)
    lanes: tuple[int, ...] = (LANES,)
    warps: tuple[int, ...] = (1,)
    blocks: tuple[int, ...] = ()
    pack: int = 4
    form: Form = "none"
    storage: str = "registers"
    addressing: AddressingOption = "fixed"
    ahead: int = 3
    period: int = 0
    delay: int = 1
    every: int = 1
    sync: SyncOption = "barrier"
    occupancy: int = 2
    guards: Guards = "rim"
    stream: Literal["none"] | None = None
    columns: ColumnsAlone | None = None
    reads: Reads | None = None
    cuts: tuple[int, ...] = ()

    @property
    def is_resident(self) -> bool:
        """Whether a tile keeps its place for all steps, without streaming."""
        return self.stream == "none"

    def layout(self) -> LayoutAttr:
        """The layout attribute of the kernels. Raises VerifyException for a wrong layout."""
        return self.made_layout

    @cached_property
    def made_layout(self) -> LayoutAttr:
        """The layout attribute, made once: the cost model asks for it many times."""
        blocks = self.blocks or (1,) * len(self.cells)
        axes = [AxisLayout(*n) for n in zip(self.cells, self.lanes, self.warps, blocks)]
        return LayoutAttr(TileLevel(self.tile), axes, self.pack if self.tile == "warp" else 1)

    def to_attribute(self) -> DictionaryAttr:
        """The schedule as an attribute, with one entry for each field."""
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
        """The schedule described by an attribute, with defaults for missing entries."""
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
    """The schedule of a kernel's loop; defaults if no loop of the module names the kernel."""
    for loop in module.walk():
        if isinstance(loop, LoopOp) and kernel.sym_name.data in loop.kernel_names:
            return Schedule.from_attribute(loop.schedule)
    return Schedule()
