"""Values of cells made into fields, read by updates in place of the values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.syntax import field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import SweepOp, UpdateOp
from timetile.dialects.verified import block_of
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.places import Place, distance
from timetile.passes.rewriting import unique_symbol
from timetile.passes.update_reads import compact, read_more

MOST_CELLS_AROUND = 9 / 8
"""The most cells of a field, in parts of those needed, for cells to lie as those of another."""


@dataclass
class PlacedValue:
    """A value of an update's cell that a field gives, and the place of its cell in the field."""

    update: UpdateOp
    function: FuncOp
    value: SSAValue
    place: Place


def cell_of_its_own(module: ModuleOp, update: UpdateOp) -> FuncOp:
    """The cell function of an update, copied first if other updates apply the function, too."""
    function = cell_function(module, update)
    others = (op for op in module.walk() if isinstance(op, UpdateOp | SweepOp) and op is not update)
    if all(other.cell != update.cell for other in others):
        return function
    copy = function.clone()
    copy.sym_name = StringAttr(unique_symbol(module, f"{function.sym_name.data}_own"))
    module.body.block.insert_op_before(copy, function)
    update.properties["cell"] = SymbolRefAttr(copy.sym_name)
    return copy


def function_of(value: SSAValue, name: str) -> tuple[FuncOp, list[int]]:
    """A cell function of one value, and the positions of its arguments among the old arguments."""
    needed: dict[Operation, None] = {}
    arguments: set[SSAValue] = set()
    waiting = [value]
    while waiting:
        owner = (found := waiting.pop()).owner
        if isinstance(owner, Operation):
            needed[owner] = None
            waiting += owner.operands
        else:
            arguments.add(found)
    old = value_block(value).args
    places = [k for k, argument in enumerate(old) if argument in arguments]
    block = Block(arg_types=[old[k].type for k in places])
    mapping: dict[SSAValue, SSAValue] = {old[k]: new for k, new in zip(places, block.args)}
    for op in value_block(value).ops:
        if op in needed:
            block.add_op(op.clone(mapping))
    block.add_op(ReturnOp(mapping[value]))
    kinds = block.arg_types, [value.type]
    return FuncOp(name, kinds, Region(block), visibility="private"), places


def value_block(value: SSAValue) -> Block:
    """The block of the cell function around a value."""
    owner = value.owner
    return block_of(owner) if isinstance(owner, Operation) else owner


def parts(update: UpdateOp, places: Sequence[int]) -> tuple[list[Tap], list[SSAValue], list[int]]:
    """The taps, scalars and axes of some of a cell's arguments."""
    taps, scalars, axes = update.tap_list, update.scalars, update.index_axes
    first, second = len(taps), len(taps) + len(scalars)
    return (
        [taps[k] for k in places if k < first],
        [scalars[k - first] for k in places if first <= k < second],
        [axes[k - second] for k in places if k >= second],
    )


def box_of_places(members: Iterable[PlacedValue]) -> StencilBoundsAttr:
    """The box around the places of the cells of all members, from the first member's place."""
    first, *others = members
    box = CellBox.of(first.update.box)
    for member in others:
        at = distance(member.place, first.place)
        assert at is not None
        box |= CellBox.of(member.update.box).moved(at)
    return box.bounds()


def field_of_places(members: Sequence[PlacedValue]) -> FieldType[Attribute]:
    """
    The type of a field for the cells of all members. The field has the bounds of the first member's
    target if the bounds hold few cells more: cells of both then lie at equal places in memory, in
    vectors and lines that begin at equal cells.
    """
    first, box = members[0], CellBox.of(box_of_places(members))
    around = CellBox.of(field_bounds(first.update.targets[0]))
    if box in around and cells_of(around) <= MOST_CELLS_AROUND * cells_of(box):
        box = around
    return FieldType(box.bounds(), first.value.type)


def update_of_field(members: Sequence[PlacedValue], target: SSAValue, module: ModuleOp) -> UpdateOp:
    """
    An update that gives the target the values of all members, over the box around their places.
    The target has the coordinates of the first member's update.
    """
    first = members[0]
    update, value, function = first.update, first.value, first.function
    name = unique_symbol(module, f"{function.sym_name.data}_once")
    made, places = function_of(value, name)
    module.body.block.insert_op_before(made, function)
    taps, scalars, axes = parts(update, places)
    continued = update.continued if update.beyond is not None else ()
    sources, taps, continued = compact(update.sources, taps, continued)
    box = box_of_places(members)
    once = UpdateOp([target], name, sources, taps, box, scalars, axes, beyond=continued)
    once.location = update.location
    return once


def let_read(values: Iterable[tuple[PlacedValue, SSAValue, Place]]) -> None:
    """
    Let updates read fields in place of values. Each value comes with its field, and the place of
    the value at the field's cell of equal coordinates.
    """
    read: dict[UpdateOp, list[tuple[PlacedValue, SSAValue, Place]]] = {}
    for member, made, origin in values:
        at = distance(member.place, origin)
        assert at is not None
        read.setdefault(member.update, []).append((member, made, at))
    for update, parts_read in read.items():
        read_instead(update, parts_read)


def read_instead(update: UpdateOp, values: Sequence[tuple[PlacedValue, SSAValue, Place]]) -> None:
    """Let the update read fields in place of values, and remove taps without a reader."""
    function = values[0][0].function
    block, first = function.body.block, len(update.tap_list)
    fields = list(dict.fromkeys(made for _, made, _ in values))
    read: dict[tuple[SSAValue, Place], SSAValue] = {}
    more: list[Tap] = []
    for member, made, at in values:
        value = member.value
        if (made, at) not in read:
            read[made, at] = block.insert_arg(value.type, first + len(more))
            read[made, at].name_hint = value.name_hint
            more.append(Tap(len(update.sources) + fields.index(made), at))
        value.replace_all_uses_with(read[made, at])
    read_more(update, function, fields, more)
