"""The lives of values: in a variant, in a loop over stream steps, in a single step.

A scope keeps every value made in the scope, and both end together. A variant's values stand ahead
of the variant's loops. Values of a loop or a step stand in the loop's body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from timetile.dialects import nvvm, simt
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.code import KernelCode
from timetile.lowering.tile_to_gpu.message_buffers import Messages
from timetile.lowering.tile_to_gpu.queues import EdgeMessage, Plane, Position, QueuePlan
from timetile.lowering.tile_to_gpu.rings import Address, Ring, RingSlots

FULL_WARP = -1

Memo = dict[tuple[object, ...], object]
"""Values by making function and arguments."""


@dataclass
class VariantScope:
    """
    One lowered copy of a kernel's stages. `setup` appends ahead of the variant's loops. `guarded`:
    cells may lie outside the bounds along the in-plane axes.
    """

    code: KernelCode
    setup: Emitter
    guarded: bool
    stored_spans: dict[int, tuple[SSAValue, SSAValue]] = field(
        default_factory=dict[int, tuple[SSAValue, SSAValue]]
    )
    """For each axis: the tile's first stored cell, and the number of stored cells."""
    memo: Memo = field(default_factory=dict[tuple[object, ...], object])


@dataclass
class LoopScope:
    """
    A loop over stream steps; without a stream, the single step. `body` appends to the loop's body.
    `count` is the number of the chunk's steps before a turn of the loop (None without a stream).

    `is_steady`: no plane lies outside the bounds along the stream. `filling`: the last step of a
    loop for filling the pipeline. `planes`: the planes of each queue, newest first; all planes of
    queues in registers, and the step's newest plane of queues in shared memory.
    """

    variant: VariantScope
    body: Emitter
    count: SSAValue | None
    slots: RingSlots
    is_steady: bool = False
    filling: int | None = None
    planes: dict[SSAValue, list[Plane]] = field(default_factory=dict[SSAValue, list[Plane]])
    memo: Memo = field(default_factory=dict[tuple[object, ...], object])

    @property
    def code(self) -> KernelCode:
        """The facts of the kernel."""
        return self.variant.code


class StepScope:
    """One copy of the stages in the unrolled body of a loop: stream step `loop.count + turn`."""

    def __init__(self, loop: LoopScope, turn: int):
        self.loop, self.turn = loop, turn
        self.variant, self.code = loop.variant, loop.code
        self.body, self.setup = loop.body, loop.variant.setup
        self.count, self.is_steady = loop.count, loop.is_steady
        self.memo: Memo = {}
        self.fetched: dict[tuple[SSAValue, int, Position], SSAValue] = {}
        """Cells read from memory or another lane, by queue, age and position."""
        self.overridden: dict[tuple[SSAValue | int, ...], SSAValue] = {}
        """Cells outside the bounds read from memory, by replaced value, position and sides."""
        self.waiting: dict[SSAValue, Plane] = {}
        """Cells of an older level that wait in partial sums for the plane of a queue."""
        self.patched: dict[SSAValue, Plane] = {}
        """Newest planes, patched ahead of the step's end."""
        self.outgoing: dict[int, list[EdgeMessage]] = {}
        """Cells for the blocks before (-1) and after (1) of the cluster."""
        self.messages: Messages = {}
        """Cells for the blocks beside, in a tile held by the device."""
        self.arriving: list[QueuePlan] = []
        """Exchanges with messages posted and not yet taken, in a tile without a stream."""

    def planes(self, queue: QueuePlan) -> list[Plane]:
        """The planes of a queue, newest first."""
        return self.loop.planes.setdefault(queue.value, [])

    def slot(self, ring: Ring, age: int, base: int = 0) -> Address:
        """The slot of the plane of a ring that is `age` steps old."""
        return self.loop.slots.slot(self.body, ring, self.turn, age, base)

    def synchronise_warp(self) -> None:
        """The lanes of the warp wait for each other."""
        synchronise_warp(self.body)

    def mark_shared(self, stage: int) -> None:
        """Mark the following code as part of a stage, shared with other warps."""
        self.body.add(simt.MarkOp(self.turn, stage, 0))

    def mark(self, stage: int, row: int, *, private: bool = False) -> None:
        """
        Mark the following code as part of a stage and of the row of the given number. `private`: no
        other warp needs the code, wherever the row lies; stores are an example.
        """
        edge, rows = self.code.edge_rows, len(self.code.rows)
        inner = self.code.is_split and (private or edge <= row < rows - edge)
        self.body.add(simt.MarkOp(self.turn, stage, row, inner=inner))


ScopeT = TypeVar("ScopeT", VariantScope, LoopScope, StepScope)
Parameters = ParamSpec("Parameters")
Made = TypeVar("Made")


def once(
    make: Callable[Concatenate[ScopeT, Parameters], Made],
) -> Callable[Concatenate[ScopeT, Parameters], Made]:
    """Make a value once in the life of a scope, for each combination of the other arguments."""

    @wraps(make)
    def found(scope: ScopeT, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Made:
        key = (make, *args, *kwargs.items())
        if key not in scope.memo:
            scope.memo[key] = make(scope, *args, **kwargs)
        return cast(Made, scope.memo[key])

    return found


@once
def chunk_height(variant: VariantScope) -> SSAValue:
    """The planes of the chunk."""
    thread = variant.code.thread
    return variant.setup.sub_int(thread.last, thread.first)


@once
def chunk_start(variant: VariantScope) -> SSAValue:
    """The plane that arrives in the chunk's first step."""
    return variant.setup.add_int(variant.code.thread.first, -variant.code.geometry.fill)


@once
def arriving_plane(loop: LoopScope) -> SSAValue:
    """The plane that arrives in the first step of a turn of the loop."""
    assert loop.count is not None
    return loop.body.add_int(loop.count, chunk_start(loop.variant))


@once
def plane_between(step: StepScope, lag: int, low: int, high: int) -> SSAValue:
    """The plane `lag` steps back lies in [low, high)."""
    distance = step.body.add_int(arriving_plane(step.loop), step.turn - lag - low)
    return step.body.compare("ult", distance, high - low)


@once
def chunk_mask(step: StepScope, lag: int) -> SSAValue:
    """The plane `lag` steps back is stored by the chunk."""
    assert step.count is not None
    distance = step.body.add_int(step.count, step.turn - lag - step.code.geometry.fill)
    return step.body.compare("ult", distance, chunk_height(step.variant))


@once
def step_number(step: StepScope, passed: int) -> SSAValue:
    """The number of the step `passed` steps ago, counted from the block's first one."""
    assert step.count is not None
    counted, before = step.count, step.code.thread.steps_before
    if before is not None:
        counted = step.body.add_int(counted, before)
    return step.body.add_int(counted, step.turn - passed)


def message_number(step: StepScope, passed: int) -> SSAValue | None:
    """
    The number of the message sent `passed` steps ago; 0 before the first message. Without a stream
    each exchange has a single message. None if blocks meet at barriers.
    """
    if step.code.meets_at_barriers:
        return None
    before = step.code.thread.steps_before
    if step.count is None:
        assert before is not None
        return step.setup.add_int(before, 1)
    number = step_number(step, passed - 1)
    if passed < 2:
        return number
    return step.body.binary(arith.MaxSIOp, number, step.body.int(0))


@once
def unset_cell(variant: VariantScope, element: Attribute) -> SSAValue:
    """A cell that nothing has set."""
    return variant.setup.add(simt.UnsetOp(element)).result


def synchronise_warp(emit: Emitter) -> None:
    """The lanes of a warp wait for each other."""
    emit.add(nvvm.WarpSyncOp(emit.int(FULL_WARP)))


def is_first_thread(variant: VariantScope) -> SSAValue:
    """The first thread of the block."""
    emit, thread = variant.setup, variant.code.thread
    first_warp = emit.compare("eq", thread.warp_in_block, 0)
    first_lane = emit.compare("eq", thread.lane, 0)
    return emit.binary(arith.AndIOp, first_warp, first_lane)
