"""The choice among assembled schedules, with made-up assemblers and with the real one."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import timetile
from timetile import Field, Points, Scalar
from timetile.frontend.model import Model
from timetile.frontend.point_runs import rooms_of
from timetile.passes.cost.spills import issued_cost, spilled_cost
from timetile.passes.scheduling import schedule_space
from timetile.passes.scheduling.assembled import (
    AssembledKernel,
    best_assembled,
    expected,
    in_turns_beside,
    with_kernel,
)
from timetile.passes.scheduling.candidates import Candidate, candidates
from timetile.passes.scheduling.choose_schedule import collected_choices, with_fewer_steps
from timetile.passes.targets.target import target_named
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels import assembled_choice
from timetile.runtime.kernels.assembled_choice import LoopAssembler
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.making import made_kernel
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options, run_passes

# One worker has the shared results of the file's tests.
pytestmark = pytest.mark.xdist_group("assembled_choice")

TARGET = target_named("sm_90")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """The cache of the file's tests, empty at first."""
    return Cache(tmp_path_factory.mktemp("choices"))


@timetile.stencil
def heat(u: Field, k: Scalar):
    u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@cache
def found() -> list[Candidate]:
    """The model's candidates for heat conduction on a large plate, the best first."""
    module = raise_program(heat.module((8192, 8192), "float64"), Options(halos="common"))
    (loop,) = loops_of(module)
    return candidates(loop, module, TARGET, None)


def test_a_kernel_without_spills_ends_the_search():
    asked: list[Candidate] = []

    def assemble(candidate: Candidate) -> AssembledKernel:
        asked.append(candidate)
        return AssembledKernel(candidate.cost.registers, 0)

    ranked = found()
    (best,) = best_assembled(ranked, assemble, TARGET)
    assert (best.candidate, best.cost, asked) == (ranked[0], ranked[0].cost, ranked[:1])


def test_spilling_depths_give_way_to_the_deepest_depth_without_spills():
    """Kernels deeper than 7 miss forty registers a level."""

    def assemble(candidate: Candidate) -> AssembledKernel:
        missing = 40 * max(0, candidate.depth - 7)
        return AssembledKernel(255 if missing else candidate.cost.registers, missing)

    seen = best_assembled(found(), assemble, TARGET)
    assert seen[0].candidate.depth == 7
    assert seen[0].kernel.spilled_words == 0
    # The count of registers is corrected by the first kernel: few others are assembled.
    assert len(seen) <= 4
    assert [each.worth for each in seen] == sorted((each.worth for each in seen), reverse=True)


def test_depths_beyond_the_limit_are_tried_as_the_assembler_squeezes_registers():
    """Kernels that need up to a tenth more registers than there are do not spill."""
    ranked = [each for each in found() if not each.schedule.resident]
    first = next(each for each in ranked if each.depth == 5)
    deeper = [each for each in ranked if each.depth > 5]

    def assemble(candidate: Candidate) -> AssembledKernel:
        needed = 200 + 20 * (candidate.depth - 5)
        return AssembledKernel(min(needed, 255), max(0, needed - 280))

    seen = best_assembled([first, *deeper], assemble, TARGET)
    assert seen[0].candidate.depth in (8, 9)
    assert seen[0].kernel == AssembledKernel(255, 0)


def shorter(candidate: Candidate, share: float = 1.0) -> Candidate:
    """The candidate with turns of one step, of a share of the worth."""
    schedule = candidate.schedule.but(period=1)
    return replace(candidate, schedule=schedule, worth=share * candidate.worth)


@pytest.mark.parametrize(
    ("words", "instructions", "length", "share", "turns"),
    [
        (12, 0, 0, 1, 1), (0, 1500, 3000, 1, 1), (0, 900, 1800, 1, 2), (0, 0, 4460, 1, 1),
        (0, 0, 3000, 0.98, 2), (0, 0, 3000, 0.995, 1), (0, 0, 2700, 1, 2),
    ],
)  # fmt: skip
def test_turns_of_one_step_are_tried_where_turns_of_two_spill_or_are_long(
    words: int, instructions: int, length: int, share: float, turns: int
):
    """Of code with quotients the length counts: far beyond the cache, or of nearly equal speed."""

    def assemble(candidate: Candidate) -> AssembledKernel:
        if candidate.schedule.period == 1:
            return AssembledKernel(200, 0, instructions, length=length / 2)
        return AssembledKernel(255, words, instructions, 2, length)

    (first, *_) = found()
    # Of instructions that nothing hides.
    first = replace(first, cost=replace(first.cost, cycles=replace(first.cost.cycles, pipe=1.0)))
    seen = best_assembled([first], assemble, TARGET, shorter=partial(shorter, share=share))
    assert seen[0].kernel.period == turns
    assert (seen[0].candidate.schedule.period == 1) == (turns == 1)


def test_turns_of_one_step_take_computing_time_by_their_instructions():
    (first, *_) = found()
    short = replace(first, schedule=first.schedule.but(period=1))
    made = with_kernel(first, AssembledKernel(255, 9, 400, 3), TARGET)
    seconds = [
        in_turns_beside(made, short, AssembledKernel(200, 0, count), TARGET).cost.compute_seconds
        for count in (0, 400, 600)
    ]
    assert seconds[0] == seconds[1] == first.cost.compute_seconds
    assert seconds[2] == pytest.approx(1.5 * seconds[0])


def test_words_of_the_assembler_replace_registers_counted_beyond_the_limit():
    (first, *_) = found()
    seconds = 1.3 * first.cost.compute_seconds
    counted = replace(first, cost=replace(first.cost, compute_seconds=seconds, counted_spills=1.3))
    for words in (0, 5):
        costs = [
            with_kernel(each, AssembledKernel(255, words), TARGET).cost for each in (first, counted)
        ]
        assert costs[0].compute_seconds == pytest.approx(costs[1].compute_seconds)


@pytest.mark.parametrize(
    ("share", "registers", "pack", "depth"),
    [(1.03, 255, 8, 10), (1.01, 255, 8, 9), (1.03, 400, 8, 9), (1.03, 255, 12, 9)],
)
def test_a_step_more_of_a_tile_is_assembled_for_less_where_nothing_spills(
    share: float, registers: int, pack: int, depth: int
):
    ten, nine = (next(each for each in found() if each.depth == d) for d in (10, 9))
    cost = replace(ten.cost, registers=registers)
    schedule = replace(nine.schedule, pack=pack)
    ten = replace(ten, schedule=schedule, worth=share * nine.worth, cost=cost)

    def assemble(candidate: Candidate) -> AssembledKernel:
        return AssembledKernel(candidate.cost.registers, 0)

    assert best_assembled([nine, ten], assemble, TARGET)[0].candidate.depth == depth


def test_a_kernel_is_expected_to_be_as_one_with_turns_of_equal_length():
    """Turns of one step need fewer registers than long turns."""
    ten, nine = (next(each for each in found() if each.depth == d) for d in (10, 9))
    short = replace(ten, schedule=ten.schedule.but(period=1))
    seen = [
        with_kernel(short, AssembledKernel(200, 0), TARGET),
        with_kernel(ten, AssembledKernel(255, 60), TARGET),
    ]
    assert expected(nine, seen, TARGET).kernel.spilled_words > 0


@pytest.mark.parametrize(
    ("share", "many", "depth"), [(0.985, False, 9), (0.975, False, 10), (0.985, True, 8)]
)
def test_fewer_steps_are_taken_where_nearly_as_good(share: float, many: bool, depth: int):
    """Of many fields, tiles of another kind are taken, too."""
    ten, nine = (next(each for each in found() if each.depth == d) for d in (10, 9))
    nine = replace(nine, worth=share * ten.worth)
    other = replace(nine, depth=8, schedule=replace(nine.schedule, pack=4))
    chosen = with_fewer_steps(ten, [ten, other, nine], lambda _: True, many=many)
    assert chosen is {8: other, 9: nine, 10: ten}[depth]
    assert with_fewer_steps(ten, [ten, nine], lambda _: False, many=many) is ten


@pytest.mark.parametrize(("words", "length", "depth"), [(1, 0, 10), (3, 4100, 9), (3, 4200, 10)])
def test_a_spilling_kernel_gives_way_to_one_without_that_is_nearly_as_good(
    words: int, length: int, depth: int
):
    """
    Ten steps are worth 1.05 times nine steps; a single word of a turn counts as none, and a word in
    each 1400 instructions.
    """
    first, nine = (next(each for each in found() if each.depth == d) for d in (10, 9))

    def assemble(candidate: Candidate) -> AssembledKernel:
        return AssembledKernel(255, words if candidate is first else 0, length=length)

    seen = best_assembled([first, nine], assemble, TARGET)
    assert seen[0].candidate.depth == depth


@pytest.mark.parametrize(("share", "depth"), [(1.0, 10), (2.0, 9)])
def test_fewer_cells_are_tried_where_turns_of_one_step_are_slower(share: float, depth: int):
    """Ten steps spill in turns of three and not in turns of one, with a share of instructions."""
    ten, nine = (next(each for each in found() if each.depth == d) for d in (10, 9))
    ten = replace(ten, cost=replace(ten.cost, cycles=replace(ten.cost.cycles, pipe=1.0)))
    count = 4 * ten.cost.cycles.issue

    def assemble(candidate: Candidate) -> AssembledKernel:
        if candidate.depth == nine.depth or candidate.schedule.period == 1:
            return AssembledKernel(200, 0, 0 if candidate.depth == nine.depth else share * count)
        return AssembledKernel(255, 9, count, 3, 3 * count)

    seen = best_assembled([ten, nine], assemble, TARGET, shorter=shorter)
    assert seen[0].candidate.depth == depth


def test_of_spilling_kernels_the_fastest_is_taken():
    def assemble(candidate: Candidate) -> AssembledKernel:
        return AssembledKernel(255, 200 - candidate.depth)

    seen = best_assembled(found(), assemble, TARGET)
    assert seen[0].worth == max(each.worth for each in seen)
    assert seen[0].cost.gcells_per_second < seen[0].candidate.cost.gcells_per_second


def test_words_cost_more_the_more_there_are():
    cost = found()[0].cost
    speeds = [
        spilled_cost(cost, words, 8, TARGET).gcells_per_second for words in (0, 5, 20, 40, 80)
    ]
    assert speeds == sorted(speeds, reverse=True) and speeds[0] == cost.gcells_per_second
    twice = spilled_cost(cost, 80, 8, TARGET).compute_seconds - cost.compute_seconds
    once = spilled_cost(cost, 40, 8, TARGET).compute_seconds - cost.compute_seconds
    assert twice == pytest.approx(2 * once)


def test_words_that_the_cache_does_not_hold_cost_more():
    cost = replace(found()[0].cost, shared_bytes=180_224)
    # Shared memory takes 196 of 256 KiB: 60 KiB hold 120 words moved by 8 warps, half for loads.
    held, missed = (
        spilled_cost(cost, words, 8, TARGET, period=2).compute_seconds - cost.compute_seconds
        for words in (60, 60.5)
    )
    assert missed > 5 * held


def test_warps_that_exchange_rows_wait_for_spilled_words():
    """However few the words are, a step waits."""
    cost = replace(found()[0].cost, spilled_seconds=1e-6)
    few, none = (spilled_cost(cost, words, 8, TARGET).compute_seconds for words in (1, 0))
    assert few - none > 1e-6 and none == cost.compute_seconds


def test_far_more_instructions_than_counted_slow_a_kernel_down():
    cost = found()[0].cost
    counted = cost.cycles.issue * 4
    assert issued_cost(cost, 1.05 * counted) == cost
    assert issued_cost(cost, 0) == cost
    slower = issued_cost(cost, 3 * counted)
    assert slower.compute_seconds > 1.8 * cost.compute_seconds
    assert slower.memory_seconds == cost.memory_seconds
    assert slower.gcells_per_second < cost.gcells_per_second


@pytest.mark.skipif(assembler_version() is None, reason="no assembler")
def test_the_choice_is_kept_and_its_kernel_is_not_made_twice(kept: Cache):
    model = heat.on(executor="planes", cache=kept)
    first = model.program((8192, 8192), "float64").kernels
    name = first.facts[0][0].name
    assert list(first.choice.kernels) == [name]
    assert first.kernel(name).ptx == first.choice.kernels[name].ptx
    again = (
        Model(model.step, executor="planes", cache=kept).program((8192, 8192), "float64").kernels
    )
    assert str(again.tiled) == str(first.tiled)
    assert again.choice.seen == first.choice.seen and not again.choice.kernels
    # Made from the module with all depths, the kernel is the one made for the choice.
    fresh = replace(again.options, passes=None)
    assert made_kernel(again.tiled, name, fresh).ptx == first.kernel(name).ptx


@pytest.mark.skipif(assembler_version() is None, reason="no assembler")
@pytest.mark.parametrize(("words", "tried"), [(0, True), (12, True), (15, False)])
def test_more_steps_are_tried_behind_few_spilled_words_of_a_turn(
    words: int, tried: bool, monkeypatch: pytest.MonkeyPatch
):
    asked: list[int] = []

    class Spilling(LoopAssembler):
        def __init__(self, module: ModuleOp, number: int, options: Options):
            super().__init__(module, number, options)
            self.is_whole = False

        def __call__(self, candidate: Candidate) -> AssembledKernel:
            return AssembledKernel(255, words / 3, 0.0, 3)

    def begin_search(*_: object) -> Callable[[], list[Candidate]]:
        return lambda: asked.append(1) or []

    monkeypatch.setattr(assembled_choice, "LoopAssembler", Spilling)
    monkeypatch.setattr(assembled_choice.AssembledChoice, "begin_search", begin_search)
    options = Options(halos="common")
    module = raise_program(heat.module((8192, 8192), "float64"), options)
    with collected_choices() as choices:
        run_passes(options.halves_of_tile_passes()[0], module)
    (choice,) = choices.values()
    assembled_choice.AssembledChoice(options, None, "").assembled(module, 0, choice)
    assert bool(asked) == tried


@timetile.stencil
def shot(u: Field, source: Points):
    u.next = 0.5 * u[0, 0] + 0.25 * (u[-1, 0] + u[0, 1])
    source.add(u)


def test_candidates_are_assembled_without_lists_of_points():
    given = {"source": Points([[4.5, 5]], np.ones(3))}
    rooms = rooms_of(shot.step, given, 3)
    source = shot.on(executor="numpy").program((12, 12), "float64", rooms).kernels.source
    assembler = LoopAssembler(source, 0, Options(halos="common"))
    assert loops_of(source)[0].has_points and not assembler.is_whole
    assembler.module.verify()
    assert not loops_of(assembler.module)[0].has_points
    assert LoopAssembler(assembler.module, 0, Options(halos="common")).is_whole


@pytest.mark.skipif(assembler_version() is None, reason="no assembler")
def test_heat_conduction_as_everybody_writes_it_does_not_spill_in_each_step(kept: Cache):
    kernels = heat.on(executor="planes", cache=kept).program((8192, 8192), "float64").kernels
    assert kernels.facts
    (seen,) = kernels.choice.seen
    assert seen[0].spilled_words == 0
    assert seen[0].depth >= 10


@timetile.stencil
def elastic(vx: Field, vy: Field, xx: Field, yy: Field, xy: Field, b: Field, k: Field, m: Field):
    vx.next = vx[0, 0] + b[0, 0] * 0.2 * (xx[1, 0] - xx[0, 0] + xy[0, 0] - xy[0, -1])
    vy.next = vy[0, 0] + b[0, 0] * 0.2 * (xy[0, 0] - xy[-1, 0] + yy[0, 1] - yy[0, 0])
    ex = vx.next[0, 0] - vx.next[-1, 0]
    ey = vy.next[0, 0] - vy.next[0, -1]
    both = k[0, 0] + 2 * m[0, 0]
    turned = vx.next[0, 1] - vx.next[0, 0] + vy.next[1, 0] - vy.next[0, 0]
    xx.next[1:-1, 1:-1] = xx[0, 0] + 0.2 * (both * ex + k[0, 0] * ey)
    yy.next[1:-1, 1:-1] = yy[0, 0] + 0.2 * (both * ey + k[0, 0] * ex)
    xy.next[1:-1, 1:-1] = xy[0, 0] + 0.2 * m[0, 0] * turned


@pytest.mark.skipif(assembler_version() is None, reason="no assembler")
def test_strips_of_few_cells_hold_many_steps_of_many_fields(kept: Cache):
    """Five fields keep planes: two cells a lane hold some steps in FP64, four cells hardly two."""
    module = elastic.module((8192, 8192), "float64")
    program = timetile.compile(module, executor="planes", halos="common", depth=4, cache=kept)
    assert program.kernels.facts
    (seen,) = program.kernels.choice.seen
    assert "cells [2]" in seen[0].schedule and not seen[0].spilled_words


@pytest.mark.skipif(assembler_version() is None, reason="no assembler")
def test_tiles_left_out_for_few_registers_are_assembled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Of four cells a lane, the model counts too many registers for two steps of elastic waves."""
    monkeypatch.setattr(schedule_space, "MANY_FIELDS", 9)
    module = elastic.module((8192, 8192), "float64")
    program = timetile.compile(module, executor="planes", halos="common", cache=Cache(tmp_path))
    assert program.kernels.facts
    (seen,) = program.kernels.choice.seen
    assert (seen[0].depth, seen[0].spilled_words) == (2, 0)


@timetile.stencil
def spread(u: Field, c: Field):
    u.next = u[0, 0] + np.exp(c[0, 0]) * (u[-1, 0] + u[1, 0])


def test_a_loop_whose_scratch_field_another_loop_reads_is_placed_alone():
    """Without a reader the loop that computes the coefficient once would have no kernel."""
    module = raise_program(spread.module((64, 64), "float64"), Options(halos="common"))
    once, _ = loops_of(module)
    assembler = LoopAssembler(module, 0, Options(halos="common"))
    first, *_ = candidates(once, module, TARGET, None)
    assert loops_of(assembler.placed(first))[0].kernel_names
