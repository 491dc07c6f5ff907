"""Values added to cells, and cells noted, by the host: points of steps that run one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import InjectOp, PointKind, PointOp, SampleOp
from timetile.runtime.arithmetic.cells import Array, dtype_of
from timetile.runtime.arithmetic.points import entries_in, use_points
from timetile.runtime.host.cell_nests import FarMemory
from timetile.runtime.host.functions import HostHandler, HostValues
from timetile.runtime.host.memory import Memory, shape_of


def point_handler(memory: Memory) -> dict[type[Operation], HostHandler]:
    """The host handlers of operations at points."""

    def use(op: PointOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        *buffers, step = operands
        if isinstance(memory, FarMemory) and memory.is_far(buffers[0]):
            use_far_points(memory, op, buffers, int(step))
            return []
        fields = (op.field, op.places, op.weights, op.table)
        arrays = [contents_of(memory, *pair) for pair in zip(fields, buffers)]
        use_points(op.set, arrays, op.box, int(step))
        place = fields.index(op.written)
        if arrays[place] is not buffers[place]:
            memory.fill(buffers[place], arrays[place])
        return []

    return {InjectOp: use, SampleOp: use}


def contents_of(memory: Memory, field: SSAValue, buffer: Any) -> Array:
    """All cells of a field."""
    return memory.contents(buffer, shape_of(field_bounds(field)), dtype_of(element_type(field)))


def use_far_points(memory: FarMemory, op: PointOp, buffers: Sequence[Any], step: int) -> None:
    """Move the cells with points, and a row of the table, and no other cells of the field."""
    field, places, weights, table = buffers
    kind = dtype_of(element_type(op.field))
    entries = entries_in(op.set, contents_of(memory, op.places, places), op.box)
    if not len(entries.order):
        return
    shape = shape_of(field_bounds(op.field))
    cells = np.ravel_multi_index(tuple(entries.cells), shape).astype(np.int64)
    used, number = np.unique(cells, return_inverse=True)
    near = memory.fetch(field, used, kind)
    factors = contents_of(memory, op.weights, weights)[entries.order]
    row = np.int64(step) * op.columns.data
    with np.errstate(all="ignore"):
        if op.KIND is PointKind.SAMPLE:
            memory.put(table, row + entries.order.astype(np.int64), factors * near[number])
            return
        columns, column = np.unique(entries.columns, return_inverse=True)
        values = memory.fetch(table, row + columns.astype(np.int64), kind)
        np.add.at(near, number, factors * values[column])
    memory.put(field, used, near)
