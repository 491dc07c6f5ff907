"""The code of cells outside the bounds: replaced when a plane is made, when a plane becomes old, or
by the reader.

`halo_plans.py` decides the source of each queue's cells. The code of a cell is a predicated load
over the cell's own register, or a select between registers if an older level has the value. Along
the stream whole planes lie outside; such planes are replaced when made.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.syntax import element_type
from timetile.lowering.tile_to_gpu.beyond import (
    crossed_sides,
    has_values,
    plane_with_values,
    with_values,
)
from timetile.lowering.tile_to_gpu.fields import (
    cell_at,
    in_field,
    plane_at,
    plane_in_field,
    within,
)
from timetile.lowering.tile_to_gpu.halo_plans import Guard, OlderLevel, Reach, Sides
from timetile.lowering.tile_to_gpu.images import seen
from timetile.lowering.tile_to_gpu.queues import (
    CopiedPlane,
    EdgeBuffer,
    ExchangePlan,
    Plane,
    Position,
    QueuePlan,
)
from timetile.lowering.tile_to_gpu.scopes import (
    StepScope,
    StreamStep,
    VariantScope,
    once,
    plane_between,
)
from timetile.lowering.tile_to_gpu.stored_cells import override_cells
from timetile.passes.analysis.geometry.images import image_width
from timetile.passes.analysis.geometry.outside import halo_spans
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, Row


def reach_of(step: StepScope, queue: QueuePlan) -> Reach:
    """How far the readers of a queue look from a cell inside the bounds."""
    return step.code.halos[queue.value].reach


def guard_of(step: StepScope, queue: QueuePlan) -> Guard | None:
    """
    The memory with a queue's cells outside the bounds; None where no cell is replaced. An exchange
    passes on cells of its source.
    """
    held = queue.source if isinstance(queue, ExchangePlan) else queue
    return step.code.halos[held.value].guard if step.variant.guarded else None


# Masks.


@once
def outside(
    variant: VariantScope, shape: FieldShape, at: Position, sides: Sides
) -> SSAValue | None:
    """
    A position is beyond the bounds on one of the sides, and in a field's halo on this side; None if
    the field has no halo there.
    """
    geometry, emit = variant.code.geometry, variant.emit
    beyond: list[SSAValue] = []
    inside_field: list[SSAValue | None] = []
    several = sum(map(any, sides)) > 1
    for k, (below, above) in enumerate(sides):
        axis = geometry.axes[k].axis
        shift, place = at[k], variant.code.thread.axes[k].coordinate
        for side, halo in zip((below, above), halo_spans(geometry, shape, axis)):
            if side and halo:
                beyond.append(within(variant, place, shift, halo.start, halo.stop))
        goes_on = axis in geometry.kernel.continued_axes
        if (several or not (below or above)) and not goes_on:
            low, high = shape.lower[axis], shape.upper[axis]
            inside_field.append(within(variant, place, shift, low, high))
    return emit.all_of([emit.any_of(beyond), *inside_field]) if beyond else None


@once
def inside(variant: VariantScope, at: Position, sides: Sides) -> SSAValue:
    """A position is beyond the bounds on none of the sides."""
    geometry, emit = variant.code.geometry, variant.emit
    parts: list[SSAValue] = []
    for k, (below, above) in enumerate(sides):
        axis, place = geometry.axes[k].axis, variant.code.thread.axes[k].coordinate
        low, high = geometry.lower[axis] - at[k], geometry.upper[axis] - at[k]
        if below:
            parts.append(emit.compare("sge", place, low))
        if above:
            parts.append(emit.compare("slt", place, high))
    return emit.value_of(emit.all_of(parts))


def halo_mask(
    step: StepScope, shape: FieldShape, at: Position, sides: Sides, lag: int
) -> SSAValue | None:
    """
    A position is outside the bounds on one of the sides, in a plane of a field; None if the field
    has no such cells.
    """
    mask = outside(step.variant, shape, at, sides) if any(map(any, sides)) else None
    if mask is None:
        return None
    return step.emit.all_of([mask, plane_in_field(step, shape, lag)])


# Cells.


def replaced(
    step: StepScope,
    queue: QueuePlan,
    guard: Guard,
    age: int,
    at: Position,
    sides: Sides,
    value: SSAValue,
) -> SSAValue:
    """
    A value, or the halo's where the position is outside the bounds: the register of an older level,
    or a predicated load over the value's own.
    """
    if not any(map(any, sides)):
        return value
    if guard.older is not None and not isinstance(queue, ExchangePlan):
        mask = inside(step.variant, at, sides)
        return step.emit.select(mask, value, older_cell(step, queue, guard.older, at))
    key = (value, *at, *(side for pair in sides for side in pair))
    if key in step.overridden:
        return step.overridden[key]
    mask = halo_mask(step, guard.shape, at, sides, queue.lag + age)
    if mask is None:
        return value
    index, offset = cell_at(step, guard.shape, queue.lag + age, at, step.code.thread)
    element = element_type(guard.field)
    (cell,) = override_cells(step.emit, [value], element, guard.buffer, index, offset, mask)
    if has_values(step):
        # The buffer has no cell beyond a side with a value.
        cell = with_values(step, queue.lag + age, at, element, cell, sides)
    step.overridden[key] = cell
    return cell


def older_cell(step: StepScope, queue: QueuePlan, older: OlderLevel, at: Position) -> SSAValue:
    """The older level's cell in place of a queue's newest cell outside the bounds."""
    waiting = step.waiting.get(queue.value, {})
    if at in waiting:
        return waiting[at]
    return step.planes(step.code.queues[older.queue])[older.behind][at]


def park(
    step: StepScope, queue: QueuePlan, older: OlderLevel, at: Position, partial: SSAValue
) -> SSAValue:
    """
    The partial sum of a queue's newest cell; outside the bounds, where the sum is never used, the
    older level's cell. The older cell waits in the sum's register until the queue's plane is made,
    and frees a register. Cells of planes kept for later steps need not wait.
    """
    sides = crossed_sides(step.variant, at, reach_of(step, queue))
    source = step.code.queues[older.queue]
    if older.behind < source.depth or not any(map(any, sides)):
        return partial
    cell = step.planes(source)[older.behind][at]
    mask = inside(step.variant, at, sides)
    parked = step.waiting.setdefault(queue.value, {})
    parked[at] = step.emit.select(mask, partial, cell)
    return parked[at]


def as_read(
    step: StepScope, queue: QueuePlan, age: int, at: Position, reach: Reach, value: SSAValue
) -> SSAValue:
    """
    A cell of a plane, right for a reader. `reach` is the reader's distance from a cell inside the
    bounds: nothing farther beyond its own cell can lie outside.
    """
    guard = guard_of(step, queue)
    if guard is None or is_patched(step, queue, guard, age, at):
        return value
    return replaced(step, queue, guard, age, at, crossed_sides(step.variant, at, reach), value)


def is_patched(step: StepScope, queue: QueuePlan, guard: Guard, age: int, at: Position) -> bool:
    """The cell, if outside the bounds, was replaced when the plane was made or became old."""
    if not isinstance(queue, ExchangePlan):
        return guard.patched_at_birth or (age > 0 and queue.shared is None)
    if guard.patched_at_birth and not isinstance(queue.published, CopiedPlane):
        return True
    edges = queue.published
    if not isinstance(edges, EdgeBuffer) or not edges.edges.along_rows:
        return False
    # Rows of the own warp are read from the registers of the source.
    return at[:-1] in step.code.rows and is_patched(
        step, queue.source, guard, age + queue.published_age, at
    )


# Planes.


def patched_plane(
    step: StepScope, queue: QueuePlan, guard: Guard, number: int | None = None
) -> Plane:
    """
    The newest plane, with cells outside the bounds replaced within the reach of all readers.
    `number` is the making stage, if the code belongs to a stage. A plane without readers in its own
    step is replaced at the step's end. Until then only cells outside the bounds are wrong, and no
    stored cell reads them.
    """
    plane: Plane = {}
    for line, row in enumerate(step.code.rows):
        if number is not None:
            step.mark(number, line)
        plane.update(patched_row(step, queue, guard, row))
    return plane


def patched_row(step: StepScope, queue: QueuePlan, guard: Guard, row: Row) -> Plane:
    """A row of the newest plane with its cells outside the bounds replaced."""
    reach = reach_of(step, queue)
    return {
        at: replaced(step, queue, guard, 0, at, crossed_sides(step.variant, at, reach), value)
        for at, value in step.planes(queue)[0].items()
        if at[:-1] == row
    }


def patch_at_birth(step: StepScope, number: int, queue: QueuePlan) -> None:
    """
    Replace those cells outside the bounds that are due at once, in the plane that stage `number`
    has made.
    """
    guard = guard_of(step, queue)
    if guard is None:
        return
    if guard.patched_at_birth:
        step.planes(queue)[0] = patched_plane(step, queue, guard, number)
    elif guard.older is not None and queue.depth:
        step.patched[queue.value] = patched_plane(step, queue, guard, number)


def patch_at_end(step: StepScope) -> None:
    """Replace, at the step's end, cells outside the bounds in planes that nobody read at once."""
    fetch_early(step)
    for queue in step.code.queues.values():
        guard = guard_of(step, queue)
        if guard is not None and queue.depth and not guard.patched_at_birth:
            known = step.patched.get(queue.value)
            step.planes(queue)[0] = known or patched_plane(step, queue, guard)


def fetch_early(step: StepScope) -> None:
    """
    Ask for the cells outside the bounds that planes of later steps will take: the first level would
    wait for memory.
    """
    first: dict[SSAValue, tuple[QueuePlan, Guard]] = {}
    for queue in step.code.queues.values():
        guard = guard_of(step, queue)
        if guard is None or guard.older is not None or isinstance(queue, ExchangePlan):
            continue
        if queue.depth or guard.patched_at_birth:
            known, _ = first.setdefault(guard.buffer, (queue, guard))
            if queue.lag < known.lag:
                first[guard.buffer] = (queue, guard)
    ahead = step.code.geometry.ahead
    for queue, guard in first.values() if ahead else ():
        lag, reach = queue.lag - ahead, reach_of(step, queue)
        for at in step.code.geometry.thread_positions:
            sides = crossed_sides(step.variant, at, reach)
            mask = halo_mask(step, guard.shape, at, sides, lag)
            if mask is not None:
                index, offset = cell_at(step, guard.shape, lag, at, step.code.thread)
                element = element_type(guard.field)
                step.emit.add(simt.PrefetchOp(guard.buffer, index, offset, element, mask))


def along_stream(step: StepScope, number: int, queue: QueuePlan, plane: Plane) -> Plane:
    """
    A new plane of a stage, replaced from the halo if the whole plane is outside the bounds along
    the stream.
    """
    guard = step.code.halos[queue.value].guard
    if not isinstance(step, StreamStep) or step.is_steady:
        return plane
    if guard is None or is_copied(step, queue):
        return plane
    geometry, shape = step.code.geometry, guard.shape
    spans = [span for span in halo_spans(geometry, shape, step.axis) if span]
    if not spans:
        return plane
    beyond = step.emit.any_of(
        [plane_between(step, queue.lag, span.start, span.stop) for span in spans]
    )
    width = image_width(geometry, guard.field)
    thread, none = step.code.thread, (0,) * len(geometry.axes)
    view, _ = seen(step.variant, thread, none, width=width)
    plane_at(step, shape, queue.lag, view)
    replacing: Plane = {}
    for line, row in enumerate(step.code.rows):
        step.mark(number, line)
        for start in range(0, step.code.cells, width):
            group = [(*row, start + k) for k in range(width)]
            index, offset = cell_at(step, shape, queue.lag, group[0], thread, width=width)
            has = in_field(step.variant, shape, group[0], thread)
            mask = step.emit.value_of(step.emit.all_of([beyond, has]))
            own = [plane[at] for at in group]
            element = element_type(guard.field)
            found = override_cells(step.emit, own, element, guard.buffer, index, offset, mask)
            replacing.update(zip(group, found))
    return plane_with_values(step, queue, replacing)


def is_copied(step: StepScope, queue: QueuePlan) -> bool:
    """Planes outside the bounds along the stream were copied from the halo already."""
    rings = step.code.placement.prefetches
    return any(ring.is_tiles and ring.load.result is queue.value for ring in rings)
