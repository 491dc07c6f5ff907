"""
widen-booleans: fields of `i1` become fields of `i8`, with a byte for each cell.

Before:
```
%m = stencil.load %M : !stencil.field<[0,8]xi1> -> !stencil.temp<?xi1>
%v = stencil.apply(%x = %m : !stencil.temp<?xi1>) -> (!stencil.temp<?xi1>) {
  %b = stencil.access %x[-1] : !stencil.temp<?xi1>
  stencil.return %b : i1
}
```
After:
```
%m = stencil.load %M : !stencil.field<[0,8]xi8> -> !stencil.temp<?xi8>
%v = stencil.apply(%x = %m : !stencil.temp<?xi8>) -> (!stencil.temp<?xi8>) {
  %c0 = arith.constant 0 : i8
  %r = stencil.access %x[-1] : !stencil.temp<?xi8>
  %b = arith.cmpi ne, %r, %c0 : i8
  %w = arith.extui %b : i1 to i8
  stencil.return %w : i8
}
```
1. Every field and every value of a field's cells takes the type of bytes.
2. A read cell is true unless 0; a returned truth value is 0 or 1, like a `bool` of NumPy and of C.
"""

from __future__ import annotations

from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1, i8
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.passes.patterns import rewrite_once


def in_bytes(kind: Attribute) -> Attribute | None:
    """The type of bytes for a type of truth values in cells; None for another type."""
    if isinstance(kind, stencil.ResultType):
        return stencil.ResultType(i8) if kind.elem == i1 else None
    if not isinstance(kind, stencil.FieldType | stencil.TempType):
        return None
    # `isa` would make a constraint of the parameters for every value of a program.
    cells = cast("stencil.FieldType[Attribute] | stencil.TempType[Attribute]", kind)
    return type(cells)(cells.bounds, i8) if cells.element_type == i1 else None


def read_as_truth(cell: SSAValue) -> None:
    """Give a read cell the type of bytes, and its users the truth value."""
    byte = Rewriter.replace_value_with_new_type(cell, i8)
    users = list(byte.uses)
    zero = arith.ConstantOp(IntegerAttr(0, i8))
    truth = arith.CmpiOp(byte, zero, "ne")
    owner = byte.owner
    assert isinstance(owner, Operation)
    Rewriter.insert_op([zero, truth], InsertPoint.after(owner))
    for use in users:
        use.operation.operands[use.index] = truth.result


class ReadBytes(RewritePattern):
    """A read truth value is a byte other than 0."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: stencil.AccessOp | stencil.DynAccessOp, rewriter: PatternRewriter, /
    ) -> None:
        if op.res.type == i1:
            read_as_truth(op.res)


class ReturnBytes(RewritePattern):
    """A returned truth value is a byte, 0 or 1."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: stencil.ReturnOp | stencil.StoreResultOp, rewriter: PatternRewriter, /
    ) -> None:
        for k, value in enumerate(op.operands):
            if value.type == i1:
                wide = rewriter.insert(arith.ExtUIOp(value, i8))
                op.operands[k] = wide.result


PATTERNS: dict[type[Operation], RewritePattern] = {
    stencil.AccessOp: ReadBytes(),
    stencil.DynAccessOp: ReadBytes(),
    stencil.ReturnOp: ReturnBytes(),
    stencil.StoreResultOp: ReturnBytes(),
}


def values_of(op: Operation) -> list[SSAValue]:
    """The results of an operation, and the arguments of the blocks inside."""
    blocks = [block for region in op.regions for block in region.blocks]
    return [*op.results, *(argument for block in blocks for argument in block.args)]


class WidenBooleansPass(ModulePass):
    """Truth values of cells become bytes; see the module's documentation."""

    name = "widen-booleans"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = list(op.walk())
        values = [value for each in ops for value in values_of(each)]
        # Values of a program share few types.
        kinds = {id(value.type): value.type for value in values}
        wide = {number: in_bytes(kind) for number, kind in kinds.items()}
        found = [(value, wide[id(value.type)]) for value in values]
        wider = [(value, kind) for value, kind in found if kind is not None]
        if not wider:
            return
        for value, kind in wider:
            Rewriter.replace_value_with_new_type(value, kind)
        rewrite_once(ops, PATTERNS)
        for function in [each for each in ops if isinstance(each, FuncOp)]:
            if not function.is_declaration:
                function.update_function_type()
