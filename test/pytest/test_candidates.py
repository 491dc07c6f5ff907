"""Candidates of choose-schedule, beyond the chosen schedule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

import timetile
from support.candidates import considered
from support.catalogue import box, entry, star, sum_program
from support.programs import program_text
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.cost.launch import launch_cost, predict
from timetile.passes.cost.register_facts import WORDS_COUNTED, body_words, register_facts
from timetile.passes.cost.registers import registers
from timetile.passes.cost.setting import Setting
from timetile.passes.scheduling.candidates import Candidate, Trials, candidates, compare
from timetile.passes.scheduling.schedule_space import DEEPEST, schedules
from timetile.passes.scheduling.trial_kernels import TrialKernels
from timetile.passes.targets.hardware import SCHEDULERS
from timetile.passes.targets.target import target_named
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load

pytestmark = pytest.mark.usefixtures("chosen_by_model")


def test_blocks_that_wait_for_each_other_are_all_guarded():
    """
    No tile waits for a slower tile; tiles of one block may be of either kind, with common halos.
    """
    text = program_text(entry("heat-3d").make((96, 352, 384)))
    found = considered(text, 3)
    guards = {
        level: {c.schedule.guards for c in found if c.schedule.tile == level}
        for level in ("block", "device")
    }
    assert guards == {"block": {"rim", "all"}, "device": {"all"}}


def test_a_barrier_of_the_grid_may_serve_two_steps():
    """Lazier blocks wait half as long at barriers, and keep planes read by others a step longer."""
    text = program_text(entry("heat-3d").make((96, 352, 384)))
    found = [
        c for c in considered(text, 3) if c.schedule.sync == "grid" and not c.schedule.resident
    ]
    eager, lazy = (
        {c.schedule.cells: c.cost for c in found if c.schedule.every == every} for every in (1, 2)
    )
    both = eager.keys() & lazy.keys()
    assert both
    for cells in both:
        assert lazy[cells].waiting_seconds < 0.6 * eager[cells].waiting_seconds
        assert lazy[cells].registers > eager[cells].registers


@pytest.mark.parametrize(("radius", "forms"), [(2, {"none"}), (3, {"none", "halves"})])
def test_sums_of_wide_stars_are_considered_in_halves(radius: int, forms: set[str]):
    found = considered(star_text(radius))
    assert {c.schedule.form for c in found} == forms


@pytest.mark.parametrize(("step", "form"), [(1, "rows"), (-1, "lanes")])
def test_boxes_are_considered_as_their_sums_can_be_cut(step: int, form: str):
    """Rows or columns, taken by a body one after the other; whole sums are compared, too."""
    offsets = sorted(box((-1, -1), (1, 1)), key=lambda offset: offset[::step])
    text = program_text(sum_program("f64", offsets)((8192, 8192)))
    found = considered(text)
    streamed = [c for c in found if not c.schedule.resident]
    assert {c.schedule.form for c in streamed} == {"none", form}
    assert found[0].schedule.form == form


def nine_points(side: int) -> list[Candidate]:
    """The candidates for a box of nine points in FP64."""
    return considered(program_text(sum_program("f64", box((-1, -1), (1, 1)))((side, side))))


def test_chunks_keep_to_their_column_where_sums_leave_few_registers():
    """
    Of schedules with equal threads a multiprocessor, schedules with separate columns take more
    registers.
    """
    found = [c for c in nine_points(8784) if c.schedule.form == "rows"]
    registers: dict[tuple[int, bool], set[int]] = {}
    for candidate in found:
        threads = candidate.schedule.pack * candidate.schedule.occupancy
        key = (threads, candidate.schedule.columns_alone)
        registers.setdefault(key, set()).add(candidate.cost.registers)
    compared = [threads for threads, alone in registers if alone and (threads, False) in registers]
    assert compared
    for threads in compared:
        assert max(registers[threads, False]) < min(registers[threads, True])


def test_two_turns_of_a_loop_fetch_into_one_group_of_slots():
    twice = [c for c in nine_points(8784) if c.schedule.period == 2 and c.schedule.columns_alone]
    assert twice and all(c.schedule.ahead % 2 == 0 for c in twice)


def test_the_prediction_for_a_candidate_equals_the_resources_of_its_kernel():
    """The planes fetched to fill a turn count, too."""
    text = program_text(sum_program("f64", box((-1, -1), (1, 1)))((8784, 8784)))
    tiled = timetile.compile(text, executor="simt", halos="common", cache=False).kernels.tiled
    placed = next(op for op in tiled.ops if isinstance(op, KernelOp))
    best = considered(text)[0]
    assert placed.steps.data == best.depth
    assert predict(placed, tiled, target_named("sm_90")).shared_bytes == best.cost.shared_bytes


def test_rows_that_begin_anywhere_have_no_schedule_without_registers_to_spare():
    """Accesses to rows without alignment are narrow, and take more addresses and masks."""
    assert not any(candidate.schedule.columns_alone for candidate in nine_points(8783))


@pytest.mark.parametrize(
    ("name", "domain", "takes"),
    [
        ("roots-2d", (8192, 8192), True),
        ("heat-3d", (128, 128, 128), False),
        ("heat-1d", (10_000_000,), False),
    ],
)
def test_approximate_quotients_take_registers_in_strips(
    name: str, domain: tuple[int, ...], takes: bool
):
    """
    Quotients of a lane's cells are in flight at once; lines and blocks take no more registers for
    quotients.
    """
    module = raise_program(load(program_text(entry(name).make(domain))), Options(halos="common"))
    (loop,) = loops_of(module)
    target = target_named("sm_90")
    schedule = next(schedules(loop, target))
    facts = TrialKernels(loop, module).facts(2, schedule)
    assert facts is not None
    numbers, parameters = register_facts(facts, Setting.of(schedule)), target.parameters.registers
    exact, approximate = (
        registers(replace(numbers, approximates=said), parameters) for said in (False, True)
    )
    assert exact < approximate if takes else exact == approximate


@pytest.mark.parametrize(("division", "approximates"), [("fast", True), ("exact", False)])
def test_quotients_of_fast_division_are_approximate(division: FpDivision, approximates: bool):
    text = program_text(entry("roots-2d").make((8192, 8192)))
    module = raise_program(load(text), Options(halos="common", fp_division=division))
    (loop,) = loops_of(module)
    facts = TrialKernels(loop, module).facts(2, next(schedules(loop, target_named("sm_90"))))
    assert facts is not None and facts.approximates == approximates


def test_values_of_cells_are_counted_up_to_the_registers_of_two_threads():
    """Each of hundreds of stages shares values between cells; the count ends with the first."""
    module = raise_program(load(program_text(entry("slopes-2d").make((8192, 8192)))), Options())
    (loop,) = loops_of(module)
    schedule = next(schedules(loop, target_named("sm_90")))
    facts, setting = TrialKernels(loop, module).facts(1, schedule), Setting.of(schedule)
    assert facts is not None
    single = body_words(facts, setting)
    assert facts.live_words < single < WORDS_COUNTED
    many = body_words(replace(facts, stages=facts.stages * WORDS_COUNTED), setting)
    assert WORDS_COUNTED < many <= WORDS_COUNTED + single


def star_text(radius: int) -> str:
    """A star of three axes."""
    return program_text(sum_program("f32", star(3, radius))((256, 256, 256)))


@pytest.mark.parametrize(
    ("name", "side", "stays"),
    [
        ("heat-2d", 256, True),
        ("box-2d", 512, True),
        ("heat-2d", 2048, False),
        ("heat-2d", 8192, False),
        # Registers of cells with divisions are not known well enough.
        ("roots-2d", 256, False),
    ],
)
def test_plates_stay_where_they_are_small(name: str, side: int, stays: bool):
    """On larger domains the stream's fill and drain matter less than waits for memory."""
    text = program_text(entry(name).make((side, side)))
    best = considered(text)[0]
    assert best.schedule.resident == stays
    assert best.schedule.tile == ("block" if stays else "warp")


def test_one_step_needs_neither_neighbours_nor_levels():
    """At a requested depth of one, no blocks wait for each other, and no tile is resident."""
    for name, domain in (("heat-2d", (300, 300)), ("heat-3d", (64, 64, 64))):
        module = raise_program(load(program_text(entry(name).make(domain))), Options())
        (loop,) = loops_of(module)
        found = candidates(loop, module, target_named("sm_90"), 1)
        assert found
        held = [c.schedule for c in found if not c.schedule.reads_memory]
        assert held and len(held) < len(found)
        assert not any(schedule.tile == "device" or schedule.resident for schedule in held)


def test_fields_that_stay_in_l2_move_faster():
    """Two fields of 1700^2 cells in FP64 fit three quarters of the cache; two of 1800^2 do not."""
    fits, exceeds = (
        candidates(loop, module, target_named("sm_90"), 4)
        for module, loop in map(raised_heat, (1700, 1800))
    )
    streamed = [next(c for c in found if not c.schedule.resident) for found in (fits, exceeds)]
    moved = [c.cost.memory_seconds * c.cost.steps for c in streamed]
    assert (
        moved[1] / moved[0] > 0.8 * target_named("sm_90").parameters.moving.l2 * (1800 / 1700) ** 2
    )


@pytest.mark.parametrize(("name", "domain"), [("heat-2d", (4096, 4096)), ("heat-3d", (128,) * 3)])
def test_planes_that_nothing_fetches_ahead_are_waited_for(name: str, domain: tuple[int, ...]):
    """Streamed tiles load in every step; resident tiles have all cells at once."""
    arch = target_named("sm_90")
    module = raise_program(load(program_text(entry(name).make(domain))), Options(halos="common"))
    (loop,) = loops_of(module)
    streamed = next(schedules(loop, arch))
    trial = Trials(loop, module, arch).trial(streamed, 2)
    assert trial is not None and trial.geometry is not None
    late, early = (
        launch_cost(trial.facts, trial.setting, trial.geometry, arch, ahead) for ahead in (0, 1)
    )
    assert early.exposed_seconds == 0
    assert 0 < late.exposed_seconds < arch.parameters.waiting.latency
    assert late.step_seconds > early.step_seconds
    resident = [c for c in candidates(loop, module, arch, 2) if c.schedule.resident]
    assert resident and not any(c.cost.exposed_seconds for c in resident)


def raised_heat(side: int) -> tuple[ModuleOp, LoopOp]:
    """The time loop of a heated plate."""
    module = raise_program(load(program_text(entry("heat-2d").make((side, side)))), Options())
    (loop,) = loops_of(module)
    return module, loop


def test_lanes_of_plates_that_stay_hold_16_bytes_of_a_row():
    """
    Wider accesses take turns. Tiles of the device, with an overlap of their whole width, hold more
    accesses.
    """
    module, loop = raised_heat(512)
    found = candidates(loop, module, target_named("sm_90"), None)
    plates = [c.schedule for c in found if c.schedule.resident and not c.schedule.reads_memory]
    cells = {(schedule.tile, schedule.cells[1]) for schedule in plates}
    assert cells == {("block", 2), ("device", 4)}


def lengths_of_plates(most: int) -> set[float]:
    """Instructions of a thread with a resident plate, where `most` stay in the cache."""
    module, loop = raised_heat(512)
    target = target_named("sm_90")
    worth = replace(target.parameters.worth, resident_instructions=most)
    fit = replace(target.fit, parameters=replace(target.parameters, worth=worth))
    found = candidates(loop, module, replace(target, fit=fit), None)
    resident = [c for c in found if c.schedule.resident and c.schedule.tile == "block"]
    return {c.cost.cycles.issue * SCHEDULERS for c in resident}


def test_plates_that_stay_are_no_longer_than_the_instruction_cache():
    """Plates longer than the middle one are left out of a cache that holds the middle one."""
    every = sorted(lengths_of_plates(1 << 30))
    middle = int(every[len(every) // 2]) + 1
    short = lengths_of_plates(middle)
    assert short == {length for length in every if length <= middle}
    assert max(short) < max(every)


@pytest.mark.parametrize(("depth", "row_bytes"), [(1, 16), (3, 16), (16, 64)])
def test_lanes_in_one_dimension_hold_more_where_overlap_weighs_more(depth: int, row_bytes: int):
    text = program_text(entry("heat-1d").make((10_000_000,)))
    best = considered(text, depth)[0]
    assert best.schedule.cells == (row_bytes // 8,)


def test_long_lines_are_deeper_than_planes():
    """A level of a resident tile takes no registers, and overlaps little."""
    text = program_text(entry("heat-1d").make((10_000_000,)))
    module = raise_program(load(text), Options(halos="common"))
    (loop,) = loops_of(module)
    assert candidates(loop, module, target_named("sm_90"), None)[0].depth > DEEPEST[TileShape.STRIP]


def test_every_schedule_is_compared_or_left_out_with_a_reason():
    """The deepest candidate of a schedule has the depth before the first rejected depth."""
    module, loop = raised_heat(512)
    target = target_named("sm_90")
    comparison = compare(loop, module, target, 3)
    considered = [s for s in schedules(loop, target) if not (s.resident and 3 % 2)]
    assert len(comparison.found) + len(comparison.rejected) >= len(considered)
    left_out = {rejection.schedule for rejection in comparison.rejected}
    assert not left_out & {candidate.schedule for candidate in comparison.found}


@pytest.mark.parametrize(
    ("name", "domain", "depth", "reason"),
    [
        ("roots-2d", (256, 256), 2, "cells divide or take roots"),
        ("heat-3d", (64, 64, 64), 16, "the overlap leaves no cell of a tile"),
        ("heat-2d", (256, 256), 16, "planes do not fit the registers of a thread"),
        ("box-3d", (64, 64, 64), 2, "sums by rows exchange fewer planes"),
        ("heat-3d", (64, 64, 64), 16, "planes do not fit"),
    ],
)
def test_a_schedule_is_left_out_for_a_reason(
    name: str, domain: tuple[int, ...], depth: int, reason: str
):
    module = raise_program(load(program_text(entry(name).make(domain))), Options(halos="common"))
    (loop,) = loops_of(module)
    rejected = compare(loop, module, target_named("sm_90"), depth).rejected
    assert any(rejection.reason.kind.text.startswith(reason) for rejection in rejected)


@pytest.mark.parametrize(
    ("name", "domain", "depth", "begins"),
    [
        ("heat-2d", (256, 256), 16, "registers: planes do not fit the registers of a thread; "),
        ("box-2d", (512, 512), 8, "code: all levels written out do not fit the instruction "),
        ("heat-3d", (64, 64, 64), 8, "shared memory: planes and edges do not fit the shared "),
    ],
)
def test_a_reason_states_a_need_above_the_supply(
    name: str, domain: tuple[int, ...], depth: int, begins: str
):
    module = raise_program(load(program_text(entry(name).make(domain))), Options(halos="common"))
    (loop,) = loops_of(module)
    rejected = compare(loop, module, target_named("sm_90"), depth).rejected
    reasons = {r.reason for r in rejected if str(r.reason).startswith(begins)}
    assert reasons
    for reason in reasons:
        assert reason.taken > reason.room > 0
        assert str(reason).endswith(
            f"a tile takes {reason.taken} {reason.kind.unit}, and has {reason.room}"
        )


@pytest.mark.parametrize("order", [1, -1])
def test_a_prediction_does_not_depend_on_earlier_predictions(order: int):
    """Every schedule alone, and all schedules in either order, with kernels built once."""
    module, loop = raised_heat(256)
    target = target_named("sm_90")
    asked = [(schedule, depth) for schedule in schedules(loop, target) for depth in (2, 4)][::7]
    together = Trials(loop, module, target)
    found = {key: together.attempt(*key) for key in asked[::order]}
    for key in asked:
        assert found[key] == Trials(loop, module, target).attempt(*key)


@timetile.stencil
def divided(u: timetile.Field):
    u.next = (u[-1, -1] + u[1, -1] + u[-1, 1] + u[1, 1]) / 9.0


def test_rows_of_more_cells_hide_more_of_the_chains_of_quotients():
    """Chains side by side count: eight cells by eight warps wait as little as four by sixteen."""
    module = raise_program(divided.module((8192, 8192), "float32"), Options(halos="common"))
    (loop,) = loops_of(module)
    target = target_named("h200")
    computing = replace(target.parameters.computing, dividing_power=0.0)
    fit = replace(target.fit, parameters=replace(target.parameters, computing=computing))
    asked = [
        Schedule(cells=(cells,), pack=pack, occupancy=1, ahead=4)
        for cells, pack in ((8, 8), (4, 16), (4, 8))
    ]
    free, own = (
        {(*each.schedule.cells, each.schedule.pack): each.cost.compute_seconds for each in found}
        for found in (
            Trials(loop, module, each).compared(2, asked).found
            for each in (replace(target, fit=fit), target)
        )
    )
    waits = {key: own[key] / free[key] for key in own}
    assert waits[8, 8] == waits[4, 16] == 1 and waits[4, 8] > 1.2
