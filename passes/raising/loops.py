"""Raises an `scf.for` over rotated fields to one `temporal.loop`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf, stencil
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.syntax import field_type, integer_type
from timetile.dialects.temporal import GatherOp, LoopOp, PointOp, SweepOp, UpdateOp
from timetile.dialects.verified import terminator_of
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import (
    is_alias,
    is_pure,
    memory_of,
    name_fields_once,
    written_memory,
)
from timetile.passes.raising.points import PointTaker, check_edges, check_noted, point_operations
from timetile.passes.raising.sequence import (
    Updates,
    build,
    check_aliases,
    check_fields,
    updates_of,
    verify_updates,
)
from timetile.passes.raising.sweeps import RAISED, check_outer_loads, check_spread, top_level


def carried_rotation(loop: scf.ForOp) -> list[int]:
    """
    For each argument, the argument whose buffer the argument names after one iteration. Raises
    CannotRaiseError if the loop carries other values than fields, or does not yield a permutation.
    """
    args = loop.body.block.args[1:]
    for arg in args:
        if not isinstance(arg.type, stencil.FieldType):
            raise CannotRaiseError(
                loop,
                f"the loop carries a value of type {arg.type}; carry stencil.field values only",
            )
    terminator = terminator_of(loop.body.block, scf.YieldOp)
    rotation: list[int] = []
    for value in terminator.arguments:
        name = memory_of(value)
        if not (isinstance(name, BlockArgument) and name in args):
            raise CannotRaiseError(
                terminator,
                "the loop yields something else than its own fields; yield a rotation of them",
            )
        rotation.append(name.index - 1)
    if sorted(rotation) != list(range(len(args))):
        raise CannotRaiseError(
            terminator, "the loop yields a field twice; yield each carried field once"
        )
    return rotation


def trip_count(loop: scf.ForOp) -> tuple[list[Operation], SSAValue]:
    """The number of iterations as an index value, and the operations computing the number."""
    if (
        integer_constant(loop.lb) == 0
        and integer_constant(loop.step) == 1
        and loop.ub.type == IndexType()
    ):
        return [], loop.ub
    ops: list[Operation] = []

    def add(op: Operation) -> SSAValue:
        ops.append(op)
        return op.results[0]

    difference = add(arith.SubiOp(loop.ub, loop.lb))
    count = add(arith.CeilDivSIOp(difference, loop.step))
    zero = add(arith.ConstantOp(IntegerAttr(0, integer_type(count))))
    count = add(arith.MaxSIOp(count, zero))
    if count.type != IndexType():
        count = add(arith.IndexCastOp(count, IndexType()))
    return ops, count


def series_reads(loop: scf.ForOp) -> dict[SSAValue, SSAValue]:
    """
    The numbers that the body's cells read from a memref of one axis at the number of the step, and
    the memrefs: `memref.load %series[%t]` of memory that the loop leaves alone, from step 0 on.
    """
    block = loop.body.block
    if integer_constant(loop.lb) != 0 or integer_constant(loop.step) != 1:
        return {}
    written = [memory for op in block.ops for memory in written_memory(op)]
    found: dict[SSAValue, SSAValue] = {}
    for op in block.ops:
        if not isinstance(op, memref.LoadOp) or list(op.indices) != [block.args[0]]:
            continue
        if None in written or memory_of(op.memref) in written or op.memref.owner is block:
            continue
        if all(isinstance(use.operation, stencil.ApplyOp | PointOp) for use in op.res.uses):
            found[op.res] = op.memref
    return found


def invariants(loop: scf.ForOp, series: Mapping[SSAValue, SSAValue]) -> list[Operation]:
    """
    The operations of the body with equal values in every iteration, in order, without reads of
    `series`. Raises CannotRaiseError for an operation that the host must run in each iteration.
    """
    block = loop.body.block
    written = [memory for op in block.ops for memory in written_memory(op)]
    found: list[Operation] = []
    for op in block.ops:
        if op.results and op.results[0] in series:
            continue
        if block.args[0] in op.operands:
            raise CannotRaiseError(op, "the loop depends on the time index, and kernels do not")
        if isinstance(op, (*RAISED, PointOp)) or op is block.last_op or is_name_of_own(op, block):
            continue
        own = [operand for operand in op.operands if operand.owner is block]
        if isinstance(op, GatherOp):
            raise CannotRaiseError(
                op,
                "the step reads cells at computed places, unlike kernels of several steps; read at "
                "constant offsets",
            )
        if isinstance(op, SweepOp):
            raise CannotRaiseError(
                op,
                f"a sweep along axis {op.axis.data} reads its own results, and is a launch of its "
                "own in every step",
            )
        is_load = isinstance(op, memref.LoadOp)
        if is_load and memory_of(op.memref) not in written and None not in written and not own:
            found.append(op)
        elif not is_pure(op) or own:
            raise CannotRaiseError(
                op,
                "the operation runs on the host in every step; without such an operation "
                "kernels advance several steps",
            )
        else:
            found.append(op)
    return found


def is_name_of_own(op: Operation, block: Block) -> bool:
    """Whether the operation gives another name to a field carried by the loop."""
    return is_alias(op) and memory_of(op.results[0]).owner is block


def static_names(loop: scf.ForOp, rotation: Sequence[int]) -> list[SSAValue]:
    """
    For each carried field, the name with static bounds used in the body: the argument, or a cast of
    the argument. Fields of one cycle of the rotation have casts to one type.
    """
    args = loop.body.block.args[1:]
    names: list[SSAValue] = list(args)
    for k, arg in enumerate(args):
        casts = [
            op.results[0]
            for op in loop.body.block.ops
            if is_alias(op)
            and memory_of(op.results[0]) is arg
            and isinstance(op.results[0].type, stencil.FieldType)
        ]
        kinds = {cast.type for cast in casts}
        if isinstance(field_type(arg).bounds, StencilBoundsAttr) or not casts:
            continue
        if len(kinds) > 1:
            raise CannotRaiseError(
                loop, "the loop casts a carried field to several types; use one type"
            )
        names[k] = casts[0]
    for k, source in enumerate(rotation):
        if names[k].type != names[source].type and isinstance(
            field_type(names[source]).bounds, StencilBoundsAttr
        ):
            raise CannotRaiseError(
                loop, "rotating fields are cast to several types; use one type for all"
            )
    return names


@dataclass(frozen=True)
class Fields:
    """
    The fields of a loop: `names` of the carried fields with static bounds, as used in the body;
    `captured` fields of the function that the body writes; `initial` fields of `names`.
    """

    loop: scf.ForOp
    names: list[SSAValue]
    captured: list[SSAValue]
    initial: list[SSAValue]

    @property
    def arguments(self) -> list[SSAValue]:
        """The body's arguments for carried fields."""
        return list(self.loop.body.block.args[1:])

    @property
    def buffers(self) -> list[SSAValue]:
        """The initial values of all buffers of the raised loop."""
        return [*self.initial, *self.captured]

    @property
    def casts(self) -> list[Operation]:
        """New casts of initial fields, in no block so far."""
        makers = (value.owner for value in self.initial)
        return [op for op in makers if isinstance(op, Operation) and op.parent is None]

    def renamed(self, raised: LoopOp) -> dict[SSAValue, SSAValue]:
        """The raised loop's own buffer for each name of a buffer."""
        inner = raised.body.block.args
        renamed: dict[SSAValue, SSAValue] = dict(zip(self.captured, inner[len(self.names) :]))
        own = dict(zip(self.arguments, inner))
        aliases = [op.results[0] for op in self.loop.body.block.ops if is_alias(op)]
        for value in (*own, *aliases):
            if memory_of(value) in own:
                renamed[value] = own[memory_of(value)]
        return renamed


def fields_of(loop: scf.ForOp, names: list[SSAValue], updates: Updates) -> Fields:
    """The fields of a loop with these updates. Raises CannotRaiseError for unfit fields."""
    carried = loop.body.block.args[1:]
    written = (updates.target(target) for item in updates.items for target in item.targets)
    captured = list(dict.fromkeys(t for t in written if memory_of(t) not in carried))
    initial = [casted(init, name) for init, name in zip(loop.iter_args, names)]
    check_fields([*names, *captured], loop)
    return Fields(loop, names, captured, initial)


def raise_loop(loop: scf.ForOp, module: ModuleOp, prefix: str) -> None:
    """Replace one loop. On CannotRaiseError the loop is unchanged."""
    name_fields_once(loop)
    rotation = carried_rotation(loop)
    series = series_reads(loop)
    hoisted = invariants(loop, series)
    names = static_names(loop, rotation)
    updates = updates_of(list(loop.body.block.ops))
    check_outer_names(loop, updates)
    check_outer_loads(updates, loop.body.block)
    fields = fields_of(loop, names, updates)
    rotation += range(len(names), len(fields.buffers))
    count_ops, count = trip_count(loop)
    raised = LoopOp(count, fields.buffers, rotation)
    raised.location = loop.location
    renamed = {**fields.renamed(raised), **series}
    functions, built = build(updates, updates.items, renamed, module, prefix)
    points = point_operations(loop.body.block)
    taker = PointTaker(module, prefix, renamed, series, functions)
    made = taker.take(points, built, loop.body.block)
    check_sources(fields, raised, made)
    raised.body.block.add_ops(made)
    verify_updates(made, loop)
    check_edges(points, raised)
    check_noted(points, raised, renamed)
    check_spread_fields(fields, updates)
    check_ranks(updates, loop)
    for function in functions:
        module.body.block.insert_op_before(function, top_level(loop.body.block, module))
    for op in hoisted:
        op.detach()
    made_before = [*fields.casts, *updates.scratch.values(), *updates.spread.values(), *count_ops]
    Rewriter.insert_op([*hoisted, *made_before, raised], InsertPoint.before(loop))
    use_raised_results(loop, raised)
    for old, name in zip((*fields.arguments, *fields.captured), raised.body.block.args):
        name.name_hint = old.name_hint
    Rewriter.erase_op(loop)


def check_sources(fields: Fields, raised: LoopOp, made: Sequence[UpdateOp]) -> None:
    """CannotRaiseError where updates read fields outside the loop that are buffers, too."""
    inner, loop = set(raised.body.block.args), fields.loop
    sources = list(dict.fromkeys(s for update in made for s in update.sources if s not in inner))
    check_fields(sources, loop)
    if any(source in loop.iter_args for source in sources):
        raise CannotRaiseError(
            loop, "the loop uses a carried field by the outer name; use the loop's argument"
        )
    check_aliases([*loop.iter_args, *fields.captured], sources, loop)


def check_spread_fields(fields: Fields, updates: Updates) -> None:
    """CannotRaiseError where the loop writes a field of fewer axes that updates spread."""
    written = [memory_of(updates.target(t)) for item in updates.items for t in item.targets]
    for (load, _), wide in updates.spread.items():
        check_spread(wide, load)
        if memory_of(wide.source) in written or wide.source in fields.arguments:
            raise CannotRaiseError(
                load, "the loop writes a loaded field of fewer axes; give the field all axes"
            )


def check_ranks(updates: Updates, loop: scf.ForOp) -> None:
    """CannotRaiseError where the updates of a step have domains of different numbers of axes."""
    ranks = sorted({len(item.box.lb) for item in updates.items})
    if len(ranks) > 1:
        raise CannotRaiseError(
            loop,
            f"a step updates domains of {ranks[0]} and {ranks[-1]} axes, and kernels of several "
            "steps have one; update one domain outside the loop",
        )


def cast_to(field: SSAValue, kind: stencil.FieldType[Attribute]) -> stencil.CastOp:
    """A field under a type of other bounds."""
    return stencil.CastOp.build(operands=[field], result_types=[kind])


def casted(init: SSAValue, name: SSAValue) -> SSAValue:
    """The initial field of a loop, cast to the type used in the body."""
    if init.type == name.type:
        return init
    memory = memory_of(init)
    if memory.type == name.type:
        return memory
    return cast_to(init, field_type(name)).result


def use_raised_results(loop: scf.ForOp, raised: LoopOp) -> None:
    """Let users of the old loop's results use the new loop's, cast back where types differ."""
    for old, new in zip(loop.results, raised.results):
        new.name_hint = old.name_hint
        value: SSAValue = new
        if old.type != new.type and old.first_use is not None:
            back = cast_to(new, field_type(old))
            Rewriter.insert_op(back, InsertPoint.after(raised))
            value = back.result
        old.replace_all_uses_with(value)


def check_outer_names(loop: scf.ForOp, updates: Updates) -> None:
    """Raise CannotRaiseError if the loop writes a field loaded before the loop."""
    written = [memory_of(t) for item in updates.items for t in map(updates.target, item.targets)]
    for item in updates.items:
        for value, _, _ in item.reads():
            load = value.owner
            if not isinstance(load, stencil.LoadOp) or load.parent is loop.body.block:
                continue
            memory = memory_of(load.field)
            if memory in written or memory in [memory_of(init) for init in loop.iter_args]:
                store = next(i.op for i in updates.items if isinstance(i.op, stencil.StoreOp))
                raise CannotRaiseError(
                    store, "the loop writes a field loaded before the loop; load the field inside"
                )
