"""gather-cells: cells read by an apply at computed places become a field, filled from memory.

Before:
```
%v = stencil.apply(%x = %u : !t, %w = %shift : !t) -> (!t) {
  %k = ... a coordinate that depends on %w ...
  %c = stencil.dyn_access %x[%k] in <[-1]> : <[1]> : !t
```
After:
```
%i = stencil.apply(%x = %u : !t, %w = %shift : !t) -> (!stencil.temp<?xi64>) {
  ... stencil.return %k }
stencil.store %i to %I(<[0], [8]>)
temporal.gather %G = %A at (%I) : !g from !f
%g = stencil.load %G : !g -> !t
%v = stencil.apply(%x = %u : !t, %w = %shift : !t, %y = %g : !t) -> (!t) {
  %c = stencil.access %y[0] : !t
```
1. Accesses with places independent of other such accesses come first; the next accesses are then
   independent, too.
2. The source is the loaded field. If the field changes between the load and the apply, or was
   loaded outside the block, the source is a copy. The value of another apply is stored to a field
   first.
3. A place outside the source counts as the nearest place inside: a value not taken by any branch
   does no harm.

Accesses at few possible offsets have become choices before (`bound-accesses`).
The pass is a walk and no rewrite pattern: after each gather, it asks the demand of the whole block
anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import IntAttr, ModuleOp, i64
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr, TempType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.syntax import element_type, field_type
from timetile.dialects.temporal import GatherOp, ScratchOp
from timetile.dialects.verified import temp_element
from timetile.passes.raising.demand import Demand, demand_of, unbuffered
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import may_be_one, memory_of, written_memory
from timetile.passes.rewriting import erase_unused, replace_with


def inner_accesses(apply: stencil.ApplyOp) -> list[stencil.DynAccessOp]:
    """The accesses at computed places of an apply."""
    return [op for op in apply.region.block.ops if isinstance(op, stencil.DynAccessOp)]


def made_of(values: Sequence[SSAValue]) -> set[Operation]:
    """The operations of a cell from which values are computed."""
    found: set[Operation] = set()
    waiting = [value.owner for value in values]
    while waiting:
        op = waiting.pop()
        if isinstance(op, Operation) and op not in found:
            found.add(op)
            waiting += [operand.owner for operand in op.operands]
    return found


def ready(apply: stencil.ApplyOp) -> list[stencil.DynAccessOp]:
    """The accesses with places independent of other accesses."""
    return [
        op
        for op in inner_accesses(apply)
        if not any(isinstance(i, stencil.DynAccessOp) for i in made_of(op.offset))
    ]


def values_type(kind: Attribute, rank: int) -> TempType[Attribute]:
    """The type of values of a domain."""
    return TempType(IntAttr(rank), kind)


def joined(boxes: Sequence[StencilBoundsAttr]) -> StencilBoundsAttr:
    """The smallest box around boxes."""
    whole = boxes[0]
    for box in boxes[1:]:
        whole = whole | box
    return whole


def places_apply(apply: stencil.ApplyOp, places: Sequence[SSAValue]) -> stencil.ApplyOp:
    """An apply with equal operands and the places, as i64, as results."""
    own = apply.region.block
    block = Block(arg_types=own.arg_types)
    mapping: dict[SSAValue, SSAValue] = dict(zip(own.args, block.args))
    for op in own.ops:
        if not isinstance(op, stencil.ReturnOp):
            block.add_op(op.clone(mapping))
    casts = [arith.IndexCastOp(mapping[place], i64) for place in places]
    block.add_ops([*casts, stencil.ReturnOp([cast.result for cast in casts])])
    erase_unused(block)
    kept = [(a, v) for a, v in zip(block.args, apply.args) if a.first_use is not None]
    for argument in [a for a in block.args if a.first_use is None]:
        block.erase_arg(argument)
    rank = apply.get_rank()
    kinds = [values_type(i64, rank)] * len(places)
    return stencil.ApplyOp([v for _, v in kept], Region(block), kinds)


def with_operands(
    apply: stencil.ApplyOp, values: Sequence[SSAValue]
) -> tuple[stencil.ApplyOp, list[SSAValue]]:
    """
    Replace the apply by an apply with more operands. Returns the new apply, and the operands' names
    in its body.
    """
    region = apply.detach_region(apply.region)
    block = region.block
    names = [block.insert_arg(value.type, len(block.args)) for value in values]
    made = stencil.ApplyOp([*apply.args, *values], region, [r.type for r in apply.res])
    made.location = apply.location
    replace_with(apply, [made])
    return made, list(names)


@dataclass
class Gathering:
    """Gathers for the ready accesses of one apply."""

    apply: stencil.ApplyOp
    block: Block
    demand: Demand
    made: list[Operation] = field(default_factory=list[Operation])

    def add(self, op: Operation) -> Operation:
        """Add an operation before the apply, with the apply's place."""
        op.location = self.apply.location
        self.made.append(op)
        return op

    def scratch(self, box: StencilBoundsAttr, kind: Attribute) -> SSAValue:
        """A field of the function's own."""
        made = ScratchOp(FieldType(box, kind))
        self.add(made)
        return made.field

    def source(self, access: stencil.DynAccessOp) -> SSAValue:
        """The field read by an access."""
        block = self.apply.region.block
        value = unbuffered(self.apply.args[block.args.index(access.temp)])
        load = value.owner
        if isinstance(load, stencil.LoadOp) and not self.changes(load):
            return load.field
        if isinstance(load, stencil.LoadOp):
            bounds = field_type(load.field).bounds
            if not isinstance(bounds, StencilBoundsAttr):
                return load.field
            copy = ScratchOp(FieldType(bounds, element_type(load.field)))
            store = stencil.StoreOp(load.res, copy.field, bounds)
            copy.location = store.location = load.location
            Rewriter.insert_op([copy, store], InsertPoint.after(load))
            return copy.field
        box = self.demand.read[value]
        held = self.scratch(box, temp_element(value))
        self.add(stencil.StoreOp(value, held, box))
        return held

    def changes(self, load: stencil.LoadOp) -> bool:
        """The field of a load may be written before the apply."""
        if load.parent is not self.block:
            return True
        ops = list(self.block.ops)
        between = ops[ops.index(load) : ops.index(self.apply)]
        memory = memory_of(load.field)
        return any(may_be_one(w, memory) for op in between for w in written_memory(op))

    def run(self, accesses: Sequence[stencil.DynAccessOp]) -> None:
        """Gather the cells read by the accesses, and read the gathered fields instead."""
        box = joined(self.demand.boxes(self.apply))
        places = list(dict.fromkeys(place for op in accesses for place in op.offset))
        computed = places_apply(self.apply, places)
        self.add(computed)
        held: dict[SSAValue, SSAValue] = {}
        for place, result in zip(places, computed.res):
            held[place] = self.scratch(box, i64)
            self.add(stencil.StoreOp(result, held[place], box))
        sources: dict[SSAValue, SSAValue] = {}
        loads: list[SSAValue] = []
        rank = self.apply.get_rank()
        for access in accesses:
            if access.temp not in sources:
                sources[access.temp] = self.source(access)
            source = sources[access.temp]
            target = self.scratch(box, access.res.type)
            gather = GatherOp(target, source, [held[place] for place in access.offset])
            self.add(gather).location = access.location
            kind = values_type(access.res.type, rank)
            load = stencil.LoadOp.build(operands=[target], result_types=[kind])
            self.add(load)
            loads.append(load.res)
        Rewriter.insert_op(self.made, InsertPoint.before(self.apply))
        self.apply, names = with_operands(self.apply, loads)
        for access, name in zip(accesses, names):
            here = stencil.AccessOp(name, (0,) * rank)
            here.location = access.location
            Rewriter.replace_op(access, here)
        erase_unused(self.apply.region.block)


def gather(apply: stencil.ApplyOp) -> stencil.ApplyOp | None:
    """
    Gather the cells read by the ready accesses of an apply. None if no access is ready, or if no
    store asks for the apply.
    """
    block = apply.parent
    accesses = ready(apply)
    if block is None or not accesses:
        return None
    try:
        demand = demand_of(list(block.ops))
    except CannotRaiseError:
        # Raising the block reports the error.
        return None
    if not demand.boxes(apply):
        return None
    gathering = Gathering(apply, block, demand)
    gathering.run(accesses)
    return gathering.apply


class GatherCellsPass(ModulePass):
    """Accesses at computed places; see the module's documentation."""

    name = "gather-cells"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for apply in reversed([i for i in op.walk() if isinstance(i, stencil.ApplyOp)]):
            more: stencil.ApplyOp | None = apply
            while more is not None:
                more = gather(more)
