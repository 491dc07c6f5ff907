"""The facts of a kernel's code, fixed before any stage is emitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from timetile.dialects.tile import (
    ApplyOp,
    ExchangeOp,
    KernelOp,
    LayoutAttr,
    LoadOp,
    RegistersAttr,
    queue_type,
)
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.halo_plans import HaloPlan, plan_halos
from timetile.lowering.tile_to_gpu.message_buffers import messages
from timetile.lowering.tile_to_gpu.placement import Placement
from timetile.lowering.tile_to_gpu.queues import QueuePlan
from timetile.lowering.tile_to_gpu.thread import Thread, index_width
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import Row
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.synchronisation import (
    crossing_rows,
    place_barriers,
    steps_between_barriers,
)


@dataclass(frozen=True)
class KernelCode:
    """
    The facts shared by all variants of a kernel: geometry, the thread's place, the values of the
    kernel's `arguments`, the cell functions by name, the places of queues, and the plans of queues
    and of their cells outside the bounds.
    """

    geometry: Geometry
    kernel: KernelOp
    layout: LayoutAttr
    thread: Thread
    arguments: Mapping[SSAValue, SSAValue]
    functions: Mapping[str, CellFunction]
    placement: Placement
    queues: Mapping[SSAValue, QueuePlan]
    halos: Mapping[SSAValue, HaloPlan]
    stream: int | None
    cells: int
    """The thread's cells in a row."""
    rows: list[Row]
    index_type: IntegerType
    """The integer type for numbers of cells of fields."""
    barriers: tuple[int, ...]
    """Numbers of the stages before which the tile's threads wait for each other."""
    warp_barriers: tuple[int, ...]
    """Numbers of the stages before which the lanes of a warp wait for each other."""
    barrier_steps: int
    """Steps from one barrier of a tile's blocks to the next."""
    edge_rows: int
    """Rows at either end of a thread's own, done before the warp arrives."""

    @staticmethod
    def of(
        geometry: Geometry,
        thread: Thread,
        arguments: Mapping[SSAValue, SSAValue],
        functions: Mapping[str, CellFunction],
        placement: Placement,
    ) -> KernelCode:
        """The facts of a kernel, after the placement of queues."""
        kernel = geometry.kernel
        split = placement.arrivals is not None
        return KernelCode(
            geometry,
            kernel,
            layout_of(kernel),
            thread,
            arguments,
            functions,
            placement,
            plan_queues(kernel, placement),
            plan_halos(geometry, arguments, functions),
            kernel.stream_axis,
            geometry.axes[-1].layout.cells,
            list(geometry.thread_rows),
            index_width(geometry),
            () if split else tuple(place_barriers(placement.orders)),
            tuple(place_barriers(placement.warp_orders)),
            steps_between_barriers(messages(kernel)),
            crossing_rows(kernel),
        )

    @property
    def is_split(self) -> bool:
        """The tile's warps arrive, and wait later."""
        return self.placement.arrivals is not None

    @property
    def meets_at_barriers(self) -> bool:
        """The blocks of a tile held by the device wait for each other at barriers."""
        buffers = self.placement.message_buffers
        return buffers is not None and buffers.counter is not None

    @property
    def synchronises(self) -> bool:
        """The lanes of a warp wait for each other in every step."""
        in_every_step = bool(self.barriers) and self.barrier_steps == 1
        return in_every_step or any(ring.is_dealt for ring in self.placement.prefetches)

    @property
    def takes_for_others(self) -> bool:
        """
        Several warps lie at the edge of a block, and each reads the cells taken by all of them.
        """
        return self.layout.edge_warps > 1

    @property
    def loop_queues(self) -> list[QueuePlan]:
        """The queues whose planes pass from step to step in registers."""
        return [queue for queue in self.queues.values() if queue.depth]


def plan_queues(kernel: KernelOp, placement: Placement) -> dict[SSAValue, QueuePlan]:
    """The plan of every queue of a kernel, in the order of the stages."""
    queues: dict[SSAValue, QueuePlan] = {}
    for stage in kernel.stages:
        for result in stage.results:
            kind = queue_type(result)
            in_registers = isinstance(stage, LoadOp | ApplyOp) and isinstance(
                stage.home, RegistersAttr
            )
            exchange = stage if isinstance(stage, ExchangeOp) else None
            queues[result] = QueuePlan(
                result,
                kind.element,
                kind.lag.data,
                depth=placement.depths[result] if in_registers else 0,
                shared=placement.shared.get(result),
                edge_buffer=placement.edge_buffers.get(result),
                rim=placement.rims.get(result),
                source=None if exchange is None else queues[exchange.queue],
                delay=0 if exchange is None else exchange.delay.data,
                hold=0 if exchange is None else exchange.hold,
                copied=exchange is not None and exchange.publishes_copies,
            )
    return queues
