"""Values added to cells, and cells noted, by the host: points of steps that run one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import InjectOp, PointKind, PointOp, PointRunOp, SampleOp
from timetile.runtime.arithmetic.cells import Array, dtype_of
from timetile.runtime.arithmetic.points import PointEntries, entries_in, use_entries
from timetile.runtime.host.functions import HostHandler, HostValues
from timetile.runtime.host.memory_protocol import Memory


@runtime_checkable
class FarCells(Memory, Protocol):
    """Memory with fields whose cells the host reaches by places only."""

    def is_far(self, buffer: Any) -> bool:
        """The buffer is such a field."""
        ...

    def fetch(self, buffer: Any, places: NDArray[np.int64], dtype: np.dtype[Any]) -> Array:
        """The cells of a buffer at places, counted in row-major order."""
        ...

    def put(self, buffer: Any, places: NDArray[np.int64], cells: Array) -> None:
        """Set the cells of a buffer at places, none twice."""
        ...


def point_handler(memory: Memory) -> dict[type[Operation], HostHandler]:
    """
    The host handlers of operations at points, for one run: the entries of a list that the program
    only reads are found once.
    """
    known: dict[PointOp, PointEntries] = {}

    def entries_of(op: PointOp, places: Any) -> PointEntries:
        if op in known:
            return known[op]
        entries = entries_in(op.set, contents_of(memory, op.places, places), op.box)
        if is_only_read(op.places):
            known[op] = entries
        return entries

    def use(op: PointOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        *buffers, step = operands
        entries = entries_of(op, buffers[1])
        if isinstance(memory, FarCells) and memory.is_far(buffers[0]):
            use_far_points(memory, op, entries, buffers, int(step))
            return []
        parts = ((op.field, buffers[0]), (op.weights, buffers[2]), (op.table, buffers[3]))
        arrays = [contents_of(memory, *part) for part in parts]
        use_entries(op.set, entries, arrays, int(step))
        place = [field for field, _ in parts].index(op.written)
        if arrays[place] is not parts[place][1]:
            memory.fill(parts[place][1], arrays[place])
        return []

    def named(op: PointRunOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """The loop behind has the effects."""
        return []

    return {InjectOp: use, SampleOp: use, PointRunOp: named}


def is_only_read(places: SSAValue) -> bool:
    """A list is an argument of the host function that only operations at points use."""
    root = places
    while isinstance(root.owner, Operation) and len(root.owner.operands) == 1:
        root = root.owner.operands[0]
    makers = set[Operation]()
    value = places
    while value is not root and isinstance(value.owner, Operation):
        makers.add(value.owner)
        value = value.owner.operands[0]
    users = {use.operation for each in (places, root) for use in each.uses}
    return not isinstance(root.owner, Operation) and all(
        (isinstance(user, PointOp) and user.places is places) or user in makers for user in users
    )


def contents_of(memory: Memory, field: SSAValue, buffer: Any) -> Array:
    """All cells of a field."""
    return memory.contents(buffer, sizes_of(field_bounds(field)), dtype_of(element_type(field)))


def use_far_points(
    memory: FarCells, op: PointOp, entries: PointEntries, buffers: Sequence[Any], step: int
) -> None:
    """Move the cells with points, and a row of the table, and no other cells of the field."""
    field, _, weights, table = buffers
    kind = dtype_of(element_type(op.field))
    if not len(entries.order):
        return
    shape = sizes_of(field_bounds(op.field))
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
