"""The text of schedules: every part of a schedule prints, and parses to an equal value."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from timetile.dialects.tile import LANES, Tile
from timetile.dialects.tile.kinds import TileLevel
from timetile.dialects.tile.schedule import PARTS, Decision, Schedule, ScheduleAttr

BASES = (
    Schedule(),
    Schedule(cells=(4, 2), warps=(1, 1)),
    Schedule(tile=TileLevel.DEVICE, blocks=(4,)),
    Schedule(reads_memory=True),
    Schedule(reads_memory=True, cuts=(3,)),
)
"""Schedules: every part has another allowed value in one of them at least."""


def others(usual: Decision) -> tuple[Decision, ...]:
    """Values of a part of a schedule other than the default value."""
    match usual:
        case StrEnum():
            return tuple(member for member in type(usual) if member != usual)
        case bool():
            return (True,)
        case tuple():
            return ((2,), (1, LANES))
        case int():
            return (usual + 1,)
        case _:
            return (2,)


@pytest.mark.parametrize("name", PARTS)
def test_every_part_of_a_schedule_prints_and_parses(name: str):
    context = Context()
    context.load_dialect(Tile)
    found: set[str] = set()
    for base, value in product(BASES, others(PARTS[name])):
        try:
            made = ScheduleAttr(replace(base, **{name: value}))
        except VerifyException:
            continue
        text = str(made)
        assert Parser(context, text).parse_attribute() == made
        found.add(text)
    assert any(name in text for text in found)
