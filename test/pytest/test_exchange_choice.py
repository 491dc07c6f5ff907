"""The number of launches between two exchanges, by predicted costs."""

from __future__ import annotations

import pytest

import timetile
from support.catalogue import entry
from support.programs import program_text
from timetile.passes.loops.cut_domain import Domain
from timetile.passes.targets.links import Link
from timetile.runtime.ranks.exchange_choice import ExchangeChoice, chosen_exchange
from timetile.runtime.ranks.layout import slab_layout

LINK = Link(seconds=40e-6, bytes_per_second=300e9)


def chosen(
    name: str, shape: tuple[int, ...], depth: int, count: int = 2, link: Link = LINK
) -> ExchangeChoice:
    """The choice for a program on some GPUs, with 1000 GCells/s predicted."""
    program = timetile.compile(program_text(entry(name).make(shape)), executor="numpy", cache=False)
    domain = Domain.of(program.module)
    assert domain is not None
    return chosen_exchange(domain, slab_layout(domain, count), depth, 1000.0, link)


def test_short_planes_share_an_exchange_and_large_planes_do_not():
    long = chosen("heat-2d", (16384, 8192), 12)
    assert long.chosen.launches > 3
    assert long.steps == 12 * long.chosen.launches
    thick = chosen("heat-3d", (128, 1024, 1024), 6)
    assert thick.chosen.launches == 1


def test_costlier_exchanges_are_shared_by_more_launches():
    near = chosen("heat-2d", (16384, 8192), 12)
    far = chosen("heat-2d", (16384, 8192), 12, link=Link(400e-6, 300e9))
    free = chosen("heat-2d", (16384, 8192), 12, link=Link(0.0, 1e15))
    assert free.chosen.launches == 1 < near.chosen.launches < far.chosen.launches


@pytest.mark.parametrize("count", [2, 4])
def test_zones_reach_over_no_whole_part(count: int):
    choice = chosen("heat-2d", (64, 8192), 4, count, Link(1.0, 300e9))
    assert 2 * (choice.steps + 1) <= 64 // count < 2 * (choice.steps + 4 + 1)


def test_the_choice_says_what_exchanges_cost():
    said = str(chosen("heat-2d", (16384, 8192), 12))
    assert said == (
        "an exchange of 51 us every 4 launches of 12 steps; a launch takes 810 us, 0.6% of them "
        "for ghosts; an exchange each launch would take 3.2% longer"
    )
