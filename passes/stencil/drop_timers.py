"""drop-timers: calls that measure time are removed, with operations needed for such calls only.

Before:
```
%t0 = func.call @timer_start() : () -> f64
...
%t1 = func.call @timer_end(%t0) : (f64) -> f64
"llvm.store"(%t1, %timers) : (f64, !llvm.ptr) -> ()
```
After: none of these operations.

1. A timer is a function without a body that takes and returns numbers alone: no timer can touch a
   field.
2. A store through a pointer is removed if the pointer is an argument of the function used by such
   stores only, and the value comes from timers.
3. A call of a timer is removed if no result is used.

The pointer stays an argument of the function, without a reader.
The pass is a walk and no rewrite pattern: a store is removed only if all stores through its pointer
are, and all are found before the first is removed.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import llvm, memref
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolTable

from timetile.passes.raising.memory import is_pure, memory_of


def is_number(kind: Attribute) -> bool:
    """Values of the type are numbers, not memory."""
    return isinstance(kind, IntegerType | IndexType) or kind in FLOATS


FLOATS = tuple(FloatAttr(0.0, width).type for width in (16, 32, 64))


def is_timer(call: CallOp) -> bool:
    """The callee has no body, and nothing but numbers goes in or out."""
    callee = SymbolTable.lookup_symbol(call, call.callee)
    declared = not isinstance(callee, FuncOp) or callee.is_declaration
    return declared and all(is_number(v.type) for v in (*call.arguments, *call.res))


def comes_from_timer(value: SSAValue) -> bool:
    """The value is a timer's, or computed from timers' and constants."""
    owner = value.owner
    if isinstance(owner, CallOp):
        return is_timer(owner)
    return (
        isinstance(owner, Operation)
        and is_pure(owner)
        and bool(owner.operands)
        and any(comes_from_timer(operand) for operand in owner.operands)
    )


def written_pointer(op: Operation) -> SSAValue | None:
    """The memory written by a store of a number."""
    if isinstance(op, llvm.StoreOp):
        return op.ptr
    return op.memref if isinstance(op, memref.StoreOp) else None


def is_only_written(pointer: SSAValue) -> bool:
    """Whether the pointer is an argument used by stores of timers only."""
    if not isinstance(pointer, BlockArgument) or not isinstance(pointer.owner.parent_op(), FuncOp):
        return False
    for use in pointer.uses:
        op = use.operation
        if isinstance(op, llvm.GEPOp):
            if not all(stores_timer(inner.operation, op.result) for inner in op.result.uses):
                return False
        elif not stores_timer(op, pointer):
            return False
    return True


def stores_timer(op: Operation, pointer: SSAValue) -> bool:
    """Whether the operation stores a timer's result to the pointer."""
    if written_pointer(op) is not pointer:
        return False
    value = op.operands[0]
    return comes_from_timer(value)


def root_of(pointer: SSAValue) -> SSAValue:
    """The pointer from which an address was computed."""
    while isinstance(pointer.owner, llvm.GEPOp):
        pointer = pointer.owner.ptr
    return memory_of(pointer)


class DropTimersPass(ModulePass):
    """Leave out timers; see the module's documentation."""

    name = "drop-timers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        stores = [
            inner
            for inner in op.walk()
            if (pointer := written_pointer(inner)) is not None
            and is_only_written(root_of(pointer))
            and comes_from_timer(inner.operands[0])
        ]
        for store in stores:
            Rewriter.erase_op(store)
        for inner in reversed(list(op.walk())):
            unused = inner.results and all(r.first_use is None for r in inner.results)
            if unused and is_left_over(inner):
                Rewriter.erase_op(inner)


def is_left_over(op: Operation) -> bool:
    """
    Whether the operation is a timer, computes with timers' results, or computes an address for
    storing results.
    """
    if isinstance(op, CallOp):
        return is_timer(op)
    return isinstance(op, llvm.GEPOp) or comes_from_timer(op.results[0])
