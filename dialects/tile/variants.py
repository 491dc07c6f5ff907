"""Variants: the lowered copies of a kernel, for the columns of tiles that touch the bounds and for the others."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.tile.integers import int_array, ints, parse_int_list


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
