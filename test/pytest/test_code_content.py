"""
What default schedules make of well-known stencils, counted without a GPU: a steady loop does the
stencil's arithmetic, moves every cell as seldom as its layout allows, and does nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil, gcd, prod

import pytest
from xdsl.dialects import arith, gpu, llvm, scf
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import AnyFloat, ModuleOp, i32
from xdsl.ir import Block, Operation

import timetile
from support.catalogue import Domain, box, entry, star, sum_program
from support.description import Element
from support.expressions import Offset
from support.programs import program_text
from support.schedules import Schedule as PlacedSchedule
from support.schedules import warp_row
from support.sizes import few, spread
from timetile.dialects import simt
from timetile.dialects.simt import SHARED_SPACE, address_space
from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.analysis.cells.instructions import cell_function
from timetile.passes.analysis.cells.sharing import distinct_work
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.schedule import Schedule
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.of_program import Halos, loops_of

# One worker has what the tests of this file make in common.
pytestmark = pytest.mark.xdist_group("code_content")

INDEXING = (arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.CmpiOp, llvm.GEPOp)
"""Addresses, slots of rings, and whether a plane is one to store."""

RENAMING = (simt.SplitOp, simt.JoinOp, scf.YieldOp)
"""Names of registers or of their halves."""

WORDS: dict[Element, int] = {"f64": 2, "f32": 1}
"""Of a cell: a shuffle moves one, an access of a thread at most four."""


@dataclass(frozen=True)
class Case:
    """A weighted sum of a cell's neighbours."""

    name: str
    element: Element
    offsets: tuple[Offset, ...]
    domain: Domain

    @property
    def radius(self) -> int:
        return max(abs(d) for offset in self.offsets for d in offset)


def plate(name: str, element: Element, offsets: list[Offset], size: int = 8192) -> Case:
    return Case(name, element, tuple(offsets), (size, size))


J2D5PT = plate("j2d5pt-f64", "f64", star(2, 1))
PLATES: list[Case] = few(
    [
        J2D5PT,
        # Rows of odd length: in memory no two cells are aligned in all of them.
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
J3D7PT = Case("j3d7pt-f64", "f64", tuple(star(3, 1)), (512, 512, 512))
J3D27PT = Case("j3d27pt-f32", "f32", tuple(box((-1, -1, -1), (1, 1, 1))), (512, 512, 512))


MOST_SPILLED = 64
"""Bytes that a thread spills at most, in the copy for the rim."""

SPILLS_MORE = {"star2d2r-f64": 120, "box2d2r-f64": 68, "j2d9pt-gol-f64": 1300}
"""
Those of kernels that are known to spill more, all but a few bytes at the rim or where chunks at either end of a column fill
the pipeline (docs/performance.md, log 143 and 158).
"""


@dataclass(frozen=True)
class Code:
    """The steady loops of a program's deepest kernel, and what one of its threads holds."""

    interior: scf.ForOp
    guarded: scf.ForOp
    depth: int
    schedule: Schedule
    wide: int
    """Cells of the widest access to a thread's row: 16 bytes at most, and they divide it."""
    narrow: int
    """The same in memory, where they divide the rows of the field, too."""
    cut: int
    """Ends of what a tile stores of a row that lie within a vector: a lane stores one of its cells there."""

    @property
    def work(self) -> int:
        """Cells that a thread computes in a stream step: of each level, its part of a plane."""
        return prod(self.schedule.cells) * self.depth


@cache
def code_of(case: Case, depth: int | None = None, halos: Halos = "apart") -> Code:
    """What the default pipeline makes, at the depth that it chooses or that is given."""
    program = sum_program(case.element, list(case.offsets))(case.domain)
    compiled = timetile.compile(
        program_text(program), executor="simt", cache=False, depth=depth, halos=halos
    )
    deepest = compiled.kernels.facts[0][0]
    schedule = Schedule.from_attribute(loops_of(compiled.kernels.tiled)[0].schedule)
    interior, guarded = steady_loops(compiled.kernels.nvvm(deepest.name))
    wide = gcd(schedule.cells[-1], 4 // WORDS[case.element])
    narrow = gcd(wide, case.domain[-1] + 2 * case.radius)
    last = Geometry(kernel_named(compiled.kernels.tiled, deepest.name)).axes[-1]
    cut = sum(end % narrow != 0 for end in (last.overlap_low, last.overlap_low + last.useful))
    return Code(interior, guarded, deepest.steps, schedule, wide, narrow, cut)


def kernel_named(module: ModuleOp, name: str) -> KernelOp:
    """The kernel of a placed program."""
    return next(op for op in module.ops if isinstance(op, KernelOp) and op.sym_name.data == name)


def steady_loops(module: ModuleOp) -> Iterator[scf.ForOp]:
    """
    The interior copy's, then the guarded one's. A copy is three loops over the same stages, in one
    block; the first and the last also ask whether planes lie outside: they are longer. The loop over the columns
    that a chunk goes on in is around all of them, and those that fill the pipeline store nothing.
    """
    copies: dict[Block | None, list[scf.ForOp]] = {}
    for op in module.walk():
        if isinstance(op, scf.ForOp) and not any(
            isinstance(inner, scf.ForOp) for inner in op.body.walk()
        ):
            copies.setdefault(op.parent, []).append(op)
    storing = [
        [loop for loop in loops if "simt.store global" in kinds(loop)] for loops in copies.values()
    ]
    assert [len(loops) for loops in storing] == [3, 3]
    for loops in storing:
        yield min(loops, key=lambda loop: sum(1 for _ in loop.walk()))


def kinds(loop: scf.ForOp) -> set[str]:
    """What a loop does."""
    return {kind_of(op) for op in loop.body.walk()}


def kind_of(op: Operation) -> str:
    """The word under which an operation is counted: its name, and for accesses where they go."""
    if isinstance(op, simt.LoadOp | simt.StoreOp | simt.OverrideOp):
        return f"{op.name} {'shared' if address_space(op.buffer) == SHARED_SPACE else 'global'}"
    return op.name


def per_step(loop: scf.ForOp) -> dict[str, float]:
    """All operations of one stream step but indexing, so that what is not expected shows as well."""
    turns = integer_constant(loop.step)
    assert turns
    found = [kind_of(op) for op in loop.body.walk() if not isinstance(op, INDEXING + RENAMING)]
    return {kind: number / turns for kind, number in Counter(found).items()}


def shared_by_all(case: Case, code: Code) -> dict[str, float]:
    """What does not depend on how the threads hold a tile."""
    rows = code.work // code.schedule.cells[-1]
    return {
        # A cell of a level takes as many roundings as the stencil has terms: all but one are fused.
        "arith.mulf": code.work,
        "math.fma": (len(case.offsets) - 1) * code.work,
        # Of a level one plane is shuffled, once: a star's middle one, or a box's newest one, as its sum
        # is cut into rows. To each side of a thread's row, the cells within the radius are others'.
        "nvvm.shfl.sync": 2 * case.radius * rows * WORDS[case.element],
        # The loaded plane is copied ahead, in one group, that is waited for once.
        "nvvm.cp.async.commit.group": 1,
        "nvvm.cp.async.wait.group": 1,
    }


@pytest.mark.parametrize("case", PLATES, ids=lambda case: case.name)
def test_interior_of_a_warp_tile(case: Case):
    """No cell comes from memory but by copies, none is selected, and warps do not wait for each other."""
    code = code_of(case)
    (cells,) = code.schedule.cells
    wide, narrow = cells // code.wide, cells // code.narrow
    assert code.schedule.tile == "warp" and narrow > 1
    assert per_step(code.interior) == shared_by_all(case, code) | {
        # Vectors in memory are dealt to the lanes, a thread's cells lie together: a row changes hands
        # when it arrives, and before it is stored. The levels between touch no memory of any kind.
        "nvvm.cp.async.shared.global": narrow,
        "simt.load shared": wide + narrow,
        "simt.store shared": wide,
        "simt.store global": narrow + code.cut,
        "nvvm.bar.warp.sync": 2,
    }


def test_interior_of_a_block_tile():
    """Warps exchange the edges of all levels at once: one arrival and one wait a step serve them all."""
    case, code = J3D7PT, code_of(J3D7PT)
    rows, cells = code.schedule.cells
    warps, lanes = code.schedule.warps[0], code.schedule.lanes[1]
    row = cells // code.wide
    # The threads share out the vectors around the tile: two columns, and two rows with their corners.
    around = 2 * warps * rows + 2 * (lanes * cells // code.narrow + 2)
    assert code.schedule.tile == "block" and code.narrow == cells
    assert per_step(code.interior) == shared_by_all(case, code) | {
        "nvvm.cp.async.shared.global": rows * row + ceil(around / (warps * lanes)),
        # Threads for which no vector is left there.
        "scf.if": 1,
        # The plane that has arrived; for each level, a row of the warp above and one of that below.
        "simt.load shared": rows * row + 2 * row * code.depth,
        # Each level publishes its first and its last row, but for the loaded one, whose copies lie
        # in shared memory already, and for the last one, which is stored.
        "simt.store shared": 2 * row * (code.depth - 1),
        "simt.store global": rows * row,
        "nvvm.mbarrier.try_wait.parity.shared": 1,
        "nvvm.mbarrier.arrive.shared": 1,
    }


TURNED = [case for case in (*PLATES, J3D7PT) if case.name != "star2d3r-f32"]
"""All but one whose loop would be too long for the instruction cache: its planes are moved."""


@pytest.mark.parametrize("case", TURNED, ids=lambda case: case.name)
def test_planes_come_round_to_their_registers(case: Case):
    """
    A level is made of 2 * radius + 1 planes, of which one is new: the others, or as many sums, are kept.
    The loop is unrolled until they are back in their registers, so that none is moved.
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
def test_a_plate_that_stays(case: Case):
    """Two copies of the code, of all levels: each meets at one barrier a level, and shuffles each row once."""
    program = sum_program(case.element, list(case.offsets))(case.domain)
    compiled = timetile.compile(program_text(program), executor="simt", cache=False)
    deepest = compiled.kernels.facts[0][0]
    schedule = Schedule.from_attribute(loops_of(compiled.kernels.tiled)[0].schedule)
    assert (schedule.tile, schedule.stream) == ("block", "none")
    rows, cells = schedule.cells
    module = compiled.kernels.nvvm(deepest.name)
    (kernel,) = (op for op in module.ops if isinstance(op, gpu.ModuleOp))
    count = Counter(map(kind_of, kernel.walk()))
    copies_and_levels, work = 2 * deepest.steps, rows * cells
    # A box asks for the neighbours' rows as well, and shuffles those, too.
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
    """Within the registers that the schedule counts on; at the rim a few are spilled, at most."""
    program = sum_program(case.element, list(case.offsets))(case.domain)
    compiled = timetile.compile(program_text(program), executor="simt", halos="common", cache=False)
    kernel = compiled.kernels.kernel(compiled.kernels.facts[0][0].name)
    blocks = Schedule.from_attribute(loops_of(compiled.kernels.tiled)[0].schedule).occupancy
    assert kernel.registers * kernel.block * blocks <= 65536
    assert kernel.spill_bytes <= SPILLS_MORE.get(case.name, MOST_SPILLED)


@pytest.mark.parametrize("case", PLATES, ids=lambda case: case.name)
def test_slots_of_a_turn_lie_beside_each_other(case: Case):
    """
    The ring that a level is copied to: the slots of a turn are found by one mask for each group of them that does not
    go round, to read and to write, and by one pointer each; nothing else in shared memory has to be found. Where the
    turn goes round the whole ring, all slots are known.
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
    # Lanes read other cells than they copy.
    assert len(found) == len(read) + len(written)


DEPTHS = (4, 8)


def test_indexing_does_not_grow_with_the_depth():
    """Levels in registers have no addresses: slots and masks are of what is loaded and stored."""
    loops = [code_of(J2D5PT, depth).interior for depth in DEPTHS]
    counts = [Counter(op.name for op in loop.walk() if isinstance(op, INDEXING)) for loop in loops]
    assert counts[0] == counts[1] != Counter()


@pytest.mark.parametrize("depth", DEPTHS)
def test_halos_are_read_for_one_level(depth: int):
    """
    Two buffers have two halos. The loaded level has its own around it; in the guarded copy the first level
    computed reads the other's, beyond the left and the right bounds. Later levels take these cells from two
    levels before.
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
    Every level that is kept takes its cells outside the bounds from the level below: a select for each position that
    the bounds can fall on, whatever the depth.
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
    """In the guarded copy, too: what stands in place of inner rows' cells stands behind the arrival."""
    code = code_of(J3D7PT)
    edges = 2 * J3D7PT.radius * code.schedule.cells[-1] * code.depth
    for loop in (code.interior, code.guarded):
        assert sums_before_arrival(loop) == edges * (len(J3D7PT.offsets) - 1)


def test_a_box_reads_halos_once_for_the_level_that_it_keeps():
    """
    A box looks at neighbours in three planes. At the rim the first level replaces its cells outside the bounds
    once, when it makes them, and nothing is replaced of the loaded level: it has its halo around it.
    """
    code = code_of(J3D27PT, 2)
    cells = prod(code.schedule.cells)
    assert per_step(code.guarded)["simt.override global"] == cells
    assert "simt.override global" not in per_step(code.interior)


COMPUTING = (arith.AddfOp, arith.SubfOp, arith.MulfOp, xmath.FmaOp)


def test_differences_between_cells_are_computed_once():
    """
    Of the four differences to its neighbours a cell of a row of four computes one along the row, and one more for the
    row's end; along the stream one, as that of a turn's first row comes from the turn before. The model counts the same.
    """
    compiled = timetile.compile(
        program_text(entry("slopes-2d").make((8192, 8192))), executor="simt", cache=False
    )
    deepest = compiled.kernels.facts[0][0]
    kernel = kernel_named(compiled.kernels.tiled, deepest.name)
    interior, _ = steady_loops(compiled.kernels.nvvm(deepest.name))
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
            more = distinct_work(function, taps, (2, cells))[0]
            counted += period * (more - distinct_work(function, taps, (1, cells))[0])
    assert found.total() == counted


@pytest.mark.parametrize("radius", [1, 2])
def test_sums_that_travel_shuffle_no_plane(radius: int):
    """
    However many planes a sum takes, one partial sum passes from lane to lane for each column but the first, and as many
    cells as the columns behind the cell's own go back: all that a level of a box shuffles in a step.
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
    """Rows need a pitch of whole vectors for that, and a line has one row: away from its ends all accesses are wide."""
    program = sum_program(element, star(1, 1))((length,))
    compiled = timetile.compile(program_text(program), executor="simt", depth=3, cache=False)
    text = compiled.kernels.kernel(compiled.kernels.facts[0][0].name).ptx
    schedule = Schedule.from_attribute(loops_of(compiled.kernels.tiled)[0].schedule)
    vectors = schedule.cells[0] * WORDS[element] * 4 // 16
    for access in ("ld", "st"):
        assert text.count(f"{access}.global.{vector}") >= vectors
