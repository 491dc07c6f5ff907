"""
carry-fields: a loop carries fields in place of the memrefs of fields.

Before:
```
%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!memref, !memref) {
  %x = stencil.external_load %a : !memref -> !field
  %y = stencil.external_load %b : !memref -> !field
  ...
  scf.yield %b, %a : !memref, !memref
}
```
After:
```
%fa = builtin.unrealized_conversion_cast %A : !memref to !field
%fb = builtin.unrealized_conversion_cast %B : !memref to !field
%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%x = %fa, %y = %fb) -> (!field, !field) {
  ...
  scf.yield %y, %x : !field, !field
}
```
1. In the loop a carried memref is cast to fields and yielded, nothing else. Equal types of memrefs
   are cast to equal types of fields.
2. Users of the loop's results get a cast back to the memref.

Other loops stay unchanged: raising names the carried memref.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnrealizedConversionCastOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from timetile.passes.raising.memory import is_alias
from timetile.passes.raising.names import names_of


def uses_in_loop(value: SSAValue, end: Operation | None) -> list[Operation]:
    """
    The casts of a memref in a loop, casts of casts included, and each other reader except the
    loop's end: readers of a name come before the name.
    """
    names = [name for name in names_of(value) if not isinstance(name.type, FieldType)]
    readers = [use.operation for name in names for use in name.uses]
    return [op for op in reversed(readers) if op is not end]


def fields_of(loop: scf.ForOp) -> dict[Attribute, FieldType[Attribute]]:
    """
    For each type of carried memrefs the type of the fields; empty if some reader is no cast to a
    field, or two fields have different types.
    """
    found: dict[Attribute, FieldType[Attribute]] = {}
    carried = [value for value in loop.body.block.args if isinstance(value.type, MemRefType)]
    for value in carried:
        for op in uses_in_loop(value, loop.body.block.last_op):
            kind = op.results[0].type if is_alias(op) else None
            if isinstance(kind, MemRefType):
                continue
            if not isa(kind, FieldType[Attribute]) or found.setdefault(value.type, kind) != kind:
                return {}
    return found if all(value.type in found for value in carried) else {}


def renamed(value: SSAValue, kind: Attribute, where: InsertPoint) -> SSAValue:
    """A further name for a value's memory, with another type."""
    op, made = UnrealizedConversionCastOp.cast_one(value, kind)
    made.name_hint = value.name_hint
    Rewriter.insert_op(op, where)
    return made


def carry_fields(loop: scf.ForOp, kinds: dict[Attribute, FieldType[Attribute]]) -> None:
    """Let a loop carry fields in place of memrefs."""
    end = loop.body.block.last_op
    assert isinstance(end, scf.YieldOp)
    positions = [k for k, value in enumerate(loop.iter_args) if value.type in kinds]
    for k in positions:
        own, old = loop.body.block.args[k + 1], loop.iter_args[k].type
        readers = uses_in_loop(own, end)
        loop.operands[3 + k] = renamed(loop.iter_args[k], kinds[old], InsertPoint.before(loop))
        own = Rewriter.replace_value_with_new_type(own, kinds[old])
        for op in readers:
            Rewriter.replace_op(op, [], [own])
        result = Rewriter.replace_value_with_new_type(loop.results[k], kinds[old])
        users = list(result.uses)
        if users:
            back = renamed(result, old, InsertPoint.after(loop))
            for use in users:
                use.operation.operands[use.index] = back
    for k in positions:
        value = end.arguments[k]
        if not isinstance(value.type, FieldType):
            end.operands[k] = renamed(value, kinds[value.type], InsertPoint.before(end))


class CarryFieldsPass(ModulePass):
    """Loops carry fields in place of memrefs; see the module's documentation."""

    name = "carry-fields"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # A loop inside another is first: its casts of memrefs are then outside.
        for loop in reversed([inner for inner in op.walk() if isinstance(inner, scf.ForOp)]):
            if kinds := fields_of(loop):
                carry_fields(loop, kinds)
