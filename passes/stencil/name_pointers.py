"""
name-pointers: a pointer made of a number becomes the memory behind the number.

Before:
```
func.func @heat(%A: i64, %n: index) {
  %p = llvm.inttoptr %A : i64 to !llvm.ptr
  %a = builtin.unrealized_conversion_cast %p : !llvm.ptr to memref<8xf64>
  %x = memref.extract_aligned_pointer_as_index %a : memref<8xf64> -> index
  %i = arith.index_cast %x : index to i64
  %q = llvm.inttoptr %i : i64 to !llvm.ptr
```
After:
```
func.func @heat(%A: !llvm.ptr, %n: index) {
  %a = builtin.unrealized_conversion_cast %A : !llvm.ptr to memref<8xf64>
  %q = builtin.unrealized_conversion_cast %a : memref<8xf64> to !llvm.ptr
```
1. An argument that is only made a pointer is a pointer: the caller passes an array.
2. The address of a memref without a layout, or of a pointer (`llvm.ptrtoint`), is the memory of the
   memref or the pointer.

Pointers made of other numbers stay unchanged, and are refused as work for the host.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, llvm, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, NoneAttr, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from timetile.passes.raising.memory import erase_dead

CASTS = (arith.IndexCastOp, arith.ExtUIOp)
"""Casts that keep an address."""


def before_casts(number: SSAValue) -> SSAValue:
    """An address before its casts."""
    while isinstance(number.owner, CASTS):
        number = number.owner.operands[0]
    return number


def memory_at(number: SSAValue) -> SSAValue | None:
    """The memref or pointer whose address a number is; None for another number."""
    owner = number.owner
    if isinstance(owner, llvm.PtrToIntOp):
        return owner.input
    if isinstance(owner, memref.ExtractAlignedPointerAsIndexOp):
        kind = owner.source.type
        has_layout = not isa(kind, MemRefType[Attribute]) or not isinstance(kind.layout, NoneAttr)
        return None if has_layout else owner.source
    return None


def pointers_of(number: SSAValue) -> list[llvm.IntToPtrOp] | None:
    """The pointers made of a number, casts included; None for a number with other uses."""
    found: list[llvm.IntToPtrOp] = []
    for use in number.uses:
        op = use.operation
        further = pointers_of(op.results[0]) if isinstance(op, CASTS) else None
        if isinstance(op, llvm.IntToPtrOp):
            found.append(op)
        elif further is None:
            return None
        else:
            found += further
    return found


def replace_pointer(op: llvm.IntToPtrOp, memory: SSAValue) -> None:
    """Let the users of a pointer have the memory's own name."""
    number = op.input
    if memory.type != op.output.type:
        cast, memory = UnrealizedConversionCastOp.cast_one(memory, op.output.type)
        memory.name_hint = op.output.name_hint
        Rewriter.insert_op(cast, InsertPoint.before(op))
    Rewriter.replace_op(op, [], [memory])
    erase_dead([number])


def name_arguments(function: FuncOp) -> None:
    """Make pointers of the function's arguments that are only made pointers."""
    block = function.body.blocks[0]
    for argument in list(block.args):
        pointers = pointers_of(argument)
        if pointers:
            kind = pointers[0].output.type
            made = block.insert_arg(kind, argument.index)
            made.name_hint = argument.name_hint
            for op in pointers:
                replace_pointer(op, made)
            block.erase_arg(argument)
    function.update_function_type()


class NamePointersPass(ModulePass):
    """Pointers made of numbers become memory; see the module's documentation."""

    name = "name-pointers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pointers = [inner for inner in op.walk() if isinstance(inner, llvm.IntToPtrOp)]
        for pointer in pointers:
            memory = memory_at(before_casts(pointer.input))
            if memory is not None:
                replace_pointer(pointer, memory)
        for function in [each for each in op.ops if isinstance(each, FuncOp)]:
            if pointers and not function.is_declaration:
                name_arguments(function)
