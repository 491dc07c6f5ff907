"""From values of a cell to operations in the body of a `stencil.apply`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import (
    FileLineColLoc,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    StringAttr,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from timetile.dialects.verified import temp_element
from timetile.frontend.boundaries import FieldEdges, names_scalar
from timetile.frontend.errors import SourcePlace
from timetile.frontend.operations import (
    COMPARISONS,
    FLOATS,
    INTEGERS,
    LOGIC,
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
    Kind,
    Logic,
    Time,
)
from timetile.frontend.steps import walk
from timetile.frontend.values import Value

FloatType = Float32Type | Float64Type


def located(op: Operation, place: SourcePlace) -> Operation:
    """The operation, marked with its place in the source."""
    column = IntAttr(max(place.column, 0) + 1)
    op.location = FileLineColLoc(StringAttr(place.file), IntAttr(place.line), column)
    return op


def compared(name: str, left: SSAValue, right: SSAValue) -> Operation:
    """A comparison of two integers, or of two floats."""
    of_floats, of_integers = COMPARISONS[name]
    if left.type == i64:
        return arith.CmpiOp(left, right, of_integers)
    return arith.CmpfOp(left, right, of_floats)


class Cell:
    """
    The body of an apply: operations for values, each once. The block's arguments are `fields`, by
    name, time level and version, and `scalars`, by name. `edges` are the sides of fields that go on
    beyond their arrays; `outside` tells how far outside the arrays cells are computed.
    """

    def __init__(
        self,
        block: Block,
        element: FloatType,
        shape: Sequence[int],
        fields: Mapping[tuple[str, Time, int], SSAValue],
        scalars: Mapping[str, SSAValue],
        edges: Mapping[str, FieldEdges],
        outside: Sequence[tuple[int, int]],
    ):
        self.edges, self.outside = edges, outside
        self.block, self.element, self.shape = block, element, shape
        self.fields, self.scalars = fields, scalars
        self.made: dict[tuple[str, Kind, tuple[SSAValue, ...]], SSAValue] = {}

    def results(self, values: Sequence[Value]) -> list[SSAValue]:
        """The values, computed in the block."""
        done: dict[int, SSAValue] = {}
        for value in walk(values):
            done[id(value)] = self.result(value, [done[id(operand)] for operand in value.operands])
        return [done[id(value)] for value in values]

    def result(self, value: Value, operands: Sequence[SSAValue]) -> SSAValue:
        """The result of an operation on given operands; an equal earlier operation is reused."""
        if isinstance(value.operation, Argument):
            return self.scalars[value.operation.name]
        # The text of a number tells -0.0 from 0.0.
        key = repr(value.operation), value.kind, tuple(operands)
        if key not in self.made:
            ops = self.operations(value.operation, value.kind, operands)
            for op in ops:
                self.block.add_op(located(op, value.place))
            self.made[key] = ops[-1].results[0]
        return self.made[key]

    def operations(
        self, operation: Computed, kind: Kind, operands: Sequence[SSAValue]
    ) -> Sequence[Operation]:
        """The operations of a value. The last operation computes the value."""
        match operation:
            case Constant(number=number):
                return [self.constant(number, kind)]
            case Extent(axis=axis):
                return [arith.ConstantOp(IntegerAttr(self.shape[axis], i64))]
            case Access():
                return self.access(operation)
            case Coordinate(axis=axis):
                return self.coordinate(axis)
            case Conversion():
                convert = arith.UIToFPOp if operands[0].type == i1 else arith.SIToFPOp
                return [convert(operands[0], self.element)]
            case Comparison(name=name):
                return [compared(name, *operands)]
            case Choice():
                return [arith.SelectOp(*operands)]
            case Logic(name=name):
                return [LOGIC[name].build(operands=operands, result_types=[i1])]
            case Arithmetic(name=name):
                table = FLOATS if kind is Kind.FLOAT else INTEGERS
                return [self.arithmetic(table[name], operands)]

    def access(self, read: Access) -> Sequence[Operation]:
        """The number of a field at an offset; beyond the array perhaps a scalar."""
        kept = [axis for axis, offset in enumerate(read.offsets) if offset is not None]
        mapping = kept if len(kept) < len(read.offsets) else None
        plain = [offset for offset in read.offsets if offset is not None]
        ops: list[Operation] = [
            stencil.AccessOp(self.fields[read.field, read.time, read.version], plain, mapping)
        ]
        if temp_element(self.fields[read.field, read.time, read.version]) != self.element:
            ops.append(arith.ExtFOp(ops[0].results[0], self.element))
        # The last axis outside the array decides about a corner.
        for axis, sides in enumerate(self.edges.get(read.field, ())):
            offset = read.offsets[axis]
            for number, side in enumerate(sides):
                if offset is None or not names_scalar(side):
                    continue
                far = self.outside[axis][number] + (offset if number else -offset)
                if far <= 0:
                    continue
                if far > self.shape[axis]:
                    raise ValueError(
                        f"{read.field} is read {far} cells away along axis {axis} of size "
                        f"{self.shape[axis]}, and beyond the array has a scalar's value; pass "
                        "larger arrays"
                    )
                end = self.shape[axis] - offset if number else -offset
                index, place = self.coordinate(axis)
                edge = arith.ConstantOp(IntegerAttr(end, i64))
                test = arith.CmpiOp(place.results[0], edge, "sge" if number else "slt")
                scalar = self.scalars[str(side)]
                ops += [index, place, edge, test]
                ops.append(arith.SelectOp(test, scalar, ops[-5].results[0]))
        return ops

    def stored(self, value: SSAValue, kind: Attribute, place: SourcePlace) -> SSAValue:
        """A value rounded to the type of a field: to f32 first, then to 16 bits."""
        for narrower in (f32, kind):
            if value.type != kind and value.type != narrower:
                rounded = arith.TruncFOp(value, narrower)
                self.block.add_op(located(rounded, place))
                value = rounded.result
        return value

    def arithmetic(self, kind: type[IRDLOperation], operands: Sequence[SSAValue]) -> Operation:
        """An operation with operands and a result of one type."""
        fast: dict[str, Any] = {}
        if "fastmath" in kind.get_irdl_definition().properties:
            fast["fastmath"] = arith.FastMathFlagsAttr("none")
        return kind.create(operands=operands, result_types=[operands[0].type], properties=fast)

    def constant(self, number: float | int | bool, kind: Kind) -> Operation:
        """A number."""
        if kind is Kind.FLOAT:
            return arith.ConstantOp(FloatAttr(self.rounded(float(number)), self.element))
        return arith.ConstantOp(IntegerAttr(int(number), i1 if kind is Kind.BOOLEAN else i64))

    def rounded(self, number: float) -> float:
        """A Python number in the fields' type: infinite beyond the greatest number, as in NumPy."""
        if isinstance(self.element, Float64Type):
            return number
        with np.errstate(over="ignore"):
            return float(np.float32(number))

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
