"""Types and attributes of the tile dialect: queues, layouts, homes, roles, variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

LANES = 32
"""Threads of a warp."""


def int_array(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    """Integers as an attribute."""
    return ArrayAttr(IntAttr(v) for v in values)


def parse_int_list(parser: AttrParser) -> ArrayAttr[IntAttr]:
    """Parse `[1, 0]`."""
    return int_array(
        parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    )


def ints(array: ArrayAttr[IntAttr]) -> tuple[int, ...]:
    """The integers of an attribute."""
    return tuple(x.data for x in array)


@irdl_attr_definition
class QueueType(ParametrizedAttribute, TypeAttribute):
    """
    The planes that one version of one buffer takes along the stream axis, one per stream step.
    At step i the newest plane of a queue with lag L is plane i - L.

    `edges` says how many neighbour cells across the boundaries of warps may be tapped, per in-plane
    axis; it is empty where none may.

    Example: `!tile.queue<f64, lag 2, edges [1, 0]>`
    """

    name = "tile.queue"
    element: Attribute
    lag: IntAttr
    edges: ArrayAttr[IntAttr]

    def __init__(self, element: Attribute, lag: int, edges: Sequence[int] = ()):
        super().__init__(element, IntAttr(lag), int_array(edges if any(edges) else ()))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            element = parser.parse_type()
            parser.parse_punctuation(",")
            parser.parse_keyword("lag")
            lag = IntAttr(parser.parse_integer())
            edges = int_array(())
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("edges")
                edges = parse_int_list(parser)
        return [element, lag, edges]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element)
            printer.print_string(f", lag {self.lag.data}")
            if self.edges.data:
                printer.print_string(f", edges {list(ints(self.edges))}")


@dataclass(frozen=True)
class AxisLayout:
    """How one in-plane axis is spread: `cells` in a thread, over lanes, over warps, over blocks."""

    cells: int
    lanes: int = 1
    warps: int = 1
    blocks: int = 1

    WORDS: ClassVar[tuple[str, ...]] = ("cells", "lanes", "warps", "blocks")

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return (self.cells, self.lanes, self.warps, self.blocks)

    @property
    def block_extent(self) -> int:
        """Cells of one block along this axis."""
        return self.cells * self.lanes * self.warps

    @property
    def extent(self) -> int:
        """Cells of the tile along this axis."""
        return self.block_extent * self.blocks

    @property
    def tile_warps(self) -> int:
        """Warps of the tile along this axis, in all its blocks."""
        return self.warps * self.blocks

    def __str__(self) -> str:
        shown = [(n, w) for n, w in zip(self.counts, self.WORDS) if n != 1 or w == "cells"]
        return " x ".join(f"{n} {w}" for n, w in shown)


TileLevel = Literal["warp", "block", "cluster", "device"]


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """
    The threads that hold one tile, and how its cells are spread over them.

    Inside a thread a neighbour is a renamed register, inside a warp a shuffle, across warps it needs
    a `tile.exchange`. Tiles overlap: nothing passes from one to another. `pack` tiles share a block
    where a tile is a warp.

    Example: `#tile.layout<block, [6 cells x 8 warps, 2 cells x 32 lanes]>`
    """

    name = "tile.layout"
    level: StringAttr
    axes: ArrayAttr[ArrayAttr[IntAttr]]
    pack: IntAttr

    def __init__(self, level: TileLevel, axes: Sequence[AxisLayout], pack: int = 1):
        super().__init__(
            StringAttr(level), ArrayAttr(int_array(a.counts) for a in axes), IntAttr(pack)
        )

    @property
    def axis_layouts(self) -> tuple[AxisLayout, ...]:
        """One layout per in-plane axis, slowest first."""
        return tuple(AxisLayout(*ints(axis)) for axis in self.axes)

    @property
    def warps(self) -> int:
        """Warps of one tile inside one block."""
        return prod(axis.warps for axis in self.axis_layouts)

    @property
    def blocks(self) -> int:
        """Blocks of one tile."""
        return prod(axis.blocks for axis in self.axis_layouts)

    @property
    def has_cluster(self) -> bool:
        """Several blocks hold a tile, and reach each other's shared memory."""
        return self.blocks > 1 and self.level.data == "cluster"

    @property
    def has_messages(self) -> bool:
        """Several blocks hold a tile, and reach each other through global memory."""
        return self.blocks > 1 and self.level.data == "device"

    @property
    def edge_warps(self) -> int:
        """Warps of a block that lie side by side at either end of its first axis."""
        return self.warps // self.axis_layouts[0].warps

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return LANES * self.warps * self.pack.data

    def verify(self) -> None:
        lanes, blocks = 1, 1
        for axis in self.axis_layouts:
            lanes *= axis.lanes
            blocks *= axis.blocks
            if min(axis.counts) < 1:
                raise VerifyException(f"every count of a layout is positive, got {axis}")
        if lanes != LANES:
            raise VerifyException(f"the lanes of a layout multiply to {LANES}, got {lanes}")
        if self.level.data not in ("warp", "block", "cluster", "device"):
            raise VerifyException(
                f"a tile is a warp, block, cluster or device, got {self.level.data}"
            )
        if self.level.data == "warp" and self.warps > 1:
            raise VerifyException(f"a warp tile has one warp, got {self.warps}")
        if blocks > 1 and self.level.data in ("warp", "block"):
            raise VerifyException(f"a {self.level.data} tile has one block, got {blocks}")
        if self.pack.data > 1 and self.level.data != "warp":
            raise VerifyException("only warp tiles share a block (pack)")
        if self.threads > 1024:
            raise VerifyException(f"a block has at most 1024 threads, got {self.threads}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        def parse_axis() -> ArrayAttr[IntAttr]:
            counts = dict.fromkeys(AxisLayout.WORDS, 1)
            while True:
                count = parser.parse_integer()
                counts[parser.parse_keyword_in(AxisLayout.WORDS)] = count
                if parser.parse_optional_keyword("x") is None:
                    return int_array(tuple(counts.values()))

        with parser.in_angle_brackets():
            level = StringAttr(parser.parse_identifier())
            parser.parse_punctuation(",")
            axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_axis)
            pack = 1
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("pack")
                pack = parser.parse_integer()
        return [level, ArrayAttr(axes), IntAttr(pack)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.level.data}, [{', '.join(map(str, self.axis_layouts))}]")
            if self.pack.data != 1:
                printer.print_string(f", pack {self.pack.data}")


@irdl_attr_definition
class RegistersAttr(ParametrizedAttribute):
    """
    Home of a queue: each thread has place for its own cells of `depth` older planes in registers, as many at
    least as the queue's readers ask for. The stream loop is unrolled by `period`, so that planes age by renaming.

    Example: `#tile.registers<depth 2, period 2>`
    """

    name = "tile.registers"
    depth: IntAttr
    period: IntAttr

    def __init__(self, depth: int, period: int):
        super().__init__(IntAttr(depth), IntAttr(period))

    def verify(self) -> None:
        if self.depth.data < 0 or self.period.data < 1:
            raise VerifyException("depth is at least 0 and period at least 1")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("depth")
            depth = parser.parse_integer()
            parser.parse_punctuation(",")
            parser.parse_keyword("period")
            return [IntAttr(depth), IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<depth {self.depth.data}, period {self.period.data}>")


Addressing = Literal["fixed", "shifting", "computed"]


@irdl_attr_definition
class SharedAttr(ParametrizedAttribute):
    """
    Home of a queue: a ring of `slots` planes in shared memory.

    How a step finds its slot: `fixed`, the loop is unrolled and offsets are constants; `shifting`,
    the slots' offsets are carried and rotated; `computed`, `(step + base) & (slots - 1)`. All
    computed queues of a kernel share one ring, the circular multi-queue (EBISU, section 4.2): each
    queue's head is `base` slots ahead, and what one queue leaves the next one overwrites.

    With `reader lane` a lane reads only what it wrote, and no synchronisation is needed; with
    `reader tile` it may read its neighbours' cells.

    Example: `#tile.shared<slots 8, computed, base 3, reader tile>`
    """

    name = "tile.shared"
    slots: IntAttr
    addressing: StringAttr
    base: IntAttr
    reader: StringAttr

    def __init__(
        self, slots: int, addressing: Addressing, base: int, reader: Literal["lane", "tile"]
    ):
        super().__init__(IntAttr(slots), StringAttr(addressing), IntAttr(base), StringAttr(reader))

    def verify(self) -> None:
        verify_ring(self.slots.data, self.addressing.data)
        if not 0 <= self.base.data < self.slots.data:
            raise VerifyException(f"base {self.base.data} of a ring of {self.slots.data} slots")
        if self.reader.data not in ("lane", "tile"):
            raise VerifyException(f"the reader is lane or tile, got {self.reader.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("slots")
            slots = parser.parse_integer()
            parser.parse_punctuation(",")
            addressing = parser.parse_identifier()
            parser.parse_punctuation(",")
            parser.parse_keyword("base")
            base = parser.parse_integer()
            parser.parse_punctuation(",")
            parser.parse_keyword("reader")
            reader = parser.parse_identifier()
        return [IntAttr(slots), StringAttr(addressing), IntAttr(base), StringAttr(reader)]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(
            f"<slots {self.slots.data}, {self.addressing.data}, base {self.base.data}, "
            f"reader {self.reader.data}>"
        )


def verify_ring(slots: int, addressing: str) -> None:
    """Raise VerifyException unless a ring of `slots` planes can be addressed so."""
    if slots < 1:
        raise VerifyException(f"a ring has at least one slot, got {slots}")
    if addressing not in ("fixed", "shifting", "computed"):
        raise VerifyException(f"addressing is fixed, shifting or computed, got {addressing}")
    if addressing == "computed" and slots & (slots - 1):
        raise VerifyException(f"computed addressing needs a power of two of slots, got {slots}")


@irdl_attr_definition
class MemoryAttr(ParametrizedAttribute):
    """
    Home of a loaded queue of which nothing is kept: its reader reads the field again.

    Example: `#tile.memory`
    """

    name = "tile.memory"


@irdl_attr_definition
class MailAttr(ParametrizedAttribute):
    """
    Home of an exchange: `slots` planes (or their edges) in memory that the tile's threads share.
    Threads synchronise once in `every` steps, by a `barrier`, or by an `mbarrier` in two halves: they
    arrive after their last access of a step to what others read or write, and wait before the first one
    of the next step. Blocks of a tile that the device holds exchange through global memory as well: by
    `flags`, in messages whose words say which step they are of, or by a barrier of them all, `grid`.

    The contract: what is published in step i is read in step i + delay, after a synchronisation
    that follows the publishing; the slot is written again in step i + slots, after another one.

    Example: `#tile.mail<slots 2, fixed, every 1, space shared, sync barrier>`
    """

    name = "tile.mail"
    slots: IntAttr
    addressing: StringAttr
    every: IntAttr
    space: StringAttr
    sync: StringAttr

    def __init__(
        self,
        slots: int,
        addressing: Addressing,
        every: int = 1,
        space: str = "shared",
        sync: str = "barrier",
    ):
        super().__init__(
            IntAttr(slots),
            StringAttr(addressing),
            IntAttr(every),
            StringAttr(space),
            StringAttr(sync),
        )

    def synchronised_by(self, sync: str, space: str = "shared") -> MailAttr:
        """The same home with another synchronisation, and where blocks are apart another space."""
        words = (self.slots.data, cast(Addressing, self.addressing.data), self.every.data)
        return MailAttr(*words, space, sync)

    def verify(self) -> None:
        verify_ring(self.slots.data, self.addressing.data)
        if self.every.data < 1:
            raise VerifyException(
                f"threads synchronise every 1 or more steps, got {self.every.data}"
            )
        if self.space.data not in ("shared", "global"):
            raise VerifyException(f"mail lives in shared or global memory, got {self.space.data}")
        if self.sync.data not in ("barrier", "mbarrier", "flags", "grid"):
            raise VerifyException(f"unknown synchronisation {self.sync.data}")
        if (self.space.data == "global") != (self.sync.data in ("flags", "grid")):
            raise VerifyException(
                "mail in global memory is synchronised by flags or grid, in shared memory by barrier or "
                f"mbarrier, got {self.sync.data} for {self.space.data} memory"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("slots")
            slots = parser.parse_integer()
            parser.parse_punctuation(",")
            addressing = parser.parse_identifier()
            parser.parse_punctuation(",")
            parser.parse_keyword("every")
            every = parser.parse_integer()
            parser.parse_punctuation(",")
            parser.parse_keyword("space")
            space = parser.parse_identifier()
            parser.parse_punctuation(",")
            parser.parse_keyword("sync")
            sync = parser.parse_identifier()
        words = (StringAttr(addressing), IntAttr(every), StringAttr(space), StringAttr(sync))
        return [IntAttr(slots), *words]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(
            f"<slots {self.slots.data}, {self.addressing.data}, every {self.every.data}, "
            f"space {self.space.data}, sync {self.sync.data}>"
        )


HomeAttr = RegistersAttr | SharedAttr | MemoryAttr | MailAttr

RoleKind = Literal["source", "target", "halo", "capture", "scalar"]
ROLE_KINDS: tuple[RoleKind, ...] = ("source", "target", "halo", "capture", "scalar")


@irdl_attr_definition
class RoleAttr(ParametrizedAttribute):
    """
    What an argument of a kernel is to the time loop: the data that argument `index` of the loop
    names before (`source`) or after (`target`) the kernel's steps, the program's own buffer that
    supplies the cells outside the bounds (`halo`), a field (`capture`) or a `scalar` of the
    enclosing function, by position among those that the kernel uses.

    Example: `#tile.role<source 0>`
    """

    name = "tile.role"
    kind: StringAttr
    index: IntAttr

    def __init__(self, kind: RoleKind, index: int):
        super().__init__(StringAttr(kind), IntAttr(index))

    @property
    def role(self) -> tuple[RoleKind, int]:
        return cast(RoleKind, self.kind.data), self.index.data

    def verify(self) -> None:
        if self.kind.data not in ROLE_KINDS:
            raise VerifyException(f"unknown role {self.kind.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_identifier()), IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.kind.data} {self.index.data}>")


@irdl_attr_definition
class VariantAttr(ParametrizedAttribute):
    """
    Columns of a kernel's tiles: the axes along which they may touch the bounds, how many columns there are (0: all
    that are left of those with these axes), and the number of planes that one of their chunks advances. The variant
    without axes is the interior. `joined` says how many planes from the middle of every column lie end to end with those
    of the other columns: a chunk of them goes on in the next column. What the others' planes do not fill is missing from
    the first and the last chunk, and so it is where tiles share a block; else from the last one.

    Example: `#tile.variant<axes [0, 1], planes 430>`, `#tile.variant<axes [0, 1], columns 132, planes 512>` or
    `#tile.variant<axes [], planes 430, joined 70>`
    """

    name = "tile.variant"
    axes: ArrayAttr[IntAttr]
    columns: IntAttr
    planes: IntAttr
    joined: IntAttr

    def __init__(self, axes: Sequence[int], planes: int, columns: int = 0, *, joined: int = 0):
        super().__init__(int_array(axes), IntAttr(columns), IntAttr(planes), IntAttr(joined))

    @property
    def is_interior(self) -> bool:
        return not self.axes.data

    def verify(self) -> None:
        if self.planes.data < 1:
            raise VerifyException(f"a chunk has at least one plane, got {self.planes.data}")
        if self.columns.data < 0:
            raise VerifyException(f"a variant has no fewer than 0 columns, got {self.columns.data}")
        if self.joined.data < 0:
            raise VerifyException(f"no fewer than 0 planes are joined, got {self.joined.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("axes")
            axes = parse_int_list(parser)
            parser.parse_punctuation(",")
            columns = 0
            if parser.parse_optional_keyword("columns") is not None:
                columns = parser.parse_integer()
                parser.parse_punctuation(",")
            parser.parse_keyword("planes")
            planes, joined = parser.parse_integer(), 0
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("joined")
                joined = parser.parse_integer()
            return [axes, IntAttr(columns), IntAttr(planes), IntAttr(joined)]

    def print_parameters(self, printer: Printer) -> None:
        columns = f"columns {self.columns.data}, " if self.columns.data else ""
        joined = f", joined {self.joined.data}" if self.joined.data else ""
        axes = list(ints(self.axes))
        printer.print_string(f"<axes {axes}, {columns}planes {self.planes.data}{joined}>")
