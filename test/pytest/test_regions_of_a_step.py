"""
Steps with layers, split into regions: bits, kernels of a region, layouts of layers, and the
launches that run side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import timetile
from timetile import Field
from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import LoopOp, ScratchOp
from timetile.dialects.tile import ApplyOp, AxisLayout, KernelOp, LayoutAttr, RoleKind
from timetile.dialects.tile.kinds import TileLevel
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.frontend.model import Model
from timetile.lowering.pipelines import tile_passes
from timetile.passes.analysis.launches.accesses import (
    CellAccess,
    collide,
    kernel_accesses,
    predecessors,
)
from timetile.passes.cost.memory_reads import launches_in_turn
from timetile.passes.loops.split_regions import StepInRegions
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.tiling.fitted_layouts import fitted_layout
from timetile.passes.tiling.inside_kernel import first_updates, inside_kernel
from timetile.passes.tiling.step_parts import region_parts
from timetile.runtime.device.actions import LaunchOrder, Prepared
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.kernels.kernel import Kernel, decode_kernel, encode_kernel
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

DOMAIN = (14, 41)
LOW, HIGH = (slice(1, 4), slice(1, -1)), (slice(1, -1), slice(-4, -1))


@timetile.stencil
def layered(e: Field, h: Field, m: Field, k: Field, b: Field):
    """Two half steps on a staggered grid, with a memory variable in a layer of each."""
    inner = (slice(1, -1), slice(1, -1))
    across = e[1, 0] - e[0, 0]
    h.next[inner] = h[0, 0] + 0.3 * across - 0.2 * (e[0, 1] - e[0, 0])
    m.next[LOW] = b[0, None] * m[0, 0] + 0.25 * across
    h.next[LOW] = h.next[0, 0] + m.next[0, 0]
    along = h.next[0, 0] - h.next[0, -1]
    e.next[inner] = e[0, 0] + 0.3 * (h.next[0, 0] - h.next[-1, 0]) - 0.2 * along
    k.next[HIGH] = 0.5 * k[0, 0] + 0.25 * along
    e.next[HIGH] = e.next[0, 0] + k.next[0, 0]
    e.next[LOW] = e.next[0, 0] / (1 + m.next[0, 0])


@timetile.stencil
def damped(u: Field):
    """Diffusion, and a layer without a memory variable."""
    around = u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1] - 4 * u[0, 0]
    u.next[1:-1, 1:-1] = u[0, 0] + 0.2 * around
    u.next[LOW] = 0.9 * u.next[0, 0]


@timetile.stencil
def numbered(a: Field, b: Field, c: Field, n: Field):
    """The layer reads `a`, the first field of the step, and the inside `b`."""
    n.next[LOW] = 0.5 * n[0, 0] + 0.25 * a[0, 0]
    c.next[1:-1, 1:-1] = 0.5 * b[1, -1] + 0.25 * b[0, 1]
    c.next[LOW] = c.next[0, 0] + n.next[0, 0]


@timetile.stencil
def edged(u: Field, b: Field):
    u.next[1:-1, 1:-1] = 0.5 * u[0, 0] + 0.25 * u[0, 1]
    u.next[LOW] = u.next[0, 0] + b[0, None] * u[0, 0]


@timetile.stencil
def moved(u: Field):
    u.next[1:-1, 1:-1] = u[0, 0] - 0.25 * u[1, 0]
    u.next[HIGH] = u.next[0, 0] + u[0, -1]


twice = timetile.sequence(edged, moved)
"""The second step reads cells of the first, kept in scratch memory, at other places."""


@timetile.stencil
def line(u: Field, v: Field):
    u.next[1:-1] = 0.5 * u[0] + 0.25 * u[1]
    v.next[2:4] = v[0] + u.next[1]


@dataclass(frozen=True)
class InRegions(ModulePass):
    """
    Gives a time loop a schedule in regions, cut into as few kernels as possible, and a tile of a
    warp for the inside.
    """

    name = "in-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in loops_of(op):
            split = StepInRegions(loop).split
            if split is None:
                continue
            loop.schedule = ScheduleAttr(
                Schedule(
                    tile=TileLevel.BLOCK, cells=(2, 2), lanes=(1, 32), warps=(2, 1), pack=1,
                    ahead=0, resident=True, reads_memory=True, regions=True,
                    cuts=region_parts(split, again=True),
                )
            )  # fmt: skip
            loop.inside = ScheduleAttr(Schedule(cells=(2,), ahead=2, occupancy=1))


@cache
def compiled(executor: Executor, step: Model = layered) -> CompiledProgram:
    """The program in regions on an executor of kernels, or unfused."""
    passes = tuple(
        InRegions() if isinstance(each, ChooseSchedulePass) else each
        for each in tile_passes(depth=1)
    )
    given = None if executor == "numpy" else passes
    module = step.module(DOMAIN, "float32")
    return timetile.compile(module, executor=executor, halos="common", passes=given, cache=False)


def kernels(step: Model = layered) -> list[KernelOp]:
    """The kernels of a step, in launch order."""
    return [op for op in compiled("planes", step).kernels.tiled.ops if isinstance(op, KernelOp)]


def loop() -> LoopOp:
    """The tiled loop."""
    (found,) = loops_of(compiled("planes").kernels.tiled)
    return found


def ends(executor: Executor, step: Model = layered) -> list[bytes]:
    """The bits of all arrays after three steps, from equal cells in the buffers of a field."""
    program, arrays = compiled(executor, step), list[np.ndarray]()
    for parameter in program.parameters[:-1]:
        name = (parameter.name or "").removesuffix("_next")
        drawn = np.random.default_rng(sum(map(ord, name)))
        arrays.append(drawn.random(parameter.shape, dtype=np.float32))
    program(*arrays, steps=3)
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
def test_a_step_in_regions_keeps_its_bits(executor: Executor):
    assert ends(executor) == ends("numpy")


@pytest.mark.parametrize("executor", ["planes", "simt"])
def test_an_inside_with_kept_planes_has_equal_bits(executor: Executor):
    assert ends(executor, damped) == ends("numpy", damped)
    inside, *layers = kernels(damped)
    assert inside.stream_axis == 0 and CellBox.of(inside.bounds) == CellBox((4, 1), (13, 40))
    assert layers and all(kernel.reads_memory for kernel in layers)


def test_an_inside_stores_scratch_that_later_parts_read():
    assert ends("planes", twice) == ends("numpy", twice)
    (loop,) = loops_of(compiled("planes", twice).kernels.source)
    split = StepInRegions(loop).split
    assert split is not None
    kernel = inside_kernel(split, 2, Schedule(cells=(2,), ahead=2, occupancy=1), "inside")
    assert kernel is not None
    stored = [role.index.data for role in kernel.roles if role.kind.data is RoleKind.TARGET]
    passed_on = loop.body.block.args[stored[-1]]
    assert len(stored) == 2 and isinstance(loop.buffers[stored[-1]].owner, ScratchOp)
    assert any(passed_on in update.sources for update in loop.updates)
    # The choice of the inside's schedule counts the store, too.
    alone = first_updates(split, 2)
    assert alone is not None and not isinstance(alone.buffers[stored[-1]].owner, ScratchOp)


def test_an_inside_of_one_axis_has_no_stream():
    program = timetile.compile(line.module((41,), "float32"), executor="numpy", cache=False)
    (loop,) = loops_of(program.kernels.source)
    kernel = inside_kernel(loop, 1, Schedule(cells=(2,), ahead=0, occupancy=1), "inside")
    assert kernel is not None and kernel.stream_axis is None
    kernel.verify()


def test_fields_of_a_step_keep_their_numbers():
    """Kernels know a field by its place among the fields of the whole step."""
    assert ends("planes", numbered) == ends("numpy", numbered)
    (loop,) = loops_of(compiled("planes", numbered).kernels.source)
    assert StepInRegions(loop).split is None and first_updates(loop, 1) is not None


def test_each_region_is_one_kernel_and_both_insides_share_one():
    bounds = [CellBox.of(kernel.bounds) for kernel in kernels()]
    assert bounds[0] == CellBox((4, 1), (13, 40))
    assert len(bounds) == len(set(bounds)) == 7
    inside = [stage for stage in kernels()[0].stages if isinstance(stage, ApplyOp)]
    assert {stage.cell.string_value() for stage in inside} == {"layered_cell0", "layered_cell3"}


def test_a_layer_of_a_part_of_its_region_keeps_the_other_cells():
    """The region of `e` reaches a cell further than its layer."""
    boxes = [
        CellBox.of(stage.box)
        for kernel in kernels()
        for stage in kernel.stages
        if isinstance(stage, ApplyOp) and stage.box is not None
    ]
    assert CellBox((1, 2), (4, 32)) in boxes


def test_kernels_of_a_sub_step_run_side_by_side():
    assert launches_in_turn(kernels(), loop().rotation) == 2


TILE = LayoutAttr(TileLevel.BLOCK, [AxisLayout(2, 1, 2), AxisLayout(1, 1, 4), AxisLayout(2, 32)])


@pytest.mark.parametrize(
    ("sizes", "extents"),
    [
        ((500, 500, 500), (4, 4, 64)),
        ((10, 500, 500), (2, 8, 64)),
        ((500, 10, 500), (8, 2, 64)),
        ((500, 500, 10), (8, 8, 16)),
    ],
)
def test_a_thin_layer_has_tiles_of_its_own(sizes: tuple[int, ...], extents: tuple[int, ...]):
    layout = fitted_layout(TILE, CellBox((0, 0, 0), sizes))
    assert tuple(axis.extent for axis in layout.axis_layouts) == extents
    assert layout.threads == TILE.threads


def kernel_of(number: int) -> Kernel:
    """A kernel of the step without code, and with its accesses."""
    op = kernels()[number]
    return Kernel(
        op.sym_name.data, "", None, "sm_90", False, 0, 0, kernel_accesses(op), grid=1, block=32
    )


def test_a_kept_kernel_knows_its_cells():
    kernel = kernel_of(1)
    assert any(access.writes for access in kernel.accesses)
    assert decode_kernel(encode_kernel(kernel)) == kernel


def launch(kernel: Kernel, *fields: DeviceBuffer) -> Prepared:
    """A launch on fields in memory."""
    return Prepared(fields, kernel, LaunchArguments((), ()))


def test_launches_wait_for_those_with_common_cells():
    """The third launch reads what the first writes, and the fourth shares memory with a field."""
    left, right = CellBox((0,), (8,)), CellBox((8,), (16,))

    def named(name: str, *accesses: CellAccess) -> Kernel:
        return Kernel(name, "", None, "sm_90", False, 0, 0, accesses, grid=1, block=32)

    a, b, part = DeviceBuffer(0, 64), DeviceBuffer(64, 64), DeviceBuffer(96, 64)
    first = launch(named("first", CellAccess(writes=left)), a)
    second = launch(named("second", CellAccess(writes=right), CellAccess(left)), a, b)
    third = launch(named("third", CellAccess(left), CellAccess(writes=right)), a, b)
    fourth = launch(named("fourth", CellAccess(writes=right)), part)
    unknown = launch(named("unknown"), DeviceBuffer(1000, 8))
    order = [first, second, third, fourth, unknown]
    assert LaunchOrder(order).waits == [[], [], [0], [1, 2], [3]]


def test_reads_alone_never_collide():
    box = CellBox((0,), (8,))
    assert not collide(CellAccess(box), CellAccess(box))
    assert collide(CellAccess(box), CellAccess(writes=box))
    assert predecessors(3, lambda later, earlier: True) == [[], [0], [1]]
