"""inline-values: a cheap value read by other applies only is computed by its readers.

Before:
```
%d = stencil.apply(%x = %u : !t) -> (!t) { %l = access %x[0]; %r = access %x[1]; return %r - %l }
%v = stencil.apply(%g = %d : !t) -> (!t) { %a = access %g[-1]; %b = access %g[0]; return %b - %a }
```
After:
```
%v = stencil.apply(%x = %u : !t) -> (!t) {
  %a = access %x[0] - access %x[-1]; %b = access %x[1] - access %x[0]; return %b - %a }
```
1. Every reader of the value must be an apply whose accesses have all axes of the value.
2. The value is inlined if that adds at most `MOST_OPERATIONS` operations: the value's operations,
   once for each further offset of an access.
3. Each access becomes the value's operations, with accesses and coordinates moved by the offset.

A value not inlined is held in a scratch field: a store and a load of memory in kernels of one step,
planes in registers in kernels of several. Rounding is equal either way; contraction sees more of
an inlined value. Accesses of a value's own fields may have fewer axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from timetile.dialects.verified import terminator_of
from timetile.passes.patterns import rewrite_once

MOST_OPERATIONS = 16
"""Most operations added for a value: fewer than a load and a store of memory are worth."""

Offset = tuple[int, ...]

FREE = (arith.ConstantOp, stencil.AccessOp, stencil.IndexOp, stencil.ReturnOp)
"""Operations of a cell without time of their own, or shared by equal operations."""


def readers(value: SSAValue) -> list[stencil.ApplyOp] | None:
    """
    The applies of the value's block reading the value; None if another operation uses the value.
    """
    found: dict[stencil.ApplyOp, None] = {}
    owner = value.owner
    for use in value.uses:
        op = use.operation
        if not isinstance(op, stencil.ApplyOp) or not isinstance(owner, Operation):
            return None
        if op.parent is not owner.parent:
            return None
        found[op] = None
    return list(found)


def reads_of(value: SSAValue, reader: stencil.ApplyOp) -> list[stencil.AccessOp] | None:
    """The accesses of a value in a reader; None for other uses, or for accesses with fewer axes."""
    found: list[stencil.AccessOp] = []
    for argument, operand in zip(reader.region.block.args, reader.args):
        if operand is not value:
            continue
        for use in argument.uses:
            op = use.operation
            if not isinstance(op, stencil.AccessOp) or len(op.offset) != reader.get_rank():
                return None
            found.append(op)
    return found


def is_plain(apply: stencil.ApplyOp) -> bool:
    """Whether the apply has one result, of one cell, and operations without regions."""
    end = apply.region.block.last_op
    return (
        len(apply.res) == 1
        and isinstance(end, stencil.ReturnOp)
        and end.unroll is None
        and not any(
            op.regions or isinstance(op, stencil.DynAccessOp) for op in apply.region.block.ops
        )
    )


def added(apply: stencil.ApplyOp, reads: list[stencil.AccessOp]) -> int:
    """The number of operations added by inlining a value."""
    offsets = {(op.parent_block(), tuple(op.offset)) for op in reads}
    cost = sum(not isinstance(op, FREE) for op in apply.region.block.ops)
    return cost * max(len(offsets) - 1, 0)


def inline(
    apply: stencil.ApplyOp,
    reader: stencil.ApplyOp,
    reads: Sequence[stencil.AccessOp],
    rewriter: PatternRewriter,
) -> None:
    """Rewrite a reader, with some accesses of a value, to compute the value itself."""
    kept = [(a, v) for a, v in zip(reader.region.block.args, reader.args) if v is not apply.res[0]]
    region = reader.detach_region(reader.region)
    block = region.block
    known: dict[SSAValue, SSAValue] = {}
    operands = [value for _, value in kept]
    for argument, operand in zip(apply.region.block.args, apply.args):
        if operand in operands:
            place = operands.index(operand)
            known[argument] = kept[place][0] if place < len(kept) else block.args[-1]
            continue
        known[argument] = block.insert_arg(argument.type, len(block.args))
        kept.append((block.args[-1], operand))
        operands.append(operand)
    copies: dict[Offset, SSAValue] = {}
    for read in reads:
        offset = tuple(read.offset)
        if offset not in copies or not is_before(copies[offset], read):
            copies[offset] = copy_of(apply, known, offset, read, rewriter)
        rewriter.replace(read, [], [copies[offset]])
    names = [argument for argument, _ in kept]
    for argument in [a for a in block.args if a not in names]:
        rewriter.erase_block_argument(argument)
    ordered = sorted(kept, key=lambda pair: pair[0].index)
    made = stencil.ApplyOp(
        [operand for _, operand in ordered], region, [result.type for result in reader.res]
    )
    made.location = reader.location
    rewriter.replace(reader, made)


def is_before(value: SSAValue, op: Operation) -> bool:
    """A value of a cell is made before an operation of the cell's own block."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return True
    return owner.parent is op.parent and owner.is_before_in_block(op)


def copy_of(
    apply: stencil.ApplyOp,
    known: dict[SSAValue, SSAValue],
    by: Offset,
    before: Operation,
    rewriter: PatternRewriter,
) -> SSAValue:
    """The value of the cell at an offset, computed before an operation."""
    mapping = dict(known)
    end = terminator_of(apply.region.block, stencil.ReturnOp)
    for op in list(apply.region.block.ops)[:-1]:
        copy = op.clone(mapping)
        if isinstance(copy, stencil.AccessOp | stencil.IndexOp):
            moved = (d + by[axis] for d, axis in zip(copy.offset, offset_axes(copy)))
            copy.offset = stencil.IndexAttr.from_indices(*moved)
        rewriter.insert(copy, InsertPoint.before(before))
        mapping.update(zip(op.results, copy.results))
    return mapping[end.arg[0]]


def offset_axes(op: stencil.AccessOp | stencil.IndexOp) -> Sequence[int]:
    """The axes of the domain along which an offset is given: fewer for a field of fewer axes."""
    if isinstance(op, stencil.AccessOp) and op.offset_mapping is not None:
        return tuple(op.offset_mapping)
    return range(len(op.offset))


class InlineValue(RewritePattern):
    """An apply with a cheap value is computed by its readers."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: stencil.ApplyOp, rewriter: PatternRewriter, /) -> None:
        if not is_plain(op):
            return
        applies = readers(op.res[0])
        if not applies:
            return
        reads = [reads_of(op.res[0], reader) for reader in applies]
        known = [each for each in reads if each is not None]
        if len(known) < len(reads):
            return
        if added(op, [read for each in known for read in each]) > MOST_OPERATIONS:
            return
        for reader, accesses in zip(applies, known):
            inline(op, reader, accesses, rewriter)
        rewriter.erase(op)


class InlineValuesPass(ModulePass):
    """Compute cheap values at their readers; see the module's documentation."""

    name = "inline-values"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_once(list(op.walk()), {stencil.ApplyOp: InlineValue()})
