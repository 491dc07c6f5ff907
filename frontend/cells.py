"""From values of a cell to operations in the body of a `stencil.apply`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import (
    FileLineColLoc,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from timetile.dialects.verified import temp_element
from timetile.frontend.boundaries import FieldEdges, names_scalar
from timetile.frontend.errors import SourcePlace
from timetile.frontend.field_types import NUMBER_TYPES, FloatType, bits_of, holds_integers
from timetile.frontend.number_types import Typed
from timetile.frontend.operations import (
    COMPARISONS,
    FLOATS,
    INTEGERS,
    LOGIC,
    UNSIGNED,
    Access,
    Argument,
    Arithmetic,
    Choice,
    Comparison,
    Computed,
    Constant,
    Conversion,
    Coordinate,
    Extent,
    Logic,
    Time,
)
from timetile.frontend.steps import walk


def located(op: Operation, place: SourcePlace) -> Operation:
    """The operation, marked with its place in the source."""
    column = IntAttr(max(place.column, 0) + 1)
    op.location = FileLineColLoc(StringAttr(place.file), IntAttr(place.line), column)
    return op


SCALARS: dict[Attribute, str] = {f32: "float32", f64: "float64"}
"""The types of scalar arguments."""


def compared(name: str, kind: str, left: SSAValue, right: SSAValue) -> Operation:
    """A comparison of two numbers of a type."""
    of_floats, of_integers = COMPARISONS[name]
    if holds_integers(kind):
        unsigned = kind.startswith("u") and of_integers.startswith("s")
        return arith.CmpiOp(left, right, f"u{of_integers[1:]}" if unsigned else of_integers)
    return arith.CmpfOp(left, right, of_floats)


def conversion(value: SSAValue, source: str, target: str) -> Sequence[Operation]:
    """
    Operations that convert a number between two types as NumPy does; none between integers of one
    width, signed and unsigned.
    """
    if target == "bool":
        zero = number_operation(0, source)
        return [zero, compared("not_equal", source, value, zero.result)]
    made = conversion_of(source, target)
    if made is None:
        return []
    return [made.create(operands=[value], result_types=[NUMBER_TYPES[target]])]


def as_number(cell: SSAValue, stored: Attribute, kind: str) -> Sequence[Operation]:
    """The operations of a cell as stored as a number of a type."""
    if kind == "bool":
        return conversion(cell, "int8", "bool")
    if stored == NUMBER_TYPES[kind]:
        return []
    return [arith.ExtFOp.create(operands=[cell], result_types=[NUMBER_TYPES[kind]])]


def conversion_of(source: str, target: str) -> type[IRDLOperation] | None:
    """The operation of a conversion to a number; None where the bits stay."""
    of_whole, to_whole = holds_integers(source), holds_integers(target)
    unsigned = source == "bool" or source.startswith("u")
    if not of_whole and not to_whole:
        return arith.ExtFOp if target == "float64" else arith.TruncFOp
    if not of_whole:
        return arith.FPToUIOp if target.startswith("u") else arith.FPToSIOp
    if not to_whole:
        return arith.UIToFPOp if unsigned else arith.SIToFPOp
    if source == "bool":
        return arith.ExtUIOp
    if bits_of(target) == bits_of(source):
        return None
    if bits_of(target) < bits_of(source):
        return arith.TruncIOp
    return arith.ExtUIOp if unsigned else arith.ExtSIOp


def number_operation(number: float | int | bool, name: str) -> arith.ConstantOp:
    """A number of a type."""
    kind = NUMBER_TYPES[name]
    if holds_integers(name):
        return arith.ConstantOp(IntegerAttr(int(number), cast(IntegerType, kind)))
    return arith.ConstantOp(FloatAttr(rounded_to(float(number), name), cast(FloatType, kind)))


class Cell:
    """
    The body of an apply: operations for values, each once. The block's arguments are `fields`, by
    name, time level and version, and `scalars`, by name. `edges` are the sides of fields that go on
    beyond their arrays; `outside` tells how far outside the arrays cells are computed.
    """

    def __init__(
        self,
        block: Block,
        shape: Sequence[int],
        fields: Mapping[tuple[str, Time, int], SSAValue],
        scalars: Mapping[str, SSAValue],
        edges: Mapping[str, FieldEdges],
        outside: Sequence[tuple[int, int]],
    ):
        self.edges, self.outside = edges, outside
        self.block, self.shape = block, shape
        self.fields, self.scalars = fields, scalars
        self.made: dict[tuple[object, ...], SSAValue] = {}
        self.new: dict[tuple[str, int], SSAValue] = {}
        """The new values of the cell assigned so far by a sweep, as stored, by field and number."""

    def results(self, values: Sequence[Typed]) -> list[SSAValue]:
        """The values, computed in the block."""
        done: dict[int, SSAValue] = {}
        for value in walk(values):
            done[id(value)] = self.result(value, [done[id(operand)] for operand in value.operands])
        return [done[id(value)] for value in values]

    def result(self, value: Typed, operands: Sequence[SSAValue]) -> SSAValue:
        """The result of an operation on given operands; an equal earlier operation is reused."""
        if isinstance(value.operation, Argument):
            return self.scalars[value.operation.name]
        if (own := self.own_new(value)) is not None:
            return own
        # The text of a number tells -0.0 from 0.0.
        kinds = tuple(operand.type for operand in value.operands)
        key = repr(value.operation), value.type, kinds, tuple(operands)
        if key not in self.made:
            ops = self.operations(value, value.operation, operands)
            for op in ops:
                self.block.add_op(located(op, value.place))
            # A number without a sign has the bits of a number with a sign.
            self.made[key] = ops[-1].results[0] if ops else operands[0]
        return self.made[key]

    def own_new(self, value: Typed) -> SSAValue | None:
        """A new value of the cell assigned by the sweep; None for another value."""
        read = value.operation
        if not isinstance(read, Access) or read.time is not Time.NEXT:
            return None
        stored = self.new.get((read.field, read.version))
        if stored is None:
            return None
        ops = as_number(stored, stored.type, value.type)
        for op in ops:
            self.block.add_op(located(op, value.place))
        return ops[-1].results[0] if ops else stored

    def operations(
        self, value: Typed, operation: Computed, operands: Sequence[SSAValue]
    ) -> Sequence[Operation]:
        """The operations of a value. The last operation computes the value."""
        match operation:
            case Constant(number=number):
                return [number_operation(number, value.type)]
            case Extent(axis=axis):
                return [arith.ConstantOp(IntegerAttr(self.shape[axis], i64))]
            case Access():
                return self.access(operation, value.type)
            case Coordinate(axis=axis):
                return self.coordinate(axis)
            case Conversion():
                return conversion(operands[0], value.operands[0].type, value.type)
            case Comparison(name=name):
                return [compared(name, value.operands[0].type, *operands)]
            case Choice():
                return [arith.SelectOp(*operands)]
            case Logic(name=name):
                return [LOGIC[name].build(operands=operands, result_types=[i1])]
            case Arithmetic(name=name):
                whole = UNSIGNED if value.type.startswith("u") else INTEGERS
                table = whole if holds_integers(value.type) else FLOATS
                return [self.arithmetic(table[name], operands)]

    def access(self, read: Access, kind: str) -> Sequence[Operation]:
        """The number of a field at an offset; beyond the array perhaps a scalar."""
        kept = [axis for axis, offset in enumerate(read.offsets) if offset is not None]
        mapping = kept if len(kept) < len(read.offsets) else None
        plain = [offset for offset in read.offsets if offset is not None]
        source = self.fields[read.field, read.time, read.version]
        read_op = stencil.AccessOp(source, plain, mapping)
        ops = [read_op, *as_number(read_op.res, temp_element(source), kind)]
        return [*ops, *self.scalars_beyond(read, kind, ops[-1].results[0])]

    def scalars_beyond(self, read: Access, kind: str, cell: SSAValue) -> list[Operation]:
        """The scalar's value in place of a cell beyond a side with a scalar's value."""
        ops: list[Operation] = []
        for axis, sides in enumerate(self.edges.get(read.field, ())):
            offset = read.offsets[axis]
            for number, side in enumerate(sides):
                if offset is None or not names_scalar(side):
                    continue
                if holds_integers(kind):
                    raise ValueError(
                        f"{read.field} has an array of {kind}, and beyond the array a scalar's "
                        "value, a float; give a number, as timetile.value(0)"
                    )
                far = self.distance(axis, number, offset)
                if far <= 0:
                    continue
                if far > self.shape[axis]:
                    raise ValueError(
                        f"{read.field} is read {far} cells away along axis {axis} of size "
                        f"{self.shape[axis]}, and beyond the array has a scalar's value; pass "
                        "larger arrays"
                    )
                ops += self.beyond(axis, number, offset)
                test = ops[-1].results[0]
                # The last axis outside the array decides about a corner: a number there stays.
                for later, other, further in self.numbers_behind(read, axis):
                    ops += self.beyond(later, other, further, inside=True)
                    ops.append(arith.AndIOp(test, ops[-1].results[0]))
                    test = ops[-1].results[0]
                scalar = self.scalars[str(side)]
                if scalar.type != cell.type:
                    ops += conversion(scalar, SCALARS[scalar.type], kind)
                    scalar = ops[-1].results[0]
                ops.append(arith.SelectOp(test, scalar, cell))
                cell = ops[-1].results[0]
        return ops

    def distance(self, axis: int, number: int, offset: int) -> int:
        """How far a read goes beyond a side of the array, from the cells of the statement."""
        return self.outside[axis][number] + (offset if number else -offset)

    def beyond(
        self, axis: int, number: int, offset: int, *, inside: bool = False
    ) -> list[Operation]:
        """The operations that tell, the last one, whether a read is beyond a side, or `inside`."""
        index, place = self.coordinate(axis)
        end = self.shape[axis] - offset if number else -offset
        edge = arith.ConstantOp(IntegerAttr(end, i64))
        predicate = "slt" if bool(number) == inside else "sge"
        return [index, place, edge, arith.CmpiOp(place.results[0], edge, predicate)]

    def numbers_behind(self, read: Access, axis: int) -> list[tuple[int, int, int]]:
        """
        The sides of later axes with a number beyond that a read reaches: axis, side and offset.
        """
        return [
            (later, number, offset)
            for later, sides in enumerate(self.edges[read.field])
            for number, side in enumerate(sides)
            if later > axis
            and not isinstance(side, str)
            and (offset := read.offsets[later]) is not None
            and self.distance(later, number, offset) > 0
        ]

    def stored(self, value: SSAValue, kind: Attribute, place: SourcePlace) -> SSAValue:
        """
        A value in the type of a field: a float rounded to f32 first, then to 16 bits, or a truth
        value as 0 or 1.
        """
        if value.type == i1:
            whole = arith.ExtUIOp.create(operands=[value], result_types=[kind])
            self.block.add_op(located(whole, place))
            return whole.results[0]
        for narrower in (f32, kind):
            if value.type != kind and value.type != narrower:
                widens = value.type == f32 and kind == f64
                made = arith.ExtFOp if widens else arith.TruncFOp
                rounded = made.create(operands=[value], result_types=[narrower])
                self.block.add_op(located(rounded, place))
                value = rounded.results[0]
        return value

    def arithmetic(self, kind: type[IRDLOperation], operands: Sequence[SSAValue]) -> Operation:
        """An operation with operands and a result of one type."""
        fast: dict[str, Any] = {}
        if "fastmath" in kind.get_irdl_definition().properties:
            fast["fastmath"] = arith.FastMathFlagsAttr("none")
        return kind.create(operands=operands, result_types=[operands[0].type], properties=fast)

    def coordinate(self, axis: int) -> Sequence[Operation]:
        """The place of the cell along an axis."""
        index = stencil.IndexOp.build(
            result_types=[IndexType()],
            properties={
                "dim": IntegerAttr.from_index_int_value(axis),
                "offset": stencil.IndexAttr.from_indices(*(0 for _ in self.shape)),
            },
        )
        return [index, arith.IndexCastOp(index.results[0], i64)]


def rounded_to(number: float, name: str) -> float:
    """A Python number in a float type: infinite beyond the greatest number, as in NumPy."""
    if name == "float64":
        return number
    with np.errstate(over="ignore"):
        return float(np.float32(number))
