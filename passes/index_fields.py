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
1. The types of fields, of their values and of memrefs get cells of i64, arguments of functions
   included: an index is as wide as a pointer, and callers pass NumPy's `int64`.
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
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

INDEX = IndexType()


def cell_of(kind: Attribute) -> Attribute | None:
    """The type of a cell of a field, of its values, of a memref, or of an apply's result."""
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


def cast_reads(op: stencil.AccessOp | stencil.DynAccessOp | memref.LoadOp) -> None:
    """Let an access read i64, cast to index for its users."""
    if op.results[0].type != INDEX:
        return
    old = op.results[0]
    made = Rewriter.replace_value_with_new_type(old, i64)
    use = arith.IndexCastOp(made, INDEX)
    made.replace_all_uses_with(use.result)
    use.operands[0] = made
    Rewriter.insert_op(use, InsertPoint.after(op))


def cast_written(op: stencil.ReturnOp | stencil.StoreResultOp | memref.StoreOp) -> None:
    """Cast values written to a cell to i64."""
    values = [op.value] if isinstance(op, memref.StoreOp) else list(op.operands)
    for number, value in enumerate(values):
        if value.type == INDEX:
            stored = arith.IndexCastOp(value, i64)
            Rewriter.insert_op(stored, InsertPoint.before(op))
            op.operands[number] = stored.result


def retype(value: SSAValue) -> None:
    """Give a value its widened type."""
    kind = widened(value.type)
    if kind != value.type:
        Rewriter.replace_value_with_new_type(value, kind)


class IndexFieldsPass(ModulePass):
    """Fields of integers of a width; see the module's documentation."""

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
        for inner in list(op.walk()):
            match inner:
                case stencil.AccessOp() | stencil.DynAccessOp():
                    if cell_of(inner.temp.type) == i64:
                        cast_reads(inner)
                case memref.LoadOp():
                    if cell_of(inner.memref.type) == i64:
                        cast_reads(inner)
                case memref.StoreOp():
                    if cell_of(inner.memref.type) == i64:
                        cast_written(inner)
                case stencil.ReturnOp() | stencil.StoreResultOp():
                    cast_written(inner)
                case _:
                    continue
