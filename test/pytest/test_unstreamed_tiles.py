"""
Resident tiles (DTB): a tile of the plane, or of the volume, stays in its threads for all steps of a
launch, and edges or whole planes are exchanged once a level. The bits are the unfused program's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from support.catalogue import Domain, entry, normalised, star, sum_program
from support.description import Box, Buffer, Program, Store, Update
from support.executors import kernel_executors
from support.expressions import Offset, Tap, weighted_sum
from support.schedules import FLAGS, GRID, Schedule, check, device_plane, named, solid
from timetile.dialects.tile import Addressing, Published, Storage, Sync, TileLevel
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering


def exchanged(what: Literal["edges", "plane"], how: str) -> str:
    """The exchanges of a placed kernel."""
    return f"what {what} delay 0 home #tile.exchange_buffer<slots 1, fixed, every 1, {how}>"


EDGES = Schedule(
    "edges-by-flags",
    device_plane((4, 2), 2, 2, stream_axis="none"),
    planes=None,
    shown=exchanged("edges", FLAGS),
)

PLATES = [
    EDGES,
    replace(
        EDGES,
        name="edges-at-barriers",
        streaming=Streaming(sync=Sync.GRID),
        shown=exchanged("edges", GRID),
    ),
    replace(
        EDGES,
        name="planes-by-flags",
        tiling=device_plane((4, 1), 2, 2, stream_axis="none", across=2),
        streaming=Streaming(what=Published.PLANE),
        shown=exchanged("plane", FLAGS),
    ),
    replace(
        EDGES,
        name="planes-at-barriers",
        streaming=Streaming(what=Published.PLANE, sync=Sync.GRID),
        shown=exchanged("plane", GRID),
    ),
    replace(
        EDGES,
        name="planes-in-shared-memory",
        tiling=device_plane((4, 2), 2, 1, stream_axis="none", across=2),
        buffering=Buffering(storage=Storage.SHARED),
        streaming=None,
        shown="home #tile.shared",
    ),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", PLATES, ids=named)
def test_a_plate_in_resident_tiles_keeps_its_bits(schedule: Schedule, executor: Executor):
    """Two blocks of two warps: edges or planes pass once a level, of one field and of two."""
    check(entry("heat-2d").make((29, 131)), schedule, 3, executor)
    check(entry("box-2d").make((23, 67)), schedule, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", [PLATES[0], PLATES[3]], ids=named)
def test_two_fields_of_a_plate_in_resident_tiles_keep_their_bits(
    schedule: Schedule, executor: Executor
):
    check(entry("gray-scott-2d").make((19, 71)), schedule, 2, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("sync", [Sync.FLAGS, Sync.GRID])
def test_more_tiles_than_are_resident_keep_their_bits(sync: Sync, executor: Executor):
    """Two fields' edges in one round, more tiles than are resident, one step a launch."""
    tiling = device_plane((3, 2), 1, 4, stream_axis="none")
    once = replace(EDGES, name="once", tiling=tiling, streaming=Streaming(sync=sync), shown=sync)
    check(entry("gray-scott-2d").make((19, 150)), once, 2, executor)


BETWEEN_WARPS = exchanged("plane", "space shared, sync barrier")

SOLIDS = [
    Schedule("warp", solid(TileLevel.WARP, (5, 6, 2), (1, 1, 1)), planes=None),
    Schedule(
        "block", solid(TileLevel.BLOCK, (2, 3, 1), (3, 2, 1)), planes=None, shown=BETWEEN_WARPS
    ),
    Schedule(
        "warps-along-the-rows",
        solid(TileLevel.BLOCK, (3, 5, 1), (2, 1, 2)),
        planes=None,
        shown=BETWEEN_WARPS,
    ),
    Schedule(
        "block-in-shared-memory",
        solid(TileLevel.BLOCK, (2, 3, 1), (3, 2, 1)),
        Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED),
        streaming=None,
        planes=None,
        shown="home #tile.shared",
    ),
    Schedule(
        "one-layer-of-warps",
        solid(TileLevel.DEVICE, (4, 2, 1), (1, 3, 1), blocks=2, across=(1, 2)),
        planes=None,
        shown=exchanged("plane", FLAGS),
    ),
    Schedule(
        "one-column-of-warps",
        solid(TileLevel.DEVICE, (2, 5, 1), (2, 1, 1), blocks=3),
        planes=None,
        shown=exchanged("plane", FLAGS),
    ),
    Schedule(
        "meeting-at-barriers",
        solid(TileLevel.DEVICE, (2, 2, 1), (2, 3, 1), blocks=2),
        streaming=Streaming(sync=Sync.GRID),
        planes=None,
        shown=exchanged("plane", GRID),
    ),
]

VOLUMES = {
    "star": (entry("heat-3d").make((7, 13, 37)), 2),
    "box": (entry("box-3d").make((5, 7, 29)), 2),
    "wave": (entry("wave-3d").make((7, 5, 23)), 1),
    "doubles": (sum_program("f64", star(3, 2))((5, 9, 33)), 1),
}
"""
Programs and depths: taps along one axis, corners, two fields, edges of two layers of double
precision.
"""

INTERPRETED = {
    "warp": ["star"],
    "block": ["star", "box"],
    "warps-along-the-rows": ["star", "wave"],
    "block-in-shared-memory": ["box"],
    "one-layer-of-warps": ["box", "doubles"],
    "one-column-of-warps": ["star"],
    "meeting-at-barriers": ["box", "wave"],
}
"""Interpreted threads take long: each schedule has some programs."""


def volumes_for(executor: Executor, schedule: Schedule) -> list[tuple[Program, int]]:
    """The programs of a schedule, and their depths."""
    names = INTERPRETED[schedule.name] if executor == "simt" else list(VOLUMES)
    return [VOLUMES[name] for name in names]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", SOLIDS, ids=named)
def test_a_volume_in_resident_tiles_keeps_its_bits(schedule: Schedule, executor: Executor):
    """
    Warps along any axis, blocks along one and two; neither the tile nor a block divides the domain.
    """
    for program, depth in volumes_for(executor, schedule):
        check(program, schedule, depth, executor)


WIDER = Schedule(
    "wider",
    solid(TileLevel.DEVICE, (5, 5, 1), (2, 2, 1), blocks=2),
    planes=None,
    shown=exchanged("plane", FLAGS),
)


@pytest.mark.parametrize("executor", kernel_executors())
def test_resident_tiles_keep_two_levels_of_far_neighbours(executor: Executor):
    check(entry("wave-3d").make((7, 5, 23)), WIDER, 2, executor)
    check(sum_program("f64", star(3, 2))((5, 9, 21)), WIDER, 2, executor)


ALONG_ROWS: list[Offset] = [(0, -1, 0), (0, 0, 0), (0, 1, 0)]
"""Neighbours in no other block, for blocks along the first axis."""


def coupled(domain: Domain, first: list[Offset], second: list[Offset]) -> Program:
    """
    Two fields: the second follows from the first's neighbours, and the first from new neighbours of
    the second.
    """
    inner, zero = Box.of(domain), (0, 0, 0)
    bounds = inner.grown((1, 1, 1), (1, 1, 1))
    speed = Tap("v", zero) * 0.5 + weighted_sum(normalised(first), "s") * 0.4
    place = Tap("s", zero) * 0.5 + weighted_sum(normalised(second), "w") * 0.4
    names = ("v", "w", "s", "p")
    return Program(
        "f64",
        tuple(Buffer(name, bounds, "f64") for name in names),
        names,
        (1, 0, 3, 2),
        (
            Update((speed,), (Store(0, "w", inner),)),
            Update((place,), (Store(0, "p", inner),)),
        ),
    )


def reading_rows(domain: Domain) -> Program:
    """A star of one field, and neighbours of a coefficient along the rows and the cells."""
    inner = Box.of(domain)
    bounds = inner.grown((1, 1, 1), (1, 1, 1))
    cell = weighted_sum(normalised(star(3, 1))) * Tap("k", (0, 1, -1))
    return Program(
        "f32",
        tuple(Buffer(name, bounds, "f32") for name in ("u", "v", "k")),
        ("u", "v"),
        (1, 0),
        (Update((cell,), (Store(0, "v", inner),)),),
    )


SILENT = {
    "all": (sum_program("f32", ALONG_ROWS)((7, 11, 37)), 2),
    "beside-a-star": (reading_rows((7, 9, 37)), 2),
    "first-round": (coupled((9, 11, 35), ALONG_ROWS, star(3, 1)), 1),
    "last-round": (coupled((9, 11, 35), star(3, 1), ALONG_ROWS), 1),
}
"""Programs and depths, with the exchanges that pass nothing between blocks."""


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("sync", [Sync.FLAGS, Sync.GRID])
@pytest.mark.parametrize("silent", SILENT)
def test_exchanges_that_pass_nothing_between_blocks_keep_the_bits(
    silent: str, sync: Sync, executor: Executor
):
    """Readers of such an exchange wait for the warps of their own block alone."""
    program, depth = SILENT[silent]
    tiling = solid(TileLevel.DEVICE, (3, 2, 1), (1, 3, 1), blocks=3)
    quiet = Schedule("quiet", tiling, streaming=Streaming(sync=sync), planes=None, shown=sync)
    check(program, quiet, depth, executor)
