"""Modules in the structure of older dialects, rewritten to the structure of today's.

Before (xDSL of 2023 and 2024):
```
%v = stencil.apply(%x = %u : !temp) -> (!temp) {
  %c = stencil.access %x[0] : !temp
  %s = arith.mulf %c, %now : f64
  %h = arith.mulf %s, %half : f64
  stencil.return %h : f64
}
scf.parallel (%p) = (%zero) to (%n) step (%one) {
  scf.yield
}
```
After:
```
%v = stencil.apply(%x = %u : !temp, %w = %now : f64) -> (!temp) {
  %c = stencil.access %x[0] : !temp
  %s = arith.mulf %c, %w : f64
  %half = arith.constant 5.000000e-01 : f64
  %h = arith.mulf %s, %half : f64
  stencil.return %h : f64
}
scf.parallel (%p) = (%zero) to (%n) step (%one) {
  scf.reduce
}
```
1. A cell function that reads a constant from outside gets a constant of its own.
2. A cell function that reads another value from outside gets an operand and an argument.
3. A parallel loop without results ends with `scf.reduce`.
"""

from __future__ import annotations

from xdsl.dialects import scf, stencil
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region, SSAValue

from timetile.passes.rewriting import replace_with


def values_from_outside(region: Region) -> list[SSAValue]:
    """The values read inside a region and defined outside, each once, in the order of reading."""
    return list(
        dict.fromkeys(
            operand
            for op in region.walk()
            for operand in op.operands
            if not region.is_ancestor(operand.owner)
        )
    )


def replace_inside(region: Region, value: SSAValue, new: SSAValue) -> None:
    """Let all operations inside a region read another value."""
    value.replace_uses_with_if(new, lambda use: region.is_ancestor(use.operation))


def isolate(apply: stencil.ApplyOp) -> None:
    """Give an apply an operand, or a constant of its own, for every value from outside."""
    outside = values_from_outside(apply.region)
    if not outside:
        return
    block = apply.region.block
    passed: list[SSAValue] = []
    for value in outside:
        if isinstance(value.owner, ConstantOp):
            own = value.owner.clone()
            own.location = value.owner.location
            block.insert_ops_before([own], next(iter(block.ops)))
            inside: SSAValue = own.result
        else:
            inside = block.insert_arg(value.type, len(block.args))
            passed.append(value)
        inside.name_hint = value.name_hint
        replace_inside(apply.region, value, inside)
    made = stencil.ApplyOp.build(
        operands=[[*apply.args, *passed], list(apply.dest)],
        result_types=[[result.type for result in apply.res]],
        properties=apply.properties,
        attributes=apply.attributes,
        regions=[apply.detach_region(apply.region)],
    )
    put_in_place(apply, made)


def end_with_reduce(loop: scf.ParallelOp) -> None:
    """Let a parallel loop without results end with `scf.reduce`."""
    end = loop.body.block.last_op
    if isinstance(end, scf.YieldOp) and not end.operands:
        put_in_place(end, scf.ReduceOp())


def put_in_place(old: Operation, new: Operation) -> None:
    """Put an operation in another's place: results, names and location."""
    new.location = old.location
    replace_with(old, [new])


def modern_structure(module: ModuleOp) -> None:
    """Rewrite a parsed module, not yet verified, to the structure of today's dialects."""
    for op in list(module.walk()):
        match op:
            case stencil.ApplyOp():
                isolate(op)
            case scf.ParallelOp():
                end_with_reduce(op)
            case _:
                pass
