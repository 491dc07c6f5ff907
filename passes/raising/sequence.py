"""Emits the updates of a `temporal.loop` from the updates of a block, with scratch fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.experimental import dmp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.cell_types import CELL_BYTES, FIELD_TYPE_NAMES
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import BroadcastOp, ScratchOp, UpdateOp
from timetile.dialects.verified import temp_element
from timetile.passes.diagnostics import remark
from timetile.passes.raising.boxes import box_of
from timetile.passes.raising.cells import KEPT, OutlinedCell, copying_cell, outline
from timetile.passes.raising.demand import ApplyRead, demand_of, unbuffered
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import memory_of
from timetile.passes.raising.order import Item, Scratch, UpdateOrder, UpdateTarget
from timetile.passes.raising.recurrences import remark_recurrences
from timetile.passes.rewriting import unique_symbol

Spread = tuple[stencil.LoadOp, tuple[int, ...]]
"""The load of a field with fewer axes, and which axes it has."""


@dataclass
class Updates:
    """The updates of a block, in order, and the fields made for them."""

    order: UpdateOrder
    items: list[Item]
    scratch: dict[SSAValue, ScratchOp] = field(default_factory=dict[SSAValue, ScratchOp])
    spread: dict[Spread, BroadcastOp] = field(default_factory=dict[Spread, BroadcastOp])
    """
    Broadcasts, by loaded value and axes, placed at the load by the function emitting the updates.
    """

    def target(self, target: UpdateTarget) -> SSAValue:
        """The field written by an update."""
        return self.scratch[target.value].field if isinstance(target, Scratch) else target

    def source(self, value: SSAValue, axes: tuple[int, ...], rank: int) -> SSAValue:
        """The field from which a value is read."""
        value = unbuffered(value)
        if value in self.scratch:
            held = self.scratch[value].field
            return held if len(axes) == rank else self.wide(value, held, axes)
        owner = value.owner
        held = owner.field if isinstance(owner, stencil.LoadOp) else value
        if isinstance(held.type, stencil.FieldType):
            return held if len(axes) == rank else self.wide(value, held, axes)
        return self.order.holders(value)[0].field

    def wide(self, value: SSAValue, held: SSAValue, axes: tuple[int, ...]) -> SSAValue:
        """A field of fewer axes as a field of all axes."""
        load = value.owner
        if not isinstance(load, stencil.LoadOp):
            raise CannotRaiseError(
                load if isinstance(load, Operation) else self.order.ops[0],
                "the value has fewer axes than the reading domain; store the value to a field, "
                "and load the field",
            )
        key = load, axes
        if key not in self.spread:
            box, own = self.order.demand.spread[value, axes], field_bounds(held)
            low, high = list(box.lb), list(box.ub)
            for k, axis in enumerate(axes):
                low[axis], high[axis] = tuple(own.lb)[k], tuple(own.ub)[k]
            kind = FieldType(box_of(low, high), element_type(held))
            self.spread[key] = BroadcastOp(held, axes, kind)
        return self.spread[key].field

    def cell(self, item: Item) -> OutlinedCell:
        """The cell function of an update."""
        rank = len(item.box.lb)
        if isinstance(item.source, SSAValue):
            return copying_cell(self.source(item.source, tuple(range(rank)), rank), rank)

        def source_of(access: ApplyRead) -> SSAValue:
            return self.source(access.operand, access.axes, rank)

        return outline(item.source, source_of)


def updates_of(ops: Sequence[Operation]) -> Updates:
    """
    The updates made by operations of one block. Raises CannotRaiseError if the operations cannot be
    raised.
    """
    check_values(ops)
    demand = demand_of(ops)
    for op in ops:
        if isinstance(op, stencil.ApplyOp) and not demand.boxes(op):
            remark(op, "no store needs the results; the operation is left out")
    order = UpdateOrder(ops, demand)
    items = order.items()
    remark_recurrences(ops)
    updates = Updates(order, items)
    add_scratch(updates)
    return updates


def check_values(ops: Sequence[Operation]) -> None:
    """Raise CannotRaiseError for a value of a field's cells not made by the given operations."""
    for op in ops:
        if not isinstance(op, stencil.ApplyOp | stencil.StoreOp | stencil.CombineOp):
            continue
        if isinstance(op, stencil.ApplyOp) and op.dest:
            raise CannotRaiseError(op, "the apply writes fields; run load-fields first")
        for operand in op.operands:
            if not isinstance(operand.type, stencil.TempType):
                continue
            owner = unbuffered(operand).owner
            if isinstance(owner, stencil.LoadOp):
                continue
            name = owner.name if isinstance(owner, Operation) else "a block argument"
            if isinstance(owner, dmp.SwapOp):
                raise CannotRaiseError(
                    op,
                    "the operation reads halos of other processes (dmp.swap); run join-parts first",
                )
            if not isinstance(owner, stencil.ApplyOp | stencil.CombineOp):
                raise CannotRaiseError(
                    op,
                    f"it reads a value of {name}; read a stencil.load or a stencil.apply, and let "
                    "loops carry fields, with a store in every step",
                )
            if owner not in ops:
                raise CannotRaiseError(
                    op,
                    f"it reads a value that {name} makes in another block; store the value to a "
                    "field",
                )


def add_scratch(updates: Updates) -> None:
    """Make a field for each value held in a scratch field, over all written cells."""
    boxes: dict[SSAValue, StencilBoundsAttr] = {}
    for item in updates.items:
        for target in item.targets:
            if isinstance(target, Scratch):
                known = boxes.get(target.value)
                boxes[target.value] = item.box if known is None else known | item.box
    for value, box in boxes.items():
        updates.scratch[value] = ScratchOp(FieldType(box, temp_element(value)))
        updates.scratch[value].field.name_hint = value.name_hint


def build(
    updates: Updates,
    items: Sequence[Item],
    rename: dict[SSAValue, SSAValue],
    module: ModuleOp,
    prefix: str,
    before: Sequence[FuncOp] = (),
) -> tuple[list[FuncOp], list[UpdateOp]]:
    """
    The cell functions, and the updates applying them. `rename` gives the loop's own names. Names of
    functions in `before` are taken.
    """
    functions: list[FuncOp] = []
    made: list[UpdateOp] = []
    for item in items:
        cell = updates.cell(item)
        name = unique_symbol(module, f"{prefix}_cell{len(before) + len(made)}", functions)
        functions.append(cell.function(name, item.results))
        targets = [updates.target(target) for target in item.targets]
        made.append(
            UpdateOp(
                [rename.get(target, target) for target in targets],
                name,
                [rename.get(source, source) for source in cell.sources],
                cell.taps,
                item.box,
                [rename.get(scalar, scalar) for scalar in cell.scalars],
                cell.indices,
                beyond=[] if all(each == KEPT for each in cell.beyond) else cell.beyond,
            )
        )
        where = item.source if isinstance(item.source, stencil.ApplyOp) else item.op
        made[-1].location = where.location
    return functions, made


def check_fields(fields: Sequence[SSAValue], op: Operation) -> None:
    """
    Raise CannotRaiseError for a field without static bounds, or with cells of a type impossible in
    kernels.
    """
    for value in fields:
        try:
            field_bounds(value)
        except VerifyException as error:
            raise CannotRaiseError(op, f"{error}; cast the field to static bounds") from None
        if (element := element_type(value)) not in CELL_BYTES:
            raise CannotRaiseError(op, f"it has a field of {element}; use {FIELD_TYPE_NAMES}")


def check_aliases(written: Sequence[SSAValue], others: Sequence[SSAValue], op: Operation) -> None:
    """Raise CannotRaiseError if two names of fields, one of them written, are one memory."""
    memory = [memory_of(value) for value in (*written, *others)]
    if any(memory.count(memory_of(buffer)) > 1 for buffer in written):
        raise CannotRaiseError(
            op, "two buffers of the loop are one field; give each buffer a field"
        )


def verify_updates(updates: Sequence[UpdateOp], op: Operation) -> None:
    """Raise CannotRaiseError if the dialect does not allow an update."""
    for update in updates:
        try:
            update.verify_()
        except VerifyException as error:
            raise CannotRaiseError(op, f"{error}{way_inside(update, error)}") from None


def way_inside(update: UpdateOp, error: VerifyException) -> str:
    """What to do about reads outside a field; empty for other errors."""
    if "outside" not in str(error):
        return ""
    if len(update.targets) > 1:
        return (
            "; the results of a stencil.apply are computed over one box: compute them in an apply "
            "each, give the field these cells, or store fewer"
        )
    return "; give the field these cells, or store fewer"
