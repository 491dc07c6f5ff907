"""Layouts: the threads of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.tile.integers import int_array, ints
from timetile.dialects.tile.kinds import TileLevel, TileLevelAttr

LANES = 32
"""Threads of a warp."""

MOST_THREADS = 1024
"""Threads of a block, at most."""


@dataclass(frozen=True)
class AxisLayout:
    """The layout of an in-plane axis: `cells` a thread, times lanes, warps and blocks."""

    cells: int
    lanes: int = 1
    warps: int = 1
    blocks: int = 1

    WORDS: ClassVar[tuple[str, ...]] = ("cells", "lanes", "warps", "blocks")

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Cells, lanes, warps and blocks."""
        return (self.cells, self.lanes, self.warps, self.blocks)

    @property
    def block_extent(self) -> int:
        """Cells of a block along the axis."""
        return self.cells * self.lanes * self.warps

    @property
    def extent(self) -> int:
        """Cells of the tile along the axis."""
        return self.block_extent * self.blocks

    @property
    def tile_warps(self) -> int:
        """Warps of the tile along the axis, in all blocks."""
        return self.warps * self.blocks

    def __str__(self) -> str:
        shown = [(n, w) for n, w in zip(self.counts, self.WORDS) if n != 1 or w == "cells"]
        return " x ".join(f"{n} {w}" for n, w in shown)


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """
    The threads of a tile, and how the tile's cells are spread over the threads.

    A neighbour inside a thread is a renamed register, inside a warp a shuffle, across warps a
    `tile.exchange`. Tiles overlap: no cell passes between tiles. `pack` warp tiles share a block.

    Example: `#tile.layout<block, [6 cells x 8 warps, 2 cells x 32 lanes]>`
    """

    name = "tile.layout"
    level: TileLevelAttr
    axes: ArrayAttr[ArrayAttr[IntAttr]]
    pack: IntAttr

    def __init__(self, level: TileLevel, axes: Sequence[AxisLayout], pack: int = 1):
        super().__init__(
            TileLevelAttr(level), ArrayAttr(int_array(a.counts) for a in axes), IntAttr(pack)
        )

    @property
    def axis_layouts(self) -> tuple[AxisLayout, ...]:
        """The layouts of the in-plane axes, slowest first."""
        return tuple([AxisLayout(*ints(axis)) for axis in self.axes.data])

    @property
    def warps(self) -> int:
        """Warps of a tile in a block."""
        return prod([axis.data[2].data for axis in self.axes.data])

    @property
    def blocks(self) -> int:
        """Blocks of a tile."""
        return prod([axis.data[3].data for axis in self.axes.data])

    @property
    def has_cluster(self) -> bool:
        """Several blocks hold a tile, and reach each other's shared memory."""
        return self.blocks > 1 and self.level.data is TileLevel.CLUSTER

    @property
    def has_messages(self) -> bool:
        """Several blocks hold a tile, and reach each other through global memory."""
        return self.blocks > 1 and self.level.data is TileLevel.DEVICE

    @property
    def edge_warps(self) -> int:
        """Warps of a block side by side at either end of the first in-plane axis."""
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
        if self.level.data is TileLevel.WARP and self.warps > 1:
            raise VerifyException(f"a warp tile has one warp, got {self.warps}")
        if blocks > 1 and self.level.data in (TileLevel.WARP, TileLevel.BLOCK):
            raise VerifyException(f"a {self.level.data} tile has one block, got {blocks}")
        if self.pack.data > 1 and self.level.data is not TileLevel.WARP:
            raise VerifyException("only warp tiles share a block (pack)")
        if self.pack.data < 1:
            raise VerifyException(f"a block holds at least one tile, got pack {self.pack.data}")
        if self.threads > MOST_THREADS:
            raise VerifyException(f"a block has at most {MOST_THREADS} threads, got {self.threads}")

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
            level = TileLevelAttr(parser.parse_str_enum(TileLevel))
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
