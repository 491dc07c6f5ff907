"""
A program has the bits of the unfused program under every schedule: wherever planes live, however
threads share them, and however a sum is cut into stages. The executors take turns in running the
schedules; in `make nightly` each runs all of them, on every program.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import timetile
from support.catalogue import box, entry, star, sum_program
from support.compare import assert_same_bits
from support.description import Program, random_inputs
from support.executors import kernel_executors
from support.programs import program_text
from support.schedules import (
    FLAGS,
    GRID,
    Schedule,
    block_plane,
    block_row,
    check,
    check_steps,
    cluster_plane,
    device_plane,
    named,
    warp_row,
)
from timetile.dialects.tile import KernelOp
from timetile.lowering.tile_to_gpu import thread
from timetile.passes.analysis.geometry.extents import Extent, Needs
from timetile.passes.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.register_streaming import RegisterStreamingPass as Streaming
from timetile.passes.schedule import AddressingOption
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering

WARP_ROWS = [
    *(
        Schedule(
            f"ahead-{ahead}-period-{period}", warp_row(), Buffering(ahead=ahead, period=period)
        )
        for ahead, period in ((0, None), (1, 1), (3, 2), (3, 3), (0, 2))
    ),
    *(
        Schedule(
            f"streamed-period-{period}",
            warp_row(),
            streaming=Streaming(period=period),
            shown=f"period {period}>",
        )
        for period in (1, 2, 3)
    ),
    Schedule("one-tile-a-block", warp_row(cells=2, pack=1)),
    Schedule("four-tiles-a-block", warp_row(cells=8, pack=4), shown="pack 4"),
    Schedule("not-streamed", warp_row(), streaming=None),
    *(
        Schedule(f"chunks-of-{planes}", warp_row(), planes=planes, shown=f"planes {planes}>")
        for planes in (1, 2, 5)
    ),
    Schedule("chunks-chosen", warp_row(), planes=None),
]

SHARED = [
    Schedule(
        f"shared-{addressing}-{name}",
        tiling,
        Buffering(storage="shared", addressing=addressing),
        streaming=None,
        shown=f", {addressing}, ",
    )
    for name, tiling in (("warp", warp_row()), ("block", block_row()))
    for addressing in ("fixed", "shifting", "computed")
]

BLOCK_ROWS = [
    Schedule("exchanged-whole", block_row(), streaming=None, shown="tile.exchange"),
    Schedule("exchanged-plane", block_row(), streaming=Streaming(what="plane"), shown="what plane"),
    Schedule("exchanged-edges", block_row(), streaming=Streaming(what="edges"), shown="what edges"),
    Schedule("at-once", block_row(), streaming=Streaming(delay=0), shown="delay 0"),
    Schedule("three-warps", block_row(cells=1, warps=3), shown="3 warps"),
    Schedule(
        "shared-then-streamed",
        block_row(),
        Buffering(storage="shared"),
        Streaming(delay=0),
        shown="tile.exchange",
    ),
]

# A delay that is asked for is taken whatever it costs in lag: stars read it for nothing, boxes do not.
LATE = [
    Schedule(f"late-{what}", block_row(), streaming=Streaming(delay=1, what=what), shown="delay 1")
    for what in ("edges", "plane")
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("depths", [(4, 3), (3, 2), (5, 4)], ids=str)
def test_even_and_odd_depths_in_one_run(depths: tuple[int, ...], executor: Executor):
    """After either, data has the halo around it that the unfused program has then."""
    deepest = depths[0]
    runs = (sum(depths) + 1, 2 * deepest + 3, 2 * deepest + 4)
    check_steps(entry("heat-2d").make((29, 131)), WARP_ROWS[0], depths, runs, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", [*WARP_ROWS, *SHARED, *BLOCK_ROWS, *LATE], ids=named)
def test_a_star_is_right_under_every_schedule(schedule: Schedule, executor: Executor):
    check(entry("heat-2d").make((29, 131)), schedule, 3, executor)


# By another executor than ran the schedule for the star.
@pytest.mark.covering(first=1)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", [*WARP_ROWS, *SHARED, *BLOCK_ROWS, *LATE], ids=named)
def test_a_box_is_right_under_every_schedule(schedule: Schedule, executor: Executor):
    check(entry("box-2d").make((23, 67)), schedule, 2, executor)


@pytest.mark.covering(times=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", [WARP_ROWS[1], *SHARED, *BLOCK_ROWS[1:3]], ids=named)
@pytest.mark.parametrize(
    "name", ["wave-2d", "coupled-2d", "gray-scott-2d", "nested-boxes-2d", "half-stored-2d"]
)
def test_several_buffers(name: str, schedule: Schedule, executor: Executor):
    check(entry(name).make((19, 71)), schedule, 2, executor)


WIDE = [
    WARP_ROWS[1],
    Schedule("computed", warp_row(), Buffering(storage="shared"), streaming=None),
    BLOCK_ROWS[2],
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", WIDE, ids=named)
def test_cells_that_64_bits_number(
    schedule: Schedule, executor: Executor, monkeypatch: pytest.MonkeyPatch
):
    """As in fields of more cells than 32 bits can number, which are too large for tests."""
    monkeypatch.setattr(thread, "WIDE_FIELD", 1)
    check(entry("heat-2d").make((29, 131)), schedule, 3, executor)


ROWS = [
    Schedule("warp", warp_row(), form="rows", shown="_rows0"),
    Schedule(
        "warp-period-1", warp_row(), Buffering(period=1, ahead=1), form="rows", shown="_rows0"
    ),
    Schedule("block", block_row(), form="rows", shown="_rows0"),
    *(
        Schedule(
            f"shared-{addressing}",
            block_row(),
            Buffering(storage="shared", addressing=addressing),
            streaming=None,
            form="rows",
            shown="_rows0",
        )
        for addressing in ("fixed", "shifting", "computed")
    ),
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", ROWS, ids=named)
@pytest.mark.parametrize("name", ["heat-2d", "box-2d", "skewed-2d"])
def test_sums_by_rows(name: str, schedule: Schedule, executor: Executor):
    """A sum that takes the planes one after the other may be cut between them: no bit changes."""
    check(entry(name).make((23, 71)), schedule, 2, executor)


PLANES = [
    Schedule("warps-along-y", block_plane((3, 2), (4, 1)), planes=5),
    Schedule("one-warp", block_plane((8, 2), (1, 1)), planes=5),
    Schedule("two-warps-along-y", block_plane((6, 1), (2, 1)), planes=5),
    Schedule("warps-along-both", block_plane((4, 1), (2, 2)), planes=5),
    Schedule("exchanged-whole", block_plane((3, 2), (4, 1)), streaming=None, planes=5),
    Schedule(
        "exchanged-plane",
        block_plane((3, 2), (4, 1)),
        streaming=Streaming(what="plane"),
        planes=5,
        shown="what plane",
    ),
    Schedule(
        "at-once",
        block_plane((3, 2), (4, 1)),
        streaming=Streaming(delay=0),
        planes=5,
        shown="delay 0",
    ),
    Schedule("rows", block_plane((3, 2), (4, 1)), form="rows", planes=5, shown="_rows0"),
    Schedule(
        "cluster-of-two",
        cluster_plane((3, 2), 2, 2),
        streaming=Streaming(sync="mbarrier"),
        planes=5,
        shown="x 2 blocks",
    ),
    Schedule(
        "cluster-of-three-warps", cluster_plane((4, 1), 1, 3), planes=None, shown="x 3 blocks"
    ),
    Schedule("warps-beside-each-other", block_plane((8, 1), (1, 2)), planes=5, shown="what plane"),
    Schedule(
        "cluster-of-three-unrolled-by-one",
        cluster_plane((4, 1), 2, 3),
        streaming=Streaming(sync="mbarrier", period=1),
        planes=5,
        shown="x 3 blocks",
    ),
    *(
        Schedule(
            f"shared-{addressing}",
            block_plane((3, 2), (4, 1)),
            Buffering(storage="shared", addressing=addressing),
            streaming=None,
            planes=5,
            shown=f", {addressing}, ",
        )
        for addressing in ("fixed", "shifting", "computed")
    ),
    Schedule(
        "shared-warps-along-x",
        block_plane((8, 1), (1, 2)),
        Buffering(storage="shared", addressing="computed"),
        streaming=None,
        planes=5,
        shown="2 warps",
    ),
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", PLANES, ids=named)
@pytest.mark.parametrize("name", ["heat-3d", "skewed-3d"])
def test_tiles_of_a_volume(name: str, schedule: Schedule, executor: Executor):
    """No cell's order of terms depends on its place in a tile: all tilings give the same bits."""
    check(entry(name).make((7, 13, 37)), schedule, 2, executor)


HALVES = [
    Schedule(
        "two-halves",
        block_plane((4, 2), (3, 1)),
        streaming=Streaming(sync="mbarrier", delay=1),
        planes=5,
        shown="sync mbarrier",
    ),
    Schedule(
        "two-halves-unrolled-by-one",
        block_plane((4, 2), (3, 1)),
        Buffering(ahead=3),
        streaming=Streaming(sync="mbarrier", delay=1, period=1),
        planes=4,
        shown="sync mbarrier",
    ),
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", HALVES, ids=named)
def test_warps_arrive_and_wait_a_step_later(schedule: Schedule, executor: Executor):
    check(entry("heat-3d").make((7, 13, 37)), schedule, 3, executor)
    check(entry("wave-3d").make((6, 15, 66)), schedule, 2, executor)


BOXES = [
    Schedule(
        "box-in-two-halves",
        block_plane((3, 2), (3, 1)),
        Buffering(ahead=2),
        streaming=Streaming(sync="mbarrier"),
        form="rows",
        planes=5,
        shown="what copies delay 1 home #tile.mail<slots 5, shifting, every 1, space shared, sync mbarrier>",
    ),
    Schedule(
        "box-of-single-cells",
        block_plane((4, 1), (2, 1)),
        Buffering(ahead=1),
        streaming=Streaming(sync="mbarrier", period=1),
        form="rows",
        planes=None,
        shown="what copies delay 1 home #tile.mail<slots 4, computed, every 1, space shared, sync mbarrier>",
    ),
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", BOXES, ids=named)
@pytest.mark.parametrize(
    ("name", "domain", "depth"), [("box-3d", (5, 13, 37), 3), ("skewed-3d", (4, 9, 131), 2)]
)
def test_levels_of_a_box_do_not_wait_for_each_other(
    name: str, domain: tuple[int, ...], depth: int, schedule: Schedule, executor: Executor
):
    """Planes enter their sums a step after they were made, and inner rows read along the row late."""
    check(entry(name).make(domain), schedule, depth, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("radius", [2, 3])
def test_rows_of_a_wide_star_are_read_after_the_warp_has_arrived(radius: int, executor: Executor):
    schedule = Schedule(
        "wide-star-in-two-halves",
        block_plane((4, 2), (4, 1)),
        Buffering(ahead=2),
        streaming=Streaming(sync="mbarrier"),
        planes=5,
        shown=", sync mbarrier",
    )
    check(sum_program("f64", star(3, radius))((5, 13, 66)), schedule, 2, executor)


APART = [
    Schedule("two-blocks", device_plane((3, 2), 2, 2), planes=5, shown=FLAGS),
    Schedule("three-blocks-of-a-warp", device_plane((4, 1), 1, 3), planes=None, shown=FLAGS),
    Schedule(
        "four-blocks-and-no-copies",
        device_plane((3, 2), 2, 4),
        Buffering(ahead=0),
        planes=5,
        shown=FLAGS,
    ),
]


NOT_UNROLLED = Schedule(
    "not-unrolled",
    device_plane((4, 1), 2, 2),
    streaming=Streaming(period=1),
    mail="computed",
    shown=FLAGS,
)


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
"""Tiles whose overlap is wider than one of their blocks: of an outermost one, a block may lie in the overlap."""


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(("schedule", "program", "depth"), LAPPING, ids=["cluster", "device"])
def test_outermost_tiles_store_their_overlap(
    schedule: Schedule, program: Program, depth: int, executor: Executor
):
    check(program, schedule, depth, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_messages_of_several_tiles(executor: Executor):
    """Tiles along both axes, and chunks of planes: more than a device of few blocks holds at once."""
    check(entry("heat-3d").make((7, 23, 70)), APART[0], 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_messages_of_doubles_and_of_far_neighbours(executor: Executor):
    """An edge of two rows, of cells of one word and of two, and of several levels."""
    check(sum_program("f64", star(3, 1))((5, 11, 29)), NOT_UNROLLED, 2, executor)
    check(sum_program("f64", star(3, 2))((4, 9, 22)), NOT_UNROLLED, 2, executor)
    check(entry("wave-3d").make((4, 9, 22)), NOT_UNROLLED, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_messages_of_a_box(executor: Executor):
    rows = replace(NOT_UNROLLED, name="box", form="rows")
    check(entry("box-3d").make((4, 9, 29)), rows, 2, executor)
    check(entry("skewed-3d").make((3, 9, 29)), rows, 2, executor)


def with_slots(addressing: AddressingOption, delay: int, planes: int) -> Schedule:
    """Messages that are read `delay` steps later, in a loop that is unrolled by one."""
    return Schedule(
        f"{addressing}-delay-{delay}-planes-{planes}",
        device_plane((4, 1), 1, 2),
        streaming=Streaming(delay=delay, period=1),
        mail=addressing,
        planes=planes,
        shown=f"slots {2 * delay}, {addressing}, every 1, {FLAGS}",
    )


SLOTS = [
    with_slots("computed", 1, 32),
    with_slots("computed", 2, 32),
    with_slots("computed", 2, 5),
    with_slots("shifting", 1, 32),
    with_slots("shifting", 2, 5),
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", SLOTS, ids=named)
def test_slots_of_messages_in_a_loop_that_is_not_unrolled(schedule: Schedule, executor: Executor):
    """Slots follow from the messages' numbers, also where blocks take several tiles in turn."""
    check(entry("heat-3d").make((7, 7, 29)), schedule, 2, executor)


MEETING = replace(APART[0], name="meeting", streaming=Streaming(sync="grid"), shown=GRID)
MEETING_NOT_UNROLLED = replace(
    NOT_UNROLLED, streaming=Streaming(sync="grid", period=1), shown=f"computed, every 1, {GRID}"
)


@pytest.mark.parametrize("executor", kernel_executors())
def test_blocks_meet_at_barriers(executor: Executor):
    """Twelve tiles of two blocks, more than eight resident blocks hold, and cells of either size."""
    check(entry("heat-3d").make((7, 23, 70)), MEETING, 2, executor)
    check(sum_program("f64", star(3, 1))((5, 11, 29)), MEETING_NOT_UNROLLED, 2, executor)


BATCHES = [
    Schedule(
        f"batches-of-{every}",
        device_plane((3, 2), 2, 2),
        streaming=Streaming(sync="grid", every=every),
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
"""Programs for tiles of several blocks: more tiles than the device holds, edges of two rows, corners, two fields."""


def solids_for(executor: Executor, name: str) -> list[Program]:
    """All of them, or the one of a name where threads are interpreted, which takes long: each is some schedule's."""
    return [SOLIDS[name]] if executor == "simt" else list(SOLIDS.values())


BATCHED = {"batches-of-2": "several-tiles", "batches-of-3": "one-tile"}


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", BATCHES, ids=named)
def test_one_barrier_serves_a_batch_of_planes(schedule: Schedule, executor: Executor):
    """All levels wait as many steps for their neighbours."""
    for program in solids_for(executor, BATCHED[schedule.name]):
        check(program, schedule, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_batches_of_sums_and_without_copies(executor: Executor):
    check(SOLIDS["box"], replace(BATCHES[0], form="rows"), 2, executor)
    no_copies = replace(BATCHES[0], buffering=Buffering(ahead=0))
    check(sum_program("f32", star(3, 1))((3, 9, 22)), no_copies, 3, executor)


def in_rings(addressing: AddressingOption, every: int) -> Schedule:
    """Two blocks of two warps, each with the planes of its part in shared memory."""
    return Schedule(
        f"rings-{addressing}-every-{every}",
        device_plane((3, 2), 2, 2),
        Buffering(storage="shared", addressing=addressing, every=every),
        streaming=None,
        planes=5,
        shown="home #tile.shared",
    )


RINGS = [
    in_rings("computed", 1),
    in_rings("computed", 2),
    in_rings("fixed", 1),
    in_rings("shifting", 2),
    # Own cells in registers, and all cells in shared memory for the others.
    replace(
        in_rings("computed", 1),
        name="streamed",
        streaming=Streaming(what="plane", sync="grid"),
        shown="what plane delay 1 home #tile.mail",
    ),
    replace(
        in_rings("computed", 1),
        name="streamed-in-batches",
        streaming=Streaming(what="plane", sync="grid", every=2),
        mail="computed",
        shown=f"computed, every 2, {GRID}",
    ),
]


IN_RINGS = {
    "rings-computed-every-1": "several-tiles",
    "rings-computed-every-2": "radius-2",
    "rings-fixed-every-1": "wave",
    "rings-shifting-every-2": "box",
    "streamed": "several-tiles",
    "streamed-in-batches": "radius-2",
}


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", RINGS, ids=named)
def test_blocks_keep_planes_in_shared_memory(schedule: Schedule, executor: Executor):
    """A circular queue for each block of the tile, with rows around its part that the others send."""
    for program in solids_for(executor, IN_RINGS[schedule.name]):
        check(program, schedule, 2, executor)


SEMI_ROWS = [
    Schedule("warp", warp_row(), form="halves", shown="_halves1"),
    Schedule(
        "shared",
        block_row(),
        Buffering(storage="shared", addressing="computed"),
        streaming=None,
        form="halves",
        shown="_halves1",
    ),
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", SEMI_ROWS, ids=named)
@pytest.mark.parametrize("reach", [2, 3])
def test_sums_in_halves(reach: int, schedule: Schedule, executor: Executor):
    """The planes before the cell's own and those from it on are two stages: no bit changes."""
    check(sum_program("f64", star(2, reach))((19, 71)), schedule, 2, executor)


SEMI_PLANES = [
    Schedule("block", block_plane((3, 2), (4, 1)), planes=5, form="halves", shown="_halves1"),
    replace(NOT_UNROLLED, name="device", form="halves", shown="_halves1"),
    replace(MEETING_NOT_UNROLLED, name="meeting", form="halves", shown="_halves1"),
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", SEMI_PLANES, ids=named)
def test_sums_in_halves_in_a_volume(schedule: Schedule, executor: Executor):
    check(sum_program("f64", star(3, 2))((7, 9, 22)), schedule, 2, executor)


TRAVELLING_ROWS = [
    Schedule("warp", warp_row(), form="lanes", shown="_lanes2"),
    Schedule("one-cell", warp_row(1), Buffering(ahead=0), form="lanes", shown="_lanes2"),
    Schedule(
        "shared",
        warp_row(2),
        Buffering(storage="shared", addressing="computed"),
        streaming=None,
        form="lanes",
        shown="_lanes2",
    ),
]
COLUMNS = {
    "box": box((-1, -1), (1, 1)),
    "box-of-radius-2": box((-2, -2), (2, 2)),
    "one-sided": box((-1, 0), (1, 2)),
    "one-sided-before": box((-1, -2), (1, 0)),
    "two-columns-apart": box((-1, -2), (1, -2)) + box((-1, 1), (1, 1)) + box((-1, 3), (1, 3)),
}


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", TRAVELLING_ROWS, ids=named)
@pytest.mark.parametrize("shape", COLUMNS)
def test_sums_that_travel(shape: str, schedule: Schedule, executor: Executor):
    """Partial sums pass from lane to lane, and take a column in each: no bit changes, at the bounds either."""
    offsets = sorted(COLUMNS[shape], key=lambda offset: (offset[-1], *offset))
    check(sum_program("f64", offsets)((19, 71)), schedule, 2, executor)


def test_sums_that_travel_need_no_more_around_a_tile():
    """They lie beside their cells, and no cell beyond those that a whole sum taps is needed, however narrow the tile."""
    offsets = sorted(box((-1, -3), (1, 3)), key=lambda offset: offset[::-1])
    program = sum_program("f64", offsets)((19, 71))
    overlaps: list[Extent] = []
    for form in ("none", "lanes"):
        schedule = Schedule(form, warp_row(1), form=form, shown="" if form == "none" else "_lanes6")
        check(program, schedule, 5, "planes")
        tiled = timetile.compile(
            program_text(program), executor="planes", passes=schedule.passes(5), cache=False
        ).kernels.tiled
        kernel = next(op for op in tiled.ops if isinstance(op, KernelOp))
        overlaps.append(Needs.of(kernel).overlap)
    assert overlaps[0] == overlaps[1]


TRAVELLING_PLANES = [
    Schedule("block", block_plane((3, 2), (4, 1)), planes=5, form="lanes", shown="_lanes2"),
    replace(NOT_UNROLLED, name="device", form="lanes", shown="_lanes2"),
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", TRAVELLING_PLANES, ids=named)
def test_sums_that_travel_in_a_volume(schedule: Schedule, executor: Executor):
    offsets = sorted(star(3, 1), key=lambda offset: (offset[-1], *offset))
    check(sum_program("f64", offsets)((7, 9, 22)), schedule, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_edges_a_step_late_in_a_volume(executor: Executor):
    late = Schedule(
        "late", block_plane((3, 2), (4, 1)), streaming=Streaming(delay=1), planes=5, shown="delay 1"
    )
    check(entry("heat-3d").make((7, 13, 37)), late, 3, executor)
    check(entry("box-3d").make((5, 11, 29)), late, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(
    "schedule",
    [s for s in PLANES if s.name in ("warps-along-y", "shared-fixed", "cluster-of-two")],
    ids=named,
)
def test_a_box_and_a_wave_in_a_volume(schedule: Schedule, executor: Executor):
    check(entry("box-3d").make((5, 11, 29)), schedule, 2, executor)
    check(entry("wave-3d").make((5, 11, 29)), schedule, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("axis", [1, 2])
def test_any_axis_can_be_streamed(axis: int, executor: Executor):
    tiling = replace(block_plane((3, 2), (4, 1)), stream_axis=axis)
    schedule = Schedule("streamed", tiling, planes=5, shown=f"stream {axis}")
    check(entry("heat-3d").make((5, 11, 29)), schedule, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("cells", [1, 2, 8])
def test_a_line_needs_no_stream(cells: int, executor: Executor):
    schedule = Schedule("line", warp_row(cells=cells), Buffering(ahead=0), planes=1)
    check(entry("heat-1d").make((211,)), schedule, 4, executor)
    check(entry("multistep-1d").make((97,)), schedule, 3, executor)


def test_schedules_agree_with_contraction_too():
    """The default contraction comes before any schedule, so that it changes no agreement."""
    program = entry("box-2d").make((17, 67))
    text, inputs = program_text(program), random_inputs(program, seed=2)
    expected = inputs.copy()
    timetile.compile(text, executor="cpu", cache=False)(*expected.arguments(program, 5))
    for schedule in (WARP_ROWS[1], SHARED[5], BLOCK_ROWS[2], ROWS[0], ROWS[5]):
        found = inputs.copy()
        passes = schedule.passes(2)
        compiled = timetile.compile(text, executor="simt", passes=passes, cache=False)
        compiled(*found.arguments(program, 5))
        assert_same_bits(program, expected, found, schedule.name)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("addressing", ["fixed", "shifting", "computed"])
def test_a_line_in_shared_memory(addressing: AddressingOption, executor: Executor):
    """Without a stream axis the levels do not share a slot."""
    buffering = Buffering(storage="shared", addressing=addressing)
    schedule = Schedule("line", warp_row(2), buffering, None, planes=1, shown="tile.shared")
    check(entry("heat-1d").make((53,)), schedule, 3, executor)
