"""Variants: the lowered copies of a kernel, for columns of tiles at the bounds and inside."""

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
    Columns of a kernel's tiles. `axes`: the axes along which the columns may touch the bounds; none
    for the interior. `columns`: the number of columns (0: all columns left with the axes).
    `planes`: planes of a chunk. `joined`: planes from the middle of every column, lying end to end
    with the planes of other columns, so that a chunk goes on in the next column. If the planes do
    not divide evenly, the first and the last chunk share the shortfall (when planes are joined or
    tiles share a block); otherwise the last chunk takes all.

    Example: `#tile.variant<axes [0, 1], planes 430>`, `#tile.variant<axes [0, 1], columns 132,
    planes 512>` or `#tile.variant<axes [], planes 430, joined 70>`
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
        """The columns touch no bounds."""
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
