"""Constraints on the choice of a schedule: the value of a field, and the cost that is told."""

from __future__ import annotations

import pytest

import timetile
from support.catalogue import star, sum_program
from support.programs import program_text
from timetile.dialects.tile.kinds import Storage, Sync, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.scheduling.constraints import Constraints

pytestmark = pytest.mark.usefixtures("chosen_among_kinds")

PLACING = "device-tiling,split-sums,multi-queue-buffering,register-streaming,carry-halos"
TEXT = program_text(sum_program("f64", sorted(star(2, 1)))((900, 1100)))

BLOCK = Schedule(tile=TileLevel.BLOCK, warps=(8,), storage=Storage.REGISTERS)
WARP = Schedule()
MEMORY = Schedule(tile=TileLevel.BLOCK, reads_memory=True)


def test_a_field_leaves_the_schedules_with_the_value():
    constraints = Constraints({"tile": TileLevel.BLOCK})
    assert constraints.among([WARP, BLOCK, MEMORY]) == [BLOCK, MEMORY]


def test_a_value_of_no_schedule_replaces_the_others():
    assert Constraints({"storage": Storage.SHARED}).among([WARP, MEMORY]) == [
        Schedule(storage=Storage.SHARED)
    ]
    assert Constraints({"occupancy": 7}).among([WARP, WARP]) == [Schedule(occupancy=7)]


def test_a_value_that_no_kernel_has_leaves_nothing():
    # Only the blocks of a tile of the device meet at barriers of the grid.
    assert Constraints({"sync": Sync.GRID}).among([BLOCK]) == []
    assert Constraints({"tile": TileLevel.CLUSTER}).among([BLOCK]) == []


def test_constraints_are_told_as_parts_of_a_schedule():
    constraints = Constraints({"tile": TileLevel.BLOCK, "cells": (4, 2), "resident": True})
    assert str(constraints) == "tile block, cells [4, 2], resident"
    assert str(constraints.without("cells")) == "tile block, resident"
    assert not Constraints()


def test_late_fields_are_those_of_the_constraints():
    constraints = Constraints({"ahead": 1, "cells": (2,)})
    assert constraints.late(WARP) == Schedule(ahead=1)


@pytest.mark.parametrize(
    ("options", "left_out"),
    [("tile=block", 0), ("tile=block ahead=1", 2)],
)
def test_explain_tells_what_constraints_cost(options: str, left_out: int):
    spec = f"choose-schedule{{{options}}},{PLACING},peel-boundaries"
    compiled = timetile.compile(TEXT, executor="planes", passes=spec, cache=False)
    advice = compiled.explain().loops[0].advice
    whole = [line for line in advice if line.startswith("leave out --pipeline")]
    assert len(whole) == 1 and "GCells/s predicted in place of" in whole[0]
    each = [line for line in advice if "of choose-schedule: the others stay" in line]
    assert len(each) == left_out


def test_explain_tells_what_a_system_costs():
    compiled = timetile.compile(TEXT, executor="planes", passes="an5d{depth=2}", cache=False)
    (line,) = [s for s in compiled.explain().loops[0].advice if "--pipeline" in s]
    before, after = (int(word) for word in line.split() if word.isdigit())
    assert before > after > 0
