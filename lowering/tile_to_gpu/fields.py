"""Cells of fields in a thread: addresses, and masks for cells beyond a field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import SSAValue

from timetile.lowering.emitter import Emitter, integer_type
from timetile.lowering.tile_to_gpu.queues import Position, cells_between
from timetile.lowering.tile_to_gpu.scopes import (
    LoopScope,
    StepScope,
    VariantScope,
    arriving_plane,
    chunk_start,
    once,
    plane_between,
)
from timetile.lowering.tile_to_gpu.thread import Thread, plane_base
from timetile.passes.analysis.geometry.field_access import are_cells_tested, is_plane_tested
from timetile.passes.analysis.geometry.plane_geometry import FieldShape

FAR_CELLS = 1 << 20
"""The smallest distance, in 8-byte cells, beyond the 24 signed bits for offsets of accesses."""


# Addresses of cells.


@once
def base_of(variant: VariantScope, shape: FieldShape, view: Thread) -> SSAValue:
    """The first cell of a thread's view in plane 0 of the program's coordinates, in a field."""
    return plane_base(variant.setup, variant.code.geometry, view, shape)


def moved_to(
    variant: VariantScope, emit: Emitter, base: SSAValue, shape: FieldShape, plane: SSAValue
) -> SSAValue:
    """A cell of plane 0 of the program's coordinates, in another plane."""
    stream = variant.code.stream
    assert stream is not None
    moved = emit.mul_int(emit.extend(plane, variant.code.index_type), shape.strides[stream])
    return emit.add_int(moved, base)


@once
def first_index(variant: VariantScope, shape: FieldShape, view: Thread) -> SSAValue:
    """The first own cell of a thread's view in the plane of the chunk's first step."""
    base = base_of(variant, shape, view)
    return moved_to(variant, variant.setup, base, shape, chunk_start(variant))


@once
def index_of(loop: LoopScope, shape: FieldShape, view: Thread) -> SSAValue:
    """The first own cell of a thread's view in the arriving plane of a loop's turn."""
    base = base_of(loop.variant, shape, view)
    if loop.count is None:
        return base
    first = first_index(loop.variant, shape, view)
    return moved_to(loop.variant, loop.body, first, shape, loop.count)


@once
def far_index(loop: LoopScope, shape: FieldShape, view: Thread, shift: int) -> SSAValue:
    """The index that is `shift` cells further."""
    return loop.body.add_int(index_of(loop, shape, view), shift)


def plane_at(step: StepScope, shape: FieldShape, lag: int, view: Thread) -> tuple[SSAValue, int]:
    """
    The first own cell of a thread's view in the plane `lag` steps back: an index, and cells from
    the index. Far planes have a separate index, as offsets of accesses have few bits.
    """
    index = index_of(step.loop, shape, view)
    if step.code.stream is None:
        return index, 0
    shift = (step.turn - lag) * shape.strides[step.code.stream]
    if abs(shift) < FAR_CELLS:
        return index, shift
    return far_index(step.loop, shape, view, shift), 0


def cell_at(
    step: StepScope, shape: FieldShape, lag: int, at: Position, view: Thread
) -> tuple[SSAValue, int]:
    """A position in the plane `lag` steps back: an index, and cells from the index."""
    index, distance = plane_at(step, shape, lag, view)
    return index, distance + cells_between(step.code.geometry, shape, at)


@once
def one_or_none(variant: VariantScope, mask: SSAValue, kind: IntegerType | IndexType) -> SSAValue:
    """1 where a mask is on and 0 where it is off."""
    emit = variant.setup
    return emit.select(mask, emit.int(1, kind), emit.int(0, kind))


@once
def next_cell(loop: LoopScope, index: SSAValue, mask: SSAValue) -> SSAValue:
    """An index, one more where the mask is on."""
    return loop.body.add_int(index, one_or_none(loop.variant, mask, integer_type(index)))


# Whether a cell lies in a field.


@once
def within(variant: VariantScope, value: SSAValue, shift: int, low: int, high: int) -> SSAValue:
    """`low <= value + shift < high`."""
    distance = variant.setup.add_int(value, shift - low)
    return variant.setup.compare("ult", distance, high - low)


@once
def in_field(
    variant: VariantScope,
    shape: FieldShape,
    at: Position,
    view: Thread,
    *,
    stores: bool = False,
    beside: Position | None = None,
) -> SSAValue | None:
    """
    A position lies in a field, halo included, along the in-plane axes. None if certain, as for
    stores (`stores`) to a field with all cells inside the bounds. `beside`: the distance from one
    of the thread's own cells.
    """
    far = beside or (0,) * len(view.axes)
    cells = [
        (axis.coordinate, shift, distance)
        for axis, shift, distance in zip(view.axes, at, far, strict=True)
    ]
    return cells_in_field(variant, shape, cells, stores=stores)


def cells_in_field(
    variant: VariantScope,
    shape: FieldShape,
    cells: Sequence[tuple[SSAValue, int, int]],
    *,
    stores: bool = False,
) -> SSAValue | None:
    """
    Cells lie in a field; None if certain. Each in-plane axis gives a coordinate, the cell's
    distance from the coordinate, and the cell's distance from the cells held or copied by the
    block.
    """
    geometry = variant.code.geometry
    parts: list[SSAValue | None] = []
    for number, (coordinate, shift, far) in enumerate(cells):
        interior, axis = not variant.guarded, geometry.axes[number].axis
        if are_cells_tested(geometry, shape, number, interior=interior, stores=stores, far=far):
            parts.append(within(variant, coordinate, shift, shape.lower[axis], shape.upper[axis]))
    return variant.setup.all_of(parts)


def plane_in_field(step: StepScope, shape: FieldShape, lag: int) -> SSAValue | None:
    """The plane `lag` steps back lies in the field, halo included; None if certain."""
    return tested_plane(step, shape, lag, stores=False)


def stored_plane(step: StepScope, shape: FieldShape, lag: int) -> SSAValue | None:
    """The plane `lag` steps back, stored by the chunk, lies in the field; None if certain."""
    return tested_plane(step, shape, lag, stores=True)


def tested_plane(step: StepScope, shape: FieldShape, lag: int, *, stores: bool) -> SSAValue | None:
    """The plane `lag` steps back lies in the field; None without need for a test."""
    geometry, stream = step.code.geometry, step.code.stream
    if not is_plane_tested(geometry, shape, lag, steady=step.is_steady, stores=stores):
        return None
    assert stream is not None
    return plane_between(step, lag, shape.lower[stream], shape.upper[stream])


@dataclass(frozen=True)
class Arrival:
    """
    A step, for copies and loads: the arriving plane in the first step of a turn of the loop or,
    ahead of the loop, in an `early` step. Planes are given by the distance from the arriving plane.
    `turn` and `is_steady` belong to the step.
    """

    variant: VariantScope
    turn: int
    is_steady: bool
    loop: LoopScope | None = None
    early: SSAValue | None = None

    @staticmethod
    def of(step: StepScope) -> Arrival:
        """
        A step of a loop. Loops with guards along the stream compute the number of the arriving
        plane at once.
        """
        if step.count is not None and not step.is_steady:
            arriving_plane(step.loop)
        return Arrival(step.variant, step.turn, step.is_steady, loop=step.loop)

    def plane(self) -> SSAValue:
        """The arriving plane, in the program's coordinates."""
        if self.early is not None:
            return self.early
        assert self.loop is not None
        return arriving_plane(self.loop)

    def index_of(self, shape: FieldShape, view: Thread) -> SSAValue:
        """The first own cell of a thread's view in the arriving plane, in a field."""
        if self.loop is not None:
            return index_of(self.loop, shape, view)
        base = base_of(self.variant, shape, view)
        return moved_to(self.variant, self.variant.setup, base, shape, self.plane())


def plane_mask(arrival: Arrival, emit: Emitter, shape: FieldShape, shift: int) -> SSAValue | None:
    """The plane `shift` planes from the arriving plane lies in the field; None if certain."""
    geometry, stream = arrival.variant.code.geometry, arrival.variant.code.stream
    if not is_plane_tested(geometry, shape, arrival.turn - shift, steady=arrival.is_steady):
        return None
    assert stream is not None
    low, high = shape.lower[stream], shape.upper[stream]
    return emit.compare("ult", emit.add_int(arrival.plane(), shift - low), high - low)
