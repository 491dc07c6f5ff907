"""Parts of a domain: which cells of a time loop's fields a rank holds."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.decomposition import Decomposition, Ghosts
from timetile.dialects.syntax import Integers, decode_integers, encode_integers, parse_integers


@irdl_attr_definition
class PartAttr(ParametrizedAttribute):
    """
    The part of a domain behind the fields of a time loop, one of several ranks' parts.

    `faces` are the places of the cuts along each axis, both ends of the domain included, and
    `periodic` the axes whose places go on beyond the ends. Parts are counted in row-major order by
    `rank`. The fields hold the rank's own cells, and `ghosts`, the cells below and above along each
    axis, as copies of cells of other ranks. After `steps` steps with fresh ghosts the rank's own
    cells are right, and the ghosts are stale.

    Example: `#temporal.part<rank 1 of [0, 11, 22] x [0, 64], ghosts [2, 2] x [0, 0], steps 2>`,
    `#temporal.part<rank 0 of [0, 11, 22], periodic [0], ghosts [1, 1], steps 1>`
    """

    name = "temporal.part"
    rank: IntAttr
    faces: ArrayAttr[Integers]
    periodic: Integers
    ghosts: ArrayAttr[Integers]
    steps: IntAttr

    def __init__(self, rank: int, decomposition: Decomposition, ghosts: Ghosts, steps: int):
        super().__init__(
            IntAttr(rank),
            ArrayAttr(map(encode_integers, decomposition.faces)),
            encode_integers(decomposition.periodic),
            ArrayAttr(map(encode_integers, ghosts)),
            IntAttr(steps),
        )

    @property
    def decomposition(self) -> Decomposition:
        """The decomposition of the domain. Raises ValueError for empty parts."""
        return Decomposition(
            tuple(map(decode_integers, self.faces)), decode_integers(self.periodic)
        )

    @property
    def zone(self) -> Ghosts:
        """The cells of the ghost zone below and above, an axis at a time."""
        return tuple((below, above) for below, above in map(decode_integers, self.ghosts))

    def verify(self) -> None:
        try:
            parts = self.decomposition.count
        except ValueError as error:
            raise VerifyException(str(error)) from error
        if not 0 <= self.rank.data < parts:
            raise VerifyException(f"a rank of 0 to {parts - 1}, got {self.rank.data}")
        zone = [decode_integers(pair) for pair in self.ghosts]
        if len(zone) != len(self.faces) or any(len(pair) != 2 or min(pair) < 0 for pair in zone):
            raise VerifyException(
                f"ghosts are two numbers of 0 or more for each of {len(self.faces)} axes, got "
                f"{[list(pair) for pair in zone]}"
            )
        if self.steps.data < 1:
            raise VerifyException(f"ghosts last for a step or more, got {self.steps.data}")

    @classmethod
    def parse_parameters(
        cls, parser: AttrParser
    ) -> tuple[IntAttr, ArrayAttr[Integers], Integers, ArrayAttr[Integers], IntAttr]:
        def number(keyword: str) -> IntAttr:
            parser.parse_keyword(keyword)
            return IntAttr(parser.parse_integer())

        def rows() -> ArrayAttr[Integers]:
            found = [encode_integers(parse_integers(parser))]
            while parser.parse_optional_keyword("x"):
                found.append(encode_integers(parse_integers(parser)))
            return ArrayAttr(found)

        with parser.in_angle_brackets():
            rank = number("rank")
            parser.parse_keyword("of")
            faces, periodic = rows(), list[int]()
            parser.parse_punctuation(",")
            if parser.parse_optional_keyword("periodic"):
                periodic = parse_integers(parser)
                parser.parse_punctuation(",")
            parser.parse_keyword("ghosts")
            ghosts = rows()
            parser.parse_punctuation(",")
            return rank, faces, encode_integers(periodic), ghosts, number("steps")

    def print_parameters(self, printer: Printer) -> None:
        def rows(values: Sequence[Integers]) -> str:
            return " x ".join(str(list(decode_integers(row))) for row in values)

        periodic = list(decode_integers(self.periodic))
        shown = f"periodic {periodic}, " if periodic else ""
        printer.print_string(
            f"<rank {self.rank.data} of {rows(self.faces.data)}, {shown}"
            f"ghosts {rows(self.ghosts.data)}, steps {self.steps.data}>"
        )
