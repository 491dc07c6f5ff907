"""Refuses impossible kernels: fields beyond 32-bit coordinates, tiles without a cell to store."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from timetile.dialects.cell_types import CELL_BYTES, FIELD_TYPE_NAMES
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import ExchangeOp, KernelOp, LoadOp, StageOp
from timetile.passes.analysis.boundaries import check_kept
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape
from timetile.passes.diagnostics import refuse

FARTHEST = 1 << 30
"""
The largest coordinate of a field's cell. Tiles begin before fields and end beyond, and 32 bits must
number every cell.
"""


def check_fields(op: Operation, fields: Iterable[SSAValue]) -> None:
    """
    Refuse fields of types without memory accesses, and fields beyond 32-bit coordinates along an
    axis.
    """
    for field in fields:
        if element_type(field) not in CELL_BYTES:
            refuse(
                op,
                f"fields of {element_type(field)} are not supported; use {FIELD_TYPE_NAMES}",
            )
        shape = FieldShape.of(field)
        for axis, (low, high) in enumerate(zip(shape.lower, shape.upper)):
            if max(-low, high) > FARTHEST:
                refuse(
                    op,
                    f"a field reaches from {low} to {high} along axis {axis}, and coordinates end "
                    f"at {FARTHEST}; cut the domain into several",
                )


def check_loop(loop: LoopOp) -> None:
    """Refuse a time loop over impossible fields, or with boundaries not yet turned into updates."""
    check_kept(loop, images=True)
    check_fields(loop, (*loop.buffers, *loop.captures))


def checked_geometry(kernel: KernelOp) -> Geometry:
    """The geometry of a kernel. Refuses a kernel with tiles of nothing but overlap."""
    try:
        return Geometry(kernel)
    except ValueError:
        ways = "give device-tiling more cells"
        if kernel.steps.data > 1:
            ways += ", temporal-fusion a smaller depth"
        if is_fetched(kernel) and not any(map(brings_copies, kernel.stages)):
            ways += ", register-streaming what=copies, which exchanges loaded cells"
        refuse(
            kernel,
            f"the halo of the taps leaves no cell of a tile; {ways}, or device-tiling reads=memory",
        )


def is_fetched(kernel: KernelOp) -> bool:
    """Whether some planes of a kernel are fetched ahead."""
    return any(isinstance(stage, LoadOp) and stage.planes_ahead for stage in kernel.stages)


def brings_copies(stage: StageOp) -> bool:
    """Whether a stage publishes copies, with what lies around a tile."""
    return isinstance(stage, ExchangeOp) and stage.publishes_copies
