"""How the warps of a block, and the blocks that hold a tile, wait for each other and exchange cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import (
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.simt.memory import (
    CELL_BYTES,
    CLUSTER_SPACE,
    GLOBAL_SPACE,
    SHARED_SPACE,
    OrderingEffects,
    WriteOp,
    address_space,
    buffer_element,
    buffer_type,
    cell_count,
    integer,
    parse_buffer,
    print_cells,
)
from timetile.dialects.syntax import (
    INTEGERS,
    decode_integers,
    encode_integers,
    parse_optional_value,
    parse_value,
    parse_values,
)


class ArrivalsOp(IRDLOperation):
    """
    Base of the two halves of a barrier of the block: what a thread did before it arrived is seen by
    everyone who waited for the phase in which all threads arrived. Phases are numbered from 0. The first
    operand is where they are counted, in one 64-bit word of shared memory or in two that take turns:
    two where other blocks send, since those may be a phase ahead.
    """

    def verify_(self) -> None:
        words = self.operands[0]
        if address_space(words) != SHARED_SPACE or buffer_element(words) not in (i64, None):
            raise VerifyException("arrivals are counted in 64-bit words of shared memory")
        if buffer_element(words) is not None and cell_count(words.type) not in (1, 2):
            raise VerifyException("arrivals are counted in one word, or in two that take turns")


@irdl_op_definition
class ExpectOp(ArrivalsOp):
    """
    Make the arrivals ready for phases in which all threads of `warps` warps arrive. One thread does; a
    barrier before the first arrival lets the others see it.

    Example: `simt.expect %b warps 8`
    """

    name = "simt.expect"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    warps = prop_def(IntegerAttr)
    traits = traits_def(OrderingEffects())

    def __init__(self, arrivals: SSAValue, warps: int):
        super().__init__(operands=[arrivals], properties={"warps": integer(warps)})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.arrivals)
        printer.print_string(f" warps {self.warps.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        arrivals = parse_value(parser)
        parser.parse_keyword("warps")
        return cls(arrivals, parser.parse_integer())


@irdl_op_definition
class ArriveOp(ArrivalsOp):
    """
    The threads of a warp arrive, each for itself, and go on. The phase is complete when all have and as
    many bytes have been sent by other blocks as the threads said to expect.

    Example: `simt.arrive %b phase %p bytes %n : memref<1xi64, 3>`
    """

    name = "simt.arrive"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    phase = operand_def(i32)
    bytes = opt_operand_def(i32)
    traits = traits_def(OrderingEffects())
    assembly_format = "$arrivals `phase` $phase (`bytes` $bytes^)? attr-dict `:` type($arrivals)"

    def __init__(self, arrivals: SSAValue, phase: SSAValue, bytes: SSAValue | None = None):
        super().__init__(operands=[arrivals, phase, bytes])


@irdl_op_definition
class WaitOp(ArrivalsOp):
    """
    Wait until a phase is complete, the last one before that in which the warp arrives next. Phases
    before the first are complete.

    Example: `simt.wait %b phase %p : memref<1xi64, 3>`
    """

    name = "simt.wait"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    phase = operand_def(i32)
    traits = traits_def(OrderingEffects())
    assembly_format = "$arrivals `phase` $phase attr-dict `:` type($arrivals)"

    def __init__(self, arrivals: SSAValue, phase: SSAValue):
        super().__init__(operands=[arrivals, phase])


@irdl_op_definition
class ClusterBarrierOp(IRDLOperation):
    """
    All threads of the blocks of a cluster wait for each other.

    Example: `simt.cluster_barrier`
    """

    name = "simt.cluster_barrier"

    traits = traits_def(OrderingEffects())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()


@irdl_op_definition
class PeerOp(IRDLOperation):
    """
    A buffer of the block's shared memory as another block of the cluster has it, by that block's rank.

    Example: `%peer = simt.peer %buffer block %rank : memref<512xf64, 3> -> memref<512xf64, 7>`
    """

    name = "simt.peer"

    buffer = operand_def(MemRefType | LLVMPointerType)
    rank = operand_def(i32)
    result = result_def(MemRefType | LLVMPointerType)
    traits = traits_def(Pure())
    assembly_format = "$buffer `block` $rank attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, rank: SSAValue):
        element = buffer_element(buffer)
        peer: Attribute = LLVMPointerType(IntAttr(CLUSTER_SPACE))
        if element is not None:
            peer = buffer_type(element, cell_count(buffer.type), CLUSTER_SPACE)
        super().__init__(operands=[buffer, rank], result_types=[peer])

    def verify_(self) -> None:
        if (address_space(self.buffer), address_space(self.result)) != (
            SHARED_SPACE,
            CLUSTER_SPACE,
        ):
            raise VerifyException("a block's buffer, space 3, has a peer in the cluster, space 7")


@irdl_op_definition
class SendOp(WriteOp):
    """
    Write 1, 2 or 4 cells to another block of the cluster where the mask is on. It goes on at once: who
    waits in the other block for the phase sees them, and they count among the bytes expected of it.

    Example: `simt.send %a, %b to %peer[%i + 2] mask %m arrivals %w phase %p`
    """

    name = "simt.send"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    phase = operand_def(i32)

    def __init__(
        self,
        cells: Sequence[SSAValue],
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        mask: SSAValue | None,
        arrivals: SSAValue,
        phase: SSAValue,
    ):
        super().__init__(
            operands=[arrivals, phase, list(cells), buffer, index, mask],
            properties={"offset": integer(offset)},
        )

    def verify_(self) -> None:
        super().verify_()
        if {address_space(self.buffer), address_space(self.arrivals)} != {CLUSTER_SPACE}:
            raise VerifyException("cells are sent to a peer, and counted there: space 7")

    def print(self, printer: Printer) -> None:
        super().print(printer)
        printer.print_string(" arrivals ")
        printer.print_operand(self.arrivals)
        printer.print_string(" phase ")
        printer.print_operand(self.phase)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        written = cls.parse_write(parser)
        parser.parse_keyword("arrivals")
        arrivals = parse_value(parser)
        parser.parse_keyword("phase")
        return cls(*written, arrivals, parse_value(parser))


class MessageOp(IRDLOperation):
    """
    Base of what threads of different blocks say to each other in global memory. Cells lie at
    `index + offsets[k]` (64-bit words).

    A message has a `number`, and so has each of its words beside four bytes of a cell: a word that has
    arrived says so itself, and nothing else need be ordered. Who takes message n has seen it; what its
    sender did besides is not ordered by it. A word is written again only by a sender who has taken a message
    that the reader sent after reading. Without a number a cell is alone in its word, and barriers of the
    tile order what is written and read.
    """

    buffer = operand_def(MemRefType | LLVMPointerType)
    index = opt_operand_def(IntegerType)
    number = opt_operand_def(i32)
    offsets = prop_def(INTEGERS)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(OrderingEffects())

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        """The types of the cells, in order."""
        raise NotImplementedError

    @property
    def places(self) -> tuple[int, ...]:
        """The words at which the cells begin, beside the index."""
        return decode_integers(self.offsets)

    def verify_(self) -> None:
        types = self.cell_types
        if len(set(types)) != 1 or types[0] not in CELL_BYTES:
            raise VerifyException("a message is of one or more cells of one type")
        if len(types) != len(self.places):
            raise VerifyException(f"{len(types)} cells at {len(self.places)} places")
        if address_space(self.buffer) != GLOBAL_SPACE:
            raise VerifyException("messages between blocks go through global memory")
        if buffer_element(self.buffer) not in (i64, None):
            raise VerifyException("messages are kept in 64-bit words")

    def print_place(self, printer: Printer) -> None:
        """Print `%mail[%i + 0, 64] number %n`."""
        print_cells(printer, self.buffer, self.index, self.places)
        if self.number is not None:
            printer.print_string(" number ")
            printer.print_operand(self.number)

    @staticmethod
    def parse_place(
        parser: Parser,
    ) -> tuple[SSAValue, SSAValue | None, list[int], SSAValue | None]:
        """Parse what `print_place` printed: buffer, index, places, number."""
        buffer, index = parse_buffer(parser)
        places = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_integer)
        parser.parse_punctuation("]")
        number = parse_value(parser) if parser.parse_optional_keyword("number") else None
        return buffer, index, places, number


@irdl_op_definition
class PostOp(MessageOp):
    """
    Write the cells of a message, or what a barrier will let others read, and go on.

    Example: `simt.post %a, %b to %mail[%i + 0, 64] number %n`
    """

    name = "simt.post"

    cells = var_operand_def()

    def __init__(
        self,
        cells: Sequence[SSAValue],
        buffer: SSAValue,
        index: SSAValue | None,
        places: Sequence[int],
        number: SSAValue | None,
    ):
        super().__init__(
            operands=[list(cells), buffer, index, number],
            properties={"offsets": encode_integers(places)},
        )

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.cells, printer.print_operand)
        printer.print_string(" to ")
        self.print_place(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        cells = parse_values(parser, parser.Delimiter.NONE)
        parser.parse_keyword("to")
        return cls(cells, *cls.parse_place(parser))


@irdl_op_definition
class TakeOp(MessageOp):
    """
    Wait until the words of message `number` are there, and read its cells. Message 0 is that which
    nobody sends: its cells are unset. Without a number, read what is there.

    Example: `%a, %b = simt.take %mail[%i + 0, 64] number %n : f64, f64`
    """

    name = "simt.take"

    cells = var_result_def()

    def __init__(
        self,
        buffer: SSAValue,
        index: SSAValue | None,
        places: Sequence[int],
        number: SSAValue | None,
        types: Sequence[Attribute],
    ):
        super().__init__(
            operands=[buffer, index, number],
            properties={"offsets": encode_integers(places)},
            result_types=[list(types)],
        )

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        return tuple(self.cells.types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.print_place(printer)
        printer.print_string(" : ")
        printer.print_list(self.cells.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        place = cls.parse_place(parser)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(*place, types)


@irdl_op_definition
class TileBarrierOp(IRDLOperation):
    """
    All threads of the `blocks` blocks that hold a tile wait for each other; what they did before in global
    memory is seen by all after it. They count each other in a word of global memory that is 0 before the
    launch, and this is barrier `number` of the tile, from 1 on. All the blocks must be resident.

    Example: `simt.tile_barrier %words[%i] number %n blocks 13`
    """

    name = "simt.tile_barrier"

    words = operand_def(MemRefType | LLVMPointerType)
    index = opt_operand_def(IntegerType)
    number = operand_def(i32)
    blocks = prop_def(IntegerAttr)
    traits = traits_def(OrderingEffects())

    def __init__(self, words: SSAValue, index: SSAValue | None, number: SSAValue, blocks: int):
        super().__init__(operands=[words, index, number], properties={"blocks": integer(blocks)})

    def verify_(self) -> None:
        words = self.words
        if address_space(words) != GLOBAL_SPACE or buffer_element(words) not in (i64, None):
            raise VerifyException("blocks count each other in 64-bit words of global memory")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.words)
        with printer.in_square_brackets():
            if self.index is not None:
                printer.print_operand(self.index)
        printer.print_string(" number ")
        printer.print_operand(self.number)
        printer.print_string(f" blocks {self.blocks.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        words = parse_value(parser)
        parser.parse_punctuation("[")
        index = parse_optional_value(parser)
        parser.parse_punctuation("]")
        parser.parse_keyword("number")
        number = parse_value(parser)
        parser.parse_keyword("blocks")
        return cls(words, index, number, parser.parse_integer())
