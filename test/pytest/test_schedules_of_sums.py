"""
A sum cut into stages has the bits of the whole sum: cut between planes, in two halves, or into
columns with partial sums from lane to lane.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import timetile
from support.catalogue import Domain, box, entry, star, sum_program, two_buffers
from support.description import Program
from support.executors import kernel_executors
from support.expressions import Tap
from support.listed_schedules import MEETING_NOT_UNROLLED, NOT_UNROLLED, ROWS
from support.programs import program_text
from support.schedules import (
    Schedule,
    block_plane,
    block_row,
    check,
    named,
    warp_row,
)
from timetile.dialects.tile import Addressing, Form, KernelOp, Storage
from timetile.passes.analysis.geometry.extents import Extent, Needs
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering


def two_sums(domain: Domain) -> Program:
    """
    A product of two sums of two planes, and a cell of the plane between: from plane to plane pass
    two values, and the last part needs an earlier cell.
    """
    places = [(-1, -1), (-1, 1), (0, 0), (1, -1), (1, 1)]
    a, b, c, d, e = (Tap("u", place) for place in places)
    return two_buffers(domain, "f64", places, (a + b + d) * (a - b + e) * 0.1 + c)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", ROWS, ids=named)
@pytest.mark.parametrize("name", ["several", "box-2d", "skewed-2d"])
def test_a_sum_cut_between_planes_keeps_its_bits(name: str, schedule: Schedule, executor: Executor):
    """
    A sum over successive planes may be cut between the planes, with several partial sums, too: no
    bit changes.
    """
    make = two_sums if name == "several" else entry(name).make
    check(make((23, 71)), schedule, 2, executor)


SEMI_ROWS = [
    Schedule("warp", warp_row(), form=Form.HALVES, shown="_halves1"),
    Schedule(
        "shared",
        block_row(),
        Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED),
        streaming=None,
        form=Form.HALVES,
        shown="_halves1",
    ),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", SEMI_ROWS, ids=named)
@pytest.mark.parametrize("reach", [2, 3])
def test_a_sum_in_two_halves_keeps_its_bits(reach: int, schedule: Schedule, executor: Executor):
    """
    The planes before the cell's plane, and the remaining planes, are two stages: no bit changes.
    """
    check(sum_program("f64", star(2, reach))((19, 71)), schedule, 2, executor)


SEMI_PLANES = [
    Schedule("block", block_plane((3, 2), (4, 1)), planes=5, form=Form.HALVES, shown="_halves1"),
    replace(NOT_UNROLLED, name="device", form=Form.HALVES, shown="_halves1"),
    replace(MEETING_NOT_UNROLLED, name="meeting", form=Form.HALVES, shown="_halves1"),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", SEMI_PLANES, ids=named)
def test_a_sum_in_two_halves_keeps_its_bits_in_a_volume(schedule: Schedule, executor: Executor):
    check(sum_program("f64", star(3, 2))((7, 9, 22)), schedule, 2, executor)


TRAVELLING_ROWS = [
    Schedule("warp", warp_row(), form=Form.LANES, shown="_lanes2"),
    Schedule("one-cell", warp_row(1), Buffering(ahead=0), form=Form.LANES, shown="_lanes2"),
    Schedule(
        "shared",
        warp_row(2),
        Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED),
        streaming=None,
        form=Form.LANES,
        shown="_lanes2",
    ),
]


COLUMNS = {
    "box": box((-1, -1), (1, 1)),
    "box-of-radius-2": box((-2, -2), (2, 2)),
    "one-sided": box((-1, 0), (1, 2)),
    "one-sided-before": box((-1, -2), (1, 0)),
    "two-columns-apart": box((-1, -2), (1, -2)) + box((-1, 1), (1, 1)) + box((-1, 3), (1, 3)),
}


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", TRAVELLING_ROWS, ids=named)
@pytest.mark.parametrize("shape", COLUMNS)
def test_a_sum_from_lane_to_lane_keeps_its_bits(shape: str, schedule: Schedule, executor: Executor):
    """A partial sum takes one column in each lane, at the bounds too."""
    offsets = sorted(COLUMNS[shape], key=lambda offset: (offset[-1], *offset))
    check(sum_program("f64", offsets)((19, 71)), schedule, 2, executor)


def test_a_sum_that_travels_needs_no_larger_overlap_of_tiles():
    """Partial sums lie beside their cells: no cell is needed beyond the taps of the whole sum."""
    offsets = sorted(box((-1, -3), (1, 3)), key=lambda offset: offset[::-1])
    program = sum_program("f64", offsets)((19, 71))
    overlaps: list[Extent] = []
    for form in (Form.NONE, Form.LANES):
        schedule = Schedule(
            form, warp_row(1), form=form, shown="" if form is Form.NONE else "_lanes6"
        )
        check(program, schedule, 5, "planes")
        tiled = timetile.compile(
            program_text(program), executor="planes", passes=schedule.passes(5), cache=False
        ).kernels.tiled
        kernel = next(op for op in tiled.ops if isinstance(op, KernelOp))
        overlaps.append(Needs.of(kernel).overlap)
    assert overlaps[0] == overlaps[1]


TRAVELLING_PLANES = [
    Schedule("block", block_plane((3, 2), (4, 1)), planes=5, form=Form.LANES, shown="_lanes2"),
    replace(NOT_UNROLLED, name="device", form=Form.LANES, shown="_lanes2"),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", TRAVELLING_PLANES, ids=named)
def test_a_sum_from_lane_to_lane_keeps_its_bits_in_a_volume(schedule: Schedule, executor: Executor):
    offsets = sorted(star(3, 1), key=lambda offset: (offset[-1], *offset))
    check(sum_program("f64", offsets)((7, 9, 22)), schedule, 2, executor)
