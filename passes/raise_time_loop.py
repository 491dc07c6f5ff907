"""raise-time-loop: from `scf.for` over rotated fields to `temporal.loop`.

Before:
```
%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!f, !f) {
  %u = stencil.load %a : !f -> !t
  %v = stencil.apply(%x = %u : !t) -> (!t) { ... stencil.access %x[-1, 0] ... }
  stencil.store %v to %b(<[0, 0], [8, 8]>) : !t to !f
  scf.yield %b, %a : !f, !f
}
```
After:
```
func.func private @step_cell0(%0: f64, ...) -> f64 { ... }
%r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @step_cell0(%a[-1, 0], ...) in <[0, 0], [8, 8]>
}
```
1. The loop's arguments must be fields and the yield a permutation of them: the rotation.
2. Fields from outside that the body writes become buffers that do not rotate.
3. Each apply becomes a private function of scalars: its accesses are the arguments.
4. Stores that follow each other become one update where they store results of one apply over one
   box; updates keep the order of the stores.

A loop that cannot be raised stays as it is, with a remark that says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, scf, stencil
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnrealizedConversionCastOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.simt import CELL_BYTES
from timetile.dialects.syntax import element_type, field_bounds, integer_type
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.passes.analysis.cell_values import why_not_in_cell
from timetile.passes.analysis.constants import integer_constant
from timetile.passes.diagnostics import remark


class CannotRaiseError(Exception):
    """The loop is not of the form that can be raised."""

    def __init__(self, op: Operation, reason: str):
        super().__init__(reason)
        self.op, self.reason = op, reason


@dataclass
class Cell:
    """An outlined apply: its function's body and what each argument is."""

    block: Block
    sources: list[SSAValue]
    taps: list[Tap]
    scalars: list[SSAValue]
    indices: list[int]
    results: list[SSAValue]


@dataclass
class Step:
    """What one iteration does, gathered before anything is rewritten."""

    loop: scf.ForOp
    cells: dict[stencil.ApplyOp, Cell] = field(default_factory=dict[stencil.ApplyOp, Cell])
    stores: list[stencil.StoreOp] = field(default_factory=list[stencil.StoreOp])


ALLOWED_IN_BODY = (
    stencil.LoadOp,
    stencil.ApplyOp,
    stencil.StoreOp,
    arith.ConstantOp,
    scf.YieldOp,
)


def rotation_of(loop: scf.ForOp) -> list[int]:
    """For each argument, the argument whose buffer it names after one iteration."""
    args = loop.body.block.args[1:]
    for arg in args:
        if not isinstance(arg.type, stencil.FieldType):
            raise CannotRaiseError(
                loop, f"it carries a value of type {arg.type}; carry stencil.field values only"
            )
    terminator = loop.body.block.last_op
    assert isinstance(terminator, scf.YieldOp)
    rotation: list[int] = []
    for value in terminator.arguments:
        if not (isinstance(value, BlockArgument) and value in args):
            raise CannotRaiseError(
                terminator,
                "it yields something else than the loop's own fields; yield a rotation of them",
            )
        rotation.append(value.index - 1)
    if sorted(rotation) != list(range(len(args))):
        raise CannotRaiseError(terminator, "it yields a field twice; yield each carried field once")
    return rotation


def gather(loop: scf.ForOp) -> Step:
    """Sort the operations of the body; CannotRaiseError where one has no place in a time loop."""
    step = Step(loop)
    if loop.body.block.args[0].first_use is not None:
        user = loop.body.block.args[0].first_use.operation
        raise CannotRaiseError(
            user, "it uses the time index; pass what depends on time as a field or unroll it"
        )
    for op in loop.body.block.ops:
        if not isinstance(op, ALLOWED_IN_BODY):
            way_out = "move it out of the loop"
            if op.name.startswith("stencil."):
                way_out = "store what it reads to a field, and load that again"
            raise CannotRaiseError(op, f"it has no place in a raised time loop; {way_out}")
        if isinstance(op, stencil.ApplyOp) and op.dest:
            raise CannotRaiseError(op, "it writes buffers itself; use results and stencil.store")
        if isinstance(op, stencil.StoreOp):
            step.stores.append(op)
    for store in step.stores:
        apply = store.temp.owner
        if not isinstance(apply, stencil.ApplyOp):
            raise CannotRaiseError(
                store, "it stores a loaded value; store the result of a stencil.apply"
            )
        if apply not in step.cells:
            step.cells[apply] = outline(apply, step)
    for op in loop.body.block.ops:
        if isinstance(op, stencil.ApplyOp) and op not in step.cells:
            raise CannotRaiseError(op, "its result is not stored in the loop; store it to a field")
    return step


def source_field(value: SSAValue, step: Step, apply: stencil.ApplyOp) -> SSAValue:
    """The field that an operand of an apply was loaded from."""
    owner = value.owner
    if isinstance(owner, stencil.LoadOp):
        return owner.field
    if isinstance(value.type, stencil.FieldType):
        return value
    name = owner.name if isinstance(owner, Operation) else "an argument"
    raise CannotRaiseError(
        apply, f"it reads the result of {name} directly; store it to a field and load it again"
    )


def outline(apply: stencil.ApplyOp, step: Step) -> Cell:
    """The scalar function of an apply: accesses, scalars and coordinates become arguments."""
    rank = apply.get_rank()
    body = apply.region.block
    cell = Cell(Block(), [], [], [], [], [])
    mapping: dict[SSAValue, SSAValue] = {}
    tap_values: dict[Tap, list[stencil.AccessOp]] = {}
    index_values: dict[int, list[stencil.IndexOp]] = {}
    for op in body.ops:
        if isinstance(op, stencil.AccessOp):
            argument = apply.args[body.args.index(op.temp)]  # type of operand was verified
            source = source_field(argument, step, apply)
            if len(op.offset) != rank:
                raise CannotRaiseError(
                    op,
                    f"it reads a field of rank {len(op.offset)} in a domain of rank {rank}; "
                    "give the field all axes",
                )
            if source not in cell.sources:
                cell.sources.append(source)
            tap = Tap(cell.sources.index(source), tuple(op.offset))
            tap_values.setdefault(tap, []).append(op)
        elif isinstance(op, stencil.IndexOp):
            if op.dim.value.data >= rank:
                raise CannotRaiseError(
                    op, f"it names axis {op.dim.value.data} of {rank}; the first is 0"
                )
            index_values.setdefault(op.dim.value.data, []).append(op)
    for tap, accesses in tap_values.items():
        argument = cell.block.insert_arg(
            element_type(cell.sources[tap.operand]), len(cell.block.args)
        )
        cell.taps.append(tap)
        mapping.update({access.res: argument for access in accesses})
    for argument, operand in zip(body.args, apply.args):
        if isinstance(argument.type, stencil.StencilType):
            continue
        constant = operand.owner
        if isinstance(constant, arith.ConstantOp) and constant.parent is step.loop.body.block:
            # The only scalars that a time loop computes.
            cell.block.add_op(copy := constant.clone())
            mapping[argument] = copy.result
            continue
        cell.scalars.append(operand)
        mapping[argument] = cell.block.insert_arg(operand.type, len(cell.block.args))
    for axis, reads in sorted(index_values.items()):
        cell.indices.append(axis)
        coordinate = cell.block.insert_arg(IndexType(), len(cell.block.args))
        for read in reads:
            shift = tuple(read.offset)[axis]
            if shift == 0:
                mapping[read.idx] = coordinate
                continue
            constant = arith.ConstantOp(IntegerAttr(shift, IndexType()))
            moved = arith.AddiOp(coordinate, constant.result)
            cell.block.add_ops([constant, moved])
            mapping[read.idx] = moved.result
    clone_body(body, cell, mapping)
    return cell


def clone_body(body: Block, cell: Cell, mapping: dict[SSAValue, SSAValue]) -> None:
    """Copy the arithmetic of an apply into its cell function."""
    for op in body.ops:
        match op:
            case stencil.AccessOp() | stencil.IndexOp():
                continue
            case stencil.StoreResultOp(arg=value):
                if value is None:
                    raise CannotRaiseError(op, "it stores nothing; return a value on every path")
                mapping[op.res] = mapping[value]
            case stencil.ReturnOp():
                if op.unroll is not None:
                    raise CannotRaiseError(op, "it is unrolled; run timetile before stencil-unroll")
                cell.results = [mapping[value] for value in op.arg]
            case _ if op.regions or op.name.startswith("stencil."):
                raise CannotRaiseError(
                    op,
                    "it is not supported inside a stencil.apply yet; use arith, math and stencil.access",
                )
            case _:
                if (reason := why_not_in_cell(op)) is not None:
                    raise CannotRaiseError(op, reason)
                cell.block.add_op(op.clone(mapping))


def stores_by_update(step: Step) -> list[list[stencil.StoreOp]]:
    """The stores of each update: results of one apply over one box, with no other store between."""
    groups: list[list[stencil.StoreOp]] = []
    for store in step.stores:
        last = groups[-1][-1] if groups else None
        if last is not None and (last.temp.owner, last.bounds) == (store.temp.owner, store.bounds):
            groups[-1].append(store)
        else:
            groups.append([store])
    return groups


def read_of(operand: SSAValue) -> tuple[SSAValue, Operation | None]:
    """The field that an operand of an apply reads, and the load; None where the apply itself reads."""
    load = operand.owner
    return (load.field, load) if isinstance(load, stencil.LoadOp) else (operand, None)


def check_order(step: Step) -> None:
    """A field must not be written after an update has read it and before the update writes."""
    order = {op: k for k, op in enumerate(step.loop.body.block.ops)}
    for group in stores_by_update(step):
        apply = group[0].temp.owner
        assert isinstance(apply, stencil.ApplyOp)
        for source, load in map(read_of, apply.args):
            others = [store for store in step.stores if store.field is source]
            if load is not None and load not in order and others:
                raise CannotRaiseError(
                    others[0], "it writes a field that was loaded before the loop; load it inside"
                )
            for other in others:
                between = order[load or apply] < order[other] < order[group[-1]]
                if between and other not in group:
                    raise CannotRaiseError(
                        other,
                        "it writes a field between its load and the store of what was computed "
                        "from it; load the field again after the store",
                    )


def build_updates(
    step: Step, rename: dict[SSAValue, SSAValue], module: ModuleOp, prefix: str
) -> tuple[list[FuncOp], list[UpdateOp]]:
    """The cell functions, and the updates that apply them."""
    functions: list[FuncOp] = []
    updates: list[UpdateOp] = []
    for stores in stores_by_update(step):
        apply = stores[0].temp.owner
        assert isinstance(apply, stencil.ApplyOp)
        cell = step.cells[apply]
        mapping: dict[SSAValue, SSAValue] = {}
        block = Block(arg_types=cell.block.arg_types)
        mapping.update(zip(cell.block.args, block.args))
        for op in cell.block.ops:
            block.add_op(op.clone(mapping))
        positions = [apply.res.index(store.temp) for store in stores]
        results = [mapping[cell.results[k]] for k in positions]
        block.add_op(FuncReturnOp(*results))
        erase_unused(block)
        name = unique_symbol(module, f"{prefix}_cell{len(updates)}")
        inputs, outputs = block.arg_types, [r.type for r in results]
        functions.append(FuncOp(name, (inputs, outputs), Region(block), visibility="private"))
        updates.append(
            UpdateOp(
                [rename.get(s.field, s.field) for s in stores],
                name,
                [rename.get(s, s) for s in cell.sources],
                cell.taps,
                stores[0].bounds,
                cell.scalars,
                cell.indices,
            )
        )
        updates[-1].location = apply.location
    return functions, updates


def erase_unused(block: Block) -> None:
    """Erase what no result needs; everything in a cell function is pure."""
    for op in reversed(list(block.ops)):
        if not isinstance(op, FuncReturnOp) and all(r.first_use is None for r in op.results):
            Rewriter.erase_op(op)


def unique_symbol(module: ModuleOp, name: str) -> str:
    """A symbol that the module does not define yet."""
    candidate, number = name, 0
    while SymbolTable.lookup_symbol(module, StringAttr(candidate)) is not None:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def top_level(op: Operation, module: ModuleOp) -> Operation:
    """The operation of the module's body that holds `op`."""
    while (parent := op.parent_op()) is not module:
        assert parent is not None
        op = parent
    return op


def trip_count(loop: scf.ForOp) -> tuple[list[Operation], SSAValue]:
    """The number of iterations as an index value, and the operations that compute it."""
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


ALIASES = (stencil.CastOp, stencil.ExternalLoadOp, UnrealizedConversionCastOp)
"""What gives memory another name."""


def memory_of(field: SSAValue) -> SSAValue:
    """What a field was cast or loaded from: the same memory under another name."""
    while isinstance(cast := field.owner, ALIASES) and len(cast.operands) == len(cast.results) == 1:
        field = cast.operands[0]
    return field


def name_fields_once(loop: scf.ForOp) -> None:
    """Of several casts of one memory to one type the loop uses the first."""
    known: dict[tuple[SSAValue, Attribute], SSAValue] = {}
    for op in (loop, *loop.body.block.ops):
        for number, operand in enumerate(op.operands):
            memory = memory_of(operand)
            if memory is not operand:
                kind: Attribute = operand.type
                op.operands[number] = known.setdefault((memory, kind), operand)


def raise_loop(loop: scf.ForOp, module: ModuleOp, prefix: str) -> None:
    """Replace one loop; CannotRaiseError leaves it as it was."""
    name_fields_once(loop)
    rotation = rotation_of(loop)
    step = gather(loop)
    check_order(step)
    carried = list(loop.body.block.args[1:])
    captured = list(dict.fromkeys(s.field for s in step.stores if s.field not in carried))
    sources = [source for cell in step.cells.values() for source in cell.sources]
    for value in (*carried, *captured, *sources):
        try:
            field_bounds(value)
        except VerifyException as error:
            raise CannotRaiseError(loop, f"{error}; cast the field to static bounds") from None
        if (element := element_type(value)) not in CELL_BYTES:
            raise CannotRaiseError(loop, f"it has a field of {element}; use f32 or f64")
        if value in loop.iter_args:
            raise CannotRaiseError(
                loop, "it uses a carried field by its outer name; use the loop's argument"
            )
    buffers = [*loop.iter_args, *captured]
    others = [s for s in dict.fromkeys(sources) if s not in carried and s not in captured]
    memory = [memory_of(value) for value in (*buffers, *others)]
    if any(memory.count(memory_of(buffer)) > 1 for buffer in buffers):
        raise CannotRaiseError(loop, "two of its buffers are one field; give each its own")
    rotation += range(len(carried), len(buffers))
    count_ops, count = trip_count(loop)
    raised = LoopOp(count, buffers, rotation)
    raised.location = loop.location
    rename: dict[SSAValue, SSAValue] = dict(zip((*carried, *captured), raised.body.block.args))
    functions, updates = build_updates(step, rename, module, prefix)
    raised.body.block.add_ops(updates)
    for update in updates:
        try:
            update.verify_()
        except VerifyException as error:
            raise CannotRaiseError(loop, str(error)) from None
    for function in functions:
        module.body.block.insert_op_before(function, top_level(loop, module))
    Rewriter.insert_op([*count_ops, raised], InsertPoint.before(loop))
    for old, new in zip(loop.results, raised.results):
        old.replace_all_uses_with(new)
        new.name_hint = old.name_hint
    for old, new in zip((*carried, *captured), raised.body.block.args):
        new.name_hint = old.name_hint
    Rewriter.erase_op(loop)


def is_time_loop(op: Operation) -> bool:
    """The loop writes fields, so somebody may mean it as a time loop."""
    return isinstance(op, scf.ForOp) and any(
        isinstance(inner, stencil.StoreOp) or (isinstance(inner, stencil.ApplyOp) and inner.dest)
        for inner in op.body.block.ops
    )


class RaiseTimeLoopPass(ModulePass):
    """Recognise time loops over rotated fields; see the module's documentation."""

    name = "raise-time-loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, FuncOp)]:
            for loop in [inner for inner in function.walk() if is_time_loop(inner)]:
                assert isinstance(loop, scf.ForOp)
                try:
                    raise_loop(loop, op, function.sym_name.data)
                except CannotRaiseError as error:
                    remark(error.op, f"the time loop is left as it is: {error.reason}")
