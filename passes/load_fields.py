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
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from timetile.dialects.syntax import field_type
from timetile.passes.rewriting import replace_with


def temp_type(field: SSAValue) -> TempType[Attribute]:
    """The type of a field's values, bounds unknown."""
    kind = field_type(field)
    return TempType(IntAttr(kind.get_num_dims()), kind.element_type)


def with_values(apply: stencil.ApplyOp) -> None:
    """Rewrite one apply; see the module's documentation."""
    before: list[Operation] = []
    operands: list[SSAValue] = []
    for operand in apply.args:
        if isinstance(operand.type, FieldType):
            load = stencil.LoadOp.build(operands=[operand], result_types=[temp_type(operand)])
            load.location = apply.location
            before.append(load)
            operand = load.res
        operands.append(operand)
    bounds = apply.bounds
    targets = list(apply.dest)
    kinds = [temp_type(t) for t in targets] or [r.type for r in apply.res]
    region = apply.detach_region(apply.region)
    for argument, operand in zip(region.block.args, operands):
        if argument.type != operand.type:
            Rewriter.replace_value_with_new_type(argument, operand.type)
    made = stencil.ApplyOp(operands, region, kinds)
    made.location = apply.location
    after: list[Operation] = []
    for target, result in zip(targets, made.res):
        assert bounds is not None
        store = stencil.StoreOp(result, target, bounds)
        store.location = apply.location
        after.append(store)
    replace_with(apply, [*before, made, *after], made.res)


class LoadFieldsPass(ModulePass):
    """Applies read and make values; see the module's documentation."""

    name = "load-fields"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, stencil.ApplyOp) and (
                inner.dest or any(isinstance(a.type, FieldType) for a in inner.args)
            ):
                with_values(inner)
