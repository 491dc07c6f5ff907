"""What the geometries of a kernel have in common, whatever the layout.

The search for a schedule asks for the geometry of one kernel in many layouts: needs, halos, fields
and the lengths of chunks are found once for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xdsl.ir import Attribute, SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import PointKind
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LoadOp,
    StageOp,
    StoreOp,
    queue_lag,
)
from timetile.passes.analysis.geometry.extents import Needs
from timetile.passes.analysis.geometry.field_shapes import FieldShape
from timetile.passes.analysis.geometry.shared_layout import whole_vectors
from timetile.passes.analysis.geometry.unrolling import unrolled_steps
from timetile.passes.targets.hardware import VECTOR_BYTES

MOST_CELLS = 4
"""Registers of one access to memory."""


def widest_access(element: Attribute) -> int:
    """The most cells of one access: 16 bytes, and four registers."""
    return min(VECTOR_BYTES // CELL_BYTES[element], MOST_CELLS)


def is_noted(stage: StageOp) -> bool:
    """Whether points note cells of a stage."""
    points = stage.point_sets if isinstance(stage, ApplyOp) else ()
    return any(made.kind is PointKind.SAMPLE for made in points)


class Outline:
    """
    The layout-independent part of a kernel's geometry. Its stages stay unchanged while an outline
    is in use.
    """

    def __init__(self, kernel: KernelOp):
        self.kernel = kernel
        self.needs = Needs.of(kernel)
        self.lower, self.upper = tuple(kernel.bounds.lb), tuple(kernel.bounds.ub)
        self.plane_axes = kernel.plane_axes

    @cached_property
    def stages(self) -> Sequence[StageOp]:
        """The operations of a stream step, in order."""
        return self.kernel.stages

    @cached_property
    def exchanges(self) -> Sequence[ExchangeOp]:
        """The exchanges among the stages."""
        return [stage for stage in self.stages if isinstance(stage, ExchangeOp)]

    @cached_property
    def copies(self) -> list[ExchangeOp]:
        """The exchanges served by a load's asynchronous copies."""
        return [exchange for exchange in self.exchanges if exchange.publishes_copies]

    @cached_property
    def pads(self) -> tuple[int, ...]:
        """
        Cells around the tile brought by asynchronous copies, on both sides of each in-plane axis.
        """
        widest = [0] * len(self.plane_axes)
        for exchange in self.copies:
            widest = [max(a, b) for a, b in zip(widest, exchange.edges)]
            widest[-1] = max(widest[-1], whole_vectors(exchange.element, exchange.edges[-1]))
        return tuple(widest)

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """The widest edges of all exchanges, along each in-plane axis."""
        wide = [exchange.edges for exchange in self.exchanges]
        return tuple(map(max, zip(*wide))) if wide else (0,) * len(self.plane_axes)

    @cached_property
    def reads_memory(self) -> bool:
        """Nothing is kept or exchanged: every tap is read from memory."""
        return self.kernel.reads_memory

    @cached_property
    def reads_halos(self) -> bool:
        """Cells outside the bounds are read from other buffers than the data inside."""
        loads = [stage for stage in self.stages if isinstance(stage, LoadOp)]
        data = {load.data for load in loads}
        return any(load.halo is not None and load.halo not in data for load in loads)

    @cached_property
    def replaces_cells(self) -> bool:
        """Whether cells outside the bounds are replaced, by cells of older levels or of memory."""
        return self.reads_halos or any(
            isinstance(stage, ApplyOp) and stage.replaces_cells for stage in self.stages
        )

    @cached_property
    def has_guards(self) -> bool:
        """
        Whether cells are replaced outside the bounds, or keep their old values beside the box of an
        update.
        """
        return self.replaces_cells or any(
            isinstance(stage, ApplyOp) and stage.box is not None and bool(stage.outside)
            for stage in self.stages
        )

    @cached_property
    def continues_in_plane(self) -> bool:
        """Whether fields go on outside the bounds along an in-plane axis."""
        return bool(set(self.plane_axes) & set(self.kernel.continued_axes))

    @cached_property
    def stored_fields(self) -> list[SSAValue]:
        """The fields stored by the kernel."""
        return [stage.field for stage in self.stages if isinstance(stage, StoreOp)]

    @cached_property
    def stored_type(self) -> Attribute:
        """The type in memory of the cells of the first stored field."""
        return element_type(self.stored_fields[0])

    @cached_property
    def stored_shape(self) -> FieldShape:
        """The shape of the first stored field."""
        return FieldShape.of(self.stored_fields[0])

    @cached_property
    def stored_planes(self) -> range:
        """The planes of the kernel's bounds. Without a stream the tile is plane 0."""
        stream = self.kernel.stream_axis
        return range(1) if stream is None else range(self.lower[stream], self.upper[stream])

    @cached_property
    def cut_planes(self) -> range:
        """
        The planes that are cut into chunks: those of the stores' boxes, or of the bounds where some
        store has no box.
        """
        stream = self.kernel.stream_axis
        boxes = [stage.box for stage in self.stages if isinstance(stage, StoreOp)]
        known = [CellBox.of(box) for box in boxes if box is not None]
        if stream is None or len(known) < len(boxes):
            return self.stored_planes
        low, high = min(b.lower[stream] for b in known), max(b.upper[stream] for b in known)
        return range(low, high)

    @cached_property
    def drain(self) -> int:
        """
        Steps between the arrival of a plane and the last store or note of the plane: the largest
        lag of a store, and of a stage whose cells are noted by points.
        """
        return max(
            stage.lag for stage in self.stages if isinstance(stage, StoreOp) or is_noted(stage)
        )

    @cached_property
    def fill(self) -> int:
        """Steps run by a chunk before its first plane arrives."""
        if self.kernel.stream_axis is None:
            return 0
        return max(map(self.lead, self.needs.around), default=0)

    def lead(self, queue: SSAValue) -> int:
        """
        Steps, before the arrival of a chunk's first plane, of the first plane needed of a queue.
        """
        return self.kernel.along_stream(self.needs.around[queue].low) - queue_lag(queue)

    @cached_property
    def ahead(self) -> int:
        """The most planes by which a load is fetched early."""
        return max((s.planes_ahead for s in self.stages if isinstance(s, LoadOp)), default=0)

    @cached_property
    def period(self) -> int:
        """Stream steps of one turn of the unrolled loop."""
        return unrolled_steps(self.kernel)
