"""Sources and receivers have the bits of the unfused program under schedules of all kinds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

import timetile
from support.schedules import (
    Schedule,
    block_plane,
    block_row,
    cluster_plane,
    device_plane,
    named,
    solid,
    warp_row,
)
from support.steps import noise
from timetile import Field, Points
from timetile.dialects.tile import (
    Addressing,
    KernelOp,
    Published,
    Storage,
    Sync,
    VariantAttr,
)
from timetile.dialects.tile.kinds import TileLevel
from timetile.frontend.point_runs import rooms_of, tables_of
from timetile.passes.analysis.placed import variants_of
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering

PLATE, VOLUME = (21, 83), (7, 7, 29)
STEPS = 4


@timetile.stencil
def plate(u: Field, a: Points, b: Points):
    u.next = 0.5 * u[0, 0] + 0.125 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    a.add(u)
    b.read(u)


@timetile.stencil
def medium(u: Field, m: Field, a: Points, b: Points):
    u.next = 0.5 * u[0, 0] + m[0, 0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    a.add(u)
    b.read(u)


@timetile.stencil
def volume(u: Field, a: Points, b: Points):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next = 0.25 * u[0, 0, 0] + 0.125 * around
    a.add(u)
    b.read(u)


ROWS = [
    Schedule("warp", warp_row()),
    Schedule("chunks", warp_row(), Buffering(ahead=1, period=3), planes=5, shown="planes 5>"),
    Schedule("not-streamed", warp_row(), streaming=None),
    Schedule("other-axis", replace(warp_row(), stream_axis=1)),
    Schedule(
        "resident",
        replace(block_row(), cells=(2, 3), lanes=(1, 32), warps=(2, 1), stream_axis="none"),
        streaming=None,
    ),
    Schedule("arrivals", block_row(), streaming=Streaming(sync=Sync.MBARRIER), shown="mbarrier"),
    Schedule("planes", block_row(), streaming=Streaming(what=Published.PLANE)),
    Schedule(
        "shared",
        block_row(),
        Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED),
        streaming=None,
        shown="computed",
    ),
]

PENCILS = [
    Schedule("block", block_plane((2, 2), (2, 1)), planes=5),
    Schedule("device", device_plane((4, 1), 2, 2)),
    Schedule("cluster", cluster_plane((2, 1), 2, 2), streaming=Streaming(sync=Sync.MBARRIER)),
    Schedule("solid", solid(TileLevel.BLOCK, (2, 3, 3), (4, 2, 1)), streaming=None),
]


def places(shape: tuple[int, ...], count: int, seed: int) -> Any:
    """Places between inner cells, the first two in one cell and in a corner."""
    rng = np.random.default_rng(seed)
    found = np.stack([rng.uniform(1, size - 2.001, count) for size in shape], axis=1)
    found[1], found[2] = found[0], 1
    return found


Given = dict[str, Points]


def scattered(shape: tuple[int, ...]) -> Given:
    """Sources and receivers all over a field."""
    sources = Points(places(shape, 6, 1), noise(STEPS, 6))
    return {"a": sources, "b": Points(places(shape, 25, 2))}


def in_lines(shape: tuple[int, ...]) -> Given:
    """A source between cells, and receivers in two lines along the first axis."""
    rows = np.linspace(1, shape[0] - 2, 2 * shape[0] - 5)
    lines = [
        np.stack([rows, *(np.full(len(rows), part * size) for size in shape[1:])], axis=1)
        for part in (0.38, 0.66)
    ]
    source = Points([[0.43 * size for size in shape]], noise(STEPS, 1))
    return {"a": source, "b": Points(np.concatenate(lines))}


GIVEN = {"all over": scattered, "in lines": in_lines}


def ended(
    model: timetile.Model, shape: tuple[int, ...], points: Given, **options: Any
) -> list[Any]:
    """The arrays and the samples after some steps of the program of a model."""
    rooms = rooms_of(model.step, points, STEPS)
    module = model.module(shape, "float64", rooms)
    program = timetile.compile(module, halos="common", fp_contract="off", cache=False, **options)
    tables = tables_of(model.step, points, rooms, shape, {"u": "float64"}, 0)
    for made in tables:
        made.begin(0, STEPS)
    fields = [noise(*shape) for _ in range(len(model.step.fields) + 1)]
    lists = [array for made in tables for array in (made.places, made.weights, made.table)]
    program(*fields, np.arange(STEPS), *lists, STEPS)
    return [*fields, tables[1].table]


@cache
def judged(model: timetile.Model, shape: tuple[int, ...], points: str) -> list[Any]:
    """The arrays and the samples of the unfused program."""
    return ended(model, shape, GIVEN[points](shape), executor="numpy")


def check_schedule(
    model: timetile.Model,
    shape: tuple[int, ...],
    schedule: Schedule,
    executor: Executor,
    points: Given | str,
    depth: int = 3,
) -> None:
    """A schedule leaves the bits of the unfused program."""
    given = GIVEN[points](shape) if isinstance(points, str) else points
    found = ended(model, shape, given, executor=executor, passes=schedule.passes(depth))
    if isinstance(points, str):
        judge = judged(model, shape, points)
    else:
        judge = ended(model, shape, points, executor="numpy")
    assert all(np.array_equal(a, b) for a, b in zip(found, judge, strict=True))


@pytest.mark.parametrize("schedule", ROWS, ids=named)
@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
@pytest.mark.parametrize("points", list(GIVEN))
def test_plates_have_equal_bits(schedule: Schedule, executor: Executor, points: str):
    check_schedule(plate, PLATE, schedule, executor, points)


@pytest.mark.parametrize("schedule", PENCILS, ids=named)
@pytest.mark.parametrize("executor", ["simt", "ptx"])
@pytest.mark.parametrize("points", list(GIVEN))
def test_volumes_have_equal_bits(schedule: Schedule, executor: Executor, points: str):
    """Plates have a level between the first and the last; a volume takes two levels."""
    check_schedule(volume, VOLUME, schedule, executor, points, depth=2)


@dataclass(frozen=True)
class JoinedPlanesPass(ModulePass):
    """Chunks of some planes, and the planes between put end to end in all columns."""

    name = "joined-planes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            kernel.variants = ArrayAttr(
                VariantAttr([axis.data for axis in variant.axes], 31, joined=50)
                for variant in variants_of(kernel)
            )


@dataclass(frozen=True)
class JoiningSchedule(Schedule):
    """A schedule whose columns are joined."""

    def passes(self, *depths: int) -> tuple[ModulePass, ...]:
        return (*super().passes(*depths), JoinedPlanesPass())


TURNS = [
    JoiningSchedule("joined", warp_row(), Buffering(ahead=3, period=3)),
    Schedule("turns", warp_row(), Buffering(ahead=3, period=2), planes=31, shown="slots 8"),
    Schedule("one-turn", warp_row(), Buffering(ahead=2, period=3), planes=200),
]


@pytest.mark.parametrize("schedule", TURNS, ids=named)
@pytest.mark.parametrize("row, away, executor", [(17, 29.5, "simt"), (62, 3.5, "ptx")])
def test_chunks_end_their_turns_with_whole_bits(
    schedule: Schedule, row: float, away: float, executor: Executor
):
    """
    Chunks run points at their first planes, in the middle and behind their last; sources near each
    other lie in a spot with chunks of its own. Rings of the coefficient have more slots than a turn
    has steps.
    """
    shape = (101, 130)
    points = {
        "a": Points([[row, 118.5], [row + away, 110.0]], noise(STEPS, 2)),
        "b": Points(np.stack([np.full(9, row + 2), np.linspace(2, 127, 9)], axis=1)),
    }
    check_schedule(medium, shape, schedule, executor, points)


@pytest.mark.parametrize(
    "shots",
    [
        # A plane's values in two sets of addends, and two planes in a set each.
        [(40, 20), (40, 20), (90.5, 20.5)],
        # More values than addends, at one level and at several.
        [(40, 20), (40, 20), (40, 20), (90, 9.5), (91, 9.5), (92, 9.5), (92, 9)],
    ],
)
def test_values_of_one_cell_are_added_in_order_from_addends_and_from_lists(shots: Any):
    schedule = Schedule("warp", warp_row(), Buffering(ahead=1, period=3))
    points = {
        "a": Points(shots, noise(STEPS, len(shots))),
        "b": Points(np.stack([np.full(150, 41), np.linspace(2, 79, 150)], axis=1)),
    }
    check_schedule(plate, (131, 83), schedule, "simt", points)


def test_chunks_along_another_axis_note_their_own_planes():
    schedule = Schedule("other-axis", replace(warp_row(), stream_axis=1), planes=17)
    places = np.stack([np.full(36, 4.5), np.linspace(1.5, 36.5, 36)], axis=1)
    points = {"a": Points([[4.5, 16.5]], noise(STEPS)), "b": Points(places)}
    check_schedule(plate, (9, 40), schedule, "simt", points, depth=2)
