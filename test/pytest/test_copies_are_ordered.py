"""
A plane copied into shared memory is read by warps other than the copying warps: the copy completes
before the reads, and the next copy to the slot starts after the reads. Two fields of one update are
read at different ages: the barrier for one field does not serve the other field.
"""

from __future__ import annotations

from typing import Any

import pytest

import timetile
from support.catalogue import entry
from support.compare import assert_as_unfused
from support.description import Box, Buffer, Program, Store, Update, random_inputs
from support.expressions import Offset, Tap
from support.programs import program_text
from support.schedules import Schedule, block_plane, block_row, check
from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    Form,
    KernelOp,
    LoadOp,
    SharedAttr,
    Storage,
    Sync,
    queue_home,
)
from timetile.passes.analysis.queues import synchronisation
from timetile.passes.analysis.queues.storage import ReadAges
from timetile.passes.analysis.queues.synchronisation import (
    AccessOrder,
    collect_orders,
    split_keeps,
)
from timetile.passes.tiling import queue_homes
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.program.compiled_program import Executor

PLACES: list[tuple[Offset, Offset]] = [
    ((0, 1, 0), (-1, 1, 0)),
    ((0, 1, 0), (1, 1, 0)),
    ((1, 1, 0), (0, 1, 0)),
    ((-1, 1, 0), (1, 1, 0)),
]
"""An update that reads the advanced field, and a coefficient."""

BARRIERS = Schedule(
    "barriers",
    block_plane((2, 1), (3, 1)),
    Buffering(ahead=2),
    Streaming(sync=Sync.BARRIER),
    planes=5,
)


def two_fields(own: Offset, coefficient: Offset) -> Program:
    inner = Box.of((5, 7, 22))
    bounds = inner.grown((1, 1, 1), (1, 1, 1))
    cell = Tap("u", own) * 0.3 + Tap("u", (0, 0, 0)) * 0.2 + Tap("k", coefficient) * 0.5
    buffers = tuple(Buffer(name, bounds, "f64") for name in "uvk")
    return Program("f64", buffers, ("u", "v"), (1, 0), (Update((cell,), (Store(0, "v", inner),)),))


def run(program: Program, schedule: Schedule, executor: Executor) -> timetile.CompiledProgram:
    """Two steps, a launch each."""
    compiled = timetile.compile(
        program_text(program),
        executor=executor,
        passes=schedule.passes(1),
        fp_contract="off",
        cache=False,
    )
    assert_as_unfused(compiled, program, random_inputs(program, 5), 2, executor)
    return compiled


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["simt", "ptx"])
@pytest.mark.parametrize(("own", "coefficient"), PLACES)
def test_copies_wait_for_readers(own: Offset, coefficient: Offset, executor: Executor):
    run(two_fields(own, coefficient), BARRIERS, executor)


@pytest.mark.parametrize("executor", ["simt", "ptx"])
@pytest.mark.parametrize("order", [0, 1])
def test_either_order_of_a_copy_is_needed(
    order: int, executor: Executor, monkeypatch: pytest.MonkeyPatch
):
    """
    Without the order after the copy a reader finds nothing; without the order before the next copy
    a reader races.
    """
    every = synchronisation.copy_orders

    def without(*arguments: Any, **named: Any) -> list[AccessOrder]:
        orders = every(*arguments, **named)
        return [orders[1 - order]]

    monkeypatch.setattr(synchronisation, "copy_orders", without)
    with pytest.raises(SimtError, match=r"without a synchronisation between|never set"):
        for places in PLACES:
            run(two_fields(*places), BARRIERS, executor)


@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
def test_a_warp_hands_on_an_older_plane_of_its_copies(executor: Executor):
    """The plane that other warps wait for is a step old, in the copies of a coefficient."""
    inner = Box.of((13, 30))
    bounds = inner.grown((1, 1), (1, 1))
    coefficient = Tap("k", (1, 0)) * 0.4 + Tap("k", (0, 1)) * 0.5
    cell = Tap("u", (0, 0)) * 0.3 + Tap("u", (0, -1)) * 0.2 + coefficient
    buffers = tuple(Buffer(name, bounds, "f64") for name in "uvk")
    program = Program(
        "f64", buffers, ("u", "v"), (1, 0), (Update((cell,), (Store(0, "v", inner),)),)
    )
    schedule = Schedule("copies", block_row(1), Buffering(ahead=3), streaming=None, planes=5)
    compiled = timetile.compile(
        program_text(program), executor=executor, passes=schedule.passes(3), fp_contract="off",
        cache=False, halos="common",
    )  # fmt: skip
    assert "home #tile.copies" in str(compiled.kernels.tiled)
    inputs = random_inputs(program, 5, common_halos=True)
    assert_as_unfused(compiled, program, inputs, 7, executor)


RINGS = [
    Buffering(storage=Storage.SHARED),
    Buffering(storage=Storage.SHARED, addressing=Addressing.SHIFTING),
]


def placed(name: str, buffering: Buffering, depth: int) -> KernelOp:
    """The deepest kernel of a program, placed by a pass."""
    schedule = Schedule("rings", block_plane((2, 1), (3, 1)), buffering, None, planes=5)
    compiled = timetile.compile(
        program_text(entry(name).make((5, 7, 22))),
        executor="planes",
        passes=schedule.passes(depth),
        fp_contract="off",
        cache=False,
    )
    kernels = [op for op in compiled.kernels.tiled.ops if isinstance(op, KernelOp)]
    return max(kernels, key=lambda kernel: kernel.steps.data)


def test_an_own_cell_is_read_before_any_thread_copies_to_its_slot():
    """A thread that copies may be another than the thread that wrote and reads the cell."""
    rings = Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED, ahead=2)
    kernel = placed("heat-3d", rings, 2)
    stages, orders = list(kernel.stages), collect_orders(kernel)
    load = next(n for n, stage in enumerate(stages) if isinstance(stage, LoadOp))
    last = max(n for n, stage in enumerate(stages) if isinstance(stage, ApplyOp))
    before_copies = [o for o in orders if (o.before, o.after) == (last, load) and not o.inner]
    # The last level reads its own cell in three planes of the level before.
    assert len({order.distance for order in before_copies}) == 3


@pytest.mark.parametrize("name", ["wave-3d", "skewed-3d"])
@pytest.mark.parametrize("rings", RINGS, ids=lambda rings: str(rings.addressing))
def test_a_slot_is_written_again_after_as_many_steps_as_the_ring_has_slots(
    name: str, rings: Buffering
):
    """From a write to a read, and from the read to the next write of the slot."""
    kernel = placed(name, rings, 1)
    stages, orders = list(kernel.stages), collect_orders(kernel)
    pairs = list(zip(orders[::2], orders[1::2], strict=True))
    assert pairs
    for first, again in pairs:
        (queue,) = stages[first.before].results
        home = queue_home(queue)
        assert isinstance(home, SharedAttr)
        assert (first.after, again.before) == (again.before, first.after)
        assert first.distance + again.distance == home.slots.data
        assert again.inner, "rows in the middle of a thread read the ring, too"


@pytest.mark.parametrize(
    ("distance", "inner", "kept"),
    [(0, False, False), (1, False, True), (1, True, False), (2, True, True)],
)
def test_split_barriers_release_inner_rows_a_step_later(distance: int, inner: bool, kept: bool):
    """Reads of a warp after its arrival are ordered by the arrival of the next step."""
    assert split_keeps([AccessOrder(0, 1, 3), AccessOrder(1, 0, distance, inner)]) == kept


def test_rows_that_read_copies_along_the_row_after_an_arrival_need_a_slot_more(
    monkeypatch: pytest.MonkeyPatch,
):
    """
    Slots and the choice of a barrier know these rows, each by a rule of its own; without both, a
    copy overwrites what a warp still reads.
    """
    split = Streaming(sync=Sync.MBARRIER)
    tiling, copies = block_plane((3, 2), (3, 1)), Buffering(ahead=2)
    schedule = Schedule("copies", tiling, copies, split, form=Form.ROWS, planes=None)
    counted = queue_homes.copies_slots

    def fewer(ages: ReadAges, ahead: int, **named: Any) -> int:
        return counted(ages, ahead, **(named | {"split": False}))

    def none(*_: object) -> bool:
        return False

    monkeypatch.setattr(queue_homes, "copies_slots", fewer)
    monkeypatch.setattr(synchronisation, "reads_in_inner_rows", none)
    with pytest.raises(SimtError, match="overwrites what another thread may still read"):
        check(entry("box-3d").make((4, 4, 10)), schedule, 2, "simt")
