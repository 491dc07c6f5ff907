"""The stages of a kernel in a stream step, in the code of a thread: loads, cells, exchanges,
stores.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import ApplyOp, ExchangeOp, LoadOp, MemoryAttr, StageOp, StoreOp
from timetile.lowering.tile_to_gpu.cells import Late
from timetile.lowering.tile_to_gpu.copies import take_prefetched
from timetile.lowering.tile_to_gpu.fields import (
    FAR_CELLS,
    Arrival,
    base_of,
    cell_at,
    in_field,
    plane_at,
    plane_in_field,
    within,
)
from timetile.lowering.tile_to_gpu.halo_plans import Reach, reach_of_tap
from timetile.lowering.tile_to_gpu.halos import along_stream, park, patch_at_birth
from timetile.lowering.tile_to_gpu.messages import post_messages
from timetile.lowering.tile_to_gpu.ownership import load_mask
from timetile.lowering.tile_to_gpu.publishing import publish, write_plane
from timetile.lowering.tile_to_gpu.queues import Plane, Position, QueuePlan, cells_between
from timetile.lowering.tile_to_gpu.reading import read
from timetile.lowering.tile_to_gpu.scopes import (
    StepScope,
    VariantScope,
    arriving_plane,
    once,
    plane_between,
)
from timetile.lowering.tile_to_gpu.storing import store
from timetile.lowering.tile_to_gpu.thread import Thread, as_index
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, moved_by


def run_stage(step: StepScope, number: int, stage: StageOp) -> None:
    """Emit a stage of the given number."""
    queues = step.code.queues
    match stage:
        case LoadOp():
            if not isinstance(stage.home, MemoryAttr):
                step.mark_shared(number)
                finish(step, number, queues[stage.result], load(step, number, stage))
        case ApplyOp():
            planes: list[Plane] = [{} for _ in stage.res]
            for line, row in enumerate(step.code.rows):
                step.mark(number, line)
                for cell in range(step.code.cells):
                    for plane, value in zip(planes, apply(step, stage, (*row, cell))):
                        plane[*row, cell] = value
            for result, plane in zip(stage.res, planes):
                finish(step, number, queues[result], plane)
        case ExchangeOp():
            publish(step, number, stage)
            queue = queues[stage.result]
            if step.count is None and queue.message_slots is not None:
                post_messages(step)
                step.arriving.append(queue)
        case StoreOp():
            store(step, number, stage)


def finish(step: StepScope, number: int, queue: QueuePlan, plane: Plane) -> None:
    """Finish a new plane: halos along the stream, the place in shared memory, age 0."""
    plane = along_stream(step, number, queue, plane)
    planes = step.planes(queue)
    if queue.shared is not None:
        write_plane(step, queue.shared, plane, queue.shared.base)
        planes[:] = [plane]
        return
    planes.insert(0, plane)
    patch_at_birth(step, number, queue)


# Loads.


def load(step: StepScope, number: int, stage: LoadOp) -> Plane:
    """The thread's own cells of a field's plane, from its prefetch ring or from memory."""
    code = step.code
    assert stage.data is not None
    prefetch = code.placement.prefetch_of(stage)
    if prefetch is not None:
        return take_prefetched(step, number, prefetch)
    shape, field = FieldShape.of(stage.data), code.arguments[stage.data]
    width = code.geometry.access_width(stage.data, inside=not step.variant.guarded)
    element = element_type(stage.data)
    index, distance = plane_at(step, shape, stage.lag, code.thread)
    arrival, shift = Arrival.of(step), step.turn - stage.lag
    plane: Plane = {}
    for row in code.rows:
        for start in range(0, code.cells, width):
            at = (*row, start)
            mask = load_mask(arrival, step.body, stage, shape, shift, at, code.thread)
            offset = distance + cells_between(code.geometry, shape, at)
            op = simt.LoadOp(field, index, offset, [element] * width, mask)
            for k, value in enumerate(step.body.add(op).cells):
                plane[*row, start + k] = value
    return plane


def cell_in_memory(
    step: StepScope, load: LoadOp, lag: int, offset: tuple[int, ...], at: Position
) -> SSAValue:
    """
    The cell of a load's field at an offset from an own cell of the plane `lag` steps back, read
    once in a step, or once for all steps if the field has no streaming axis.
    """
    code = step.code
    assert load.data is not None
    shape = FieldShape.loaded(load.data, load, code.kernel.rank)
    behind = lag - (0 if code.stream is None else offset[code.stream])
    beside = code.kernel.in_plane(offset)
    # Cells along a missing axis are one cell.
    place = tuple(
        0 if axis in shape.missing else cell
        for axis, cell in zip(code.kernel.plane_axes, moved_by(at, beside), strict=True)
    )
    if code.stream is not None and code.stream in shape.missing:
        return fixed_cell(step.variant, load, shape, place)
    key = (load.result, behind, place)
    if key in step.fetched:
        return step.fetched[key]
    # Only the owning thread reads the own cell of a field, and may overwrite the cell in place.
    is_overwritten = not any(offset) and load.axes is None
    view = code.thread if is_overwritten else inside_view(step.variant)
    index, distance = cell_at(step, shape, behind, place, view)
    if abs(distance) >= FAR_CELLS:
        index, distance = step.body.add_int(index, distance), 0
    mask = None
    if view is code.thread:
        far = beside if any(beside) else None
        inside = in_field(step.variant, shape, place, view, beside=far)
        mask = step.body.all_of([inside, plane_in_field(step, shape, behind)])
    field = code.arguments[load.data]
    op = simt.LoadOp(field, index, distance, [element_type(load.data)], mask)
    (step.fetched[key],) = step.body.add(op).cells
    return step.fetched[key]


@once
def fixed_cell(variant: VariantScope, load: LoadOp, shape: FieldShape, place: Position) -> SSAValue:
    """A cell of a field without the streaming axis, read ahead of the steps."""
    code, emit = variant.code, variant.setup
    assert load.data is not None
    beside = tuple(
        min(cell, 0) + max(cell - tiling.layout.cells + 1, 0)
        for cell, tiling in zip(place, code.geometry.axes, strict=True)
    )
    index = base_of(variant, shape, code.thread)
    distance = cells_between(code.geometry, shape, place)
    mask = in_field(variant, shape, place, code.thread, beside=beside)
    kind = element_type(load.data)
    op = simt.LoadOp(code.arguments[load.data], index, distance, [kind], mask)
    return emit.add(op).cells[0]


@once
def inside_view(variant: VariantScope) -> Thread:
    """
    The thread, moved to the nearest cell inside the bounds: all taps then lie in the fields, and
    cells outside are never stored. The thread itself, if a thread has several cells.
    """
    code = variant.code
    single = code.stream is None and len(code.geometry.thread_positions) == 1
    if not (variant.guarded and single and code.kernel.reads_memory):
        return code.thread
    return replace(
        code.thread,
        axes=tuple(
            replace(place, coordinate=moved_inside(variant, tiling.axis, place.coordinate))
            for tiling, place in zip(code.geometry.axes, code.thread.axes, strict=True)
        ),
    )


def moved_inside(variant: VariantScope, axis: int, coordinate: SSAValue) -> SSAValue:
    """A coordinate, or the nearest one inside the bounds."""
    emit, geometry = variant.setup, variant.code.geometry
    above = emit.binary(arith.MaxSIOp, coordinate, emit.int(geometry.lower[axis]))
    return emit.binary(arith.MinSIOp, above, emit.int(geometry.upper[axis] - 1))


# Cells.


def apply(step: StepScope, stage: ApplyOp, at: Position) -> list[SSAValue]:
    """One cell of a stage."""
    code = step.code
    function = code.functions[stage.cell.string_value()]
    arguments = arguments_of(step, stage, at)
    made = code.queues[stage.res[0]]
    older = code.halos[made.value].older
    cut = older.crossing if older is not None and step.variant.guarded else None
    results = function.inline(
        step.body, arguments, cut, lambda partial: park(step, made, at, partial)
    )
    if stage.box is None:
        return results
    inside = inside_box(step, stage, at)
    own_cell: Reach = ((0, 0),) * len(at)
    chosen: list[SSAValue] = []
    for queue, result in zip(stage.outside, results):
        source = code.queues[queue]
        old = read(step, source, stage.lag - source.lag, at, own_cell)
        chosen.append(step.body.select(inside, result, old))
    return chosen


def arguments_of(step: StepScope, stage: ApplyOp, at: Position) -> list[SSAValue | Late]:
    """The arguments of a stage's cell function: taps, scalars, coordinates."""
    code, queues = step.code, stage.queues
    reaches: dict[SSAValue, Reach] = {result: code.halos[result].reach for result in stage.res}
    arguments: list[SSAValue | Late] = []
    for tap in stage.tap_list:
        queue = code.queues[queues[tap.operand]]
        load = queue.value.owner
        if isinstance(load, LoadOp) and load.is_read_at_use:
            offset = moved_by(tap.offset, load.offset or (0,) * len(tap.offset))
            arguments.append(partial(cell_in_memory, step, load, stage.lag, offset, at))
            continue
        moved = code.kernel.in_plane(tap.offset)
        reach = reach_of_tap(stage, moved, reaches)
        arguments.append(read(step, queue, stage.age(tap), moved_by(at, moved), reach))
    arguments += [code.arguments[scalar] for scalar in stage.scalars]
    arguments += [coordinate(step, axis, stage.lag, at) for axis in stage.index_axes]
    return arguments


def inside_box(step: StepScope, stage: ApplyOp, at: Position) -> SSAValue:
    """The cell lies in the stage's own box."""
    assert stage.box is not None
    low, high = tuple(stage.box.lb), tuple(stage.box.ub)
    parts: list[SSAValue | None] = []
    for tiling, axis, shift in zip(step.code.geometry.axes, step.code.thread.axes, at, strict=True):
        span = low[tiling.axis], high[tiling.axis]
        parts.append(within(step.variant, axis.coordinate, shift, *span))
    stream = step.code.stream
    if stream is not None:
        parts.append(plane_between(step, stage.lag, low[stream], high[stream]))
    mask = step.body.all_of(parts)
    assert mask is not None
    return mask


def coordinate(step: StepScope, axis: int, lag: int, at: Position) -> SSAValue:
    """The program's coordinate of a cell along an axis, as an index."""
    emit = step.body
    if axis == step.code.stream:
        plane = arriving_plane(step.loop)
        return as_index(emit, emit.add_int(plane, step.turn - lag))
    k = step.code.kernel.plane_axes.index(axis)
    return as_index(emit, emit.add_int(step.code.thread.axes[k].coordinate, at[k]))
