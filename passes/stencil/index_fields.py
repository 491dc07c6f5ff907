"""index-fields: fields with cells of type index hold i64.

Before:
```
func.func @f(%A: !stencil.field<[0,8]xindex>) {
  %v = stencil.apply() -> (!stencil.temp<?xindex>) { ... stencil.return %i : index }
```
After:
```
func.func @f(%A: !stencil.field<[0,8]xi64>) {
  %v = stencil.apply() -> (!stencil.temp<?xi64>) { ... %j = arith.index_cast %i : index to i64
    stencil.return %j : i64 }
```
1. Fields, their values and memrefs get cells of i64, function arguments included: an index is as
   wide as a pointer, and callers pass NumPy's `int64`.
2. Values read by an apply are cast to index, and returned values to i64.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, memref, stencil
from xdsl.dialects.builtin import FunctionType, IndexType, MemRefType, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import FieldType, ResultType, TempType
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from timetile.passes.patterns import Patterns, rewrite_once

INDEX = IndexType()


def cell_of(kind: Attribute) -> Attribute | None:
    """The cell type of a field, a loaded value, a memref, or an apply's result."""
    return kind.elem if isinstance(kind, ResultType) else getattr(kind, "element_type", None)


def widened(kind: Attribute) -> Attribute:
    """The type with cells of i64 in place of index."""
    if cell_of(kind) != INDEX:
        return kind
    if isa(kind, FieldType[Attribute]):
        return FieldType(kind.bounds, i64)
    if isa(kind, TempType[Attribute]):
        return TempType(kind.bounds, i64)
    if isa(kind, MemRefType[Attribute]):
        return MemRefType(i64, kind.shape, kind.layout, kind.memory_space)
    if isinstance(kind, ResultType):
        return ResultType(i64)
    return kind


class CastRead(RewritePattern):
    """An access to a field of i64 is cast to index for its users."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: stencil.AccessOp | stencil.DynAccessOp | memref.LoadOp,
        rewriter: PatternRewriter,
        /,
    ) -> None:
        source = op.memref if isinstance(op, memref.LoadOp) else op.temp
        if cell_of(source.type) != i64 or op.results[0].type != INDEX:
            return
        made = rewriter.replace_value_with_new_type(op.results[0], i64)
        use = arith.IndexCastOp(made, INDEX)
        rewriter.replace_all_uses_with(made, use.result)
        use.operands[0] = made
        rewriter.insert(use, InsertPoint.after(op))


class CastWritten(RewritePattern):
    """Values written to a cell are cast to i64."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: stencil.ReturnOp | stencil.StoreResultOp | memref.StoreOp,
        rewriter: PatternRewriter,
        /,
    ) -> None:
        values = list(op.operands)
        if isinstance(op, memref.StoreOp):
            values = [op.value] if cell_of(op.memref.type) == i64 else []
        for number, value in enumerate(values):
            if value.type == INDEX:
                op.operands[number] = rewriter.insert(arith.IndexCastOp(value, i64)).result
                rewriter.notify_op_modified(op)


CASTS: Patterns = {
    stencil.AccessOp: CastRead(),
    stencil.DynAccessOp: CastRead(),
    memref.LoadOp: CastRead(),
    stencil.ReturnOp: CastWritten(),
    stencil.StoreResultOp: CastWritten(),
    memref.StoreOp: CastWritten(),
}


def retype(value: SSAValue) -> None:
    """Give a value its widened type."""
    kind = widened(value.type)
    if kind != value.type:
        Rewriter.replace_value_with_new_type(value, kind)


class IndexFieldsPass(ModulePass):
    """Fields of `index` become fields of i64; see the module's documentation."""

    name = "index-fields"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            for region in inner.regions:
                for block in region.blocks:
                    for argument in block.args:
                        retype(argument)
            for result in inner.results:
                retype(result)
            if isinstance(inner, FuncOp):
                kinds = inner.function_type
                inner.function_type = FunctionType.from_lists(
                    [widened(kind) for kind in kinds.inputs],
                    [widened(kind) for kind in kinds.outputs],
                )
        rewrite_once(list(op.walk()), CASTS)
