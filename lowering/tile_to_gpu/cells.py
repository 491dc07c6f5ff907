"""Cell functions, decoded once and copied wherever planes become scalars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from timetile.dialects.temporal import RoundOp
from timetile.dialects.verified import terminator_of
from timetile.lowering.emitter import Emitter
from timetile.passes.analysis.cells.instructions import is_dividing

Late = Callable[[], SSAValue]
"""
Makes an argument of a cell function at its first use: an earlier load would hold a register until
then.
"""


@dataclass(frozen=True)
class Cut:
    """A value of a cell function; `instead` makes what the rest of the body uses in its place."""

    value: SSAValue
    instead: Callable[[SSAValue], SSAValue]


def copied(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    """A copy of an arithmetic operation on other operands."""
    return type(op).create(
        operands=operands,
        result_types=[result.type for result in op.results],
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
    )


def is_constant(value: SSAValue) -> bool:
    """The value is a constant of the cell."""
    return isinstance(value.owner, arith.ConstantOp)


class CellFunction:
    """The body of a cell function as a list of copiers, one an operation."""

    def __init__(self, function: FuncOp):
        block = function.body.block
        self.arguments = block.args
        self.operations = [op for op in block.ops if not isinstance(op, ReturnOp)]
        self.results = tuple(terminator_of(block, ReturnOp).operands)

    @property
    def divides(self) -> bool:
        """Some operation is slow for special operands."""
        return any(map(is_dividing, self.operations))

    def crossing_value(self, late: Collection[int]) -> SSAValue | None:
        """
        The single value computed before any argument of `late` is needed, if the rest of the body
        needs no other earlier value. None if no or several values cross, or if the types of value
        and results differ. None also if the rest divides or takes roots: foreign cells in place of
        the value would be special cases for nothing.
        """
        waits: set[SSAValue] = {argument for k, argument in enumerate(self.arguments) if k in late}
        ready: set[SSAValue] = set()
        taken: set[SSAValue] = set()
        for op in self.operations:
            if isinstance(op, arith.ConstantOp):
                continue
            if any(operand in waits for operand in op.operands):
                if is_dividing(op):
                    return None
                waits.update(op.results)
                taken.update(operand for operand in op.operands if operand in ready)
            else:
                ready.update(op.results)
        crossing = taken.pop() if len(taken) == 1 else None
        alike = crossing is not None and all(r.type == crossing.type for r in self.results)
        return crossing if alike else None

    def inline(
        self,
        emit: Emitter,
        arguments: Sequence[SSAValue | Late],
        cut: Cut | None = None,
    ) -> list[SSAValue]:
        """
        Emit the body on the given arguments and return the results. A late argument is made at its
        first use.
        """
        values: dict[SSAValue, SSAValue] = {}
        late: dict[SSAValue, Late] = {}
        for argument, given in zip(self.arguments, arguments):
            if isinstance(given, SSAValue):
                values[argument] = given
            else:
                late[argument] = given
        block = emit.block

        def taken(value: SSAValue) -> SSAValue:
            if value not in values:
                values[value] = late[value]()
            return values[value]

        for op in self.operations:
            if isinstance(op, arith.ConstantOp):
                values[op.result] = self.constant(emit, op)
                continue
            copy = copied(op, [taken(operand) for operand in op.operands])
            block.add_op(copy)
            for old, new in zip(op.results, copy.results):
                values[old] = cut.instead(new) if cut is not None and old is cut.value else new
        results: list[SSAValue] = []
        for result in self.results:
            value = taken(result)
            if value in results or not isinstance(result.owner, Operation) or is_constant(result):
                value = self.own(emit, value)
            results.append(value)
        return results

    @staticmethod
    def own(emit: Emitter, value: SSAValue) -> SSAValue:
        """
        A new value for a result equal to an argument, a constant, or another result: cells of
        different planes are told apart by their values.
        """
        return emit.select(emit.value_of(None), value, value)

    @staticmethod
    def constant(emit: Emitter, op: arith.ConstantOp) -> SSAValue:
        """A constant of the body, shared by all its copies."""
        if isinstance(op.value, IntegerAttr) and op.result.type == i1:
            return emit.add(arith.ConstantOp(op.value)).result
        return emit.constant(op.value, op.result.type)


def is_arithmetic(op: Operation) -> bool:
    """The operation computes from its operands alone."""
    return op.name.startswith(("arith.", "math.")) or isinstance(op, RoundOp)
