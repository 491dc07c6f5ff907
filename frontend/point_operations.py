"""Emits the uses of points at the end of a step, and the arguments of their lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects import memref, stencil
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, i32, i64
from xdsl.ir import Attribute, Block, SSAValue

from timetile.dialects.point_lists import PointLayout
from timetile.dialects.temporal import InjectOp, PointKind, SampleOp
from timetile.frontend.cells import located
from timetile.frontend.operations import Time
from timetile.frontend.point_runs import Rooms, point_box
from timetile.frontend.statements import Buffer, spelled
from timetile.frontend.steps import Step

PARTS = ("places", "weights", "table")
"""The fields of a list of points, in the order of the function's arguments."""


def line_of(size: int, kind: Attribute) -> stencil.FieldType[Attribute]:
    """A field of one axis."""
    return stencil.FieldType(stencil.StencilBoundsAttr.from_bounds([(0, size)]), kind)


class PointOperations:
    """
    The points of a step for arrays of a shape. `kinds` are the types of the function's arguments:
    the numbers of the tables' rows, a series, then three fields for each use.
    """

    def __init__(
        self, step: Step, shape: Sequence[int], elements: Mapping[str, Attribute], rooms: Rooms
    ):
        self.step, self.shape = step, tuple(shape)
        self.rooms = dict(rooms)
        self.kinds: list[Attribute] = []
        self.rows: SSAValue | None = None
        self.lists: dict[str, tuple[SSAValue, SSAValue, SSAValue]] = {}
        if step.points:
            self.kinds.append(MemRefType(i64, [DYNAMIC_INDEX]))
        for use in step.points:
            room, element = self.rooms[use.name], elements[use.field]
            size = PointLayout(self.shape, room.entries).size
            table = prod((room.rows, room.columns))
            self.kinds += [
                line_of(size, i32), line_of(room.entries, element), line_of(table, element)
            ]  # fmt: skip

    def take(self, arguments: Sequence[SSAValue]) -> None:
        """Note the function's arguments, and name them."""
        if not arguments:
            return
        self.rows, fields = arguments[0], arguments[1:]
        self.rows.name_hint = "rows"
        for number, use in enumerate(self.step.points):
            places, weights, table = fields[3 * number : 3 * number + 3]
            self.lists[use.name] = places, weights, table
            for part, field in zip(PARTS, (places, weights, table)):
                field.name_hint = f"{spelled(use.name)}_{part}"

    def emit(self, body: Block, fields: Mapping[Buffer, SSAValue]) -> None:
        """Emit the operations of all uses, in order."""
        if self.rows is None:
            return
        row = memref.LoadOp.get(self.rows, [body.args[0]])
        body.add_op(located(row, self.step.points[0].place))
        for use in self.step.points:
            box = stencil.StencilBoundsAttr.from_bounds(point_box(self.step, use, self.shape))
            kind = InjectOp if use.kind is PointKind.INJECT else SampleOp
            columns = self.rooms[use.name].columns
            field = fields[use.field, Time.NEXT]
            op = kind(field, self.lists[use.name], row.res, columns, box)
            body.add_op(located(op, use.place))
