"""Cell functions, decoded once and copied wherever planes become scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from timetile.lowering.emitter import Emitter

Copy = Callable[[Emitter, dict[SSAValue, SSAValue]], None]


class CellFunction:
    """The body of a cell function as a list of copiers, one an operation."""

    def __init__(self, function: FuncOp):
        block = function.body.block
        self.arguments = block.args
        self.operations = [op for op in block.ops if not isinstance(op, ReturnOp)]
        terminator = block.last_op
        assert isinstance(terminator, ReturnOp)
        self.results = tuple(terminator.operands)

    def inline(self, emit: Emitter, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Emit the body on these arguments and return its results."""
        values: dict[SSAValue, SSAValue] = dict(zip(self.arguments, arguments))
        block = emit.block
        for op in self.operations:
            if isinstance(op, arith.ConstantOp):
                values[op.result] = self.constant(emit, op)
                continue
            copy = type(op).create(
                operands=[values[operand] for operand in op.operands],
                result_types=[result.type for result in op.results],
                properties=op.properties,
                attributes=op.attributes,
            )
            block.add_op(copy)
            for old, new in zip(op.results, copy.results):
                values[old] = new
        return [values[result] for result in self.results]

    @staticmethod
    def constant(emit: Emitter, op: arith.ConstantOp) -> SSAValue:
        """A constant of the body, shared by all its copies."""
        if isinstance(op.value, IntegerAttr) and op.result.type == i1:
            return emit.add(arith.ConstantOp(op.value)).result
        return emit.constant(op.value, op.result.type)


def is_arithmetic(op: Operation) -> bool:
    """The operation computes from its operands alone."""
    return op.name.startswith(("arith.", "math."))
