"""Launch facts: how a lowered kernel is launched, and what a launch does."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.tile.launch_shape import LaunchShape
from timetile.dialects.tile.layouts import LANES, MOST_THREADS
from timetile.dialects.tile.roles import RoleAttr


@irdl_attr_definition
class LaunchAttr(ParametrizedAttribute):
    """
    How a lowered kernel is launched, and what a launch does.

    `steps`: time steps of a launch. `roles`: the role of each argument in the time loop, in the
    order of the kernel's parameters. `grid`: blocks of a launch over the whole domain. `block`:
    threads of a block. `shared_bytes`: dynamic shared memory of a block. `occupancy`: blocks that a
    multiprocessor is meant to hold. `cluster`: blocks launched together, with access to each
    other's shared memory; 1 by default.

    `blocks_per_tile`: blocks that hold a tile and wait for each other through global memory; 1 by
    default. If there are several, the grid counts the blocks of all tiles, a launch has the blocks
    of resident tiles only, and blocks take further tiles when done. The kernel then has two more
    parameters: memory with `message_words` 64-bit words for each resident tile, 0 before the
    launch, and the number of resident tiles.

    Example: `#tile.launch<steps 2, roles [#tile.role<source 0>], grid 12, block 128, shared_bytes
    0, occupancy 2, blocks_per_tile 3, message_words 770>`
    """

    name = "tile.launch"
    steps: IntAttr
    roles: ArrayAttr[RoleAttr]
    grid: IntAttr
    block: IntAttr
    shared_bytes: IntAttr
    occupancy: IntAttr
    cluster: IntAttr
    blocks_per_tile: IntAttr
    message_words: IntAttr

    def __init__(
        self,
        *,
        steps: int,
        roles: Sequence[RoleAttr],
        grid: int,
        block: int,
        shared_bytes: int,
        occupancy: int,
        cluster: int = 1,
        blocks_per_tile: int = 1,
        message_words: int = 0,
    ):
        super().__init__(
            IntAttr(steps),
            ArrayAttr(roles),
            IntAttr(grid),
            IntAttr(block),
            IntAttr(shared_bytes),
            IntAttr(occupancy),
            IntAttr(cluster),
            IntAttr(blocks_per_tile),
            IntAttr(message_words),
        )

    @property
    def shape(self) -> LaunchShape:
        """The shape of a launch."""
        return LaunchShape(
            grid=self.grid.data,
            block=self.block.data,
            cluster=self.cluster.data,
            shared_bytes=self.shared_bytes.data,
            blocks_per_tile=self.blocks_per_tile.data,
            message_words=self.message_words.data,
        )

    @property
    def has_messages(self) -> bool:
        """Blocks of a tile exchange through global memory."""
        return self.blocks_per_tile.data > 1

    def verify(self) -> None:
        for word, count in (
            ("steps", self.steps),
            ("grid", self.grid),
            ("occupancy", self.occupancy),
            ("cluster", self.cluster),
            ("blocks_per_tile", self.blocks_per_tile),
        ):
            if count.data < 1:
                raise VerifyException(f"{word} of a launch is at least 1, got {count.data}")
        threads = self.block.data
        if threads % LANES or not LANES <= threads <= MOST_THREADS:
            raise VerifyException(
                f"a block has whole warps and at most {MOST_THREADS} threads, got {threads}"
            )
        if self.shared_bytes.data < 0:
            raise VerifyException(
                f"a block has no fewer than 0 bytes of shared memory, got {self.shared_bytes.data}"
            )
        if self.cluster.data > 1 and self.has_messages:
            raise VerifyException(
                "blocks of a tile reach each other through the cluster or through global memory, "
                f"got a cluster of {self.cluster.data} and {self.blocks_per_tile.data} blocks a "
                "tile"
            )
        together = max(self.cluster.data, self.blocks_per_tile.data)
        if self.grid.data % together:
            raise VerifyException(
                f"a grid of {self.grid.data} blocks has no whole groups of {together}"
            )
        words = self.message_words.data
        if words < 0 or (words and not self.has_messages):
            raise VerifyException(
                "a tile of several blocks has message words, 0 or more, and a tile of one block "
                f"has none, got {words} for {self.blocks_per_tile.data} blocks"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        def number(word: str) -> IntAttr:
            parser.parse_keyword(word)
            return IntAttr(parser.parse_integer())

        def next_number(word: str) -> IntAttr:
            parser.parse_punctuation(",")
            return number(word)

        def role() -> RoleAttr:
            attribute = parser.parse_attribute()
            if not isinstance(attribute, RoleAttr):
                parser.raise_error(f"a role is expected, got {attribute}")
            return attribute

        cluster, blocks_per_tile, message_words = IntAttr(1), IntAttr(1), IntAttr(0)
        with parser.in_angle_brackets():
            steps = number("steps")
            parser.parse_punctuation(",")
            parser.parse_keyword("roles")
            roles = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, role)
            always = [next_number(w) for w in ("grid", "block", "shared_bytes", "occupancy")]
            # Optional words come at most once, in the order of printing.
            left = ["cluster", "blocks_per_tile"]
            while left and parser.parse_optional_punctuation(",") is not None:
                word = parser.parse_keyword_in(left)
                del left[: left.index(word) + 1]
                if word == "cluster":
                    cluster = IntAttr(parser.parse_integer())
                    continue
                blocks_per_tile = IntAttr(parser.parse_integer())
                message_words = next_number("message_words")
        return [
            steps, ArrayAttr(roles), *always, cluster, blocks_per_tile, message_words
        ]  # fmt: skip

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"steps {self.steps.data}, roles ")
            printer.print_attribute(self.roles)
            printer.print_string(
                f", grid {self.grid.data}, block {self.block.data}, "
                f"shared_bytes {self.shared_bytes.data}, occupancy {self.occupancy.data}"
            )
            if self.cluster.data != 1:
                printer.print_string(f", cluster {self.cluster.data}")
            if self.has_messages:
                printer.print_string(
                    f", blocks_per_tile {self.blocks_per_tile.data}, "
                    f"message_words {self.message_words.data}"
                )
