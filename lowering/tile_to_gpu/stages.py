"""The stages of a kernel in a stream step, in the code of a thread: loads, cells, exchanges,
stores.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.dialects.syntax import cell_type, element_type
from timetile.dialects.taps import Tap
from timetile.dialects.tile import ApplyOp, ExchangeOp, LoadOp, MemoryAttr, StageOp, StoreOp
from timetile.lowering.tile_to_gpu.beyond import (
    has_values,
    is_mirrored,
    new_with_value,
    plane_with_values,
    with_images,
    with_values,
)
from timetile.lowering.tile_to_gpu.cells import Cut, Late
from timetile.lowering.tile_to_gpu.copies import take_prefetched
from timetile.lowering.tile_to_gpu.fields import (
    FAR_CELLS,
    base_of,
    cell_at,
    fetched_plane,
    in_field,
    inside_box,
    misses_box,
    plane_at,
    plane_in_field,
)
from timetile.lowering.tile_to_gpu.halo_plans import Reach, reach_of_tap
from timetile.lowering.tile_to_gpu.halos import along_stream, guard_of, park, patch_at_birth
from timetile.lowering.tile_to_gpu.images import has_images, image_plane, seen
from timetile.lowering.tile_to_gpu.messages import post_messages
from timetile.lowering.tile_to_gpu.numbers import note_number
from timetile.lowering.tile_to_gpu.ownership import load_masks
from timetile.lowering.tile_to_gpu.point_levels import emit_points
from timetile.lowering.tile_to_gpu.publishing import publish, write_plane
from timetile.lowering.tile_to_gpu.queues import Plane, Position, QueuePlan, cells_between
from timetile.lowering.tile_to_gpu.reading import read
from timetile.lowering.tile_to_gpu.scopes import (
    ResidentStep,
    StepScope,
    StreamStep,
    VariantScope,
    once,
)
from timetile.lowering.tile_to_gpu.stored_cells import load_cells
from timetile.lowering.tile_to_gpu.storing import store
from timetile.lowering.tile_to_gpu.thread import Thread, as_index
from timetile.passes.analysis.geometry.images import image_width
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
            emit_points(step, stage, planes)
            for result, plane in zip(stage.res, planes):
                finish(step, number, queues[result], plane)
        case ExchangeOp():
            exchange = step.code.exchanges[stage.result]
            publish(step, number, exchange)
            if isinstance(step, ResidentStep) and exchange.is_sent:
                post_messages(step)
                step.arriving.append(exchange)
        case StoreOp(number=None):
            store(step, number, stage)
        case StoreOp():
            note_number(step, number, stage)


def run_by_rows(step: StepScope) -> None:
    """
    Emit the stages of a kernel that reads memory, row after row: a row needs few registers for the
    results of its stages. All cells are read before any is written.
    """
    code = step.code
    stages = [stage for stage in code.kernel.stages if isinstance(stage, ApplyOp)]
    planes: dict[SSAValue, Plane] = {result: {} for stage in stages for result in stage.res}
    for stage in stages:
        for result in stage.res:
            step.planes(code.queues[result]).insert(0, planes[result])
    for line, row in enumerate(code.rows):
        step.mark(0, line)
        for stage, cell in product(stages, range(code.cells)):
            for result, value in zip(stage.res, apply(step, stage, (*row, cell))):
                planes[result][*row, cell] = value
    for number, stage in enumerate(code.kernel.stages):
        if isinstance(stage, StoreOp):
            run_stage(step, number, stage)


def finish(step: StepScope, number: int, queue: QueuePlan, plane: Plane) -> None:
    """Finish a new plane: halos along the stream, the place in shared memory, age 0."""
    if isinstance(queue.value.owner, LoadOp):
        plane = plane_with_values(step, queue, plane)
    plane = along_stream(step, number, queue, plane)
    planes = step.planes(queue)
    if queue.shared is not None:
        write_plane(step, queue.shared, plane)
        planes[:] = [plane]
        return
    planes.insert(0, plane)
    patch_at_birth(step, number, queue)


# Loads.


def load(step: StepScope, number: int, stage: LoadOp) -> Plane:
    """The thread's own cells of a field's plane, from its prefetch ring or from memory."""
    code = step.code
    prefetch = code.placement.prefetch_of(stage)
    if prefetch is not None and isinstance(step, StreamStep):
        return take_prefetched(step, number, prefetch)
    shape, field = FieldShape.of(stage.field), code.arguments[stage.field]
    guarded = step.variant.guarded
    width = code.geometry.access_width(stage.field, inside=not guarded)
    width = image_width(code.geometry, stage.field) if guarded else width
    element = element_type(stage.field)
    view, _ = seen(step.variant, code.thread, (0,) * len(code.geometry.axes), width=width)
    plane_at(step, shape, stage.lag, view)
    plane: Plane = {}
    for row in code.rows:
        for start in range(0, code.cells, width):
            at = (*row, start)
            masks = load_masks(step.variant, stage, at, code.thread)
            mask = step.emit.all_of([*masks, fetched_plane(step, step.emit, shape, stage.lag)])
            index, offset = cell_at(step, shape, stage.lag, at, code.thread, width=width)
            cells = load_cells(step.emit, field, index, offset, [element] * width, mask)
            for k, value in enumerate(cells):
                plane[*row, start + k] = value
    return plane


def cell_in_memory(
    step: StepScope, load: LoadOp, lag: int, offset: tuple[int, ...], at: Position
) -> SSAValue:
    """
    Read a field at an offset from one of the thread's cells in the plane `lag` steps back: once a
    step, or once for all steps if the field has no streaming axis.
    """
    code = step.code
    shape = FieldShape.loaded(load, code.kernel.rank)
    behind = lag - code.kernel.along_stream(offset)
    beside = code.kernel.in_plane(offset)
    # Cells along a missing axis are one cell.
    place = tuple(
        0 if axis in shape.missing else cell
        for axis, cell in zip(code.kernel.plane_axes, moved_by(at, beside), strict=True)
    )
    if code.stream is not None and code.stream in shape.missing:
        cell = fixed_cell(step.variant, load, shape, place)
        if has_values(step):
            kind = cell_type(load.field)
            return with_values(step, behind, place, kind, cell, missing=shape.missing)
        return cell
    key = (load.field, behind, place)
    if key in step.fetched:
        return step.fetched[key]
    # Only the owning thread reads the own cell of a field, and may overwrite the cell in place.
    is_overwritten = not any(offset) and load.axes is None
    view = code.thread if is_overwritten else inside_view(step.variant)
    index, distance = cell_at(step, shape, behind, place, view, folds=is_mirrored(code.kernel))
    if abs(distance) >= FAR_CELLS:
        index, distance = step.emit.add_int(index, distance), 0
    mask = None
    if view is code.thread:
        far = beside if any(beside) else None
        inside = in_field(step.variant, shape, place, view, beside=far)
        mask = step.emit.all_of([inside, plane_in_field(step, shape, behind)])
    field, kind = code.arguments[load.field], element_type(load.field)
    width = vector_width(step, load, place)
    start = place[-1] % width
    cells = load_cells(step.emit, field, index, distance - start, [kind] * width, mask)
    for k, cell in enumerate(cells):
        at = (*place[:-1], place[-1] - start + k)
        if has_values(step):
            cell = with_values(step, behind, at, cell.type, cell, missing=shape.missing)
        step.fetched[load.field, behind, at] = cell
    return step.fetched[key]


def vector_width(step: StepScope, load: LoadOp, place: Position) -> int:
    """
    Cells of the access for a cell of a field read at use: the aligned vector around the cell, in
    tiles inside the rim, if the thread's own columns have the whole vector; else 1.
    """
    code = step.code
    if step.variant.guarded or load.axes is not None or not code.kernel.reads_memory:
        return 1
    own = 0 <= place[-1] < code.cells
    return code.geometry.access_width(load.field, inside=True) if own else 1


@once
def fixed_cell(variant: VariantScope, load: LoadOp, shape: FieldShape, place: Position) -> SSAValue:
    """
    A cell of a field without the streaming axis, read ahead of the steps: by all tiles, if the rim
    and the tiles inside share a code.
    """
    if variant.around is not None:
        return fixed_cell(variant.around, load, shape, place)
    code, emit = variant.code, variant.emit
    beside = tuple(
        min(cell, 0) + max(cell - tiling.layout.cells + 1, 0)
        for cell, tiling in zip(place, code.geometry.axes, strict=True)
    )
    view, at = seen(variant, code.thread, place, folds=is_mirrored(code.kernel))
    index = base_of(variant, shape, view)
    distance = cells_between(code.geometry, shape, at)
    mask = in_field(variant, shape, place, code.thread, beside=beside)
    kind = element_type(load.field)
    return load_cells(emit, code.arguments[load.field], index, distance, [kind], mask)[0]


@once
def inside_view(variant: VariantScope) -> Thread:
    """
    The thread, moved to the nearest cell inside the bounds: all taps then lie in the fields, and
    cells outside are never stored. The thread itself, if a thread has several cells, or if taps of
    the bounds' cells leave the fields.
    """
    code = variant.code
    single = code.stream is None and len(code.geometry.thread_positions) == 1
    if not (variant.guarded and single and code.kernel.reads_memory):
        return code.thread
    if not (code.geometry.taps_stay_inside or code.geometry.continues_in_plane):
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
    emit, geometry = variant.emit, variant.code.geometry
    above = emit.binary(arith.MaxSIOp, coordinate, emit.int(geometry.lower[axis]))
    return emit.binary(arith.MinSIOp, above, emit.int(geometry.upper[axis] - 1))


# Cells.


def apply(step: StepScope, stage: ApplyOp, at: Position) -> list[SSAValue]:
    """One cell of a stage."""
    code = step.code
    if stage.box is not None and stage.outside and misses_box(step, stage.box, stage.lag):
        return cells_beside_box(step, stage, at)
    function = code.functions[stage.cell.string_value()]
    arguments = arguments_of(step, stage, at)
    results = function.inline(step.emit, arguments, parking(step, stage, at))
    results = [
        new_with_value(step, code.queues[result], at, cell)
        for result, cell in zip(stage.res, results, strict=True)
    ]
    if stage.box is None:
        return results
    inside = inside_box(step, stage.box, stage.lag, at)
    if inside is None:
        return results
    cells = zip(results, cells_beside_box(step, stage, at), strict=True)
    return [step.emit.select(inside, result, old) for result, old in cells]


def cells_beside_box(step: StepScope, stage: ApplyOp, at: Position) -> list[SSAValue]:
    """The cells that stay where a stage's box ends."""
    own_cell: Reach = ((0, 0),) * len(at)
    sources = [step.code.queues[queue] for queue in stage.outside]
    return [read(step, s, stage.lag - s.lag, at, own_cell) for s in sources]


@once
def taps_of_stage(variant: VariantScope, stage: ApplyOp) -> list[tuple[Tap, QueuePlan]]:
    """The taps of a stage, each with the queue it reads."""
    queues = [variant.code.queues[queue] for queue in stage.queues]
    return [(tap, queues[tap.operand]) for tap in stage.tap_list]


@once
def look(variant: VariantScope, stage: ApplyOp, tap: Tap) -> tuple[int, Position, Reach]:
    """A tap's age, in-plane offset and reach."""
    moved = variant.code.kernel.in_plane(tap.offset)
    halos = variant.code.halos
    reaches: dict[SSAValue, Reach] = {result: halos[result].reach for result in stage.res}
    return stage.age(tap), moved, reach_of_tap(stage, moved, reaches)


def arguments_of(step: StepScope, stage: ApplyOp, at: Position) -> list[SSAValue | Late]:
    """The arguments of a stage's cell function: taps, scalars, coordinates."""
    code, lag, continued = step.code, stage.lag, step.code.kernel.continued_axes
    arguments: list[SSAValue | Late] = []
    for tap, queue in taps_of_stage(step.variant, stage):
        load = queue.value.owner
        if isinstance(load, LoadOp) and load.is_read_at_use:
            offset = moved_by(tap.offset, load.offset or (0,) * len(tap.offset))
            arguments.append(partial(cell_in_memory, step, load, lag, offset, at))
            continue

        def tapped(
            offset: tuple[int, ...], queue: QueuePlan = queue, operand: int = tap.operand
        ) -> SSAValue:
            age, moved, reach = look(step.variant, stage, Tap(operand, offset))
            return read(step, queue, age, moved_by(at, moved), reach)

        arguments.append(with_images(step, lag, at, tap.offset, tapped, continued))
    arguments += [code.arguments[scalar] for scalar in stage.scalars]
    arguments += [coordinate(step, axis, lag, at) for axis in stage.index_axes]
    return arguments


def parking(step: StepScope, stage: ApplyOp, at: Position) -> Cut | None:
    """Where a cell of an older level waits in the cell function of a stage, if one does."""
    queue = step.code.queues[stage.res[0]]
    guard = guard_of(step, queue)
    older = None if guard is None else guard.older
    if older is None or older.crossing is None:
        return None
    return Cut(older.crossing, partial(park, step, queue, older, at))


def coordinate(step: StepScope, axis: int, lag: int, at: Position) -> SSAValue:
    """The program's coordinate of a cell along an axis, as an index."""
    emit = step.emit
    kernel = step.code.kernel
    if isinstance(step, StreamStep) and axis == step.axis:
        if axis in kernel.continued_axes and not step.is_steady:
            return as_index(emit, image_plane(step, step.turn - lag))
        return as_index(emit, emit.add_int(step.arriving_plane, step.turn - lag))
    k = kernel.plane_axes.index(axis)
    if has_images(step.variant, k):
        view, rest = seen(step.variant, step.code.thread, at)
        return as_index(emit, emit.add_int(view.axes[k].coordinate, rest[k]))
    return as_index(emit, emit.add_int(step.code.thread.axes[k].coordinate, at[k]))
