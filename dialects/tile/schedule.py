"""Schedules: every decision about how a time loop becomes kernels, as an attribute."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from math import prod

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from timetile.dialects.syntax import parse_integers
from timetile.dialects.tile.kinds import Addressing, Form, Guards, Storage, Sync, TileLevel
from timetile.dialects.tile.layouts import LANES, AxisLayout, LayoutAttr

Decision = StrEnum | bool | int | tuple[int, ...] | None
"""The value of a part of a schedule."""

LAYOUT_PARTS = frozenset({"tile", "cells", "lanes", "warps", "blocks", "pack"})
"""The parts of a schedule that make its layout."""


Counts = tuple[int, ...]
"""A number for each in-plane axis."""


def default_stream(rank: int) -> int | None:
    """Tiles of two and more axes are streamed along the slowest."""
    return None if rank == 1 else 0


@lru_cache(maxsize=1 << 12)
def made_layout(
    tile: TileLevel, cells: Counts, lanes: Counts, warps: Counts, blocks: Counts, pack: int
) -> LayoutAttr:
    """A layout, made once: the searches of all loops consider the same layouts."""
    axes = [AxisLayout(*counts) for counts in zip(cells, lanes, warps, blocks)]
    return LayoutAttr(tile, axes, pack)


@dataclass(frozen=True)
class Schedule:
    """The decisions, as a value: `ScheduleAttr` describes each."""

    tile: TileLevel = TileLevel.WARP
    cells: tuple[int, ...] = (4,)
    lanes: tuple[int, ...] = (LANES,)
    warps: tuple[int, ...] = (1,)
    blocks: tuple[int, ...] = ()
    pack: int = 4
    form: Form = Form.NONE
    storage: Storage = Storage.REGISTERS
    addressing: Addressing = Addressing.FIXED
    ahead: int = 3
    period: int | None = None
    delay: int = 1
    every: int = 1
    sync: Sync = Sync.BARRIER
    occupancy: int = 2
    guards: Guards = Guards.RIM
    resident: bool = False
    columns_alone: bool = False
    blocks_alone: bool = False
    reads_memory: bool = False
    regions: bool = False
    cuts: tuple[int, ...] = ()
    occupancies: tuple[int, ...] = ()

    def stream_axis(self, rank: int) -> int | None:
        """The streaming axis of tiles of a domain with `rank` axes; None for resident tiles."""
        return None if self.resident else default_stream(rank)

    def layout(self) -> LayoutAttr:
        """The layout attribute of the kernels. Raises VerifyException for a wrong layout."""
        return self.made_layout

    @cached_property
    def made_layout(self) -> LayoutAttr:
        """The layout attribute, made once: the cost model asks for it many times."""
        blocks = self.blocks or (1,) * len(self.cells)
        pack = self.pack if self.tile is TileLevel.WARP else 1
        return made_layout(self.tile, self.cells, self.lanes, self.warps, blocks, pack)

    def but(self, **changes: Decision) -> Schedule:
        """The schedule with other decisions beside the layout, which is not made again."""
        other = replace(self, **changes)
        assert not LAYOUT_PARTS & changes.keys()
        vars(other)["made_layout"] = self.made_layout
        return other

    def with_layout(self, layout: LayoutAttr) -> Schedule:
        """The schedule with the tile of a layout."""
        cells, lanes, warps, blocks = zip(*(axis.counts for axis in layout.axis_layouts))
        return replace(
            self,
            tile=layout.level.data,
            cells=cells,
            lanes=lanes,
            warps=warps,
            blocks=blocks,
            pack=layout.pack.data,
        )

    def occupancy_of(self, part: int) -> int:
        """Blocks of a multiprocessor of the kernel of a part of the step."""
        return self.occupancies[part] if self.occupancies else self.occupancy

    @property
    def has_several_blocks(self) -> bool:
        """Several blocks hold a tile."""
        return prod(self.blocks) > 1

    @property
    def splits(self) -> bool:
        """
        Threads of a streamed tile announce the end of a step, and wait later. Several blocks of a
        tile never wait at once for the slowest.
        """
        return not self.resident and (self.sync is not Sync.BARRIER or self.has_several_blocks)

    @property
    def meets_at_barriers(self) -> bool:
        """The blocks of a tile of the device wait for each other at barriers of the grid."""
        on_device = self.tile is TileLevel.DEVICE and self.has_several_blocks
        return on_device and self.sync is Sync.GRID

    @property
    def steps_between_barriers(self) -> int:
        """
        Stream steps between two barriers: above 1 where the warps of a block, or the blocks of a
        tile, meet at barriers.
        """
        alone = self.tile is TileLevel.BLOCK and self.sync is Sync.BARRIER
        return self.every if (alone or self.meets_at_barriers) and not self.resident else 1

    def entries(self) -> dict[str, Decision]:
        """The decisions that differ from the default ones, in the order of the fields."""
        pairs = ((part, getattr(self, part.name)) for part in fields(self))
        return {part.name: value for part, value in pairs if value != part.default}

    def __str__(self) -> str:
        return ", ".join(entry_text(name, value) for name, value in self.entries().items())


def entry_text(name: str, value: Decision) -> str:
    """`cells [4, 2]`, `sync grid`; a decision that is made or not is its name alone."""
    if isinstance(value, bool):
        return name
    return f"{name} {list(value) if isinstance(value, tuple) else value}"


LEAST = {"pack": 1, "ahead": 0, "period": 1, "delay": 0, "every": 1, "occupancy": 1}
"""The least value of each decision that is a number."""


def verify_schedule(schedule: Schedule) -> None:
    """Raise VerifyException for a decision that no kernel can have."""
    for name, least in LEAST.items():
        value: int | None = getattr(schedule, name)
        if value is not None and value < least:
            raise VerifyException(f"{name} of a schedule is at least {least}, got {value}")
    counts = (schedule.cells, schedule.lanes, schedule.warps, schedule.blocks or schedule.cells)
    lengths = [len(numbers) for numbers in counts]
    if not lengths[0] or len(set(lengths)) > 1:
        raise VerifyException(
            "cells, lanes, warps and blocks of a schedule have a number for each in-plane axis, "
            f"got {lengths} numbers"
        )
    schedule.layout()
    if schedule.sync in (Sync.FLAGS, Sync.GRID) and schedule.tile is not TileLevel.DEVICE:
        raise VerifyException(
            "only the blocks of a tile of the device wait for each other by flags or grid, got "
            f"sync {schedule.sync} for tile {schedule.tile}"
        )
    verify_cuts(schedule)
    verify_occupancies(schedule)


def verify_cuts(schedule: Schedule) -> None:
    """Raise VerifyException for cuts out of order, and for cuts of kernels that keep planes."""
    cuts = schedule.cuts
    if list(cuts) != sorted(set(cuts)) or min(cuts, default=1) < 1:
        raise VerifyException(f"cuts of a schedule rise from 1 or more, got {list(cuts)}")
    if schedule.regions and not schedule.reads_memory:
        raise VerifyException(
            "only kernels that read memory run a step in regions, got regions without reads_memory"
        )
    if cuts and not schedule.reads_memory:
        raise VerifyException(
            f"only kernels that read memory run a step in parts, got cuts {list(cuts)} without "
            "reads_memory"
        )


def verify_occupancies(schedule: Schedule) -> None:
    """Raise VerifyException for blocks of kernels that the step does not have."""
    given = schedule.occupancies
    if given and (len(given) != len(schedule.cuts) + 1 or not schedule.cuts or min(given) < 1):
        raise VerifyException(
            "occupancies of a schedule are a number from 1 for each kernel of a step with cuts, "
            f"got {list(given)} for cuts {list(schedule.cuts)}"
        )


PARTS: dict[str, Decision] = {part.name: getattr(Schedule, part.name) for part in fields(Schedule)}
"""The default value of each part of a schedule, by the part's name, in the order of printing."""


def parse_decision(parser: AttrParser, usual: Decision) -> Decision:
    """Parse the value of a part of a schedule, by the part's default value."""
    match usual:
        case StrEnum():
            return parser.parse_str_enum(type(usual))
        case bool():
            return True
        case tuple():
            return tuple(parse_integers(parser))
        case _:
            return parser.parse_integer(allow_boolean=False)


@irdl_attr_definition
class ScheduleAttr(Data[Schedule]):
    """
    The schedule of a time loop and of its kernels: the decisions of `choose-schedule`, or of a
    user. Decisions in the text differ from the default ones, and come in this order:

    - `tile`: the kind of thread group holding a tile.
    - `cells`, `lanes`, `warps`, `blocks`: how the cells of each in-plane axis are spread over a
      thread, a warp, a block, and over a cluster or the device (empty for one block).
    - `pack`: warp tiles of a block.
    - `form`: how sums are split into stages.
    - `storage`, `addressing`: where queues live.
    - `ahead`: planes fetched early.
    - `period`: unrolling of the stream loop; as many steps as planes need if None.
    - `delay`: steps between publishing and reading across warps.
    - `every`: steps between two barriers, of a block or of blocks that meet at barriers.
    - `sync`: how warps wait for each other, at a `barrier` or, in two halves, at an `mbarrier`; for
      a device tile, how blocks wait: by `flags` in messages, or at a barrier of the whole `grid`.
    - `occupancy`: blocks of a multiprocessor.
    - `guards`: the tiles with guards; all tiles if no cell is replaced.
    - `resident`: tiles are held in registers for all steps, and nothing is streamed.
    - `columns_alone`: no chunk goes on in the next column, to save registers.
    - `blocks_alone`: a block asks for so much shared memory that a multiprocessor holds no more
      than `occupancy` blocks.
    - `reads_memory`: kernels of single steps read every tap from fields and keep no plane.
    - `regions`: with `reads_memory`, a step with layers is split into the inside and the layers'
      regions (`split-regions`).
    - `cuts`: with `reads_memory`, the numbers of the updates before which a step is cut into
      kernels.
    - `occupancies`: with `cuts`, blocks of a multiprocessor for each kernel of the step in place of
      `occupancy`, if they differ.

    Example: `#tile.schedule<tile block, cells [4, 2], lanes [1, 32], warps [8, 1], ahead 2, sync
    mbarrier, occupancy 1>`
    """

    name = "tile.schedule"

    def verify(self) -> None:
        verify_schedule(self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Schedule:
        left = list(PARTS)
        found: dict[str, Decision] = {}

        def parse_part() -> None:
            start = parser.pos
            name = parser.parse_identifier()
            if name not in PARTS:
                parser.raise_error(f"a schedule has {', '.join(PARTS)}, got {name}", start)
            if name not in left:
                parser.raise_error(
                    f"parts of a schedule come once, in the order {', '.join(PARTS)}, got {name} "
                    f"after {list(found)[-1]}",
                    start,
                )
            del left[: left.index(name) + 1]
            found[name] = parse_decision(parser, PARTS[name])

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_part)
        return replace(Schedule(), **found)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def parse_schedule(parser: AttrParser, keyword: str = "schedule") -> ScheduleAttr | None:
    """Parse `schedule #tile.schedule<...>`, if present; `keyword`: the word before."""
    if parser.parse_optional_keyword(keyword) is None:
        return None
    start = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(attribute, ScheduleAttr):
        parser.raise_error(
            f"a schedule is written {ScheduleAttr(Schedule(occupancy=1))}, with the parts that "
            f"differ from the default ones, got {attribute}",
            start,
        )
    return attribute
