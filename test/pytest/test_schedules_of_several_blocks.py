"""
A program computed by tiles of several blocks has the bits of the unfused program: blocks send each
other messages, meet at barriers of the grid, or keep planes in the shared memory of each block.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.catalogue import entry, star, sum_program
from support.description import Program
from support.executors import kernel_executors
from support.listed_schedules import MEETING_NOT_UNROLLED, NOT_UNROLLED
from support.schedules import (
    FLAGS,
    GRID,
    Schedule,
    check,
    cluster_plane,
    device_plane,
    named,
)
from timetile.dialects.tile import Addressing, Form, Published, Storage, Sync
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering


APART = [
    Schedule("two-blocks", device_plane((3, 2), 2, 2), planes=5, shown=FLAGS),
    Schedule(
        "three-by-two-blocks-of-a-warp",
        device_plane((3, 1), 1, 3, across=2),
        planes=None,
        shown=FLAGS,
    ),
    Schedule(
        "four-blocks-and-no-copies",
        device_plane((3, 2), 2, 4),
        Buffering(ahead=0),
        planes=5,
        shown=FLAGS,
    ),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", APART, ids=named)
def test_blocks_exchange_edges_as_messages(schedule: Schedule, executor: Executor):
    """No tile divides the domain; of four blocks the last lies wholly outside the bounds."""
    check(entry("heat-3d").make((7, 13, 37)), schedule, 2, executor)


LAPPING = [
    (
        Schedule("cluster-of-four", cluster_plane((2, 2), 2, 4), planes=5, shown="x 4 blocks"),
        sum_program("f32", star(3, 1))((2, 20, 170)),
        6,
    ),
    (
        Schedule(
            "four-blocks-that-stay",
            device_plane((2, 2), 2, 4, "none"),
            Buffering(ahead=0),
            planes=1,
            shown=FLAGS,
        ),
        sum_program("f32", star(2, 1))((20, 170)),
        5,
    ),
]
"""
Tiles with an overlap wider than a block: a whole block of an outermost tile may lie in the overlap.
"""


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(("schedule", "program", "depth"), LAPPING, ids=["cluster", "device"])
def test_outermost_tiles_store_their_overlap(
    schedule: Schedule, program: Program, depth: int, executor: Executor
):
    check(program, schedule, depth, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_tiles_beyond_the_first_wave_get_their_messages(executor: Executor):
    """
    Tiles along both axes, and chunks of planes: more than a device of few blocks holds at once.
    """
    check(entry("heat-3d").make((7, 23, 70)), APART[0], 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_messages_carry_doubles_and_edges_of_two_rows(executor: Executor):
    """Edges have two rows of one-word cells, then of two-word cells, then several levels."""
    check(sum_program("f64", star(3, 1))((5, 11, 29)), NOT_UNROLLED, 2, executor)
    check(sum_program("f64", star(3, 2))((4, 9, 22)), NOT_UNROLLED, 2, executor)
    check(entry("wave-3d").make((4, 9, 22)), NOT_UNROLLED, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_messages_carry_the_corners_of_a_box(executor: Executor):
    rows = replace(NOT_UNROLLED, name="box", form=Form.ROWS)
    check(entry("box-3d").make((4, 9, 29)), rows, 2, executor)
    corners = replace(rows, tiling=device_plane((3, 1), 2, 1, across=2))
    check(entry("skewed-3d").make((3, 9, 29)), corners, 2, executor)


def with_slots(addressing: Addressing, delay: int, planes: int, across: int = 1) -> Schedule:
    """Messages read `delay` steps later, in a loop unrolled by one."""
    slots = 2 * delay + (delay == 1 and across > 1)
    return Schedule(
        f"{addressing}-delay-{delay}-planes-{planes}",
        device_plane((4, 1), 1, 2, across=across),
        streaming=Streaming(delay=delay, period=1),
        exchanged=addressing,
        planes=planes,
        shown=f"slots {slots}, {addressing}, every 1, {FLAGS}",
    )


SLOTS = [
    with_slots(Addressing.COMPUTED, 1, 32),
    with_slots(Addressing.COMPUTED, 2, 32),
    with_slots(Addressing.COMPUTED, 2, 5),
    with_slots(Addressing.SHIFTING, 1, 32, across=2),
    with_slots(Addressing.SHIFTING, 2, 5),
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", SLOTS, ids=named)
def test_a_loop_without_unrolling_finds_the_slots_of_its_messages(
    schedule: Schedule, executor: Executor
):
    """Slots follow from the messages' numbers, also where blocks take several tiles in turn."""
    check(entry("heat-3d").make((7, 7, 29)), schedule, 2, executor)


MEETING = replace(APART[0], name="meeting", streaming=Streaming(sync=Sync.GRID), shown=GRID)


@pytest.mark.parametrize("executor", kernel_executors())
def test_blocks_meet_at_barriers(executor: Executor):
    """
    Twelve tiles of two blocks, more than eight resident blocks hold, and cells of either size.
    """
    check(entry("heat-3d").make((7, 23, 70)), MEETING, 2, executor)
    check(sum_program("f64", star(3, 1))((5, 11, 29)), MEETING_NOT_UNROLLED, 2, executor)


BATCHES = [
    Schedule(
        f"batches-of-{every}",
        device_plane((3, 2), 2, 2),
        streaming=Streaming(sync=Sync.GRID, every=every),
        planes=5,
        shown=f"every {every}, {GRID}",
    )
    for every in (2, 3)
]


SOLIDS = {
    "several-tiles": entry("heat-3d").make((7, 23, 70)),
    "one-tile": entry("heat-3d").make((3, 9, 22)),
    "radius-2": sum_program("f64", star(3, 2))((4, 9, 22)),
    "box": entry("box-3d").make((3, 9, 22)),
    "wave": entry("wave-3d").make((3, 9, 22)),
}
"""
Programs for tiles of several blocks: more tiles than the device holds, edges of two rows, corners,
two fields.
"""


def solids_for(executor: Executor, name: str) -> list[Program]:
    """All solids; for the slow interpreter of threads only the solid of a name."""
    return [SOLIDS[name]] if executor == "simt" else list(SOLIDS.values())


BATCHED = {"batches-of-2": "several-tiles", "batches-of-3": "one-tile"}


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", BATCHES, ids=named)
def test_one_barrier_serves_a_batch_of_planes(schedule: Schedule, executor: Executor):
    """All levels wait an equal number of steps for their neighbours."""
    for program in solids_for(executor, BATCHED[schedule.name]):
        check(program, schedule, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_batches_serve_sums_by_rows_and_tiles_without_copies(executor: Executor):
    check(SOLIDS["box"], replace(BATCHES[0], form=Form.ROWS), 2, executor)
    no_copies = replace(BATCHES[0], buffering=Buffering(ahead=0))
    check(sum_program("f32", star(3, 1))((3, 9, 22)), no_copies, 2, executor)


def in_rings(addressing: Addressing, every: int) -> Schedule:
    """Two blocks of two warps, each with planes of its part in shared memory."""
    return Schedule(
        f"rings-{addressing}-every-{every}",
        device_plane((3, 2), 2, 2),
        Buffering(storage=Storage.SHARED, addressing=addressing, every=every),
        streaming=None,
        planes=5,
        shown="home #tile.shared",
    )


RINGS = [
    in_rings(Addressing.COMPUTED, 1),
    in_rings(Addressing.COMPUTED, 2),
    in_rings(Addressing.SHIFTING, 2),
    # Blocks along both axes, four of a tile.
    replace(
        in_rings(Addressing.FIXED, 1),
        name="rings-of-four-blocks",
        tiling=device_plane((3, 1), 2, 2, across=2),
    ),
    # Own cells in registers, and all cells in shared memory for the others.
    replace(
        in_rings(Addressing.COMPUTED, 1),
        name="streamed",
        streaming=Streaming(what=Published.PLANE, sync=Sync.GRID),
        shown="what plane delay 1 home #tile.exchange_buffer",
    ),
    replace(
        in_rings(Addressing.COMPUTED, 1),
        name="streamed-in-batches",
        streaming=Streaming(what=Published.PLANE, sync=Sync.GRID, every=2),
        exchanged=Addressing.COMPUTED,
        shown=f"computed, every 2, {GRID}",
    ),
]


IN_RINGS = {
    "rings-computed-every-1": "several-tiles",
    "rings-computed-every-2": "radius-2",
    "rings-of-four-blocks": "one-tile",
    "rings-shifting-every-2": "box",
    "streamed": "several-tiles",
    "streamed-in-batches": "radius-2",
}


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", RINGS, ids=named)
def test_blocks_keep_planes_in_shared_memory(schedule: Schedule, executor: Executor):
    """
    A circular queue for each block of the tile, with rows around the block's part from the other
    blocks.
    """
    for program in solids_for(executor, IN_RINGS[schedule.name]):
        check(program, schedule, 2, executor)
