"""
Columns of tiles may be cut into chunks of different heights: under any plan every plane is stored
once, and a run ends like the unfused program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

import timetile
from support.catalogue import box, entry, star, sum_program
from support.columns import JOINED, THREADS
from support.description import Element
from support.placed import check, deepest
from support.programs import program_text
from support.schedules import JoinColumnsPass, Schedule, block_plane, block_row, warp_row
from timetile.dialects.tile import (
    Form,
    Guards,
    KernelOp,
    ScheduleAttr,
    Storage,
    Sync,
    TileLevel,
    VariantAttr,
)
from timetile.dialects.tile.schedule import Schedule as LoopSchedule
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.setting import Setting
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Halos, Options
from timetile.runtime.loading.modules import load
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.covering


PLANES = Schedule(
    "planes",
    block_plane((4, 2), (3, 1)),
    streaming=RegisterStreamingPass(sync=Sync.MBARRIER, delay=1),
)


FLAT = Schedule("rows", block_row())


@dataclass(frozen=True)
class CutColumnsPass(ModulePass):
    """
    Cut the columns of every kind: the first column alone, in chunks of five planes, the other
    columns in lower chunks.
    """

    name = "cut-columns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            assert kernel.variants is not None
            geometry = Geometry(kernel)
            several = [v for v in kernel.variants if geometry.columns(v) > 1]
            # Kinds take turns: numbers of columns of either kind are passed.
            alone = [VariantAttr([a.data for a in v.axes], 5, 1) for v in several]
            rest = [VariantAttr([a.data for a in v.axes], 2) for v in kernel.variants]
            kernel.variants = ArrayAttr([*alone, *rest])


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", THREADS)
@pytest.mark.parametrize(("rows", "multiprocessors"), [(30, 3), (38, 4)])
def test_columns_that_fill_the_device_are_not_cut(
    rows: int, multiprocessors: int, executor: Executor
):
    """Eight or ten columns, and two blocks a multiprocessor."""
    program = entry("heat-3d").make((19, rows, 120))
    *passes, peel = PLANES.passes(3)
    peel = replace(peel, guards=Guards.ALL, planes=None, multiprocessors=multiprocessors)
    placed = check(program, 4, executor, *passes, peel)
    kernel = deepest(placed, 3)
    assert kernel.variants is not None
    whole, rest = kernel.variants
    assert whole.columns.data == 2 * multiprocessors
    assert whole.planes.data == 19 > rest.planes.data
    assert not whole.is_interior and not rest.is_interior


@pytest.mark.covering(first=1, every=2)
@pytest.mark.parametrize("executor", THREADS)
@pytest.mark.parametrize("guards", [Guards.RIM, Guards.ALL])
@pytest.mark.parametrize(
    ("name", "domain", "schedule"),
    [
        ("heat-3d", (11, 43, 190), PLANES),
        ("heat-2d", (17, 700), FLAT),
        ("heat-2d", (17, 700), Schedule("warps", warp_row())),
    ],
)
def test_columns_of_both_kinds_are_cut(
    name: str, domain: tuple[int, ...], schedule: Schedule, guards: Guards, executor: Executor
):
    program = entry(name).make(domain)
    *passes, peel = schedule.passes(2)
    peel = replace(peel, guards=guards)
    placed = check(program, 3, executor, *passes, peel, CutColumnsPass())
    kernel = deepest(placed, 2)
    assert kernel.variants is not None
    cut = {variant.is_interior for variant in kernel.variants if variant.columns.data}
    assert cut == ({False, True} if "axes []" in str(kernel.variants) else {False})
    geometry = Geometry(kernel)
    assert sum(map(geometry.columns, geometry.used_variants)) == geometry.plane_tiles


HALOS: tuple[Halos, ...] = ("apart", "common")


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", THREADS)
@pytest.mark.parametrize("halos", HALOS)
@pytest.mark.parametrize(
    ("planes", "joined"),
    [
        pytest.param(12, 9, id="three other chunks"),
        pytest.param(40, 6, id="one other chunk"),
        pytest.param(30, 41, id="all planes"),
        pytest.param(90, 41, id="all planes, two columns each"),
    ],
)
@pytest.mark.parametrize("domain", [(41, 700), (41, 701)], ids=["even rows", "odd rows"])
def test_chunks_go_on_in_the_next_column(
    domain: tuple[int, ...], planes: int, joined: int, halos: Halos, executor: Executor
):
    """
    Rows of an odd length are dealt to the lanes; lanes read copies of other lanes, and rows change
    hands before stores.
    """
    program = entry("heat-2d").make(domain)
    join = JoinColumnsPass(planes, joined)
    placed = check(program, 3, executor, *JOINED.passes(2), join, halos=halos)
    geometry = Geometry(deepest(placed, 2))
    pitch = joined + geometry.restart
    starts = range(0, geometry.columns_of_kind(interior=False) * pitch, planes)
    assert any(start // pitch < (start + planes - 1) // pitch for start in starts)


@pytest.mark.parametrize("executor", THREADS)
@pytest.mark.parametrize(("name", "domain"), [("skewed-2d", (20, 293)), ("heat-2d", (17, 193))])
def test_chunks_of_rings_go_on_in_the_next_column(
    name: str, domain: tuple[int, ...], executor: Executor
):
    """All planes are in shared memory, where the lanes of a warp read each other's cells."""
    rings = replace(
        JOINED,
        buffering=MultiQueueBufferingPass(storage=Storage.SHARED),
        streaming=None,
        shown="shared",
    )
    check(entry(name).make(domain), 3, executor, *rings.passes(2), JoinColumnsPass(30, 9))


@pytest.mark.parametrize("executor", THREADS)
def test_blocks_have_tiles_of_one_kind(executor: Executor):
    """
    Two columns on the rim have six chunks, and the blocks of two multiprocessors eight tiles or
    four.
    """
    program = entry("heat-2d").make((17, 700))
    *passes, peel = JOINED.passes(2)
    kernel = deepest(check(program, 5, executor, *passes, replace(peel, planes=6)), 2)
    geometry = Geometry(kernel)
    rim, inner = geometry.used_variants
    assert not rim.is_interior and inner.is_interior
    assert (geometry.variant_tiles(rim), geometry.variant_numbers[0]) == (6, 8)
    assert geometry.tiles == 8 + geometry.variant_tiles(inner)


@pytest.mark.parametrize("executor", THREADS)
def test_all_columns_on_the_rim_are_joined(executor: Executor):
    """Planes of two axes, one tile wide: there is no interior, and the rim's weight holds."""
    program = entry("heat-3d").make((36, 6, 130))
    tiling = DeviceTilingPass(
        tile=TileLevel.WARP, cells=(10, 2), lanes=(1, 32), warps=(1, 1), pack=1
    )
    *passes, peel = replace(JOINED, tiling=tiling).passes(2)
    peel = replace(peel, planes=None, multiprocessors=2)
    kernel = deepest(check(program, 3, executor, *passes, peel), 2)
    assert [variant.is_interior for variant in Geometry(kernel).used_variants] == [False]


@given(
    executor=st.sampled_from(THREADS),
    halos=st.sampled_from(HALOS),
    shape=st.tuples(st.integers(1, 23), st.integers(100, 330)),
    planes=st.integers(1, 60),
    joined=st.integers(0, 40),
    form=st.sampled_from((Form.NONE, Form.ROWS)),
    pack=st.sampled_from((1, 2, 4)),
)
def test_any_planes_may_be_joined_or_none(
    executor: Executor,
    halos: Halos,
    shape: tuple[int, int],
    planes: int,
    joined: int,
    form: Form,
    pack: int,
):
    program = sum_program("f32", box((-1, -1), (1, 1)))(shape)
    schedule = replace(JOINED, tiling=warp_row(pack=pack), form=form)
    check(program, 3, executor, *schedule.passes(2), JoinColumnsPass(planes, joined), halos=halos)


@pytest.mark.parametrize("alone", [False, True])
def test_chunks_keep_to_a_column_by_the_schedules_option(alone: bool):
    """The kernel and the cost model follow the schedule."""
    text = program_text(entry("heat-2d").make((8352, 8352)))
    module = raise_program(load(text), Options(halos="common"))
    (loop,) = loops_of(module)
    schedule = LoopSchedule(pack=8, occupancy=1, ahead=5, columns_alone=alone)
    loop.schedule = ScheduleAttr(schedule)
    compiled = timetile.compile(module, executor="simt", depth=10, halos="common", cache=False)
    assert Geometry(deepest(compiled.kernels.tiled, 10)).joins_columns != alone
    assert Setting.of(schedule).joins != alone


@pytest.mark.parametrize("executor", THREADS)
@pytest.mark.parametrize("guards", [Guards.RIM, Guards.ALL])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_cells_stored_alone_save_a_tile(element: Element, guards: Guards, executor: Executor):
    """
    Of 64 cells 58 are stored, from the fourth on: lanes hold two cells, and the lanes at both ends
    store a single cell.
    """
    program = sum_program(element, list(star(3, 1)))((9, 13, 120))
    *passes, peel = PLANES.passes(3)
    placed = check(program, 4, executor, *passes, replace(peel, guards=guards))
    kernel = deepest(placed, 3)
    geometry = Geometry(kernel)
    assert geometry.cuts_pairs
    assert (geometry.axes[-1].useful, geometry.axes[-1].count) == (58, 2)


@pytest.mark.parametrize(("element", "useful", "tiles"), [("f32", 58, 16), ("f64", 56, 17)])
def test_doubles_are_stored_alone_where_that_saves_more(element: Element, useful: int, tiles: int):
    """
    Storing single cells takes a further access; one saved tile of seventeen is not worth the
    access.
    """
    program = sum_program(element, list(star(3, 1)))((9, 13, 920))
    compiled = timetile.compile(
        program_text(program), executor="simt", passes=PLANES.passes(3), halos="common", cache=False
    )
    geometry = Geometry(deepest(compiled.kernels.tiled, 3))
    assert geometry.cuts_pairs == (element == "f32")
    assert (geometry.axes[-1].useful, geometry.axes[-1].count) == (useful, tiles)
