"""
The code of default schedules for well-known stencils, counted without a GPU: a steady loop does the
stencil's arithmetic, moves every cell as seldom as the layout allows, and does nothing else.
"""

from __future__ import annotations

from collections import Counter
from math import ceil, gcd

import pytest
from xdsl.dialects import arith, gpu, llvm, scf
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import i32

import timetile
from support.catalogue import box, entry, star, sum_program
from support.programs import program_text
from support.sizes import half, spread
from support.steady_loops import (
    DEPTHS,
    INDEXING,
    J2D5PT,
    J3D7PT,
    WORDS,
    Case,
    code_of,
    kernel_named,
    kind_of,
    per_step,
    plate,
    shared_by_all,
    steady_loops,
)
from timetile.dialects.simt import SHARED_SPACE, address_space
from timetile.dialects.tile import ApplyOp, TileLevel
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.analysis.cells.sharing import SharedCells
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.loops import loops_of

# One worker has the shared results of the file's tests.
pytestmark = [pytest.mark.xdist_group("code_content"), pytest.mark.usefixtures("chosen_by_model")]


PLATES: list[Case] = half(
    [
        J2D5PT,
        # Rows of odd length: in memory no two cells are aligned in all rows.
        plate("j2d5pt-f64-odd", "f64", star(2, 1), size=8191),
        plate("j2d5pt-f32", "f32", star(2, 1)),
        plate("star2d2r-f64", "f64", star(2, 2)),
        plate("star2d3r-f32", "f32", star(2, 3)),
        plate("star2d4r-f64", "f64", star(2, 4)),
        plate("j2d9pt-gol-f64", "f64", box((-1, -1), (1, 1))),
        plate("j2d9pt-gol-f32", "f32", box((-1, -1), (1, 1))),
        plate("box2d2r-f64", "f64", box((-2, -2), (2, 2))),
        plate("box2d3r-f32", "f32", box((-3, -3), (3, 3))),
    ]
)


MOST_SPILLED = 64
"""Allowed bytes of spills of a thread, in the copy for the rim."""


SPILLS_MORE = {"star2d2r-f64": 120, "box2d2r-f64": 68, "j2d9pt-gol-f64": 1300}
"""
Spilled bytes of kernels with larger known spills: all but a few bytes at the rim, or in the chunks
at a column's ends that fill the pipeline (docs/performance.md, log 143 and 158).
"""


@pytest.mark.parametrize("case", PLATES, ids=lambda case: case.name)
def test_a_warp_tile_does_the_arithmetic_of_its_stencil_alone(case: Case):
    """
    No cell comes from memory but by copies, none is selected, and warps do not wait for each other.
    """
    code = code_of(case)
    (cells,) = code.schedule.cells
    wide, narrow = cells // code.wide, cells // code.narrow
    assert code.schedule.tile == "warp" and narrow > 1
    assert per_step(code.interior) == shared_by_all(case, code) | {
        # Vectors in memory are dealt to the lanes, and a thread's cells lie together: a row
        # changes hands after loading, and before storing. The levels between touch no memory of any
        # kind.
        "nvvm.cp.async.shared.global": narrow,
        "simt.load shared": wide + narrow,
        "simt.store shared": wide,
        "simt.store global": narrow + code.cut,
        "nvvm.bar.warp.sync": 2,
    }


def test_a_block_tile_does_the_arithmetic_of_its_stencil_alone():
    """
    Warps exchange the edges of all levels at once: one arrival and one wait a step serve all edges.
    """
    case, code = J3D7PT, code_of(J3D7PT)
    rows, cells = code.schedule.cells
    warps, lanes = code.schedule.warps[0], code.schedule.lanes[1]
    row = cells // code.wide
    # The threads share out the vectors around the tile: two columns, and two rows with corners.
    around = 2 * warps * rows + 2 * (lanes * cells // code.narrow + 2)
    assert code.schedule.tile == "block" and code.narrow == cells
    assert per_step(code.interior) == shared_by_all(case, code) | {
        "nvvm.cp.async.shared.global": rows * row + ceil(around / (warps * lanes)),
        # Threads without a remaining vector.
        "scf.if": 1,
        # The newly loaded plane; for each level, a row of the warp above and a row of the warp
        # below.
        "simt.load shared": rows * row + 2 * row * code.depth,
        # Each level publishes the first and the last row, except for the loaded level, with
        # copies already in shared memory, and for the last level, which is stored.
        "simt.store shared": 2 * row * (code.depth - 1),
        "simt.store global": rows * row,
        "nvvm.mbarrier.try_wait.parity.shared": 1,
        "nvvm.mbarrier.arrive.shared": 1,
    }


TURNED = [case for case in (*PLATES, J3D7PT) if case.name != "star2d3r-f32"]
"""
All kernels but one, with a loop too long for the instruction cache: planes of that kernel are
moved.
"""


@pytest.mark.parametrize("case", TURNED, ids=lambda case: case.name)
def test_planes_come_round_to_their_registers(case: Case):
    """
    A level is made from 2 * radius + 1 planes with one new plane: the other planes, or as many
    sums, are kept. The loop is unrolled until the planes are back in their registers: no plane is
    moved.
    """
    code = code_of(case)
    block = code.interior.body.block
    carried, passed_on = block.args[1:], block.last_op
    assert len(carried) == 2 * case.radius * code.work
    assert isinstance(passed_on, scf.YieldOp)
    assert not set(passed_on.operands) & set(carried)


SMALL_PLATES = (
    plate("small-j2d5pt-f64", "f64", star(2, 1), size=512),
    plate("small-star2d2r-f32", "f32", star(2, 2), size=512),
    plate("small-j2d9pt-gol-f64", "f64", box((-1, -1), (1, 1)), size=256),
)


@pytest.mark.parametrize("case", SMALL_PLATES, ids=lambda case: case.name)
def test_a_resident_plate_meets_at_one_barrier_a_level(case: Case):
    """
    Two copies of the code, of all levels: each meets at one barrier a level, and shuffles each row
    once.
    """
    program = sum_program(case.element, list(case.offsets))(case.domain)
    compiled = timetile.compile(program_text(program), executor="simt", cache=False)
    deepest = compiled.kernels.facts[0][0]
    schedule = loops_of(compiled.kernels.tiled)[0].decisions
    assert schedule.tile is TileLevel.BLOCK and schedule.resident
    rows, cells = schedule.cells
    module = compiled.kernels.hardware(deepest.name)
    (kernel,) = (op for op in module.ops if isinstance(op, gpu.ModuleOp))
    count = Counter(map(kind_of, kernel.walk()))
    copies_and_levels, work = 2 * deepest.steps, rows * cells
    # A box needs the neighbours' rows as well, and shuffles the rows, too.
    beside = 2 * case.radius if any(all(offset) for offset in case.offsets) else 0
    assert count["arith.mulf"] == copies_and_levels * work
    assert count["math.fma"] == copies_and_levels * work * (len(case.offsets) - 1)
    shuffled = 2 * case.radius * (rows + beside) * WORDS[case.element]
    assert count["nvvm.shfl.sync"] == copies_and_levels * shuffled
    assert count["nvvm.barrier"] == copies_and_levels
    assert "scf.for" not in count


@pytest.mark.skipif(assembler_version() is None, reason="registers are the assembler's")
@pytest.mark.parametrize(
    "case", spread([*PLATES, *SMALL_PLATES, J3D7PT]), ids=lambda case: case.name
)
def test_default_kernels_hardly_spill(case: Case):
    """Within the registers counted by the schedule; at the rim, a few registers may spill."""
    program = sum_program(case.element, list(case.offsets))(case.domain)
    compiled = timetile.compile(program_text(program), executor="simt", halos="common", cache=False)
    kernel = compiled.kernels.kernel(compiled.kernels.facts[0][0].name)
    blocks = loops_of(compiled.kernels.tiled)[0].decisions.occupancy
    assert kernel.registers * kernel.block * blocks <= 65536
    assert kernel.spill_bytes <= SPILLS_MORE.get(case.name, MOST_SPILLED)


@pytest.mark.parametrize("case", PLATES, ids=lambda case: case.name)
def test_slots_of_a_turn_lie_beside_each_other(case: Case):
    """
    The ring with copies of a level: the slots of a turn are found by one mask for each group
    without a wrap, for reading and for writing, and by one pointer for each other slot; nothing
    else in shared memory is searched. If the turn goes round the whole ring, all slots are known.
    """
    code = code_of(case)
    loop = code.interior
    turns, ahead = integer_constant(loop.step), code.schedule.ahead
    slots = 1 << ahead.bit_length()
    assert turns and ahead
    group = gcd(turns, slots)
    read = {turn % slots // group for turn in range(turns)}
    written = {(turn + ahead) % slots // group for turn in range(turns)}
    masks = [
        op for op in loop.body.walk() if isinstance(op, arith.AndIOp) and op.result.type == i32
    ]
    pointers = [op for op in loop.body.walk() if isinstance(op, llvm.GEPOp) and op.ssa_indices]
    found = [op for op in pointers if address_space(op.ptr) == SHARED_SPACE]
    if group == slots:
        assert not masks and not found
        return
    assert len(masks) == len(read | written)
    # Lanes read cells copied by other lanes.
    assert len(found) == len(read) + len(written)


def test_indexing_does_not_grow_with_the_depth():
    """Levels in registers have no addresses: slots and masks belong to loads and stores."""
    loops = [code_of(J2D5PT, depth).interior for depth in DEPTHS]
    counts = [Counter(op.name for op in loop.walk() if isinstance(op, INDEXING)) for loop in loops]
    assert counts[0] == counts[1] != Counter()


COMPUTING = (arith.AddfOp, arith.SubfOp, arith.MulfOp, xmath.FmaOp)


def test_differences_between_cells_are_computed_once():
    """
    Of the four differences to its neighbours a cell of a row of four computes one along the row,
    and one more for the row's end; along the stream one, as the difference of a turn's first row
    comes from the turn before. The model has equal counts.
    """
    compiled = timetile.compile(
        program_text(entry("slopes-2d").make((8192, 8192))), executor="simt", depth=4, cache=False
    )
    deepest = compiled.kernels.facts[0][0]
    kernel = kernel_named(compiled.kernels.tiled, deepest.name)
    interior, _ = steady_loops(compiled.kernels.hardware(deepest.name))
    period = integer_constant(interior.step)
    assert period is not None and kernel.layout is not None
    cells = kernel.layout.axis_layouts[-1].cells
    found = Counter(type(op) for op in interior.walk() if isinstance(op, COMPUTING))
    levels = deepest.steps
    assert found[arith.SubfOp] == levels * period * (cells + 1 + cells)
    counted = 0
    for stage in kernel.stages:
        if isinstance(stage, ApplyOp):
            function = cell_function(compiled.kernels.tiled, stage)
            taps = [(stage.queues[tap.operand], tap.offset) for tap in stage.tap_list]
            shared = SharedCells(function, taps)
            counted += period * (shared.work((2, cells))[0] - shared.work((1, cells))[0])
    assert found.total() == counted
