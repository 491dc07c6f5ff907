"""
Operations in MLIR's own form, where xDSL 0.74 reads the generic form alone, or another:

```
scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {...}
%r:2 = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%x, %y) -> (f64, f64) {
  scf.reduce(%a, %b : f64, f64) {...}, {...}
}
%b = memref.cast %a : memref<8xf64> to memref<?xf64>
memref.copy %a, %b : memref<8xf64> to memref<8xf64>
%old = memref.atomic_rmw addf %x, %a[%i] : (f64, memref<8xf64>) -> f64
%at = memref.extract_aligned_pointer_as_index %a : memref<8xf64> -> index
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.utils.hints import isa

ATOMIC_KINDS = [
    *("addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins", "minu", "mulf"),
    *("muli", "ori", "andi"),
]
"""What `memref.atomic_rmw` computes, in the order of MLIR's numbers."""


def values_in_brackets(parser: Parser) -> list[SSAValue]:
    """Indices in round brackets."""
    found = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    return [parser.resolve_operand(value, IndexType()) for value in found]


def parallel(parser: Parser) -> Operation:
    """A parallel loop, ended by `scf.reduce` if no operation ends its body."""
    numbers = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
    )
    parser.parse_punctuation("=")
    low = values_in_brackets(parser)
    parser.parse_characters("to")
    high = values_in_brackets(parser)
    parser.parse_characters("step")
    step = values_in_brackets(parser)
    begin = []
    if parser.parse_optional_keyword("init"):
        begin = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
    kinds: Sequence[Attribute] = []
    if parser.parse_optional_punctuation("->"):
        several = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_type
        )
        kinds = [parser.parse_type()] if several is None else several
    place = parser.pos
    if len(kinds) != len(begin):
        parser.raise_error(f"{len(begin)} first values for {len(kinds)} results", place, parser.pos)
    given = [parser.resolve_operand(*pair) for pair in zip(begin, kinds)]
    body = parser.parse_region([number.resolve(IndexType()) for number in numbers])
    attributes = parser.parse_optional_attr_dict()
    if len(body.blocks) > 1:
        parser.raise_error("one block expected in a parallel loop", place, parser.pos)
    if not isinstance(body.block.last_op, scf.ReduceOp | scf.YieldOp):
        body.block.add_op(scf.ReduceOp())
    loop = scf.ParallelOp(low, high, step, body, given)
    loop.attributes.update(attributes)
    return loop


def reduce(parser: Parser) -> Operation:
    """The end of a parallel loop: values, and a region for each, with commas as MLIR prints."""
    values: list[SSAValue] = []
    if parser.parse_optional_punctuation("("):
        given = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(":")
        place = parser.pos
        kinds = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(kinds) != len(given):
            parser.raise_error(f"{len(kinds)} types for {len(given)} values", place, parser.pos)
        parser.parse_punctuation(")")
        values = [parser.resolve_operand(*pair) for pair in zip(given, kinds)]
    regions: list[Region] = []
    while len(regions) < len(values):
        regions.append(parser.parse_region())
        parser.parse_optional_punctuation(",")
    return scf.ReduceOp(values, regions)


def type_of_memref(parser: Parser) -> MemRefType[Attribute]:
    """The type of a memref."""
    place = parser.pos
    kind = parser.parse_type()
    if not isa(kind, MemRefType[Attribute]):
        parser.raise_error("the type of a memref expected", place, parser.pos)
    return kind


def memref_cast(parser: Parser) -> Operation:
    """A memref under another type."""
    source = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    value = parser.resolve_operand(source, parser.parse_type())
    parser.parse_characters("to")
    made = memref.CastOp.get(value, type_of_memref(parser))
    made.attributes.update(attributes)
    return made


def memref_copy(parser: Parser) -> Operation:
    """A copy of all cells of a memref."""
    source = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    target = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    first = parser.resolve_operand(source, parser.parse_type())
    parser.parse_characters("to")
    made = memref.CopyOp(first, parser.resolve_operand(target, parser.parse_type()))
    made.attributes.update(attributes)
    return made


def atomic(parser: Parser) -> Operation:
    """A cell changed by a number, in one piece."""
    kind = ATOMIC_KINDS.index(parser.parse_keyword_in(ATOMIC_KINDS))
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    memory = parser.parse_unresolved_operand()
    places = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    parser.parse_punctuation("(")
    number = parser.parse_type()
    parser.parse_punctuation(",")
    whole = type_of_memref(parser)
    if whole.get_num_dims() != len(places):
        axes = f"{len(places)} indices for {whole.get_num_dims()} axes"
        parser.raise_error(axes, parser.pos, parser.pos)
    parser.parse_punctuation(")")
    parser.parse_punctuation("->")
    return memref.AtomicRMWOp.build(
        operands=[
            parser.resolve_operand(value, number),
            parser.resolve_operand(memory, whole),
            [parser.resolve_operand(place, IndexType()) for place in places],
        ],
        result_types=[parser.parse_type()],
        properties={"kind": IntegerAttr(kind, i64)},
    )


def address(parser: Parser) -> Operation:
    """The address of a memref as a number."""
    source = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    value = parser.resolve_operand(source, parser.parse_type())
    parser.parse_punctuation("->")
    parser.parse_type()
    return memref.ExtractAlignedPointerAsIndexOp.get(value)


FORMS: Mapping[type[Operation], Callable[[Parser], Operation]] = {
    scf.ParallelOp: parallel,
    scf.ReduceOp: reduce,
    memref.CastOp: memref_cast,
    memref.CopyOp: memref_copy,
    memref.AtomicRMWOp: atomic,
    memref.ExtractAlignedPointerAsIndexOp: address,
}
"""Functions that read the operands of an operation after its name."""


def with_form(kind: type[Operation]) -> type[Operation]:
    """A kind of operation that is read in MLIR's own form; other kinds as they are."""
    read = FORMS.get(kind)
    if read is None:
        return kind

    class Spelled(Operation):
        """Reads an operation of the other kind."""

        name = kind.name

        @classmethod
        def parse(cls, parser: Parser) -> Operation:
            return read(parser)

    return Spelled
