"""The lives of values: in a variant, in a loop over stream steps, in a single step.

A scope keeps every value made in the scope, and both end together. A variant's values stand ahead
of the variant's loops. Values of a loop or a step stand in the loop's body. A resident tile has no
loop, and a single step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.temporal import PointSet
from timetile.dialects.tile import ApplyOp, StoreOp
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.code import KernelCode
from timetile.lowering.tile_to_gpu.message_buffers import MessagesOfKernel
from timetile.lowering.tile_to_gpu.point_addends import Addends, AddendsOfLists, KeptValues
from timetile.lowering.tile_to_gpu.queues import (
    EdgeMessage,
    ExchangePlan,
    Plane,
    Position,
    QueuePlan,
)
from timetile.lowering.tile_to_gpu.rings import Address, Ring, RingSlots, fixed_slot
from timetile.passes.analysis.block_memory import WarpPart
from timetile.passes.analysis.geometry.plane_geometry import Row

FULL_WARP = -1

Memo = dict[tuple[object, ...], object]
"""Values by making function and arguments."""

Planes = dict[SSAValue, list[Plane]]
"""The planes of each queue, newest first."""


RowVectors = dict[Row, dict[int, list[SSAValue]]]
"""The vectors of each row, by their first cells."""

CellSpan = tuple[SSAValue, SSAValue]
"""The first cell along an axis, and the end or the number of cells."""


@dataclass
class VariantScope:
    """
    One lowered copy of a kernel's stages. `emit` appends ahead of the variant's loops. `guarded`:
    cells may lie outside the bounds along the in-plane axes.
    """

    code: KernelCode
    emit: Emitter
    guarded: bool
    around: VariantScope | None = None
    """
    The variant of the rim, if tiles inside the rim share its code: values ahead of the loops are
    made by all tiles.
    """
    stored_spans: dict[int, tuple[SSAValue, SSAValue]] = field(
        default_factory=dict[int, tuple[SSAValue, SSAValue]]
    )
    """
    For each in-plane axis: the tile's first stored cell, and the number of stored cells. All views
    of a thread give equal values.
    """
    point_planes: dict[SSAValue, CellSpan] = field(default_factory=dict[SSAValue, CellSpan])
    """
    For each list of points, the planes whose cells take values in the present loop, counted from
    the field's first: the first plane, and the number of planes.
    """
    noted_planes: dict[SSAValue, CellSpan] = field(default_factory=dict[SSAValue, CellSpan])
    """For each list of points, the planes whose cells are noted in the present loop."""
    kept_values: dict[PointSet, KeptValues] = field(default_factory=dict[PointSet, KeptValues])
    """For lists with values, the values kept for the present loop."""
    memo: Memo = field(default_factory=dict[tuple[object, ...], object])


@dataclass
class LoopScope:
    """
    A loop over stream steps along an axis. `emit` appends to the loop's body. `count` is the number
    of the chunk's steps before a turn of the loop.

    `is_steady`: no plane lies outside the bounds along the stream. `filling`: the last step of a
    loop for filling the pipeline. `planes`: all planes of queues in registers, and the step's
    newest plane of queues in shared memory. `copies`: the copies of a step in the unrolled body.
    `has_points`: planes may have points. `gathered`: values for cells of all levels, of lists
    without code beside each level. `numbers`: the thread's numbers of its cells so far, by stage.
    """

    variant: VariantScope
    emit: Emitter
    axis: int
    count: SSAValue
    slots: RingSlots
    is_steady: bool
    filling: int | None
    planes: Planes
    copies: int
    has_points: bool
    gathered: AddendsOfLists = field(default_factory=dict[PointSet, Addends])
    numbers: dict[StoreOp, SSAValue] = field(default_factory=dict[StoreOp, SSAValue])
    memo: Memo = field(default_factory=dict[tuple[object, ...], object])


class StepScope(ABC):
    """
    One copy of the stages, with the number `turn` among the copies of an unrolled loop. `around` is
    the scope of values shared by all copies: the loop, or the variant without a stream.
    """

    is_steady = False
    """No plane lies outside the bounds along the stream, as known without a test."""

    def __init__(
        self, variant: VariantScope, around: VariantScope | LoopScope, turn: int, planes: Planes
    ):
        self.variant, self.around, self.turn = variant, around, turn
        self.code, self.emit = variant.code, around.emit
        self.kept = planes
        self.memo: Memo = {}
        self.numbers: dict[StoreOp, SSAValue] = {}
        """The thread's numbers of its cells so far, by stage."""
        self.fetched: dict[tuple[SSAValue, int, Position], SSAValue] = {}
        """Cells read from memory or another lane, by queue, age and position."""
        self.overridden: dict[tuple[SSAValue | int, ...], SSAValue] = {}
        """Cells outside the bounds read from memory, by replaced value, position and sides."""
        self.waiting: dict[SSAValue, Plane] = {}
        """Cells of an older level that wait in partial sums for the plane of a queue."""
        self.patched: dict[SSAValue, Plane] = {}
        """Newest planes, patched ahead of the step's end."""
        self.dealt: dict[tuple[SSAValue, WarpPart], RowVectors] = {}
        """Rows in the storing lanes, by queue and place in shared memory."""
        self.outgoing: dict[int, list[EdgeMessage]] = {}
        """Cells for the blocks before (-1) and after (1) of the cluster."""
        self.messages: MessagesOfKernel = {}
        """Cells for the blocks beside, in a tile held by the device."""
        self.arriving: list[ExchangePlan] = []
        """Exchanges with messages posted and not yet taken, in a tile without a stream."""
        self.leaving: list[ExchangePlan] = []
        """Exchanges whose columns are in shared memory and not yet posted."""
        self.noted_cells: dict[PointSet, dict[ApplyOp, list[SSAValue]]] = {}
        """For each set of points, the thread's cells of stages that wait to be noted."""

    def planes(self, queue: QueuePlan) -> list[Plane]:
        """The planes of a queue, newest first."""
        return self.kept.setdefault(queue.value, [])

    @abstractmethod
    def slot(self, ring: Ring, age: int, base: int = 0) -> Address:
        """The slot of the plane of a ring that is `age` steps old."""

    def synchronise_warp(self) -> None:
        """Let the lanes of the warp wait for each other."""
        synchronise_warp(self.emit)

    def mark_shared(self, stage: int) -> None:
        """Mark the following code as part of a stage, shared with other warps."""
        self.emit.add(simt.MarkOp(self.turn, stage, 0))

    def mark(self, stage: int, row: int, *, private: bool = False) -> None:
        """
        Mark the following code with a stage and the number of a row. `private`: no
        other warp needs the code, wherever the row lies; stores are an example.
        """
        edge, rows = self.code.edge_rows, len(self.code.rows)
        inner = self.code.is_split and (private or edge <= row < rows - edge)
        self.emit.add(simt.MarkOp(self.turn, stage, row, inner=inner))


class StreamStep(StepScope):
    """One copy of the stages in the unrolled body of a loop: stream step `loop.count + turn`."""

    def __init__(self, loop: LoopScope, turn: int):
        super().__init__(loop.variant, loop, turn, loop.planes)
        self.loop, self.axis = loop, loop.axis
        self.is_steady = loop.is_steady
        self.numbers = loop.numbers

    @property
    def arriving_plane(self) -> SSAValue:
        """The plane that arrives in the first step of the loop's turn."""
        return arriving_plane(self.loop)

    def compute_arriving_plane(self) -> None:
        """Compute the arriving plane ahead of its uses, in a loop with guards along the stream."""
        if not self.is_steady:
            arriving_plane(self.loop)

    def slot(self, ring: Ring, age: int, base: int = 0) -> Address:
        """The slot of the plane of a ring that is `age` steps old."""
        return self.loop.slots.slot(self.emit, ring, self.turn, age, base)


class ResidentStep(StepScope):
    """The single copy of the stages of a tile without a stream."""

    def __init__(self, variant: VariantScope):
        super().__init__(variant, variant, 0, {})

    def slot(self, ring: Ring, age: int, base: int = 0) -> Address:
        """The slot of a ring: each of the queues that share a ring has a fixed slot."""
        return fixed_slot(ring, base - age)


@dataclass(frozen=True)
class EarlyStep:
    """A step ahead of the loops along an axis: copies of its planes start, and no stage runs."""

    variant: VariantScope
    axis: int
    arriving_plane: SSAValue
    turn: int = 0
    is_steady: bool = False


CopyingStep = StreamStep | EarlyStep
"""A step that starts copies of planes, counted from the arriving plane."""

ScopeT = TypeVar("ScopeT", bound=VariantScope | LoopScope | StepScope)
StepParameters = ParamSpec("StepParameters")
Made = TypeVar("Made")


def once(
    make: Callable[Concatenate[ScopeT, StepParameters], Made],
) -> Callable[Concatenate[ScopeT, StepParameters], Made]:
    """Make a value once in the life of a scope, for each combination of the other arguments."""

    @wraps(make)
    def found(scope: ScopeT, *args: StepParameters.args, **kwargs: StepParameters.kwargs) -> Made:
        key = (make, *args, *kwargs.items())
        if key not in scope.memo:
            scope.memo[key] = make(scope, *args, **kwargs)
        return cast(Made, scope.memo[key])

    return found


@once
def chunk_height(variant: VariantScope) -> SSAValue:
    """The planes of the chunk."""
    thread = variant.code.thread
    return variant.emit.sub_int(thread.last, thread.first)


@once
def chunk_start(variant: VariantScope) -> SSAValue:
    """The plane that arrives in the chunk's first step."""
    return variant.emit.add_int(variant.code.thread.first, -variant.code.geometry.fill)


@once
def arriving_plane(loop: LoopScope) -> SSAValue:
    """The plane that arrives in the first step of a turn of the loop."""
    return loop.emit.add_int(loop.count, chunk_start(loop.variant))


@once
def plane_between(step: StreamStep, lag: int, low: int, high: int) -> SSAValue:
    """The plane `lag` steps back lies in [low, high)."""
    distance = step.emit.add_int(step.arriving_plane, step.turn - lag - low)
    return step.emit.compare("ult", distance, high - low)


@once
def chunk_mask(step: StreamStep, lag: int) -> SSAValue:
    """The plane `lag` steps back is stored by the chunk."""
    distance = step.emit.add_int(step.loop.count, step.turn - lag - step.code.geometry.fill)
    return step.emit.compare("ult", distance, chunk_height(step.variant))


@once
def row_height(variant: VariantScope, mask: SSAValue, other: SSAValue | None) -> SSAValue:
    """The planes of the chunk in lanes where both masks are on, and 0 in other lanes."""
    emit, both = variant.emit, variant.emit.all_of([mask, other])
    assert both is not None
    return emit.select(both, chunk_height(variant), emit.int(0))


@once
def row_chunk_mask(step: StreamStep, lag: int, mask: SSAValue, other: SSAValue | None) -> SSAValue:
    """
    The plane `lag` steps back is stored by the chunk, and two masks of all steps are on: one
    comparison with a number of planes that is 0 where a mask is off.
    """
    distance = step.emit.add_int(step.loop.count, step.turn - lag - step.code.geometry.fill)
    return step.emit.compare("ult", distance, row_height(step.variant, mask, other))


@once
def step_number(step: StreamStep, passed: int) -> SSAValue:
    """The number of the step `passed` steps ago, counted from the block's first one."""
    counted, before = step.loop.count, step.code.thread.steps_before
    if before is not None:
        counted = step.emit.add_int(counted, before)
    return step.emit.add_int(counted, step.turn - passed)


@once
def sum_around(scope: VariantScope | LoopScope, a: SSAValue, b: int | SSAValue) -> SSAValue:
    """a + b, for all steps of a scope."""
    return scope.emit.add_int(a, b)


@once
def unset_cell(variant: VariantScope, element: Attribute) -> SSAValue:
    """A cell that nothing has set."""
    return variant.emit.add(simt.UnsetOp(element)).result


def synchronise_warp(emit: Emitter) -> None:
    """Let the lanes of a warp wait for each other."""
    emit.add(nvvm.WarpSyncOp(emit.int(FULL_WARP)))


def is_first_thread(variant: VariantScope) -> SSAValue:
    """The first thread of the block."""
    emit, thread = variant.emit, variant.code.thread
    first_warp = emit.compare("eq", thread.warp_in_block, 0)
    first_lane = emit.compare("eq", thread.lane, 0)
    return emit.binary(arith.AndIOp, first_warp, first_lane)
