"""
Programs of loops over memrefs, evaluated operation by operation as MLIR defines them, without any
code of the compiler. Arrays are changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import affine, arith, func, memref, scf
from xdsl.dialects.builtin import AffineMapAttr, FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

Values = dict[SSAValue, Any]

BINARY: dict[type[Operation], Callable[[Any, Any], Any]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.RemUIOp: lambda a, b: a % b,
    arith.RemSIOp: lambda a, b: int(np.fmod(a, b)),
    arith.AddfOp: lambda a, b: a + b,
    arith.SubfOp: lambda a, b: a - b,
    arith.MulfOp: lambda a, b: a * b,
    arith.CmpiOp: lambda a, b: a < b,
}
"""Operations on two numbers; comparisons of the tests are `slt`."""


def constant(op: arith.ConstantOp) -> Any:
    """The number of a constant."""
    if isinstance(op.value, FloatAttr):
        return np.float64(op.value.value.data)
    assert isinstance(op.value, IntegerAttr)
    return op.value.value.data


def mapped(attribute: AffineMapAttr, operands: Sequence[int]) -> list[int]:
    """The numbers of an affine map."""
    count = attribute.data.num_dims
    return [each.eval(operands[:count], operands[count:]) for each in attribute.data.results]


def run_block(block: Block, values: Values) -> list[Any]:
    """Run the operations of a block; the operands of its end."""
    for op in block.ops:
        run_op(op, values)
    assert block.last_op is not None
    return [values[operand] for operand in block.last_op.operands]


def run_loop(
    numbers: Sequence[range], block: Block, carried: list[Any], values: Values
) -> list[Any]:
    """Run a nest of loops in the order of the text; what the last turn yields."""
    for turn in np.ndindex(*(len(each) for each in numbers)):
        own: list[Any] = [each[int(k)] for each, k in zip(numbers, turn)]
        values.update(zip(block.args, [*own, *carried]))
        carried = run_block(block, values)
    return carried


def run_op(op: Operation, values: Values) -> None:
    """Run one operation."""
    given = [values[operand] for operand in op.operands]
    match op:
        case scf.YieldOp() | scf.ReduceOp() | affine.YieldOp() | func.ReturnOp():
            return
        case arith.ConstantOp():
            results = [constant(op)]
        case memref.LoadOp():
            results = [given[0][tuple(given[1:])]]
        case memref.StoreOp():
            given[1][tuple(given[2:])] = given[0]
            results = []
        case affine.LoadOp():
            results = [given[0][tuple(mapped(op.map, given[1:]))]]
        case affine.StoreOp():
            given[1][tuple(mapped(op.map, given[2:]))] = given[0]
            results = []
        case arith.SelectOp():
            results = [given[1] if given[0] else given[2]]
        case arith.IndexCastOp():
            results = given
        case arith.SIToFPOp():
            results = [np.float64(given[0])]
        case scf.ForOp():
            low, high, step, *carried = given
            results = run_loop([range(low, high, step)], op.body.block, carried, values)
        case scf.ParallelOp():
            count = len(op.lowerBound)
            bounds = zip(given[:count], given[count : 2 * count], given[2 * count : 3 * count])
            results = run_loop([range(*each) for each in bounds], op.body.block, [], values)
        case affine.ForOp():
            before = len(op.lowerBoundOperands)
            both = before + len(op.upperBoundOperands)
            (low,) = mapped(op.lowerBoundMap, given[:before])
            (high,) = mapped(op.upperBoundMap, given[before:both])
            numbers = range(low, high, op.step.value.data)
            results = run_loop([numbers], op.body.block, given[both:], values)
        case scf.IfOp():
            region = op.true_region if given[0] else op.false_region
            results = run_block(region.block, values) if region.blocks else []
        case _:
            results = [BINARY[type(op)](*given)]
    values.update(zip(op.results, results))


def run_nests(module: ModuleOp, arguments: Sequence[Any]) -> None:
    """Run the module's only function on arrays and numbers, in place."""
    (function,) = [op for op in module.ops if isinstance(op, func.FuncOp)]
    run_block(function.body.block, dict(zip(function.body.block.args, arguments)))
