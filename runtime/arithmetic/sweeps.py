"""Sweeps with NumPy, the judge of all executors: place after place, each vectorised over lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.boxes import sizes_of
from timetile.dialects.syntax import cell_type, field_bounds
from timetile.dialects.temporal import SweepOp
from timetile.dialects.verified import ancestor_of
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.runtime.arithmetic.boxes import box_slices, coordinates
from timetile.runtime.arithmetic.cells import Array, call, dtype_of
from timetile.runtime.arithmetic.parted_sweeps import run_parts

BoxSlices = tuple[slice, ...]

Visited = Callable[[SSAValue, BoxSlices], None]
"""Called with a field and the cells read or written, before the access."""


def no_check(field: SSAValue, cells: BoxSlices) -> None:
    """Check no access."""


def function_of_sweep(op: SweepOp) -> FuncOp:
    """The cell function of a sweep. CompileError if the module lacks the function."""
    return cell_function(ancestor_of(op, ModuleOp), op)


def boxes_in_order(op: SweepOp) -> Iterator[StencilBoundsAttr]:
    """The cells of each place of a sweep, in order."""
    spans = list(zip(op.box.lb, op.box.ub))
    for place in op.places:
        spans[op.axis.data] = place, place + 1
        yield StencilBoundsAttr.from_bounds(spans)


def run_sweep(
    op: SweepOp,
    fields: Mapping[SSAValue, Array],
    numbers: Mapping[SSAValue, Any],
    before_read: Visited = no_check,
    before_write: Visited = no_check,
) -> None:
    """Run a sweep on NumPy arrays, in place. `numbers` are the scalars."""
    function, zero = function_of_sweep(op), (0,) * op.rank
    if op.parts is not None:
        for tap in op.tap_list:
            source = op.sources[tap.operand]
            cells = op.box if not op.is_result(tap) else next(boxes_in_order(op))
            before_read(source, box_slices(field_bounds(source), cells, tap.offset))
        before_write(op.targets[0], box_slices(field_bounds(op.targets[0]), op.box, zero))
        run_parts(op, function, fields, numbers)
        return
    for box in boxes_in_order(op):
        shape = sizes_of(box)
        arguments: list[Any] = []
        for tap in op.tap_list:
            source = op.sources[tap.operand]
            cells = box_slices(field_bounds(source), box, tap.offset)
            before_read(source, cells)
            arguments.append(fields[source][cells].astype(dtype_of(cell_type(source)), copy=False))
        arguments += [np.broadcast_to(np.asarray(numbers[s]), shape) for s in op.scalars]
        arguments += [coordinates(box, axis) for axis in op.index_axes]
        # All results are computed before a target is written: a target is read at its own cell.
        results = [np.array(np.broadcast_to(r, shape)) for r in call(function, arguments)]
        for target, result in zip(op.targets, results):
            cells = box_slices(field_bounds(target), box, zero)
            before_write(target, cells)
            fields[target][cells] = result
