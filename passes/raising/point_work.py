"""Lists of a time loop with work at points, and the conditions that the IR has to keep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NoReturn

from xdsl.dialects import memref, scf, stencil
from xdsl.dialects.builtin import i32
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.point_lists import PointLayout
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import PointKind
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.loops import carried_rotation
from timetile.passes.raising.memory import may_be_one, memory_of
from timetile.passes.raising.point_accesses import (
    HostAccessOp,
    PointAccess,
    cell_kind,
    is_unit,
    point_accesses,
    shape_of_access,
    stores_by_field,
    unit_accesses,
    units_of,
)

MOST_ROWS, TABLE_NUMBERS = 256, 1 << 22
"""Most rows of a table, and about the most numbers of a table: longer runs take pieces."""


@dataclass(frozen=True)
class RaisedList:
    """
    A list of a time loop: its accesses, the argument of the loop (or the field from outside) whose
    cells are used at the end of a step, the bounds of the updates, and the steps that pass between
    the write and the read of a cell.
    """

    access: PointAccess
    field: SSAValue
    box: StencilBoundsAttr
    later: int
    rows: int

    @property
    def entries(self) -> int:
        """The room for entries."""
        return max(self.access.entries, 1)

    @property
    def kind(self) -> Attribute:
        """The type of the cells."""
        return cell_kind(self.access)

    @property
    def shape(self) -> tuple[int, ...]:
        """The cells of the field along each axis."""
        bounds = field_bounds(self.field)
        return sizes_of(bounds)

    @property
    def parts(self) -> list[FieldType[Attribute]]:
        """The types of the list, the weights and the table."""
        sizes = PointLayout(self.shape, self.entries).size, self.entries, self.rows * self.entries
        kinds = i32, self.kind, self.kind
        return [
            FieldType(StencilBoundsAttr.from_bounds([(0, size)]), kind)
            for size, kind in zip(sizes, kinds)
        ]


class PointLoop:
    """A time loop with work at points. Raises CannotRaiseError for work without lists."""

    def __init__(self, loop: scf.ForOp):
        self.loop, self.block = loop, loop.body.block
        self.units = units_of(self.block)
        self.stores = stores_by_field(self.block)
        self.fields = [*self.block.args[1:], *(m for m in self.stores if not self.is_own(m))]
        found = [access for unit in self.units for access in point_accesses(unit, self.fields)]
        self.accesses = [access for access in found if access.entries]
        self.adding = {access.unit for access in found if access.kind is PointKind.INJECT}
        self.check_order()
        self.check_memory()
        rows = self.rows()
        self.lists = [self.list_of(access, rows) for access in self.accesses]

    def is_own(self, memory: SSAValue) -> bool:
        """Whether the loop carries a field."""
        return isinstance(memory, BlockArgument) and memory.block is self.block

    def rows(self) -> int:
        """The rows of all tables: the most steps of a piece of a run."""
        widest = max((access.entries for access in self.accesses), default=1)
        rows = min(MOST_ROWS, max(1, TABLE_NUMBERS // widest))
        return 1 << (rows.bit_length() - 1)

    def check_order(self) -> None:
        """Updates come first, and cells are read behind all additions to their field."""
        ops = list(self.block.ops)
        last = max((ops.index(op) for op in ops if isinstance(op, stencil.StoreOp)), default=-1)
        for access in self.accesses:
            unit = ops.index(access.unit)
            if unit < last:
                raise CannotRaiseError(
                    access.op, "an update follows the points; put points last in the step"
                )
            for other in self.accesses:
                late = other.kind is PointKind.INJECT and other.memory is access.memory
                if late and access.kind is PointKind.SAMPLE and ops.index(other.unit) >= unit:
                    raise CannotRaiseError(
                        access.op,
                        "cells are read before points add to the field; read behind the additions",
                    )

    def check_memory(self) -> None:
        """Memory written by units is neither read by updates, nor possibly a field."""
        for unit in self.units:
            for op in unit_accesses(unit):
                memory = memory_of(op.memref)
                if memory in self.fields:
                    continue
                if any(may_be_one(memory, outer) for outer in self.outer_fields()):
                    raise CannotRaiseError(
                        op, "the memory may be a field of the loop; give each a name of its own"
                    )

    def outer_fields(self) -> list[SSAValue]:
        """The fields from outside that the loop writes or carries."""
        carried = [memory_of(value) for value in self.loop.iter_args]
        return [*carried, *(field for field in self.fields if not self.is_own(field))]

    @property
    def written(self) -> list[SSAValue]:
        """All memory written by the loop."""
        found = [memory_of(o.memref) for u in self.units for o in unit_accesses(u) if is_write(o)]
        return [*self.fields, *self.outer_fields(), *found]

    def list_of(self, access: PointAccess, rows: int) -> RaisedList:
        """The list of an access: an earlier step wrote a field that the step does not write."""
        shape_of_access(access)
        memory, later = access.memory, 0
        if memory not in self.stores and not self.is_own(memory):
            refuse_unwritten(access)
        rotation = carried_rotation(self.loop)
        arguments: list[SSAValue] = list(self.block.args[1:])
        while memory not in self.stores:
            memory, later = arguments[rotation[arguments.index(memory)]], later + 1
            if memory is access.memory:
                refuse_unwritten(access)
        if later and access.kind is PointKind.INJECT:
            refuse_unwritten(access)
        stores = self.stores[memory]
        box = reduce(lambda a, b: a | b, (store.bounds for store in stores))
        # Cells without an update stay in their buffers, whatever the names of the buffers.
        role = memory
        while self.is_own(role):
            role = arguments[rotation[arguments.index(role)]]
            if any((store.bounds | box) != box for store in self.stores.get(role, ())):
                raise CannotRaiseError(
                    access.op, "fields that take turns have updates of several boxes; use one box"
                )
            if role is memory:
                break
        return RaisedList(access, stores[0].field, box, later, rows)


def is_write(op: HostAccessOp) -> bool:
    """Whether an access writes memory."""
    return not isinstance(op, memref.LoadOp)


def has_work_at_points(loop: scf.ForOp) -> bool:
    """Whether the host reads or writes cells of fields in a step."""
    block = loop.body.block
    fields = [*block.args[1:], *stores_by_field(block)]
    units = [op for op in block.ops if is_unit(op)]
    return any(memory_of(op.memref) in fields for unit in units for op in unit_accesses(unit))


def refuse_unwritten(access: PointAccess) -> NoReturn:
    """Raise CannotRaiseError for points of a field without an update."""
    raise CannotRaiseError(access.op, "no update of the step writes the field with points")
