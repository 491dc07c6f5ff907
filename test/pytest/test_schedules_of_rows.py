"""
A program of one or two axes has the bits of the unfused program under every schedule: for all homes
of planes, and all ways of threads to share rows. The executors take turns in running the schedules;
in `make nightly` each executor runs all schedules, on every program.
"""

from __future__ import annotations

import pytest

import timetile
from support.catalogue import entry
from support.compare import assert_same_bits
from support.description import random_inputs
from support.executors import kernel_executors
from support.listed_schedules import ROWS
from support.programs import program_text
from support.schedules import (
    Schedule,
    block_row,
    check,
    check_steps,
    named,
    warp_row,
)
from timetile.dialects.tile import Addressing, Published, Storage
from timetile.lowering.tile_to_gpu import thread
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
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
        Buffering(storage=Storage.SHARED, addressing=addressing),
        streaming=None,
        shown=f", {addressing}, ",
    )
    for name, tiling in (("warp", warp_row()), ("block", block_row()))
    for addressing in Addressing
]


BLOCK_ROWS = [
    Schedule("exchanged-whole", block_row(), streaming=None, shown="tile.exchange"),
    Schedule(
        "exchanged-plane",
        block_row(),
        streaming=Streaming(what=Published.PLANE),
        shown="what plane",
    ),
    Schedule(
        "exchanged-edges",
        block_row(),
        streaming=Streaming(what=Published.EDGES),
        shown="what edges",
    ),
    Schedule("at-once", block_row(), streaming=Streaming(delay=0), shown="delay 0"),
    Schedule("three-warps", block_row(cells=1, warps=3), shown="3 warps"),
    Schedule(
        "shared-then-streamed",
        block_row(),
        Buffering(storage=Storage.SHARED),
        Streaming(delay=0),
        shown="tile.exchange",
    ),
]


# A given delay is taken at any cost in lag: a star pays nothing, a box pays.
LATE = [
    Schedule(f"late-{what}", block_row(), streaming=Streaming(delay=1, what=what), shown="delay 1")
    for what in (Published.EDGES, Published.PLANE)
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("depths", [(4, 3), (3, 2), (5, 4)], ids=str)
def test_a_run_may_mix_even_and_odd_depths(depths: tuple[int, ...], executor: Executor):
    """After either run, data has the halo around the data in the unfused program."""
    deepest = depths[0]
    runs = (sum(depths) + 1, 2 * deepest + 3, 2 * deepest + 4)
    check_steps(entry("heat-2d").make((19, 67)), WARP_ROWS[0], depths, runs, executor)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", [*WARP_ROWS, *SHARED, *BLOCK_ROWS, *LATE], ids=named)
def test_a_star_is_right_under_every_schedule(schedule: Schedule, executor: Executor):
    check(entry("heat-2d").make((23, 131)), schedule, 3, executor)


# In `make test` the schedules missing for the star.
@pytest.mark.covering(first=1, every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", [*WARP_ROWS, *SHARED, *BLOCK_ROWS, *LATE], ids=named)
def test_a_box_is_right_under_every_schedule(schedule: Schedule, executor: Executor):
    check(entry("box-2d").make((23, 67)), schedule, 2, executor)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", [WARP_ROWS[1], *SHARED, *BLOCK_ROWS[1:3]], ids=named)
@pytest.mark.parametrize(
    "name", ["wave-2d", "coupled-2d", "gray-scott-2d", "nested-boxes-2d", "half-stored-2d"]
)
def test_programs_of_several_buffers_keep_their_bits(
    name: str, schedule: Schedule, executor: Executor
):
    check(entry(name).make((19, 71)), schedule, 2, executor)


WIDE = [
    WARP_ROWS[1],
    Schedule("computed", warp_row(), Buffering(storage=Storage.SHARED), streaming=None),
    BLOCK_ROWS[2],
]


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", WIDE, ids=named)
def test_numbers_of_cells_may_take_64_bits(
    schedule: Schedule, executor: Executor, monkeypatch: pytest.MonkeyPatch
):
    """Addresses of fields with more cells than 32 bits can number, too large for tests."""
    monkeypatch.setattr(thread, "WIDE_FIELD", 1)
    check(entry("heat-2d").make((23, 131)), schedule, 3, executor)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("cells", [1, 2, 8])
def test_a_line_needs_no_stream(cells: int, executor: Executor):
    schedule = Schedule("line", warp_row(cells=cells), Buffering(ahead=0), planes=1)
    check(entry("heat-1d").make((211,)), schedule, 4, executor)
    check(entry("multistep-1d").make((97,)), schedule, 3, executor)


def test_schedules_agree_where_products_and_sums_are_contracted():
    """The default contraction precedes any schedule: agreement between schedules is unchanged."""
    program = entry("box-2d").make((17, 67))
    text, inputs = program_text(program), random_inputs(program, seed=2)
    expected = inputs.copy()
    timetile.compile(text, executor="cpu", cache=False)(*expected.arguments(program, 3))
    for schedule in (WARP_ROWS[1], SHARED[5], BLOCK_ROWS[2], ROWS[0], ROWS[5]):
        found = inputs.copy()
        passes = schedule.passes(2)
        executor: Executor = "simt" if schedule in (BLOCK_ROWS[2], ROWS[5]) else "planes"
        compiled = timetile.compile(text, executor=executor, passes=passes, cache=False)
        compiled(*found.arguments(program, 3))
        assert_same_bits(program, expected, found, schedule.name)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("addressing", [Addressing.FIXED, Addressing.SHIFTING, Addressing.COMPUTED])
def test_levels_of_a_line_share_no_slot_of_shared_memory(
    addressing: Addressing, executor: Executor
):
    """Without a stream axis the levels do not share a slot."""
    buffering = Buffering(storage=Storage.SHARED, addressing=addressing)
    schedule = Schedule("line", warp_row(2), buffering, None, planes=1, shown="tile.shared")
    check(entry("heat-1d").make((53,)), schedule, 3, executor)
