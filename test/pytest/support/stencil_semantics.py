"""
The stencil dialect by its definition, with NumPy, a step at a time: without code of timetile.

A load is a snapshot of a field. An apply and a combine are functions of a box, evaluated when a
store needs the cells. Arithmetic is NumPy's, an operation at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, llvm, math, memref, scf, stencil
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, UnrealizedConversionCastOp, f32
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

Array = NDArray[Any]
Box = tuple[tuple[int, int], ...]
Cells = Callable[[Box], Array]
"""The cells of a value over a box."""


def float_to_integer(base: Any, power: Any) -> Any:
    """Floats to the power of integers; the integers become floats first."""
    return np.asarray(base) ** np.float64(power)


ARITHMETIC: dict[type[Operation], Callable[..., Any]] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.NegfOp: np.negative,
    math.FloorOp: np.floor,
    math.SqrtOp: np.sqrt,
    math.FPowIOp: float_to_integer,
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.RemUIOp: np.remainder,
    arith.SelectOp: np.where,
    arith.SIToFPOp: np.float64,
    arith.FPToSIOp: np.int64,
    arith.ExtFOp: np.float64,
    arith.IndexCastOp: np.int64,
}
COMPARED: dict[int, Callable[..., Any]] = {0: np.equal, 1: np.not_equal, 2: np.less, 4: np.greater}
FLOATS_COMPARED: dict[int, Callable[..., Any]] = {1: np.equal, 2: np.greater, 4: np.less}


def of_field(array: Array, origin: Sequence[int]) -> Cells:
    """A snapshot of a field, whose first cell has the coordinates `origin`."""
    kept = array.copy()

    def cells(box: Box) -> Array:
        for (low, high), start, size in zip(box, origin, kept.shape):
            assert start <= low <= high <= start + size, "the program reads outside a field"
        return kept[tuple(slice(a - o, b - o) for (a, b), o in zip(box, origin))]

    return cells


def moved(box: Box, offset: Sequence[int]) -> Box:
    return tuple((low + d, high + d) for (low, high), d in zip(box, offset))


def of_apply(op: stencil.ApplyOp, operands: Sequence[Any], result: int) -> Cells:
    """The cells of a result of an apply."""

    def cells(box: Box) -> Array:
        known: dict[SSAValue, Any] = dict(zip(op.region.block.args, operands))
        shape = tuple(high - low for low, high in box)
        end = op.region.block.last_op
        assert isinstance(end, stencil.ReturnOp)
        if end.unroll is not None:
            return unrolled(op, operands, result, tuple(end.unroll), box)
        values = in_block(op.region.block, known, box)
        return np.broadcast_to(np.asarray(values[result]), shape)

    return cells


def unrolled(
    op: stencil.ApplyOp, operands: Sequence[Any], result: int, factors: tuple[int, ...], box: Box
) -> Array:
    """
    Cells of an apply with several cells at once. The factors divide the coordinates of the first
    cell; each cell comes from the block at the first cell of its group.
    """
    block, whole = op.region.block, np.zeros(tuple(high - low for low, high in box))
    places = list(product(*map(range, factors)))
    for number, place in enumerate(places):
        known: dict[SSAValue, Any] = dict(zip(block.args, operands))
        first = moved(box, [-d for d in place])
        value = in_block(block, known, first)[result * len(places) + number]
        axes = [np.arange(low, high) % n == d for (low, high), n, d in zip(box, factors, place)]
        here = reduce(np.logical_and, np.meshgrid(*axes, indexing="ij"))
        whole = np.where(here, np.broadcast_to(value, whole.shape), whole)
    return whole


def in_block(block: Block, known: dict[SSAValue, Any], box: Box) -> list[Any]:
    """The values yielded over a box by a block of an apply, or by a branch in the block."""
    for op in block.ops:
        match op:
            case stencil.AccessOp():
                axes = tuple(op.offset_mapping or range(len(op.offset)))
                narrow = tuple(box[axis] for axis in axes)
                read = known[op.temp](moved(narrow, tuple(op.offset)))
                shape = [1] * len(box)
                for axis, n in zip(axes, read.shape):
                    shape[axis] = n
                known[op.res] = read.reshape(shape)
            case stencil.IndexOp():
                axis = op.dim.value.data
                low, high = moved(box, tuple(op.offset))[axis]
                shape = [1] * len(box)
                shape[axis] = high - low
                known[op.idx] = np.arange(low, high).reshape(shape)
            case stencil.DynAccessOp():
                places = np.broadcast_arrays(*(known[index] for index in op.offset))
                around = tuple((int(p.min()), int(p.max()) + 1) for p in places)
                read = known[op.temp](around)
                known[op.res] = read[tuple(p - low for p, (low, _) in zip(places, around))]
            case stencil.StoreResultOp():
                assert op.arg is not None, "an apply stores a value"
                known[op.res] = known[op.arg]
            case CallOp():
                called = function_of(op)
                given = (known[v] for v in op.arguments)
                inner: dict[SSAValue, Any] = dict(zip(called.body.block.args, given))
                known.update(zip(op.res, in_block(called.body.block, inner, box)))
            case arith.ConstantOp():
                known[op.result] = constant(op)
            case arith.CmpiOp():
                compare = COMPARED[op.predicate.value.data]
                known[op.result] = compare(known[op.lhs], known[op.rhs])
            case arith.CmpfOp():
                compare = FLOATS_COMPARED[op.predicate.value.data]
                known[op.result] = compare(known[op.lhs], known[op.rhs])
            case scf.IfOp():
                taken = in_block(op.true_region.block, known, box)
                other = in_block(op.false_region.block, known, box)
                for value, a, b in zip(op.results, taken, other):
                    known[value] = np.where(known[op.cond], a, b)
            case stencil.ReturnOp() | scf.YieldOp() | ReturnOp():
                return [known[value] for value in op.operands]
            case _:
                meaning = ARITHMETIC[type(op)]
                known[op.results[0]] = rounded(op, meaning(*(known[v] for v in op.operands)))
    raise AssertionError("a block of a cell ends with what it yields")


def function_of(op: CallOp) -> FuncOp:
    """The called function of the module."""
    found = SymbolTable.lookup_symbol(op, op.callee)
    assert isinstance(found, FuncOp)
    return found


def constant(op: arith.ConstantOp) -> Any:
    value = op.value
    assert isinstance(value, FloatAttr | IntegerAttr)
    return rounded(op, value.value.data)


def rounded(op: Operation, value: Any) -> Any:
    """A float of an operation as a number of its own type."""
    return np.float32(value) if op.results[0].type == f32 else value


def bounds_of(field: SSAValue) -> stencil.StencilBoundsAttr:
    """The bounds in the type of a field."""
    kind = field.type
    assert isinstance(kind, stencil.FieldType)
    assert isinstance(kind.bounds, stencil.StencilBoundsAttr)
    return kind.bounds


def box_of(bounds: stencil.StencilBoundsAttr) -> Box:
    return tuple(zip(tuple(bounds.lb), tuple(bounds.ub)))


def origin_of(field: SSAValue) -> tuple[int, ...]:
    """The coordinates of the first cell of a field."""
    return tuple(bounds_of(field).lb)


def of_combine(op: stencil.CombineOp, lower: Cells, upper: Cells) -> Cells:
    axis, index = op.dim.value.data, op.index.value.data

    def cells(box: Box) -> Array:
        low, high = box[axis]
        parts: list[Array] = []
        if low < index:
            parts.append(lower((*box[:axis], (low, min(high, index)), *box[axis + 1 :])))
        if high > index:
            parts.append(upper((*box[:axis], (max(low, index), high), *box[axis + 1 :])))
        return np.concatenate(parts, axis)

    return cells


def run(function: FuncOp, arguments: Sequence[Any]) -> None:
    """Run a function on arrays, in place."""
    known: dict[SSAValue, Any] = dict(zip(function.body.block.args, arguments))
    on_host(function.body.block, known)


def own_memory(op: Operation, known: dict[SSAValue, Any]) -> bool:
    """Run an operation that makes, copies or frees memory; False for other operations."""
    match op:
        case memref.AllocOp():
            known[op.memref] = np.zeros(op.memref.type.get_shape())
        case stencil.AllocOp():
            box = box_of(bounds_of(op.field))
            known[op.field] = np.zeros([high - low for low, high in box])
        case memref.CopyOp():
            known[op.destination][...] = known[op.source]
        case memref.DeallocOp():
            return True
        case _:
            return False
    return True


def of_stencil(op: Operation, known: dict[SSAValue, Any]) -> bool:
    """Run an operation of the stencil dialect in a host block; False for other operations."""
    match op:
        case stencil.LoadOp():
            known[op.res] = of_field(known[op.field], origin_of(op.field))
        case stencil.ApplyOp() if op.res:
            operands = [known[v] for v in op.args]
            for k, value in enumerate(op.res):
                known[value] = of_apply(op, operands, k)
        case stencil.ApplyOp():
            run_on_fields(op, known)
        case stencil.CombineOp():
            for value, a, b in zip(op.results, op.lower, op.upper):
                known[value] = of_combine(op, known[a], known[b])
            # A value of one side only is asked for on that side only.
            for value, a in zip(op.results[len(op.lower) :], (*op.lowerext, *op.upperext)):
                known[value] = known[a]
        case stencil.BufferOp():
            known[op.res] = known[op.temp]
        case stencil.StoreOp():
            store(op.field, known[op.field], op.bounds, known[op.temp])
        case stencil.CastOp() | stencil.ExternalLoadOp():
            known[op.results[0]] = known[op.operands[0]]
        case stencil.ExternalStoreOp():
            assert known[op.temp] is known[op.field], "a field is stored where it was loaded from"
        case _:
            return False
    return True


def on_host(block: Block, known: dict[SSAValue, Any]) -> list[Any]:
    """Run the operations of a host block, and return the yielded values."""
    for op in block.ops:
        match op:
            case _ if own_memory(op, known) or of_stencil(op, known):
                continue
            case UnrealizedConversionCastOp():
                known[op.results[0]] = known[op.operands[0]]
            case llvm.UndefOp():
                known[op.res] = None
            case llvm.InsertValueOp():
                known[op.res] = known[op.value]
            case CallOp() | llvm.StoreOp():
                # A timer; no cell depends on the time.
                known.update((value, 0.0) for value in op.results)
            case memref.LoadOp():
                known[op.res] = known[op.memref][tuple(known[i] for i in op.indices)]
            case memref.StoreOp():
                known[op.memref][tuple(known[i] for i in op.indices)] = known[op.value]
            case arith.ConstantOp():
                known[op.result] = constant(op)
            case arith.CmpiOp():
                compare = COMPARED[op.predicate.value.data]
                known[op.result] = compare(known[op.lhs], known[op.rhs])
            case scf.ForOp():
                carried = [known[v] for v in op.iter_args]
                for count in range(known[op.lb], known[op.ub], known[op.step]):
                    known.update(zip(op.body.block.args, [count, *carried]))
                    carried = on_host(op.body.block, known)
                known.update(zip(op.results, carried))
            case scf.IfOp():
                region = op.true_region if known[op.cond] else op.false_region
                if region.blocks:
                    known.update(zip(op.results, on_host(region.block, known)))
            case arith.SelectOp():
                known[op.result] = known[op.lhs] if known[op.cond] else known[op.rhs]
            case ReturnOp() | scf.YieldOp():
                return [known[value] for value in op.operands]
            case _:
                found = ARITHMETIC[type(op)](*(known[v] for v in op.operands))
                known[op.results[0]] = rounded(op, found)
    return []


def store(field: SSAValue, array: Array, bounds: stencil.StencilBoundsAttr, cells: Cells) -> None:
    """Write the cells of a box into the array of a field."""
    box, origin = box_of(bounds), origin_of(field)
    array[tuple(slice(a - o, b - o) for (a, b), o in zip(box, origin))] = cells(box)


def run_on_fields(op: stencil.ApplyOp, known: dict[SSAValue, Any]) -> None:
    """An apply that writes fields: all cells are read before any write."""
    operands = [
        of_field(known[v], origin_of(v)) if isinstance(v.type, stencil.FieldType) else known[v]
        for v in op.args
    ]
    assert op.bounds is not None
    for k, target in enumerate(op.dest):
        store(target, known[target], op.bounds, of_apply(op, operands, k))
