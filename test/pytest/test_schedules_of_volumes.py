"""
A program of three axes has the bits of the unfused program under every schedule of a block or a
cluster: for all ways of warps to share a plane, and all times of reading others' edges.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.catalogue import entry, star, sum_program
from support.executors import kernel_executors
from support.schedules import (
    Schedule,
    block_plane,
    check,
    cluster_plane,
    named,
)
from timetile.dialects.tile import Addressing, Form, Published, Storage, Sync
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering


PLANES = [
    Schedule("warps-along-y", block_plane((3, 2), (4, 1)), planes=5),
    Schedule("one-warp", block_plane((8, 2), (1, 1)), planes=5),
    Schedule("two-warps-along-y", block_plane((6, 1), (2, 1)), planes=5),
    Schedule("warps-along-both", block_plane((4, 1), (2, 2)), planes=5),
    Schedule("exchanged-whole", block_plane((3, 2), (4, 1)), streaming=None, planes=5),
    Schedule(
        "exchanged-plane",
        block_plane((3, 2), (4, 1)),
        streaming=Streaming(what=Published.PLANE),
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
    Schedule("rows", block_plane((3, 2), (4, 1)), form=Form.ROWS, planes=5, shown="_rows0"),
    Schedule(
        "cluster-of-two",
        cluster_plane((3, 2), 2, 2),
        streaming=Streaming(sync=Sync.MBARRIER),
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
        streaming=Streaming(sync=Sync.MBARRIER, period=1),
        planes=5,
        shown="x 3 blocks",
    ),
    *(
        Schedule(
            f"shared-{addressing}",
            block_plane((3, 2), (4, 1)),
            Buffering(storage=Storage.SHARED, addressing=addressing),
            streaming=None,
            planes=5,
            shown=f", {addressing}, ",
        )
        for addressing in Addressing
    ),
    Schedule(
        "shared-warps-along-x",
        block_plane((8, 1), (1, 2)),
        Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED),
        streaming=None,
        planes=5,
        shown="2 warps",
    ),
]


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", PLANES, ids=named)
@pytest.mark.parametrize("name", ["heat-3d", "skewed-3d"])
def test_tiles_of_a_volume_keep_the_bits_of_the_program(
    name: str, schedule: Schedule, executor: Executor
):
    """No cell's order of terms depends on the place in a tile: all tilings give equal bits."""
    check(entry(name).make((7, 13, 37)), schedule, 2, executor)


HALVES = [
    Schedule(
        "two-halves",
        block_plane((4, 2), (3, 1)),
        streaming=Streaming(sync=Sync.MBARRIER, delay=1),
        planes=5,
        shown="sync mbarrier",
    ),
    Schedule(
        "two-halves-unrolled-by-one",
        block_plane((4, 2), (3, 1)),
        Buffering(ahead=3),
        streaming=Streaming(sync=Sync.MBARRIER, delay=1, period=1),
        planes=4,
        shown="sync mbarrier",
    ),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", HALVES, ids=named)
def test_warps_arrive_and_wait_a_step_later(schedule: Schedule, executor: Executor):
    check(entry("heat-3d").make((6, 13, 37)), schedule, 3, executor)
    check(entry("wave-3d").make((6, 13, 37)), schedule, 2, executor)


BOXES = [
    Schedule(
        "box-in-two-halves",
        block_plane((3, 2), (3, 1)),
        Buffering(ahead=2),
        streaming=Streaming(sync=Sync.MBARRIER),
        form=Form.ROWS,
        planes=5,
        shown="what copies delay 1 home "
        "#tile.exchange_buffer<slots 5, shifting, every 1, space shared, sync "
        "mbarrier>",
    ),
    Schedule(
        "box-of-single-cells",
        block_plane((4, 1), (2, 1)),
        Buffering(ahead=1),
        streaming=Streaming(sync=Sync.MBARRIER, period=1),
        form=Form.ROWS,
        planes=None,
        shown="what copies delay 1 home "
        "#tile.exchange_buffer<slots 4, computed, every 1, space shared, sync "
        "mbarrier>",
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
    """Planes enter their sums a step after being made, and inner rows read along the row late."""
    check(entry(name).make(domain), schedule, depth, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("radius", [3, 2])
def test_rows_of_a_wide_star_are_read_after_the_warp_has_arrived(radius: int, executor: Executor):
    schedule = Schedule(
        "wide-star-in-two-halves",
        block_plane((4, 2), (4, 1)),
        Buffering(ahead=2),
        streaming=Streaming(sync=Sync.MBARRIER),
        planes=5,
        shown=", sync mbarrier",
    )
    check(sum_program("f64", star(3, radius))((5, 13, 66)), schedule, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
def test_edges_may_be_read_a_step_late_in_a_volume(executor: Executor):
    late = Schedule(
        "late", block_plane((3, 2), (4, 1)), streaming=Streaming(delay=1), planes=5, shown="delay 1"
    )
    check(entry("heat-3d").make((6, 13, 37)), late, 2, executor)
    check(entry("box-3d").make((5, 11, 29)), late, 2, executor)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(
    "schedule",
    [s for s in PLANES if s.name in ("warps-along-y", "shared-fixed", "cluster-of-two")],
    ids=named,
)
@pytest.mark.parametrize("name", ["box-3d", "wave-3d"])
def test_a_box_and_a_wave_keep_their_bits_in_a_volume(
    name: str, schedule: Schedule, executor: Executor
):
    check(entry(name).make((5, 11, 29)), schedule, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("axis", [1, 2])
def test_any_axis_can_be_streamed(axis: int, executor: Executor):
    tiling = replace(block_plane((3, 2), (4, 1)), stream_axis=axis)
    schedule = Schedule("streamed", tiling, planes=5, shown=f"stream {axis}")
    check(entry("heat-3d").make((5, 11, 29)), schedule, 2, executor)
