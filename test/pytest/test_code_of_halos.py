"""
What default schedules read and exchange beside a tile's own cells, counted without a GPU: cells
outside the bounds are read for as few levels as can be, and warps arrive early.
"""

from __future__ import annotations

from math import prod

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import AnyFloat

import timetile
from support.catalogue import box, star, sum_program
from support.description import Element
from support.programs import program_text
from support.schedules import Schedule as PlacedSchedule
from support.schedules import warp_row
from support.steady_loops import (
    DEPTHS,
    J2D5PT,
    J3D7PT,
    WORDS,
    Case,
    code_of,
    kind_of,
    per_step,
    shared_by_all,
    steady_loops,
)
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.schedule import Schedule
from timetile.runtime.kernels.of_program import loops_of

# One worker has what the tests of this file make in common.
pytestmark = pytest.mark.xdist_group("code_content")


J3D27PT = Case("j3d27pt-f32", "f32", tuple(box((-1, -1, -1), (1, 1, 1))), (512, 512, 512))


@pytest.mark.parametrize("depth", DEPTHS)
def test_halos_are_read_for_one_level(depth: int):
    """
    Two buffers have two halos. The loaded level has its own around it; in the guarded copy the
    first level computed reads the other's, beyond the left and the right bounds. Later levels take
    these cells from two levels before.
    """
    code = code_of(J2D5PT, depth)
    count = per_step(code.guarded)
    assert count["simt.override global"] == 2 * J2D5PT.radius
    assert "simt.load global" not in count
    # The guards stand beside the same arithmetic.
    assert shared_by_all(J2D5PT, code).items() <= count.items()


def selected_cells(loop: scf.ForOp) -> float:
    """Cells of a stream step that are one value or another."""
    selects = [op for op in loop.walk() if isinstance(op, arith.SelectOp)]
    turns = integer_constant(loop.step)
    assert turns
    return sum(isinstance(op.result.type, AnyFloat) for op in selects) / turns


@pytest.mark.parametrize("depth", [8, 10])
def test_halos_in_common_are_read_for_none(depth: int):
    """
    Every level that is kept takes its cells outside the bounds from the level below: a select for
    each position that the bounds can fall on, whatever the depth.
    """
    code = code_of(J2D5PT, depth, "common")
    count = per_step(code.guarded)
    assert not {"simt.override global", "simt.load global", "simt.prefetch"} & set(count)
    assert selected_cells(code.guarded) == 2 * J2D5PT.radius * (depth - 1)
    assert not selected_cells(code.interior)
    assert shared_by_all(J2D5PT, code).items() <= count.items()


def sums_before_arrival(loop: scf.ForOp) -> int:
    """The fused operations of a turn that stand before the warp arrives."""
    operations = list(loop.body.block.ops)
    kinds = [kind_of(op) for op in operations]
    return kinds[: kinds.index("nvvm.mbarrier.arrive.shared")].count("math.fma")


def test_warps_arrive_when_their_edge_rows_are_done():
    """
    In the guarded copy, too: what stands in place of inner rows' cells stands behind the arrival.
    """
    code = code_of(J3D7PT)
    edges = 2 * J3D7PT.radius * code.schedule.cells[-1] * code.depth
    for loop in (code.interior, code.guarded):
        assert sums_before_arrival(loop) == edges * (len(J3D7PT.offsets) - 1)


def test_a_box_reads_halos_once_for_the_level_that_it_keeps():
    """
    A box looks at neighbours in three planes. At the rim the first level replaces its cells outside
    the bounds once, when it makes them, and nothing is replaced of the loaded level: it has its
    halo around it.
    """
    code = code_of(J3D27PT, 2)
    cells = prod(code.schedule.cells)
    assert per_step(code.guarded)["simt.override global"] == cells
    assert "simt.override global" not in per_step(code.interior)


@pytest.mark.parametrize("radius", [1, 2])
def test_sums_that_travel_shuffle_no_plane(radius: int):
    """
    However many planes a sum takes, one partial sum passes from lane to lane for each column but
    the first, and as many cells as the columns behind the cell's own go back: all that a level of a
    box shuffles in a step.
    """
    corner = (radius, radius)
    offsets = sorted(box((-radius, -radius), corner), key=lambda offset: offset[::-1])
    schedule = PlacedSchedule("lanes", warp_row(), form="lanes")
    compiled = timetile.compile(
        program_text(sum_program("f64", offsets)((4096, 4096))),
        executor="simt",
        passes=schedule.passes(2),
        cache=False,
    )
    interior, _ = steady_loops(compiled.kernels.nvvm(compiled.kernels.facts[0][0].name))
    found, levels = per_step(interior), 2
    assert found["nvvm.shfl.sync"] == levels * 3 * radius * WORDS["f64"]
    assert schedule.tiling.cells is not None
    cells = levels * schedule.tiling.cells[0]
    assert found["math.fma"] == cells * (len(offsets) - 1) and found["arith.mulf"] == cells


@pytest.mark.parametrize("length", [100_000, 100_001, 100_003])
@pytest.mark.parametrize(("element", "vector"), [("f64", "v2.f64"), ("f32", "v4.f32")])
def test_lines_of_any_length_move_16_bytes_at_a_time(element: Element, vector: str, length: int):
    """
    Rows need a pitch of whole vectors for that, and a line has one row: away from its ends all
    accesses are wide.
    """
    program = sum_program(element, star(1, 1))((length,))
    compiled = timetile.compile(program_text(program), executor="simt", depth=3, cache=False)
    text = compiled.kernels.kernel(compiled.kernels.facts[0][0].name).ptx
    schedule = Schedule.from_attribute(loops_of(compiled.kernels.tiled)[0].schedule)
    vectors = schedule.cells[0] * WORDS[element] * 4 // 16
    for access in ("ld", "st"):
        assert text.count(f"{access}.global.{vector}") >= vectors
