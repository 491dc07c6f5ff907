"""Writing finished planes to memory, in vectors.

If a bound, or the end of a tile's stored cells, lies within a vector, a lane stores the vector's
cells on the inner side alone. A store of few of the planes stands in a branch: of other planes, a
warp tests only whether the plane is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.boxes import CellBox
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import StoreOp
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.fields import (
    in_field,
    inside_in_plane,
    next_cell,
    own_plane_at,
    plane_in_box,
    stored_plane,
)
from timetile.lowering.tile_to_gpu.ownership import owned, stored_along
from timetile.lowering.tile_to_gpu.prefetch import Staging
from timetile.lowering.tile_to_gpu.queues import Position, cells_between
from timetile.lowering.tile_to_gpu.scopes import (
    RowVectors,
    StepScope,
    StreamStep,
    VariantScope,
    chunk_mask,
    once,
    row_chunk_mask,
)
from timetile.lowering.tile_to_gpu.stored_cells import store_cells
from timetile.lowering.tile_to_gpu.thread import Thread
from timetile.passes.analysis.geometry.plane_geometry import FieldShape, Row, is_word
from timetile.passes.targets.hardware import LEAST_COPY

FEW_PLANES = 0.25
"""A store of at most this share of a kernel's planes stands in a branch."""

FEWEST_IN_BRANCH = 6
"""
Fewest accesses in a branch. On two H200s, j3d7pt with 6 and 15 accesses of a rim ran at 2750 GPts/s
in FP32 and 1230 in FP64, and without branches at 2684 and 1142; fewer gain little (1% with 3).
"""


@dataclass(frozen=True)
class RowStore:
    """Consecutive cells of a plane, written where the masks are on."""

    cells: Sequence[SSAValue]
    index: SSAValue | None
    offset: int
    masks: tuple[SSAValue | None, ...]


def store(step: StepScope, number: int, stage: StoreOp) -> None:
    """Write the tile's own cells of the newest plane."""
    code = step.code
    width = code.geometry.access_width(stage.field, inside=not step.variant.guarded)
    width = min(width, code.cells)
    plane = step.planes(code.queues[stage.queue])[0]
    rows = {row: [plane[*row, k] for k in range(code.cells)] for row in code.rows}
    if (staging := code.placement.staging.get(stage.field)) is not None:
        deal_rows(step, number, stage, staging, rows)
        return
    waiting: list[RowStore] = []
    for line, (row, own) in enumerate(rows.items()):
        step.mark(number, line, private=True)
        cells = {start: own[start : start + width] for start in range(0, code.cells, width)}
        store_row(step, stage, row_stores(step, stage, row, cells, code.thread), waiting)
    store_in_branch(step, stage, waiting)


def has_few_planes(step: StepScope, stage: StoreOp) -> bool:
    """Whether a store leaves out most planes of the kernel."""
    axis = step.code.kernel.stream_axis
    if stage.box is None or axis is None:
        return False
    bounds, box = CellBox.of(step.code.kernel.bounds), CellBox.of(stage.box)
    planes = bounds.upper[axis] - bounds.lower[axis]
    return box.upper[axis] - box.lower[axis] <= FEW_PLANES * planes


def store_row(
    step: StepScope, stage: StoreOp, found: Iterator[RowStore], waiting: list[RowStore]
) -> None:
    """Write a row's accesses; if the store has few planes, let them wait."""
    if has_few_planes(step, stage):
        waiting += found
        return
    for access in found:
        add_row_store(step, step.emit, stage, access)


def store_in_branch(step: StepScope, stage: StoreOp, waiting: Sequence[RowStore]) -> None:
    """Write accesses where the store has the plane."""
    masks, block = planes_of_store(step, stage) if waiting else [], Block()
    planes = step.emit.all_of(masks) if len(waiting) >= FEWEST_IN_BRANCH else None
    if planes is None:
        for access in waiting:
            add_row_store(step, step.emit, stage, access, masks)
        return
    inside = step.emit.into(block)
    for access in waiting:
        add_row_store(step, inside, stage, access)
    block.add_op(scf.YieldOp())
    step.emit.add(scf.IfOp(planes, [], [block]))


def planes_of_store(step: StepScope, stage: StoreOp) -> list[SSAValue | None]:
    """Masks, equal in all lanes: the chunk has the plane, and so have the field and the box."""
    lag, masks = step.code.queues[stage.queue].lag, list[SSAValue | None]()
    if isinstance(step, StreamStep):
        shape = FieldShape.of(stage.field)
        masks += [chunk_mask(step, lag), stored_plane(step, shape, lag)]
    if stage.box is not None:
        masks.append(plane_in_box(step, stage.box, lag))
    return masks


def add_row_store(
    step: StepScope,
    emit: Emitter,
    stage: StoreOp,
    access: RowStore,
    planes: Sequence[SSAValue | None] = (),
) -> None:
    """Write the cells of an access."""
    mask, buffer = emit.all_of([*access.masks, *planes]), step.code.arguments[stage.field]
    element = element_type(stage.field)
    store_cells(emit, access.cells, element, buffer, access.index, access.offset, mask)


def row_stores(
    step: StepScope, stage: StoreOp, row: Row, cells: dict[int, list[SSAValue]], view: Thread
) -> Iterator[RowStore]:
    """The accesses that write vectors of a row, by their first cells in the thread's view."""
    variant, geometry = step.variant, step.code.geometry
    guarded = variant.guarded or geometry.always_guarded(len(geometry.axes) - 1)
    for start, vector in cells.items():
        at, width = (*row, start), len(vector)
        stride = step.code.cells if view is step.code.thread else width
        whole = is_stored(step, stage, at, view, width)
        yield row_store(step, stage, at, vector, view, whole)
        cut = geometry.cut_cells(start, width, stride, guarded=guarded)
        narrows = narrows_planes(step, stage)
        if narrows:
            cut = sorted({*cut, *geometry.cells_cut_by(stage.cells, start, width)})
        # Both cells are cut if a start and an end of a row fall on one place of a lane's vectors.
        elif geometry.cuts_pairs and len(cut) == 2 and is_word(stage.field):
            yield either_of(step, stage, at, vector, view)
            continue
        for k in cut:
            cell = (*row, start + k)
            own = is_stored(step, stage, cell, view, 1)
            # The mask of a box changes from step to step.
            mask = one_of(step, own, whole) if narrows else alone(variant, own, whole)
            yield row_store(step, stage, cell, [vector[k]], view, mask)


def is_stored(
    step: StepScope, stage: StoreOp, at: Position, view: Thread, width: int
) -> SSAValue | None:
    """
    The tile stores `width` cells of a row from a position on, all in the store's box along the
    in-plane axes.
    """
    own = owned(step.variant, at, view, width)
    if stage.box is None or not narrows_planes(step, stage):
        return own
    lag = step.code.queues[stage.queue].lag
    return step.emit.all_of([own, inside_in_plane(step, stage.box, lag, at, view, width)])


def narrows_planes(step: StepScope, stage: StoreOp) -> bool:
    """Whether the box of a store leaves out cells of the bounds along an in-plane axis."""
    if stage.box is None:
        return False
    bounds, box = step.code.geometry, CellBox.of(stage.box)
    return any(
        (box.lower[axis], box.upper[axis]) != (bounds.lower[axis], bounds.upper[axis])
        for axis in bounds.kernel.plane_axes
    )


def either_of(
    step: StepScope, stage: StoreOp, at: Position, cells: Sequence[SSAValue], view: Thread
) -> RowStore:
    """
    One cell of a vector of two, in lanes with a single stored cell: one access for all lanes.
    """
    *row, start = at
    variant = step.variant
    second = second_of_two(variant, view, start)
    mask = alone(variant, owned(variant, at, view, 1), owned(variant, (*row, start + 1), view, 1))
    cell = step.emit.select(second, cells[1], cells[0])
    return row_store(step, stage, at, [cell], view, mask, second)


@once
def second_of_two(variant: VariantScope, view: Thread, start: int) -> SSAValue:
    """The tile stores the second cell of the vector that begins at a cell of a row."""
    last = len(view.axes) - 1
    return variant.emit.value_of(stored_along(variant, view, last, start + 1))


@once
def exactly_one(variant: VariantScope, one: SSAValue, other: SSAValue) -> SSAValue:
    """Exactly one of two masks is on."""
    return variant.emit.binary(arith.XOrIOp, one, other)


def one_of(step: StepScope, one: SSAValue | None, other: SSAValue | None) -> SSAValue:
    """Exactly one of two masks of a step is on."""
    emit = step.emit
    return emit.binary(arith.XOrIOp, emit.value_of(one), emit.value_of(other))


def alone(variant: VariantScope, own: SSAValue | None, other: SSAValue | None) -> SSAValue:
    """
    Exactly one of two masks is on: the masks of a cell and of the whole vector, or of the vector's
    two cells.
    """
    emit = variant.emit
    return exactly_one(variant, emit.value_of(own), emit.value_of(other))


def row_store(
    step: StepScope,
    stage: StoreOp,
    at: Position,
    cells: Sequence[SSAValue],
    view: Thread,
    mask: SSAValue | None,
    is_next: SSAValue | None = None,
) -> RowStore:
    """
    The access that writes consecutive cells of a row, where the mask is on and the field has the
    cells; a cell further in the lanes where `is_next` is on. A store of few planes tests elsewhere
    whether the store has the plane.
    """
    queue, shape = step.code.queues[stage.queue], FieldShape.of(stage.field)
    masks = [mask, in_field(step.variant, shape, at, view, stores=True)]
    if takes_heights(step, stage) and isinstance(step, StreamStep) and any(masks):
        first, *others = [each for each in masks if each is not None]
        masks = [row_chunk_mask(step, queue.lag, first, others[0] if others else None)]
    elif not has_few_planes(step, stage):
        masks += planes_of_store(step, stage)
    index, distance = own_plane_at(step, shape, queue.lag, view)
    if is_next is not None:
        index = next_cell(step, index, is_next)
    return RowStore(
        cells, index, distance + cells_between(step.code.geometry, shape, at), tuple(masks)
    )


def takes_heights(step: StepScope, stage: StoreOp) -> bool:
    """
    Whether the masks of a row and of the chunk's planes are one comparison: for narrow fields
    stored whole, whose kernels are bound by the issue of instructions.
    """
    lag, shape = step.code.queues[stage.queue].lag, FieldShape.of(stage.field)
    narrow = CELL_BYTES[element_type(stage.field)] < LEAST_COPY
    return (
        narrow
        and stage.box is None
        and isinstance(step, StreamStep)
        and stored_plane(step, shape, lag) is None
    )


def deal_rows(
    step: StepScope, number: int, stage: StoreOp, staging: Staging, rows: dict[Row, list[SSAValue]]
) -> None:
    """
    Hand rows over, through shared memory, to the storing lanes: a vector for each lane in turn.
    Further stores of a plane find the rows in the lanes.
    """
    key = stage.queue, staging.part
    if key not in step.dealt:
        step.dealt[key] = dealt_rows(step, number, staging, rows)
    waiting: list[RowStore] = []
    for row, cells in step.dealt[key].items():
        store_row(step, stage, row_stores(step, stage, row, cells, staging.view), waiting)
    store_in_branch(step, stage, waiting)


def dealt_rows(
    step: StepScope, number: int, staging: Staging, rows: dict[Row, list[SSAValue]]
) -> RowVectors:
    """The vectors of each row in the storing lanes, by their first cells."""
    order = step.code.rows
    if not step.code.synchronises:
        # Rows of the step before must be read before the lanes overwrite the rows.
        step.mark(number, 0, private=True)
        step.synchronise_warp()
    for vector in staging.writes:
        row, start = vector.at[:-1], vector.at[-1]
        step.mark(number, order.index(row), private=True)
        cells = rows[row][start : start + vector.width]
        step.emit.add(simt.StoreOp(cells, staging.buffer, staging.written_from, vector.place))
    step.mark(number, len(order), private=True)
    step.synchronise_warp()
    dealt: RowVectors = {}
    for vector in staging.reads:
        row, start = vector.at[:-1], vector.at[-1]
        types = [staging.element] * vector.width
        op = simt.LoadOp(staging.buffer, staging.read_from, vector.place, types)
        dealt.setdefault(row, {})[start] = list(step.emit.add(op).cells)
    return dealt
