"""Messages between blocks in global memory, and barriers of all blocks of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    I64,
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
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.cell_types import CELL_BYTES, STORED_TYPES
from timetile.dialects.directives import OptionalValue, Value, Values
from timetile.dialects.simt.buffers import (
    GLOBAL_SPACE,
    OrderingEffects,
    address_space,
    buffer_element,
    integer,
)
from timetile.dialects.simt.directives import Places
from timetile.dialects.syntax import (
    INTEGERS,
    decode_integers,
    encode_integers,
)


class MessageCanonicalization(HasCanonicalizationPatternsTrait):
    """Messages at a known place."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from timetile.dialects.simt.canonicalize import SimplifyMessage

        return (SimplifyMessage(),)


class MessageOp(IRDLOperation):
    """
    Base of messages between threads of different blocks, in global memory. Cells lie at `index +
    offsets[k]` (64-bit words).

    With a `number`, each word of a message holds the number beside four bytes of a cell, so that a
    reader can tell whether the word has arrived; a message orders no other accesses. A sender may
    write a word again after taking a later message from the reader. Without a number a word holds a
    cell alone, and barriers of the tile order writes and reads.
    """

    buffer = operand_def(MemRefType | LLVMPointerType)
    index = opt_operand_def(IntegerType)
    number = opt_operand_def(i32)
    offsets = prop_def(INTEGERS)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(OrderingEffects(), MessageCanonicalization())
    custom_directives = (Places, Values)

    PLACE: ClassVar[str] = (
        "custom<Places>($buffer, type($buffer), $index, type($index), $offsets) "
        "(`number` $number^)?"
    )
    """The format of the place of a message, with its number."""

    @property
    def cell_types(self) -> tuple[Attribute, ...]:
        """The types of the cells, in order."""
        raise NotImplementedError

    @property
    def places(self) -> tuple[int, ...]:
        """The first word of each cell, relative to the index (64-bit words)."""
        return decode_integers(self.offsets)

    def verify_(self) -> None:
        types = self.cell_types
        if len(set(types)) != 1 or types[0] not in CELL_BYTES or types[0] in STORED_TYPES:
            raise VerifyException("a message is of one or more cells of one type")
        if len(types) != len(self.places):
            raise VerifyException(f"{len(types)} cells at {len(self.places)} places")
        if address_space(self.buffer) != GLOBAL_SPACE:
            raise VerifyException("messages between blocks go through global memory")
        if buffer_element(self.buffer) not in (i64, None):
            raise VerifyException("messages are kept in 64-bit words")


@irdl_op_definition
class PostOp(MessageOp):
    """
    Write the cells of a message, and go on; without a number, for readers behind a barrier of the
    tile.

    Example: `simt.post %a, %b to %buffer[%i + 0, 64] number %n`
    """

    name = "simt.post"

    cells = var_operand_def()
    assembly_format = f"custom<Values>($cells, type($cells)) `to` {MessageOp.PLACE} attr-dict"

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


@irdl_op_definition
class TakeOp(MessageOp):
    """
    Wait for the words of message `number`, and read the message's cells. The cells of message 0 are
    unset: nobody sends message 0. Without a number, read at once.

    Example: `%a, %b = simt.take %buffer[%i + 0, 64] number %n : f64, f64`
    """

    name = "simt.take"

    cells = var_result_def()
    assembly_format = f"{MessageOp.PLACE} attr-dict `:` type($cells)"

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


@irdl_op_definition
class TileBarrierOp(IRDLOperation):
    """
    All threads of the tile's `blocks` blocks wait for each other; accesses to global memory before
    the barrier are visible after the barrier. A word of global memory, 0 before the launch, counts
    arrivals; `number` counts the tile's barriers from 1. All blocks of the tile must be resident.

    Example: `simt.tile_barrier %words[%i] number %n blocks 13`
    """

    name = "simt.tile_barrier"

    words = operand_def(MemRefType | LLVMPointerType)
    index = opt_operand_def(IntegerType)
    number = operand_def(i32)
    blocks = prop_def(IntegerAttr[I64])
    traits = traits_def(OrderingEffects())

    custom_directives = (OptionalValue, Value)
    assembly_format = (
        "custom<Value>($words, type($words)) `[` custom<OptionalValue>($index, type($index)) `]` "
        "`number` $number `blocks` $blocks attr-dict"
    )

    def __init__(self, words: SSAValue, index: SSAValue | None, number: SSAValue, blocks: int):
        super().__init__(operands=[words, index, number], properties={"blocks": integer(blocks)})

    def verify_(self) -> None:
        verify_counting_words(self.words, "blocks count each other")


@irdl_op_definition
class LaunchesEndedOp(IRDLOperation):
    """
    The number of launches that have ended, which the first of some words counts. Words of messages
    need not be cleared before a launch if its messages have the next number.

    Example: `%e = simt.launches_ended %words : i32`
    """

    name = "simt.launches_ended"

    words = operand_def(MemRefType | LLVMPointerType)
    count = result_def(i32)
    traits = traits_def(OrderingEffects())

    custom_directives = (Value,)
    assembly_format = "custom<Value>($words, type($words)) attr-dict `:` type($count)"

    def __init__(self, words: SSAValue):
        super().__init__(operands=[words], result_types=[i32])

    def verify_(self) -> None:
        verify_counting_words(self.words, "launches are counted")


@irdl_op_definition
class EndLaunchOp(IRDLOperation):
    """
    End the launch of a number, from 1 on, by one thread: so many launches have ended. All blocks
    have read the number of launches before, as messages with the number show.

    Example: `simt.end_launch %words number %n`
    """

    name = "simt.end_launch"

    words = operand_def(MemRefType | LLVMPointerType)
    number = operand_def(i32)
    traits = traits_def(OrderingEffects())

    custom_directives = (Value,)
    assembly_format = "custom<Value>($words, type($words)) `number` $number attr-dict"

    def __init__(self, words: SSAValue, number: SSAValue):
        super().__init__(operands=[words, number])

    def verify_(self) -> None:
        verify_counting_words(self.words, "launches are counted")


def verify_counting_words(words: SSAValue, said: str) -> None:
    """VerifyException, which begins with what is said, unless words can count."""
    if address_space(words) != GLOBAL_SPACE or buffer_element(words) not in (i64, None):
        raise VerifyException(f"{said} in 64-bit words of global memory")
