"""load-fields: an apply with output fields becomes loads, an apply with results, and stores.

Before:
```
stencil.apply(%x = %A : !f) outs (%B : !f) { ... } to <[0], [8]>
```
After:
```
%a = stencil.load %A : !f -> !t
%v = stencil.apply(%x = %a : !t) -> (!t) { ... }
stencil.store %v to %B(<[0], [8]>) : !t to !f
```
The pass undoes `stencil-bufferize`: later passes see values alone. A field both read and written
keeps its meaning, as all cells are read before any is written.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import stencil
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.dialects.stencil import FieldType, TempType
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects.syntax import field_type
from timetile.passes.patterns import rewrite_once


def temp_type(field: SSAValue) -> TempType[Attribute]:
    """The type of a field's values, bounds unknown."""
    kind = field_type(field)
    return TempType(IntAttr(kind.get_num_dims()), kind.element_type)


class LoadAndStore(RewritePattern):
    """An apply with fields takes loaded values, and its results are stored."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: stencil.ApplyOp, rewriter: PatternRewriter, /) -> None:
        if not (op.dest or any(isinstance(value.type, FieldType) for value in op.args)):
            return
        operands = [self.loaded(value, op, rewriter) for value in op.args]
        bounds, targets = op.bounds, list(op.dest)
        kinds = [temp_type(t) for t in targets] or [r.type for r in op.res]
        region = op.detach_region(op.region)
        for argument, operand in zip(region.block.args, operands):
            if argument.type != operand.type:
                rewriter.replace_value_with_new_type(argument, operand.type)
        made = rewriter.insert(stencil.ApplyOp(operands, region, kinds))
        made.location = op.location
        if bounds is not None:
            for target, result in zip(targets, made.res):
                store = rewriter.insert(stencil.StoreOp(result, target, bounds))
                store.location = op.location
        rewriter.replace(op, [], made.res[: len(op.res)])

    @staticmethod
    def loaded(value: SSAValue, op: stencil.ApplyOp, rewriter: PatternRewriter) -> SSAValue:
        """The values of a field; other values as they are."""
        if not isinstance(value.type, FieldType):
            return value
        load = stencil.LoadOp.build(operands=[value], result_types=[temp_type(value)])
        load.location = op.location
        return rewriter.insert(load).res


class LoadFieldsPass(ModulePass):
    """Applies read and make values; see the module's documentation."""

    name = "load-fields"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_once(list(op.walk()), {stencil.ApplyOp: LoadAndStore()})
