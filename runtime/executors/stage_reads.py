"""What the stages of a kernel read, looked up once for all steps of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.tile import ApplyOp, KernelOp, LoadOp, queue_lag


@dataclass(frozen=True)
class StageReads:
    """What a stage reads in every step, looked up once: planes of queues with their ages."""

    taps: tuple[tuple[Tap, SSAValue, int], ...]
    outside: tuple[tuple[SSAValue, int], ...]
    scalars: tuple[SSAValue, ...]
    axes: tuple[int, ...]

    @staticmethod
    def of(stage: ApplyOp) -> StageReads:
        """The reads of a stage."""
        return StageReads(
            tuple((tap, stage.queue_of(tap), stage.age(tap)) for tap in stage.tap_list),
            tuple((queue, stage.lag - queue_lag(queue)) for queue in stage.outside),
            tuple(stage.scalars),
            stage.index_axes,
        )


def frame_of(kernel: KernelOp, boxes: dict[ApplyOp, StencilBoundsAttr]) -> StencilBoundsAttr:
    """A box around all fields of a kernel and all cells tapped by its stages."""
    frame = CellBox.of(kernel.bounds)
    loads = [stage for stage in kernel.stages if isinstance(stage, LoadOp)]
    narrow = {load.data for load in loads if load.axes is not None}
    narrow |= {field for stage in boxes for field in stage.points}
    for argument in kernel.body.block.args:
        if argument in narrow or argument.first_use is None:
            continue
        if isinstance(argument.type, FieldType):
            frame |= CellBox.of(field_bounds(argument))
    for stage, box in boxes.items():
        cells = CellBox.of(box)
        frame |= cells
        for tap in stage.tap_list:
            frame |= cells.moved(tap.offset)
    for load in loads:
        if load.data is not None and load.offset is not None and load.axes is None:
            frame |= CellBox.of(seen_from(field_bounds(load.data), load.offset))
    return frame.bounds()


def seen_from(box: StencilBoundsAttr, offset: Sequence[int]) -> StencilBoundsAttr:
    """The cells from which a box lies at an offset."""
    return CellBox.of(box).moved([-distance for distance in offset]).bounds()


def reads_own_cells(load: LoadOp) -> bool:
    """Whether the load reads each cell of a field at the cell's own place, from memory at use."""
    return load.offset is not None and not any(load.offset)
