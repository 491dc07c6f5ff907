"""
Candidates of choose-schedule with tiles of the device: streamed or resident, with messages or
barriers of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

import pytest

import timetile
from support.catalogue import entry, star, sum_program
from support.compare import assert_as_unfused
from support.description import Program, random_inputs
from support.programs import program_text
from timetile.dialects.tile import ScheduleAttr, Sync
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.scheduling.candidates import Candidate, candidates
from timetile.passes.scheduling.schedule_space import DEEPEST, DEVICE_SHARES
from timetile.passes.targets.target import target_named
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load

# One worker has the shared results of the file's tests.
pytestmark = pytest.mark.xdist_group("device_candidates")

SM_90 = target_named("sm_90")
LAUNCH_SECONDS = SM_90.parameters.waiting.launch


def made(name: str, domain: tuple[int, ...]) -> Program:
    """A program of the catalogue, or a star in FP64."""
    if name.startswith("star"):
        return sum_program("f64", star(len(domain), 1))(domain)
    return entry(name).make(domain)


@cache
def compared(name: str, domain: tuple[int, ...]) -> Sequence[Candidate]:
    """The candidates of a program, the best first."""
    module = raise_program(load(program_text(made(name, domain))), Options(halos="common"))
    (loop,) = loops_of(module)
    return candidates(loop, module, SM_90, None)


def of_device(found: Sequence[Candidate], *, resident: bool) -> list[Candidate]:
    """The candidates with tiles of the device."""
    return [c for c in found if c.schedule.tile == "device" and c.schedule.resident == resident]


def by_schedule(found: Sequence[Candidate]) -> dict[tuple[int, Schedule], Candidate]:
    """Candidates by depth and schedule."""
    return {(c.depth, c.schedule): c for c in found}


def test_streamed_tiles_wait_less_for_words_than_at_barriers():
    """Messages and barriers are compared for equal tiles; nothing else differs."""
    found = by_schedule(of_device(compared("star-3d", (96, 352, 384)), resident=False))
    words = {key: c for key, c in found.items() if key[1].sync == "flags"}
    assert words
    for (depth, schedule), one in words.items():
        other = found[depth, replace(schedule, sync=Sync.GRID)]
        assert one.cost.waiting_seconds < other.cost.waiting_seconds
        assert one.cost.cycles == other.cost.cycles
        assert one.cost.registers == other.cost.registers


def test_volumes_that_stay_pass_fewer_bytes_at_barriers():
    """
    A layer in FP64 takes two words a cell for numbered messages, and one word at a barrier: the
    words decide.
    """
    found = of_device(compared("star-3d", (512, 512, 512)), resident=True)
    assert {c.schedule.sync for c in found} == {"flags", "grid"}
    assert {c.depth for c in found} == set(range(2, DEEPEST[TileShape.VOLUME] + 1))
    assert found[0].schedule.sync == "grid"
    assert all(len(c.schedule.blocks) == 3 for c in found)


def test_plates_that_stay_wait_less_for_words():
    """Of a plate's edges little is sent, and a barrier of the grid is longer than a message."""
    found = of_device(compared("heat-2d", (8192, 8192)), resident=True)
    assert {c.schedule.sync for c in found} == {"flags", "grid"}
    assert found[0].schedule.sync == "flags"


@pytest.mark.parametrize(
    ("name", "domain"), [("heat-2d", (8192, 8192)), ("star-3d", (512, 512, 512))]
)
def test_resident_tiles_fill_the_device_or_a_share_of_it(name: str, domain: tuple[int, ...]):
    found = of_device(compared(name, domain), resident=True)
    most = SM_90.multiprocessors
    blocks = {c.schedule.blocks[0] for c in found}
    assert blocks >= {most // share for share in DEVICE_SHARES[1:]}
    assert all(1 < count <= most for count in blocks)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("multiprocessors", [1, 2, 3])
@pytest.mark.parametrize(("name", "domain"), [("heat-2d", (70, 150)), ("heat-3d", (21, 19, 70))])
def test_parts_of_few_multiprocessors_have_a_schedule(
    name: str, domain: tuple[int, ...], multiprocessors: int
):
    """A share of the device may hold no block, and a single block has no partner to wait for."""
    options = Options(halos="common", multiprocessors=multiprocessors)
    module = raise_program(load(program_text(made(name, domain))), options)
    (loop,) = loops_of(module)
    found = candidates(loop, module, target_named("sm_90", multiprocessors), None)
    assert found
    assert all(
        1 < c.schedule.blocks[0] <= multiprocessors for c in found if c.schedule.tile == "device"
    )


@pytest.mark.parametrize(("name", "domain"), [("heat-2d", (1000, 1000)), ("star-3d", (64, 64, 64))])
def test_no_schedule_is_compared_twice(name: str, domain: tuple[int, ...]):
    """A share of the device may span the axis like the whole device."""
    found = compared(name, domain)
    assert len(by_schedule(found)) == len(found)


def test_resident_tiles_are_no_longer_than_the_domain():
    """As many blocks as span the axis, if the device holds more."""
    found = of_device(compared("heat-2d", (1000, 1000)), resident=True)
    for candidate in found:
        rows = candidate.schedule.cells[0] * candidate.schedule.warps[0]
        assert (candidate.schedule.blocks[0] - 1) * rows < 1000 + 2 * candidate.depth


def test_smaller_tiles_are_faster_wherever_both_were_measured():
    """
    docs/performance.md, tiles of the device: the model agrees, and chooses no tile of the device.
    """
    for name, domain in (
        ("heat-2d", (8192, 8192)),
        ("star-3d", (512, 512, 512)),
        ("star-3d", (96, 352, 384)),
        ("box-3d", (96, 352, 384)),
        ("heat-2d", (1000, 1000)),
        ("star-3d", (64, 64, 64)),
    ):
        assert compared(name, domain)[0].schedule.tile in ("warp", "block")


@pytest.mark.covering(every=2)
@pytest.mark.parametrize(("element", "reach"), [("f64", 1), ("f32", 1), ("f32", 3), ("f64", 3)])
def test_resident_volumes_fit_the_shared_memory(element: Literal["f64", "f32"], reach: int):
    """
    Two whole layers of a block take turns in shared memory, with the cells read around the layers:
    wide stars in FP64 need too much memory.
    """
    text = program_text(sum_program(element, star(3, reach))((64, 64, 64)))
    module = raise_program(load(text), Options(halos="common"))
    (loop,) = loops_of(module)
    found = of_device(candidates(loop, module, SM_90, None), resident=True)
    assert bool(found) == (element == "f32" or reach == 1)
    # The layers are as large at any depth: of each shape the shallowest kernel is made.
    deep_first = sorted(found, key=lambda c: -c.depth)
    for candidate in {c.schedule.warps: c for c in deep_first}.values():
        loop.schedule = ScheduleAttr(candidate.schedule)
        compiled = timetile.compile(
            module.clone(), executor="simt", depth=candidate.depth, halos="common", cache=False
        )
        (deepest, *_) = compiled.kernels.facts[0]
        kernel = compiled.kernels.kernel(deepest.name)
        assert kernel.shared_bytes <= candidate.cost.shared_bytes <= SM_90.isa.shared_per_block


def test_resident_tiles_of_the_device_must_be_predicted_far_ahead():
    """The predictions of resident tiles of the device are the least certain."""
    found = compared("heat-2d", (1000, 1000))
    far = of_device(found, resident=True)
    assert far
    for candidate in found:
        share = candidate.worth / candidate.cost.gcells_per_second
        assert share <= SM_90.parameters.worth.resident_device if candidate in far else share > 0.8


def test_long_code_of_several_levels_makes_a_launch_longer():
    """
    Head, steady part and tail of a block's tile are fetched at the first run; a single step has one
    loop.
    """
    found = compared("star-3d", (64, 64, 64))
    deep = max((c for c in found if c.schedule.tile == "block"), key=lambda c: c.cost.cycles.issue)
    assert deep.cost.launch_seconds > 2 * LAUNCH_SECONDS
    assert all(
        c.cost.launch_seconds == LAUNCH_SECONDS
        for c in found
        if c.depth == 1 and not c.schedule.reads_memory
    )
    plates = compared("heat-2d", (8192, 8192))
    tiles = [c for c in plates if not c.schedule.reads_memory]
    assert {c.cost.launch_seconds for c in tiles} == {LAUNCH_SECONDS}


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("sync", ["flags", "grid"])
@pytest.mark.parametrize(
    ("name", "domain", "resident"),
    [
        ("heat-2d", (70, 150), True),
        ("heat-3d", (21, 19, 70), True),
        ("heat-3d", (9, 50, 70), False),
    ],
)
def test_every_candidate_can_be_run(name: str, domain: tuple[int, ...], resident: bool, sync: str):
    """
    The interpreter of threads runs the best of each kind, and finds the unfused program's bits and
    no race.
    """
    found = of_device(compared(name, domain), resident=resident)
    best = next(c for c in found if c.schedule.sync == sync)
    program = made(name, domain)
    module = raise_program(load(program_text(program)), Options(fp_contract="off", halos="common"))
    (loop,) = loops_of(module)
    loop.schedule = ScheduleAttr(best.schedule)
    compiled = timetile.compile(
        module, executor="simt", depth=best.depth, fp_contract="off", halos="common", cache=False
    )
    assert compiled.kernels.facts[0][0].steps == best.depth
    inputs = random_inputs(program, 7, common_halos=True)
    assert_as_unfused(compiled, program, inputs, best.depth + 1)
