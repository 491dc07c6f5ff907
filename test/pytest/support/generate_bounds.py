"""
Programs with separate bounds for each field: as large as needed by the accesses, or a little larger
on some sides. Boxes differ between updates and between stores, and lie anywhere.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from support.description import Box, Buffer, Element, Program, Store, Update
from support.expressions import Expression, Offset, Tap
from support.generate import schedules, some_axes
from support.generate_fields import accesses, with_own_bounds
from support.schedules import Schedule, cluster_plane, device_plane, solid
from timetile.dialects.tile import Addressing, Published, Sync, TileLevel
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass

LONGEST: dict[int, Offset] = {1: (90,), 2: (9, 75), 3: (5, 6, 40)}
"""The longest boxes by rank: the last axis is wider than one warp's cells."""

FARTHEST: dict[int, Offset] = {1: (3,), 2: (2, 2), 3: (1, 1, 2)}
"""How far taps look, by rank."""


@st.composite
def boxes(draw: st.DrawFn, whole: Box) -> Box:
    """
    The whole box; the box without some end cells, as on staggered grids; or any part of the box.
    """
    most = draw(st.sampled_from([0, 1, 1, 2, 100]))
    lower: list[int] = []
    upper: list[int] = []
    for low, high in zip(whole.lower, whole.upper, strict=True):
        first = draw(st.integers(low, min(low + most, high - 1)))
        lower.append(first)
        upper.append(draw(st.integers(max(first + 1, high - most), high)))
    return Box(tuple(lower), tuple(upper))


@st.composite
def sums(draw: st.DrawFn, names: list[str], own: str, rank: int) -> Expression:
    """A weighted sum of taps; the stored field is tapped at the cell itself only."""
    total: Expression | None = None
    for number in range(draw(st.integers(1, 4))):
        name = draw(st.sampled_from(names))
        offset = tuple(draw(st.integers(-most, most)) for most in FARTHEST[rank])
        tap = Tap(name, (0,) * rank if name == own else offset)
        term = tap * (0.3 - 0.04 * number)
        total = term if total is None else total + term
    assert total is not None
    return total


@st.composite
def programs_of_bounds(draw: st.DrawFn) -> Program:
    """One to three updates a step of two or three rotating buffers and up to two other fields."""
    rank = draw(st.integers(1, 3))
    element: Element = draw(st.sampled_from(("f32", "f64")))
    lower = tuple(draw(st.integers(-3, 3)) for _ in range(rank))
    whole = Box(lower, tuple(low + draw(st.integers(1, n)) for low, n in zip(lower, LONGEST[rank])))
    carried = ["now", "next", "old"][: draw(st.integers(2, 3))]
    others = ["first", "second"][: draw(st.integers(0, 2))]
    names = carried + others
    updates: list[Update] = []
    targets = ["next", *draw(st.lists(st.sampled_from(names), max_size=2, unique=True))]
    for target in dict.fromkeys(targets):
        stored = [target]
        if others and draw(st.integers(0, 3)) == 0:
            # One result is stored to two fields.
            stored += [name for name in others[:1] if name not in stored]
        # An update with two stores reads neither field: the first store would change inputs of
        # the second result.
        readable = names if len(stored) == 1 else [name for name in names if name not in stored]
        result = draw(sums(readable, target, rank))
        stores = tuple(Store(0, name, draw(boxes(whole))) for name in stored)
        updates.append(Update((result,), stores))
    used = {access.name for access in accesses(updates)} | set(carried)
    written = {store.buffer for update in updates for store in update.stores}
    axes = {name: draw(some_axes(rank)) for name in others if name not in written}
    return with_own_bounds(
        draw,
        Program(
            element,
            tuple(Buffer(name, whole, element, axes.get(name)) for name in names if name in used),
            tuple(carried),
            tuple((k + 1) % len(carried) for k in range(len(carried))),
            tuple(updates),
        ),
    )


PLACES = MultiQueueBufferingPass(ahead=0)

OTHER_TILES: dict[int, tuple[Schedule, ...]] = {
    1: (Schedule("memory", DeviceTilingPass(reads="memory"), planes=1),),
    2: (
        Schedule("memory", DeviceTilingPass(reads="memory"), planes=1),
        Schedule(
            "flags",
            device_plane((2, 2), 2, 3, "none"),
            PLACES,
            RegisterStreamingPass(sync=Sync.FLAGS),
            planes=1,
        ),
    ),
    3: (
        Schedule("memory", DeviceTilingPass(reads="memory"), planes=1),
        Schedule(
            "cluster",
            cluster_plane((2, 1), 2, 2),
            MultiQueueBufferingPass(ahead=2),
            RegisterStreamingPass(delay=1, sync=Sync.MBARRIER),
            planes=3,
        ),
        Schedule(
            "grid",
            device_plane((2, 1), 2, 3),
            PLACES,
            RegisterStreamingPass(delay=1, sync=Sync.GRID),
            planes=3,
        ),
        Schedule(
            "volume",
            solid(TileLevel.BLOCK, (2, 2, 2), (2, 2, 1)),
            PLACES,
            RegisterStreamingPass(what=Published.PLANE),
            planes=1,
        ),
    ),
}
"""
Tiles of clusters and of the device, resident tiles, and kernels with all taps from memory, by rank.
"""


@st.composite
def schedules_of_bounds(draw: st.DrawFn, rank: int) -> Schedule:
    """Any schedule, streamed along any axis, with or without planes fetched early."""
    if draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(OTHER_TILES[rank]))
    schedule: Schedule = draw(schedules(rank))
    if schedule.buffering.addressing is Addressing.FIXED:
        # Unrolled by all slot counts at once, a kernel takes a minute to compile.
        schedule = replace(
            schedule, buffering=replace(schedule.buffering, addressing=Addressing.COMPUTED)
        )
    if rank > 1 and draw(st.booleans()):
        tiling = replace(schedule.tiling, stream_axis=draw(st.integers(0, rank - 1)))
        ahead = MultiQueueBufferingPass(ahead=draw(st.integers(0, 4)))
        return replace(schedule, tiling=tiling, buffering=ahead)
    return schedule
