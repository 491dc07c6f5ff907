"""
Programs on several GPUs end with the bits of one: on simulated devices, whose streams run in any
order that marks and waits allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, reject
from hypothesis import strategies as st

import timetile
from support import reference
from support.blocks import FIELDS, HALO, HIGH, LOW, random_program
from support.compare import assert_same_bits
from support.description import Program, random_inputs
from support.driver import BookKeeper
from support.few_schedules import few_schedules
from support.generate import programs
from support.gpu_programs import SHAPE, TEXT
from support.programs import program_text
from support.ranks import copies, model_case
from support.simulated import (
    SimulatedSite,
    World,
    boxes,
    on_simulated,
    simulated_rank,
)
from support.simulated_link import SimulatedLink, SimulatedSide
from support.sizes import is_nightly, seeds, spread
from support.thread_ranks import ThreadPeers, on_threads
from test_narrow_fields import FADE, WRITTEN
from test_ranks import MODELS
from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Decomposition
from timetile.passes.diagnostics import CompileError
from timetile.runtime.executors.homes import PlaneError
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.program import small_domains
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.program.ranked_program import on_ranks
from timetile.runtime.program.small_domains import speed_of
from timetile.runtime.ranks.exchange import array_part
from timetile.runtime.ranks.gpu_sites import GpuSite
from timetile.runtime.ranks.parted import PartsMemory
from timetile.runtime.ranks.rims import box_copy, extents_of

pytestmark = pytest.mark.usefixtures("printed_alone", "chosen_among_few")


@pytest.fixture(autouse=True, scope="module")
def choice_among_few() -> Iterator[None]:
    """Schedules are chosen among few; among all in `make nightly`."""
    if is_nightly():
        yield
        return
    with few_schedules():
        yield


USUAL_CUTS: list[Any] = [(2, 1), (1, 3), Decomposition(((0, 2, 9), (0, 1, 11)))]
MORE_CUTS: list[Any] = [(3, 2), Decomposition(((0, 2, 9), (0, 1, 5, 11)))]
CUTS = [*USUAL_CUTS, *(MORE_CUTS if is_nightly() else [])]


def run_on(text: str, arguments: list[Any], parts: Any, seed: int, **options: Any) -> World:
    """Run a program on simulated devices, and compare all arrays with a run on one."""
    expected, own = copies(arguments), copies(arguments)
    timetile.compile(text, executor="numpy", fp_contract="off", cache=False)(*expected)
    count = parts.count if isinstance(parts, Decomposition) else prod(parts)
    program, world = on_simulated(text, count, seed, parts, **options)
    program(*own)
    for array, right in zip(own, expected):
        assert np.asarray(array).tobytes() == np.asarray(right).tobytes()
    program.close()
    return world


@pytest.mark.covering
@pytest.mark.parametrize("depth, every", [(1, 1), (2, 2), (2, 4), (3, None)])
@pytest.mark.parametrize("parts", CUTS, ids=str)
@pytest.mark.parametrize("name", list(MODELS))
def test_boundaries_keep_their_bits_on_several_gpus(
    name: str, parts: Any, depth: int, every: int | None
):
    text, arguments = model_case(MODELS[name], (9, 11), 6 if every == 4 else 4)
    world = run_on(text, arguments, parts, 1, depth=depth, every=every)
    assert world.pulled


@given(
    program=programs(), count=st.integers(1, 4), depth=st.integers(1, 3), every=st.integers(1, 4),
    steps=st.integers(0, 9), seed=st.integers(0, 99),
)  # fmt: skip
def test_drawn_programs_keep_their_bits_on_several_gpus(
    program: Program, count: int, depth: int, every: int, steps: int, seed: int
):
    note(program_text(program))
    inputs = random_inputs(program, seed=steps)
    expected, own = inputs.copy(), inputs.copy()
    reference.run(program, expected, steps)
    try:
        made, _ = on_simulated(program_text(program), count, seed, None, every, depth=depth)
        made(*own.arguments(program, steps))
    except CompileError as error:
        # Small domains have fewer cells than parts; nothing else may be refused.
        assert "run on fewer ranks" in str(error)
        reject()
    assert_same_bits(program, expected, own, f"{count} GPUs")
    made.close()


@pytest.mark.covering
@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("host", [False, True], ids=["sweeps", "host"])
def test_sweeps_and_hosts_keep_their_bits_on_several_gpus(seed: int, host: bool):
    """Hosts read and write single cells, pick fields, and gather cells at computed places."""
    text = random_program(seed, looped=host or bool(seed % 2), host=host)
    random = np.random.default_rng(seed)
    arguments = [*(random.random(HIGH - LOW + 2 * HALO) for _ in range(FIELDS)), 3]
    run_on(text, arguments, (2 + seed % 3,), seed)


def test_launches_sharing_an_exchange_keep_all_bits():
    text, arguments = model_case(MODELS["plate"], (24, 7), 11)
    often = run_on(text, arguments, (2, 1), 1, depth=2, every=2)
    seldom = run_on(text, arguments, (2, 1), 1, depth=2, every=4)
    assert 0 < len(seldom.pulled) < len(often.pulled)


def test_sweeps_use_up_ghosts_for_several_steps():
    """A zone for five steps of a loop is wide enough for one sweep only."""
    text = random_program(3, looped=True, host=True)
    random = np.random.default_rng(3)
    arguments = [*(random.random(HIGH - LOW + 2 * HALO) for _ in range(FIELDS)), 3]
    run_on(text, arguments, (2,), 3, every=5)


def differs_somewhere(text: str, arguments: list[Any], every: int, tried: int = 12) -> bool:
    """Whether a run on simulated devices ends with other bits at one of `tried` seeds."""
    program, world = on_simulated(text, 2, 0, (2, 1), every, depth=1)
    expected = copies(arguments)
    timetile.compile(text, executor="numpy", fp_contract="off", cache=False)(*expected)
    for seed in range(tried):
        world.random = np.random.default_rng(seed)
        own = copies(arguments)
        try:
            program(*own)
        except PlaneError:
            # A cell was read before any was there; the rest of the work is dropped.
            program.placed.present = None
            return True
        if any(np.not_equal(array, right).any() for array, right in zip(own, expected)):
            return True
    return False


def no_wait(*_: object) -> None:
    """A wait for nothing."""


def test_simulated_devices_find_missing_waits(monkeypatch: pytest.MonkeyPatch):
    text, arguments = model_case(MODELS["plate"], (9, 11), 7)
    few = len(seeds(12))
    assert not differs_somewhere(text, arguments, 1, few)
    assert not differs_somewhere(text, arguments, 3, few)
    with monkeypatch.context() as patch:
        patch.setattr(PartsMemory, "wait_for_readers", no_wait)
        assert differs_somewhere(text, arguments, 3), "a rim is overwritten while it is read"
    monkeypatch.setattr(SimulatedSite, "wait", no_wait)
    assert differs_somewhere(text, arguments, 1), "a rim is read before it is written"


def test_parts_of_equal_extents_share_kernels():
    text, _ = model_case(MODELS["plate"], (16, 11), 1)
    program, _ = on_simulated(text, 4, depth=2)
    first, second, third, fourth = program.parts.of_parts(common=False)
    # The parts in the middle have ghosts on both sides.
    assert second is third and second is not first and fourth is not second


@pytest.mark.parametrize("axis", [0, 1])
def test_fields_of_fewer_axes_are_whole_on_each_gpu(axis: int):
    random = np.random.default_rng(3)
    arguments = [random.random((6, 8)), random.random(8), 3]
    run_on(WRITTEN.replace("BEFORE", ""), arguments, (2, 1) if axis == 0 else (1, 2), 1)


def test_a_written_field_of_fewer_axes_is_refused():
    program, _ = on_simulated(WRITTEN.replace("BEFORE", FADE), 2)
    said = "a field of fewer axes is spread anew, as the program writes the field"
    with pytest.raises(CompileError, match=said):
        program(np.ones((6, 8)), np.ones(8), 3)


# Copies of rims.


@st.composite
def boxed(draw: st.DrawFn) -> tuple[CellBox, CellBox, CellBox, CellBox]:
    """Bounds and a box of a source, and bounds and a box of equal extents of a target."""
    rank = draw(st.integers(1, 3))
    extents = [draw(st.integers(1, 4)) for _ in range(rank)]
    made: list[CellBox] = []
    for _ in range(2):
        low = [draw(st.integers(-3, 3)) for _ in range(rank)]
        below = [draw(st.integers(0, 2)) for _ in range(rank)]
        above = [draw(st.integers(0, 2)) for _ in range(rank)]
        bounds = zip(low, below, extents, above)
        upper = tuple(first + b + extent + a for first, b, extent, a in bounds)
        made.append(CellBox(tuple(low), upper))
        begin = tuple(first + b for first, b in zip(low, below))
        made.append(CellBox(begin, tuple(first + e for first, e in zip(begin, extents))))
    return made[0], made[1], made[2], made[3]


@given(boxed())
def test_a_copy_of_a_box_moves_its_cells_and_no_others(taken: tuple[CellBox, ...]):
    source, source_box, target, target_box = taken
    one = np.arange(1.0, 1 + prod(extents_of(source))).reshape(extents_of(source))
    other, expected = np.zeros(extents_of(target)), np.zeros(extents_of(target))
    array_part(expected, target, target_box)[...] = array_part(one, source, source_box)
    copy = box_copy(source, source_box, target, target_box, one.itemsize)
    for row, place in zip(boxes(one, copy, copy.source), boxes(other, copy, copy.target)):
        place[:] = row
    assert np.array_equal(other, expected)
    assert copy.bytes == array_part(one, source, source_box).nbytes


def test_a_rim_of_whole_planes_is_one_row():
    source, target = CellBox((0, 0, 0), (8, 5, 7)), CellBox((6, 0, 0), (12, 5, 7))
    rim = CellBox((6, 0, 0), (8, 5, 7))
    copy = box_copy(source, rim, target, rim, 8)
    assert copy.is_contiguous and copy.width == 2 * 5 * 7 * 8


# On ranks with a device each.


def run_on_ranks(text: str, arguments: list[Any], count: int, depth: int | None = None) -> None:
    """Run a program on ranks with a simulated device each, and compare the arrays of all ranks."""
    expected = copies(arguments)
    timetile.compile(text, executor="numpy", fp_contract="off", cache=False)(*expected)
    options: Any = {"executor": "planes", "fp_contract": "off", "cache": False, "depth": depth}

    def work(peers: ThreadPeers) -> list[Any]:
        program = on_ranks(peers, lambda: timetile.compile(text, **options), make=simulated_rank)
        own = copies(arguments)
        program(*own)
        program.close()
        return own

    for own in on_threads(count, work):
        for array, right in zip(own, expected):
            assert np.asarray(array).tobytes() == np.asarray(right).tobytes()


@pytest.mark.parametrize("name", spread(sorted(MODELS, reverse=True)))
def test_ranks_with_a_gpu_each_keep_their_bits(name: str):
    text, arguments = model_case(MODELS[name], (9, 11), 3)
    SimulatedSide.met.clear()
    run_on_ranks(text, arguments, 3, 2)
    assert not SimulatedSite.opened_now, "opened buffers are closed"
    assert set(SimulatedSide.met) == {0, 1, 2}, "all sites met others"


def on_two_hosts(site: SimulatedSite) -> str:
    """The first rank is alone on its host."""
    return "first" if site.world.seed == 0 else "others"


@pytest.mark.parametrize(
    "hosts, problem", [("apart", ""), ("apart", "no NCCL"), ("two", ""), ("two", "no NCCL")]
)
def test_ranks_of_several_hosts_keep_their_bits(
    hosts: str, problem: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Ranks 1 and 2 open each other's buffers, or no rank does; a link reaches others, or none."""
    monkeypatch.setattr(SimulatedSite, "problem", problem)
    SimulatedLink.used.clear()
    text, arguments = model_case(MODELS["plate"], (13, 11), 7)
    SimulatedSite.opened_ever.clear()
    if hosts == "two":
        monkeypatch.setattr(SimulatedSite, "host", property(on_two_hosts))
    else:
        monkeypatch.setattr(SimulatedSite, "shares", False)
    run_on_ranks(text, arguments, 3, 2)
    assert bool(SimulatedSite.opened_ever) == (hosts == "two")
    assert set(SimulatedLink.used) == (set() if problem else {0, 1, 2})
    said = "rank 0 has no NCCL (no NCCL): ghosts between hosts go through the memory of the hosts"
    assert (said in caplog.text) == bool(problem)


@pytest.mark.parametrize("seed", seeds(8))
def test_hosts_of_ranks_with_a_gpu_each_keep_their_bits(seed: int, monkeypatch: pytest.MonkeyPatch):
    """Ranks that share a GPU exchange by messages: a rank that waits would keep others waiting."""
    if seed % 2:
        monkeypatch.setattr(SimulatedSite, "place", "a shared GPU")
    SimulatedSide.met.clear()
    text = random_program(seed, looped=True, host=True)
    random = np.random.default_rng(seed)
    arguments = [*(random.random(HIGH - LOW + 2 * HALO) for _ in range(FIELDS)), 3]
    run_on_ranks(text, arguments, 2 + seed % 2)
    assert bool(SimulatedSide.met) == (seed % 2 == 0)


# On GPUs, with a driver that counts.


def reaches_nothing(*_: object) -> bool:
    """Kernels do not reach the memory of other GPUs."""
    return False


@pytest.mark.parametrize("parts", [None, (1, 2)], ids=str)
@pytest.mark.usefixtures("cache_of_file")
def test_a_run_on_two_gpus_gives_back_everything(
    driver: BookKeeper, parts: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(GpuSite, "reaches", reaches_nothing)
    program = timetile.compile(TEXT, gpus=2, depth=4, parts=parts, exchange_every=4)
    plate = np.zeros(SHAPE)
    program(plate, plate.copy(), steps=17)
    # Four exchanges, of four rows or columns each way: the outermost of five may be stale.
    rows = SHAPE[1] if parts is None else SHAPE[0]
    assert [size for size in driver.copied if size < plate.nbytes // 2] == [4 * rows * 8] * 8
    assert {"stream", "module", "event"} <= set(driver.left)
    program.close()
    assert set(driver.left) == {"module"}, "kernels that compare halos stay"


@pytest.mark.usefixtures("cache_of_file")
def test_gpus_without_access_to_each_other_are_a_warning(
    driver: BookKeeper, caplog: pytest.LogCaptureFixture
):
    driver.reachable = False
    program = timetile.compile(TEXT, gpus=[0, 1], depth=1)
    plate = np.zeros(SHAPE)
    program(plate, plate.copy(), steps=1)
    assert "GPU 0 does not reach the memory of GPU 1" in caplog.text
    program.close()


@pytest.mark.usefixtures("cache_of_file", "driver")
def test_one_gpu_runs_a_domain_too_small_for_two(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    closed: list[PartedProgram] = []

    def note_close(self: PartedProgram) -> None:
        closed.append(self)

    compared: list[ProgramKernels] = []

    def note_kernels(kernels: ProgramKernels) -> float:
        compared.append(kernels)
        return speed_of(kernels)

    monkeypatch.setattr(PartedProgram, "close", note_close)
    monkeypatch.setattr(small_domains, "speed_of", note_kernels)
    program = timetile.compile(TEXT, gpus=2, depth=4)
    assert not isinstance(program, PartedProgram) and len(closed) == 1
    assert compared == [program.kernels], "its schedules are chosen once"
    assert (
        "the domain is too small for 2 GPUs: a step takes 1.38 us there and 0.95 us on one, as "
        "predicted, and one GPU runs the program; give parts to use all" in caplog.text
    )
    given: list[Any] = [{"gpus": [0, 1]}, {"gpus": 2, "parts": (2, 1)}]
    for options in given:
        assert isinstance(timetile.compile(TEXT, depth=4, **options), PartedProgram)


@pytest.mark.usefixtures("cache_of_file")
def test_more_gpus_than_there_are_are_refused(driver: BookKeeper):
    with pytest.raises(RuntimeError, match="there is no GPU 2, the driver numbers them from 0 to"):
        timetile.compile(TEXT, gpus=3)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"gpus": 0}, "gpus is a number from 1 on, got 0"),
        ({"gpus": "two"}, "gpus is a number of GPUs, or a list of their numbers, got 'two'"),
        ({"gpus": [0, -1]}, "gpus is a number from 0 on, got -1"),
        ({"gpus": 2, "executor": "cpu"}, "gpus and the executor cpu do not go together"),
        ({"gpus": 2, "comm": object()}, "comm and gpus do not go together"),
    ],
)
def test_wrong_options_of_gpus_are_refused(options: Any, said: str):
    with pytest.raises(ValueError, match=f"^{said}"):
        timetile.compile(TEXT, **options)
