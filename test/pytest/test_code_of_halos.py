"""
Reads and exchanges of default schedules beside a tile's own cells, counted without a GPU: cells
outside the bounds are read for as few levels as possible, and warps arrive early.
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
from timetile.dialects.tile import Form
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.runtime.kernels.loops import loops_of

# One worker has the shared results of the file's tests.
pytestmark = pytest.mark.xdist_group("code_content")


J3D27PT = Case("j3d27pt-f32", "f32", tuple(box((-1, -1, -1), (1, 1, 1))), (512, 512, 512))


@pytest.mark.parametrize("depth", DEPTHS)
def test_halos_are_read_for_one_level(depth: int):
    """
    Two buffers have two halos. The loaded level carries the halo of its buffer; in the guarded copy
    the first computed level reads the other buffer's halo, beyond the left and the right bounds.
    Later levels take cells outside from two levels before.
    """
    code = code_of(J2D5PT, depth)
    count = per_step(code.guarded)
    assert count["simt.override global"] == 2 * J2D5PT.radius
    assert "simt.load global" not in count
    # The guards stand beside the same arithmetic.
    assert shared_by_all(J2D5PT, code).items() <= count.items()


def selected_cells(loop: scf.ForOp) -> float:
    """Operations of a stream step that choose between two values for a cell."""
    selects = [op for op in loop.walk() if isinstance(op, arith.SelectOp)]
    turns = integer_constant(loop.step)
    assert turns
    return sum(isinstance(op.result.type, AnyFloat) for op in selects) / turns


@pytest.mark.parametrize("depth", [4, 6])
def test_halos_in_common_are_read_for_none(depth: int):
    """
    Every kept level takes its cells outside the bounds from the level below: a select for each
    possible position of the bounds, at any depth.
    """
    code = code_of(J2D5PT, depth, "common")
    count = per_step(code.guarded)
    assert not {"simt.override global", "simt.load global", "simt.prefetch"} & set(count)
    assert selected_cells(code.guarded) == 2 * J2D5PT.radius * (depth - 1)
    assert not selected_cells(code.interior)
    assert shared_by_all(J2D5PT, code).items() <= count.items()


def sums_before_arrival(loop: scf.ForOp) -> int:
    """The fused operations of a turn before the warp's arrival."""
    operations = list(loop.body.block.ops)
    kinds = [kind_of(op) for op in operations]
    return kinds[: kinds.index("nvvm.mbarrier.arrive.shared")].count("math.fma")


def test_warps_arrive_when_their_edge_rows_are_done():
    """In the guarded copy, too, replacements of inner rows' cells come after the arrival."""
    code = code_of(J3D7PT)
    edges = 2 * J3D7PT.radius * code.schedule.cells[-1] * code.depth
    for loop in (code.interior, code.guarded):
        assert sums_before_arrival(loop) == edges * (len(J3D7PT.offsets) - 1)


def test_a_box_reads_halos_once_for_the_kept_level():
    """
    A box reads neighbours in three planes. At the rim the first level replaces its cells outside
    the bounds once, when made, and nothing of the loaded level is replaced: the loaded level has
    its halo.
    """
    code = code_of(J3D27PT, 2)
    cells = prod(code.schedule.cells)
    assert per_step(code.guarded)["simt.override global"] == cells
    assert "simt.override global" not in per_step(code.interior)


@pytest.mark.parametrize("radius", [1, 2])
def test_sums_that_travel_shuffle_no_plane(radius: int):
    """
    For any number of planes in a sum, one partial sum passes from lane to lane for each column but
    the first, and a cell for each step back of the columns behind the cell's own: a level of a box
    shuffles nothing else in a step.
    """
    corner = (radius, radius)
    offsets = sorted(box((-radius, -radius), corner), key=lambda offset: offset[::-1])
    schedule = PlacedSchedule("lanes", warp_row(), form=Form.LANES)
    compiled = timetile.compile(
        program_text(sum_program("f64", offsets)((4096, 4096))),
        executor="simt",
        passes=schedule.passes(2),
        cache=False,
    )
    interior, _ = steady_loops(compiled.kernels.hardware(compiled.kernels.facts[0][0].name))
    found, levels = per_step(interior), 2
    assert found["nvvm.shfl.sync"] == levels * 3 * radius * WORDS["f64"]
    assert schedule.tiling.cells is not None
    cells = levels * schedule.tiling.cells[0]
    assert found["math.fma"] == cells * (len(offsets) - 1) and found["arith.mulf"] == cells


@pytest.mark.parametrize("length", [100_000, 100_001, 100_003])
@pytest.mark.parametrize(("element", "vector"), [("f64", "v2.f64"), ("f32", "v4.f32")])
def test_lines_of_any_length_move_16_bytes_at_a_time(element: Element, vector: str, length: int):
    """
    Wide accesses to rows need a pitch of whole vectors, and a line has one row: away from the
    line's ends all accesses are wide.
    """
    program = sum_program(element, star(1, 1))((length,))
    compiled = timetile.compile(program_text(program), executor="simt", depth=3, cache=False)
    text = compiled.kernels.kernel(compiled.kernels.facts[0][0].name).ptx
    schedule = loops_of(compiled.kernels.tiled)[0].decisions
    vectors = schedule.cells[0] * WORDS[element] * 4 // 16
    for access in ("ld", "st"):
        assert text.count(f"{access}.global.{vector}") >= vectors
