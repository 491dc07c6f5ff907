"""The facts of a kernel's code, fixed before any stage is emitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from timetile.dialects.tile import (
    ExchangeOp,
    KernelOp,
    LayoutAttr,
    Published,
    RegistersAttr,
    queue_type,
)
from timetile.lowering.tile_to_gpu.cells import CellFunction
from timetile.lowering.tile_to_gpu.halo_plans import HaloPlan, plan_halos
from timetile.lowering.tile_to_gpu.message_buffers import Meeting, messages
from timetile.lowering.tile_to_gpu.placement import Placement
from timetile.lowering.tile_to_gpu.queues import (
    CopiedPlane,
    ExchangePlan,
    PublishedCells,
    PublishedPlane,
    PublishedRing,
    QueuePlan,
)
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
    """Steps from one barrier of a block, or of a tile's blocks, to the next."""
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
        exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
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
            steps_between_barriers(messages(kernel) or exchanges),
            crossing_rows(kernel),
        )

    @cached_property
    def divides(self) -> bool:
        """Some cell function has an operation that is slow for special operands."""
        return any(function.divides for function in self.functions.values())

    @property
    def is_split(self) -> bool:
        """The tile's warps arrive, and wait later."""
        return self.placement.arrivals is not None

    @property
    def meeting(self) -> Meeting | None:
        """
        Where the blocks of a tile held by the device wait for each other; None unless blocks meet
        at barriers.
        """
        buffers = self.placement.message_buffers
        return None if buffers is None else buffers.meeting

    @property
    def synchronises(self) -> bool:
        """The lanes of a warp wait for each other in every step."""
        in_every_step = bool(self.barriers) and self.barrier_steps == 1
        return in_every_step or any(ring.changes_lanes for ring in self.placement.prefetches)

    @property
    def takes_for_others(self) -> bool:
        """
        Each warp reads cells taken by others: several warps lie at the edge of a block, or one warp
        takes a column.
        """
        has_columns = any(rim.columns for rim in self.placement.rims.values())
        return self.layout.edge_warps > 1 or (has_columns and self.layout.warps > 1)

    @cached_property
    def exchanges(self) -> dict[SSAValue, ExchangePlan]:
        """The queues of exchanges."""
        plans = self.queues.items()
        return {value: plan for value, plan in plans if isinstance(plan, ExchangePlan)}

    @property
    def is_alone(self) -> bool:
        """The warps of a tile do not wait for each other in a step."""
        waits = self.barriers and not self.placement.one_warp
        return not waits and self.placement.arrivals is None and self.meeting is None

    @property
    def allows_single_steps(self) -> bool:
        """
        A loop may have a single step in its body: barriers stand in every step, and warps that wait
        for each other count no step of a turn.
        """
        return self.barrier_steps == 1 and (self.is_alone or self.placement.has_rolled_rings)

    @property
    def loop_queues(self) -> list[QueuePlan]:
        """The queues whose planes pass from step to step in registers."""
        return [queue for queue in self.queues.values() if queue.depth]


def plan_queues(kernel: KernelOp, placement: Placement) -> dict[SSAValue, QueuePlan]:
    """The plan of every queue of a kernel, in the order of the stages."""
    queues: dict[SSAValue, QueuePlan] = {}
    for stage in kernel.stages:
        for result in stage.results:
            if isinstance(stage, ExchangeOp):
                queues[result] = plan_exchange(stage, queues[stage.queue], placement)
                continue
            kind = queue_type(result)
            depth = placement.depths[result] if isinstance(stage.home, RegistersAttr) else 0
            shared = placement.shared.get(result)
            queues[result] = QueuePlan(result, kind.element, kind.lag.data, depth, shared)
    return queues


def plan_exchange(exchange: ExchangeOp, source: QueuePlan, placement: Placement) -> ExchangePlan:
    """The plan of the queue of an exchange."""
    kind = queue_type(exchange.result)
    return ExchangePlan(
        exchange.result,
        kind.element,
        kind.lag.data,
        source=source,
        published=published_cells(exchange, source, placement),
        delay=exchange.delay.data,
        hold=exchange.hold,
    )


def published_cells(
    exchange: ExchangeOp, source: QueuePlan, placement: Placement
) -> PublishedCells:
    """Where the readers of an exchange find cells of other threads."""
    result, rim = exchange.result, placement.rims.get(exchange.result)
    if exchange.publishes_copies:
        return CopiedPlane(placement.shared[result])
    if source.shared is not None:
        return PublishedRing(source.shared, rim)
    if exchange.what.data is Published.PLANE:
        return PublishedPlane(placement.shared[result], rim)
    return placement.edge_buffers[result]
