"""The type of a queue of planes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from timetile.dialects.tile.integers import int_array, ints, parse_int_list


@irdl_attr_definition
class QueueType(ParametrizedAttribute, TypeAttribute):
    """
    The planes of a version of a buffer along the streaming axis, a plane per stream step. At step i
    the newest plane of a queue with lag L is plane i - L.

    `edges`: neighbour cells across the boundaries of warps open to taps, per in-plane axis; empty
    for none.

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


@lru_cache(maxsize=1 << 12)
def made_queue_type(element: Attribute, lag: int, edges: tuple[int, ...] = ()) -> QueueType:
    """The type of a queue, made once: the trials of a loop make the same types again and again."""
    return QueueType(element, lag, edges)
