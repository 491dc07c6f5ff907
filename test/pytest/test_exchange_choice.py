"""The number of launches between two exchanges, by predicted costs."""

from __future__ import annotations

from functools import cache

import pytest

import timetile
from support.catalogue import entry
from support.programs import program_text
from timetile.dialects.decomposition import Decomposition
from timetile.passes.loops.cut_domain import Domain
from timetile.passes.targets.links import Link
from timetile.runtime.ranks.exchange_choice import (
    BEGIN_SECONDS,
    HARDLY_MORE,
    DeepestLaunch,
    ExchangeChoice,
    RimWay,
    chosen_exchange,
    exchange_costs,
)
from timetile.runtime.ranks.layout import slab_layout
from timetile.runtime.ranks.loop_schedules import LoopSchedule
from timetile.runtime.ranks.part_choices import LARGE_SHARE, ChosenLoops, with_wide_zones
from timetile.runtime.ranks.part_kernels import PartKernels
from timetile.runtime.ranks.part_layout import kernels_of_layout

LINK = Link(seconds=40e-6, bytes_per_second=300e9, meeting_seconds=20e-6)


@cache
def domain_of(name: str, shape: tuple[int, ...]) -> Domain:
    """The domain of a program."""
    program = timetile.compile(program_text(entry(name).make(shape)), executor="numpy", cache=False)
    domain = Domain.of(program.module)
    assert domain is not None
    return domain


def chosen(
    name: str,
    shape: tuple[int, ...],
    depth: int,
    count: int = 2,
    link: Link = LINK,
    *,
    ways: frozenset[RimWay] = frozenset[RimWay](),
) -> ExchangeChoice:
    """The choice for a program on some GPUs, with 1000 GCells/s predicted."""
    domain = domain_of(name, shape)
    launch = DeepestLaunch(depth, 1000.0, ways)
    return chosen_exchange(domain, slab_layout(domain, count), launch, link)


def test_short_planes_share_an_exchange_and_large_planes_do_not():
    long = chosen("heat-2d", (16384, 8192), 12)
    assert long.chosen.launches > 3
    assert long.steps == 12 * long.chosen.launches
    every = (long.chosen, *long.others)
    least = min(cost.seconds for cost in every)
    alike = [cost.launches for cost in every if cost.seconds <= HARDLY_MORE * least]
    assert long.chosen.launches == min(alike) < max(alike)
    thick = chosen("heat-3d", (128, 1024, 1024), 6)
    assert thick.chosen.launches == 1


def test_costlier_exchanges_are_shared_by_more_launches():
    near = chosen("heat-2d", (16384, 8192), 12)
    far = chosen("heat-2d", (16384, 8192), 12, link=Link(400e-6, 300e9, 20e-6))
    free = chosen("heat-2d", (16384, 8192), 12, link=Link(0.0, 1e15, 0.0))
    assert free.chosen.launches == 1 < near.chosen.launches < far.chosen.launches


@pytest.mark.parametrize("count", [2, 4])
def test_zones_reach_over_no_whole_part(count: int):
    choice = chosen("heat-2d", (64, 8192), 4, count, Link(1.0, 300e9, 1.0))
    assert 2 * (choice.steps + 1) <= 64 // count < 2 * (choice.steps + 4 + 1)


def test_the_choice_says_what_exchanges_cost():
    said = str(chosen("heat-2d", (16384, 8192), 12))
    assert said == (
        "an exchange of 51 us every 4 launches of 12 steps; a launch takes 810 us, 0.6% of them "
        "for ghosts; an exchange each launch would take 3.2% longer"
    )


STORED: frozenset[RimWay] = frozenset(["stored"])
FIRST: frozenset[RimWay] = frozenset(["stored", "first"])


def test_rims_stored_by_kernels_cost_a_meeting():
    """Copies would be shared by several launches; stores travel while a launch computes."""
    copied = chosen("heat-3d", (800, 512, 512), 4)
    stored = chosen("heat-3d", (800, 512, 512), 4, ways=STORED)
    assert copied.chosen.launches > 1 == stored.chosen.launches
    assert stored.way == "stored"
    assert stored.chosen.exchange_seconds == 20e-6 and stored.chosen.ghost_share == 0
    slow = chosen("heat-3d", (800, 512, 512), 4, link=Link(40e-6, 1e9, 20e-6), ways=STORED)
    assert slow.chosen.exchange_seconds > 1e-3, "what travels longer than a launch is waited for"


def test_rims_are_first_where_their_pipelines_take_less_than_stalled_stores():
    stalling = Link(40e-6, 300e9, 20e-6, deep_stalled_share=2.0)
    long = chosen("heat-3d", (2048, 512, 512), 4, link=stalling, ways=FIRST)
    assert long.way == "first" and long.chosen.exchange_seconds == 20e-6
    seconds = 1024 * 512 * 512 * 4 / 1e12
    assert long.chosen.launch_seconds == pytest.approx(seconds * (1 + 5 / 1024) + BEGIN_SECONDS)
    most, whole = long.limits_of_first
    assert 5 / 1024 + BEGIN_SECONDS / seconds < most < 0.04, "another way is hardly longer"
    assert whole == pytest.approx(seconds)
    quick = Link(40e-6, 300e9, 20e-6, deep_stalled_share=0.1)
    assert chosen("heat-3d", (40, 512, 512), 4, link=quick, ways=FIRST).way == "stored"


def choice_of_zones(
    launches: int, speeds: dict[int, float]
) -> tuple[tuple[ChosenLoops, ExchangeChoice], list[int]]:
    """
    What wide zones change on a plate whose narrow schedule has eight steps a launch and 1000
    GCells/s: `speeds` of schedules chosen for wide zones, by steps; and the zones asked for.
    """
    domain = domain_of("heat-2d", (2048, 2048))
    layout, asked = slab_layout(domain, 2), list[int]()
    launch = DeepestLaunch(8, 1000.0)
    costs = {cost.launches: cost for cost in exchange_costs(domain, layout, launch, LINK)}
    others = tuple(cost for number, cost in costs.items() if number != launches)
    narrow = ChosenLoops([LoopSchedule((8,), "narrow", 1000.0)], [], {})

    def choose(steps: int) -> ChosenLoops:
        asked.append(steps)
        return ChosenLoops([LoopSchedule((7,), "wide", speeds.get(steps, 1.0))], [], {})

    choice = ExchangeChoice(costs[launches], others, 8)
    return with_wide_zones(domain, layout, LINK, narrow, choice, choose), asked


def test_schedules_are_chosen_again_for_parts_with_many_ghosts():
    (found, choice), asked = choice_of_zones(12, {96: 1100.0, 48: 900.0})
    assert asked == [96, 48]
    assert found.loops[0].schedule == "wide" and choice.depth == 7
    assert choice.chosen.launches == 96 // 7 and choice.steps <= 96
    (found, choice), _ = choice_of_zones(12, {96: 900.0, 48: 1100.0})
    assert choice.chosen.launches == 48 // 7


def test_few_ghosts_keep_a_schedule_that_many_ghosts_make_slow():
    (found, choice), asked = choice_of_zones(12, {})
    assert found.loops[0].schedule == "narrow" and choice.depth == 8
    assert choice.chosen.ghost_share <= LARGE_SHARE < choice.others[0].ghost_share
    assert asked == [96, 48]
    (found, choice), asked = choice_of_zones(2, {})
    assert choice.chosen.launches == 2 and not asked


def test_thin_slabs_give_way_to_parts_along_two_axes(monkeypatch: pytest.MonkeyPatch):
    text = program_text(entry("heat-3d").make((64, 64, 256)))
    program = timetile.compile(text, executor="numpy", depth=2, cache=False)
    found, made = ChosenLoops([LoopSchedule((2,), "", 1000.0)], [], {}), list[tuple[int, ...]]()

    def known(self: PartKernels, zone_steps: int, **_: object) -> ChosenLoops:
        return found

    monkeypatch.setattr(PartKernels, "chosen", known)
    link, options = Link(1e-6, 1e9, 1e-6, reaches=False), program.kernels.options

    def make(layout: Decomposition) -> PartKernels:
        made.append(layout.counts)
        return PartKernels(program.module, layout, options, None, link=link)

    domain = Domain.of(program.module)
    assert domain is not None
    assert kernels_of_layout(domain, 2, None, make).decomposition.counts == (2, 1, 1)
    assert kernels_of_layout(domain, 16, None, make).decomposition.counts == (4, 4, 1)
    assert made == [(2, 1, 1), (16, 1, 1), (4, 4, 1)], "two slabs are compared with nothing"
    assert kernels_of_layout(domain, 16, (16, 1, 1), make).decomposition.counts == (16, 1, 1)


def test_few_planes_are_cut_along_another_axis():
    assert slab_layout(domain_of("heat-3d", (3, 40, 50)), 4).counts == (1, 4, 1)
    assert slab_layout(domain_of("heat-3d", (3, 3, 3)), 4).counts == (1, 2, 2)
