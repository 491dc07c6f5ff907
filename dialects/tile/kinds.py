"""Enumerations of the tile dialect, as values and as attributes."""

from __future__ import annotations

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum


class TileLevel(StrEnum):
    """Which threads share a tile: a warp, a block, a cluster, or the whole device."""

    WARP = "warp"
    BLOCK = "block"
    CLUSTER = "cluster"
    DEVICE = "device"


class Addressing(StrEnum):
    """
    How a stream step finds a slot of a ring. FIXED: the loop is unrolled and offsets are constants.
    SHIFTING: the loop carries and rotates the slots' offsets. COMPUTED: `(step + base) & (slots -
    1)`.
    """

    FIXED = "fixed"
    SHIFTING = "shifting"
    COMPUTED = "computed"


class RingUse(StrEnum):
    """OWN: each exchange has its own ring. SHARED: exchanges share rings."""

    OWN = "own"
    SHARED = "shared"


class Reader(StrEnum):
    """
    The cells read by a lane in shared memory: LANE, the lane's own; TILE, cells of all lanes of the
    tile.
    """

    LANE = "lane"
    TILE = "tile"


class Space(StrEnum):
    """
    The memory of exchanges between warps: SHARED, of the block or cluster; GLOBAL, of the device.
    """

    SHARED = "shared"
    GLOBAL = "global"


class Sync(StrEnum):
    """
    How the threads of a tile wait for each other: at a BARRIER; at an MBARRIER in two halves;
    blocks of a device tile by FLAGS in messages, or at a barrier of the whole GRID.
    """

    BARRIER = "barrier"
    MBARRIER = "mbarrier"
    FLAGS = "flags"
    GRID = "grid"


class Published(StrEnum):
    """
    The cells published by an exchange: EDGES read by neighbours, the whole PLANE, or asynchronous
    COPIES of a load.
    """

    EDGES = "edges"
    PLANE = "plane"
    COPIES = "copies"


class Form(StrEnum):
    """
    How a sum is cut into stages: NONE, not at all; ROWS, a stage for each plane; HALVES, two
    stages; LANES, a stage for each column.
    """

    NONE = "none"
    ROWS = "rows"
    HALVES = "halves"
    LANES = "lanes"


class Storage(StrEnum):
    """Where planes of queues are kept: in REGISTERS, or in SHARED memory."""

    REGISTERS = "registers"
    SHARED = "shared"


class Guards(StrEnum):
    """The tiles with guards for cells outside the bounds: tiles on the RIM, or ALL tiles."""

    RIM = "rim"
    ALL = "all"


class RoleKind(StrEnum):
    """
    The role of a kernel's argument in the time loop. SOURCE and TARGET: a buffer's cells before and
    after the kernel's steps. HALO: the buffer of cells outside the bounds. CAPTURE: a field, and
    SCALAR: a scalar, of the enclosing function. SERIES: the number of a scalar at a step.
    """

    SOURCE = "source"
    TARGET = "target"
    HALO = "halo"
    CAPTURE = "capture"
    SCALAR = "scalar"
    SERIES = "series"

    @property
    def is_number(self) -> bool:
        """Whether the argument is a number, not a field."""
        return self in (RoleKind.SCALAR, RoleKind.SERIES)


@irdl_attr_definition
class TileLevelAttr(EnumAttribute[TileLevel], SpacedOpaqueSyntaxAttribute):
    """
    The threads of a tile.

    Example: `#tile<level warp>`
    """

    name = "tile.level"


@irdl_attr_definition
class AddressingAttr(EnumAttribute[Addressing], SpacedOpaqueSyntaxAttribute):
    """
    How a stream step finds a slot of a ring.

    Example: `#tile<addressing fixed>`
    """

    name = "tile.addressing"


@irdl_attr_definition
class ReaderAttr(EnumAttribute[Reader], SpacedOpaqueSyntaxAttribute):
    """
    The cells read by a lane in shared memory.

    Example: `#tile<reader lane>`
    """

    name = "tile.reader"


@irdl_attr_definition
class SpaceAttr(EnumAttribute[Space], SpacedOpaqueSyntaxAttribute):
    """
    The memory of exchanges between warps.

    Example: `#tile<space shared>`
    """

    name = "tile.space"


@irdl_attr_definition
class SyncAttr(EnumAttribute[Sync], SpacedOpaqueSyntaxAttribute):
    """
    How the threads of a tile wait for each other.

    Example: `#tile<sync barrier>`
    """

    name = "tile.sync"


@irdl_attr_definition
class PublishedAttr(EnumAttribute[Published], SpacedOpaqueSyntaxAttribute):
    """
    The cells published by an exchange.

    Example: `#tile<published edges>`
    """

    name = "tile.published"


@irdl_attr_definition
class RoleKindAttr(EnumAttribute[RoleKind], SpacedOpaqueSyntaxAttribute):
    """
    The role of a kernel's argument in the time loop.

    Example: `#tile<role_kind source>`
    """

    name = "tile.role_kind"


KINDS = [
    TileLevelAttr,
    AddressingAttr,
    ReaderAttr,
    SpaceAttr,
    SyncAttr,
    PublishedAttr,
    RoleKindAttr,
]
"""The attributes of the enumerations, for the dialect."""
