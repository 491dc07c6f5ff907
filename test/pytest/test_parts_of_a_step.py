"""
Steps in parts whose threads hold several cells, and parts that compute results again beside the
own cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from xdsl.passes import ModulePass

import timetile
from support.compare import assert_as_unfused
from support.description import Box, Buffer, Element, Program, Store, Update, random_inputs
from support.executors import compiled_on, kernel_executors
from support.expressions import Call, Expression, Offset, Tap
from support.generate import programs
from support.programs import program_text
from timetile import Field
from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import ApplyOp, KernelOp, StoreOp
from timetile.dialects.tile.kinds import TileLevel
from timetile.lowering.pipelines import tile_passes
from timetile.passes.analysis.geometry import block_reads, memory_taps, plane_geometry
from timetile.passes.cost.launch import predict
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.step_parts import fused_parts
from timetile.runtime.explain.explanation import LoopReport
from timetile.runtime.kernels.loops import loops_of


@dataclass(frozen=True)
class BlockShape:
    """Cells of a thread and warps of a block, along the last two or three axes."""

    cells: tuple[int, ...]
    warps: tuple[int, ...]

    def of_rank(self, rank: int) -> BlockShape:
        """The shape along the last `rank` axes."""
        return BlockShape(self.cells[-rank:], self.warps[-rank:])


SHAPES = (
    BlockShape((1, 1, 1), (1, 2, 1)),
    BlockShape((4, 1, 1), (1, 2, 1)),
    BlockShape((2, 2, 1), (1, 1, 2)),
    BlockShape((1, 1, 4), (1, 2, 1)),
    BlockShape((2, 1, 2), (2, 1, 1)),
    BlockShape((1, 3, 2), (1, 1, 1)),
)


def passes_of(shape: BlockShape, cuts: tuple[int, ...] | None) -> tuple[ModulePass, ...]:
    """The default passes, with steps read from memory by blocks of a shape."""
    rank = len(shape.cells)
    tiling = DeviceTilingPass(
        reads="memory", tile=TileLevel.BLOCK, cells=shape.cells, lanes=(*(1,) * (rank - 1), 32),
        warps=shape.warps, occupancy=2, cuts=cuts,
    )  # fmt: skip
    return tuple(
        tiling if isinstance(item, DeviceTilingPass) else item
        for item in tile_passes(depth=1)
        if not isinstance(item, ChooseSchedulePass)
    )


def check(program: Program, steps: int, passes: tuple[ModulePass, ...]) -> list[LoopOp]:
    """Every executor of kernels, and the PTX, end like the unfused program; returns the loops."""
    inputs = random_inputs(program, seed=steps)
    loops: list[LoopOp] = []
    options: Any = {"passes": passes, "fp_contract": "off", "cache": False}
    for compiled in compiled_on((*kernel_executors(), "ptx"), program_text(program), **options):
        assert_as_unfused(compiled, program, inputs, steps, compiled.executor)
        loops = loops_of(compiled.kernels.tiled)
    return loops


@pytest.fixture(autouse=True, scope="module")
def blocks_take_tiles_in_turn() -> Iterator[None]:
    """Short launches, too, take tiles along the first axis in turn, of which the last may lack."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_reads, "LEAST_BLOCKS", 1)
        patch.setattr(block_reads, "LEAST_SAVED", 0)
        patch.setattr(block_reads, "TILES_IN_TURN", 2)
        yield


def kernels_of(loop: LoopOp) -> list[KernelOp]:
    """The kernels of a loop, in launch order."""
    module = loop.get_toplevel_object()
    named = {op.sym_name.data: op for op in module.walk() if isinstance(op, KernelOp)}
    return [named[name] for name in loop.kernel_names]


@given(program=programs(), shape=st.sampled_from(SHAPES), steps=st.integers(0, 3))
def test_drawn_programs_keep_their_bits_in_threads_of_several_cells(
    program: Program, shape: BlockShape, steps: int
):
    note(program_text(program))
    check(program, steps, passes_of(shape.of_rank(program.rank), None))


def leapfrog(domain: tuple[int, ...], element: Element, *, wide: bool = False) -> Program:
    """
    Two fields in two buffers each: a half step of `h` by differences of `e`, each along one axis,
    then a half step of `e` by differences of the new `h`, in a smaller box. `wide`: the box of `e`
    is the box of `h`.
    """
    rank = len(domain)
    here = (0,) * rank
    bounds = Box.of(domain).grown((1,) * rank, (1,) * rank)
    axes: list[Offset] = [tuple(int(k == axis) for k in range(rank)) for axis in range(rank)]

    def back(offset: Offset) -> Offset:
        return tuple(-distance for distance in offset)

    def half_step(own: str, high: str, low: str, ways: list[tuple[Offset, Offset]]) -> Expression:
        total: Expression = Tap(own, here)
        for number, (a, b) in enumerate(ways):
            total = total + (Tap(high, a) - Tap(low, b)) * (0.25 + 0.125 * number)
        return total

    names = ("e", "e_next", "h", "h_next")
    first = half_step("h", "e", "e", [(axis, here) for axis in axes])
    second = half_step("e", "h_next", "h_next", [(here, back(axis)) for axis in axes])
    inner = Box((1 - int(wide),) * rank, tuple(n - 1 + int(wide) for n in domain))
    outer = Box.of(domain)
    updates = (
        Update((first,), (Store(0, "h_next", outer),)),
        Update((second,), (Store(0, "e_next", inner),)),
    )
    buffers = tuple(Buffer(name, bounds, element) for name in names)
    return Program(element, buffers, names, (1, 0, 3, 2), updates)


@pytest.mark.covering
@pytest.mark.parametrize("domain", [(9, 38), (5, 7, 39), (6, 9, 140)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_results_read_beside_the_own_cell_are_computed_again(
    domain: tuple[int, ...], shape: BlockShape, element: Element
):
    program = leapfrog(domain, element)
    (loop,) = check(program, 3, passes_of(shape.of_rank(len(domain)), ()))
    (kernel,) = kernels_of(loop)
    applies = [stage for stage in kernel.stages if isinstance(stage, ApplyOp)]
    assert len(applies) == 2 + len(domain)
    boxes = {CellBox.of(s.box) for s in kernel.stages if isinstance(s, StoreOp) if s.box}
    assert boxes == {CellBox((1,) * len(domain), tuple(n - 1 for n in domain))}


@pytest.mark.parametrize(("domain", "cuts"), [((20, 30, 40), ()), ((3, 30, 40), (1,))])
def test_boxes_of_a_fused_part_have_nearly_the_same_cells(
    domain: tuple[int, ...], cuts: tuple[int, ...]
):
    """In three planes, the smaller box has a third of the cells."""
    text = program_text(leapfrog(domain, "f32"))
    (loop,) = loops_of(timetile.compile(text, executor="planes", cache=False).kernels.source)
    assert fused_parts(loop) == cuts


def test_a_part_computes_no_cell_again_outside_the_box_of_its_update():
    """Outside the box of `h` the old cells count, and the kernel of `h` may overwrite them."""
    program = leapfrog((5, 7, 39), "f32", wide=True)
    with pytest.raises(timetile.CompileError, match="give device-tiling cuts with 1"):
        check(program, 1, passes_of(SHAPES[0], ()))
    (loop,) = check(program, 3, passes_of(SHAPES[1], (1,)))
    assert fused_parts(loop) == (1,)


def test_slabs_hold_every_tile_once(monkeypatch: pytest.MonkeyPatch):
    """Slabs change the order of tiles; the last slab has fewer tiles than the others."""
    program = leapfrog((5, 25, 39), "f64")
    monkeypatch.setattr(memory_taps, "SLAB_BYTES", 2 * 39 * 2 * 8 * 4 * 2)
    shape = BlockShape((2, 1, 1), (1, 2, 1))
    (loop,) = check(program, 2, passes_of(shape, ()))
    (kernel,) = kernels_of(loop)
    geometry = plane_geometry.PlaneGeometry(kernel)
    assert geometry.slab is not None
    assert geometry.axes[1].count % geometry.slab
    assert geometry.tiles_in_turn == 2 and geometry.axes[0].count == 3


def test_blocks_of_several_tiles_take_none_in_turn():
    """The last block of a launch may hold warps without a tile, counted without turns."""
    warps = DeviceTilingPass(reads="memory", tile=TileLevel.WARP, cells=(2, 1, 1), pack=2)
    passes = [
        warps if isinstance(item, DeviceTilingPass) else item for item in passes_of(SHAPES[0], ())
    ]
    (loop,) = check(leapfrog((5, 7, 39), "f32"), 1, tuple(passes))
    assert {plane_geometry.PlaneGeometry(each).tiles_in_turn for each in kernels_of(loop)} == {1}


def test_parts_in_place_end_where_a_thread_would_read_cells_of_other_threads():
    """Without second buffers, the half step of `e` writes cells that the half step of `h` reads."""
    program = leapfrog((5, 7, 39), "f32")
    names = {"e_next": "e", "h_next": "h"}
    in_place = replace(
        program,
        buffers=tuple(each for each in program.buffers if each.name not in names),
        carried=("e", "h"),
        rotation=(0, 1),
        updates=tuple(renamed(update, names) for update in program.updates),
    )
    (loop,) = check(in_place, 3, passes_of(SHAPES[1], None))
    assert fused_parts(loop) == (1,)
    assert len(loop.kernel_names) == 2


def renamed(update: Update, names: dict[str, str]) -> Update:
    """An update of other buffers."""

    def moved(node: Expression) -> Expression:
        if isinstance(node, Tap):
            return Tap(names.get(node.buffer, node.buffer), node.offset)
        if isinstance(node, Call):
            return Call(node.name, tuple(map(moved, node.arguments)))
        return node

    stores = tuple(replace(s, buffer=names.get(s.buffer, s.buffer)) for s in update.stores)
    return Update(tuple(map(moved, update.results)), stores)


@timetile.stencil
def yee(ex: Field, ey: Field, ez: Field, hx: Field, hy: Field, hz: Field):
    """A step of Maxwell's equations on Yee's grid."""
    hx.next = hx[0, 0, 0] - 0.3 * (ez[0, 1, 0] - ez[0, 0, 0]) + 0.3 * (ey[0, 0, 1] - ey[0, 0, 0])
    hy.next = hy[0, 0, 0] - 0.3 * (ex[0, 0, 1] - ex[0, 0, 0]) + 0.3 * (ez[1, 0, 0] - ez[0, 0, 0])
    hz.next = hz[0, 0, 0] - 0.3 * (ey[1, 0, 0] - ey[0, 0, 0]) + 0.3 * (ex[0, 1, 0] - ex[0, 0, 0])
    inner = (slice(1, -1), slice(1, -1), slice(1, -1))
    x, y, z = hx.next, hy.next, hz.next
    ex.next[inner] = (
        ex[0, 0, 0] + 0.3 * (z[0, 0, 0] - z[0, -1, 0]) - 0.3 * (y[0, 0, 0] - y[0, 0, -1])
    )
    ey.next[inner] = (
        ey[0, 0, 0] + 0.3 * (x[0, 0, 0] - x[0, 0, -1]) - 0.3 * (z[0, 0, 0] - z[-1, 0, 0])
    )
    ez.next[inner] = (
        ez[0, 0, 0] + 0.3 * (y[0, 0, 0] - y[-1, 0, 0]) - 0.3 * (x[0, 0, 0] - x[0, -1, 0])
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_single_step_of_six_fields_is_one_kernel_that_reads_memory(
    dtype: Literal["float32", "float64"],
):
    """The kernel spills no register."""
    module = yee.module((256, 256, 256), dtype)
    compiled = timetile.compile(module, executor="planes", depth=1, cache=False, halos="common")
    (loop,) = loops_of(compiled.kernels.tiled)
    schedule = loop.decisions
    assert schedule.reads_memory and not schedule.cuts
    assert prod(schedule.cells) > 1
    (name,) = loop.kernel_names
    kernel = compiled.kernels.kernel(name)
    assert kernel.cubin is None or not kernel.spill_bytes


def test_an_explanation_of_a_step_in_parts_counts_all_kernels():
    """The predicted speed is below the speed of each of the two kernels alone."""
    program = leapfrog((256, 256), "f32")
    compiled = timetile.compile(
        program_text(program), executor="planes", passes=passes_of(SHAPES[0].of_rank(2), (1,)),
        cache=False,
    )  # fmt: skip
    module, target = compiled.kernels.tiled, compiled.kernels.options.target
    (loop,) = loops_of(module)
    parts = [predict(kernel, module, target).gcells_per_second for kernel in kernels_of(loop)]
    report = LoopReport(compiled, 0, loop, loop, alone=True)
    whole = report.costs[report.kernels[0]].gcells_per_second
    assert len(parts) == 2 and whole < min(parts)
