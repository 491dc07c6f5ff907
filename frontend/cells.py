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
    i1,
    i64,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from timetile.frontend.errors import Place
from timetile.frontend.operations import COMPARISONS, FLOATS, INTEGERS, LOGIC, Kind
from timetile.frontend.tracing import walk
from timetile.frontend.values import Value

FloatType = Float32Type | Float64Type
Key = tuple[Any, ...]


def located(op: Operation, place: Place) -> Operation:
    """The operation, marked with its place in the source."""
    column = IntAttr(max(place.column, 0) + 1)
    op.location = FileLineColLoc(StringAttr(place.file), IntAttr(place.line), column)
    return op


class Cell:
    """The body of an apply: operations for values, each once."""

    def __init__(self, block: Block, element: FloatType, shape: Sequence[int]):
        self.block, self.element, self.shape = block, element, shape
        self.inputs: dict[Key, SSAValue] = {}
        """The block's arguments, by field and level, or by the name of a scalar alone."""
        self.made: dict[Key, SSAValue] = {}

    def results(self, values: Sequence[Value]) -> list[SSAValue]:
        """The values, computed in the block."""
        done: dict[int, SSAValue] = {}
        for value in walk(values):
            done[id(value)] = self.result(value, [done[id(operand)] for operand in value.operands])
        return [done[id(value)] for value in values]

    def result(self, value: Value, operands: Sequence[SSAValue]) -> SSAValue:
        """The result of an operation on given operands; an equal earlier operation is reused."""
        if value.operation == "scalar":
            return self.inputs[(value.payload,)]
        # The text of a number tells -0.0 from 0.0.
        key: Key = (value.operation, value.kind, repr(value.payload), *map(id, operands))
        if key not in self.made:
            self.made[key] = self.computed(value, operands)
        return self.made[key]

    def computed(self, value: Value, operands: Sequence[SSAValue]) -> SSAValue:
        """The result of an operation on given operands."""
        ops = self.operations(value, operands)
        for op in ops:
            self.block.add_op(located(op, value.place))
        return ops[-1].results[0]

    def operations(self, value: Value, operands: Sequence[SSAValue]) -> Sequence[Operation]:
        """The operations of a value. The last operation computes the value."""
        name, payload = value.operation, value.payload
        if name == "constant":
            return [self.constant(value)]
        if name == "extent":
            assert isinstance(payload, int)
            return [arith.ConstantOp(IntegerAttr(self.shape[payload], i64))]
        if name == "access":
            assert isinstance(payload, tuple)
            field, level, offsets = payload
            kept = [axis for axis, offset in enumerate(offsets) if offset is not None]
            mapping = kept if len(kept) < len(offsets) else None
            plain = [offsets[axis] for axis in kept]
            return [stencil.AccessOp(self.inputs[field, level], plain, mapping)]
        if name == "coordinate":
            return self.coordinate(payload)
        if name == "to_float":
            convert = arith.UIToFPOp if operands[0].type == i1 else arith.SIToFPOp
            return [convert(operands[0], self.element)]
        if name in COMPARISONS:
            of_floats, of_integers = COMPARISONS[name]
            left, right = operands
            if left.type == i64:
                return [arith.CmpiOp(left, right, of_integers)]
            return [arith.CmpfOp(left, right, of_floats)]
        if name == "select":
            return [arith.SelectOp(*operands)]
        if name in LOGIC:
            return [LOGIC[name].build(operands=operands, result_types=[i1])]
        table: Mapping[str, type[IRDLOperation]] = FLOATS if value.kind is Kind.FLOAT else INTEGERS
        return [self.arithmetic(table[name], operands)]

    def arithmetic(self, kind: type[IRDLOperation], operands: Sequence[SSAValue]) -> Operation:
        """An operation with operands and a result of one type."""
        fast: dict[str, Any] = {}
        if "fastmath" in kind.get_irdl_definition().properties:
            fast["fastmath"] = arith.FastMathFlagsAttr("none")
        return kind.create(operands=operands, result_types=[operands[0].type], properties=fast)

    def constant(self, value: Value) -> Operation:
        """A number."""
        number = value.payload
        assert isinstance(number, int | float)
        if value.kind is Kind.FLOAT:
            return arith.ConstantOp(FloatAttr(self.rounded(float(number)), self.element))
        return arith.ConstantOp(IntegerAttr(int(number), i1 if value.kind is Kind.BOOLEAN else i64))

    def rounded(self, number: float) -> float:
        """A Python number in the fields' type: infinite beyond the greatest number, as in NumPy."""
        if isinstance(self.element, Float64Type):
            return number
        with np.errstate(over="ignore"):
            return float(np.float32(number))

    def coordinate(self, axis: object) -> Sequence[Operation]:
        """The place of the cell along an axis."""
        assert isinstance(axis, int)
        index = stencil.IndexOp.build(
            result_types=[IndexType()],
            properties={
                "dim": IntegerAttr.from_index_int_value(axis),
                "offset": stencil.IndexAttr.from_indices(*(0 for _ in self.shape)),
            },
        )
        return [index, arith.IndexCastOp(index.results[0], i64)]
