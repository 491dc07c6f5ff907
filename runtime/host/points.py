"""Values added to cells, and cells noted, by the host: points of steps that run one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation

from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import InjectOp, PointOp, SampleOp
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.arithmetic.points import use_points
from timetile.runtime.host.functions import HostHandler, HostValues
from timetile.runtime.host.memory import Memory, shape_of


def point_handler(memory: Memory) -> dict[type[Operation], HostHandler]:
    """The host handlers of operations at points."""

    def use(op: PointOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        *buffers, step = operands
        fields = (op.field, op.places, op.weights, op.table)
        arrays = [
            memory.contents(buffer, shape_of(field_bounds(field)), dtype_of(element_type(field)))
            for field, buffer in zip(fields, buffers)
        ]
        use_points(op.set, arrays, op.box, int(step))
        place = fields.index(op.written)
        if arrays[place] is not buffers[place]:
            memory.fill(buffers[place], arrays[place])
        return []

    return {InjectOp: use, SampleOp: use}
