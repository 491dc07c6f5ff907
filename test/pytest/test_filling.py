"""
The first steps of a chunk leave out levels before their first plane is due: the first needed step
of each level, and the ends of the loops; and runs are right. (A stage left out for a
step too many shows in the SIMT interpreter: the stored value was never set.)
"""

from __future__ import annotations

import pytest
from xdsl.dialects import scf

from support.catalogue import Domain, entry
from support.executors import kernel_executors
from support.filling import BOXES, CUBE, STARS, compiled
from support.placed import check, deepest
from support.schedules import Schedule, warp_row
from timetile.dialects import simt
from timetile.dialects.tile import ApplyOp, Form
from timetile.passes.analysis.geometry.filling import filling_loops, first_step
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.runtime.kernels.options import Halos
from timetile.runtime.program.compiled_program import Executor

# One worker has the shared results of the file's tests.
pytestmark = pytest.mark.xdist_group("filling")


@pytest.mark.parametrize(("radius", "depth"), [(1, 4), (1, 10), (2, 6), (3, 4)])
def test_each_level_of_a_star_is_due_two_radii_after_the_level_below(radius: int, depth: int):
    geometry = Geometry(
        deepest(compiled("f64", STARS[radius], (8192, 8192), depth).kernels.tiled, depth)
    )
    stages = [stage for stage in geometry.kernel.stages if isinstance(stage, ApplyOp)]
    due = [first_step(geometry, stage) for stage in stages]
    assert due == [2 * radius * level for level in range(1, depth + 1)]


def test_sums_are_due_with_their_first_plane():
    """
    The parts of a sum, from the first row to the last: a level's plane comes with the last part.
    """
    geometry = Geometry(deepest(compiled("f64", BOXES[1], (8784, 8784), 3).kernels.tiled, 3))
    stages = [stage for stage in geometry.kernel.stages if isinstance(stage, ApplyOp)]
    assert [first_step(geometry, stage) for stage in stages] == [0, 1, 2, 2, 3, 4, 4, 5, 6]


@pytest.mark.parametrize(
    ("offsets", "domain", "depth"),
    [
        pytest.param(STARS[1], (8352, 8352), 10, id="a star"),
        pytest.param(BOXES[1], (8784, 8784), 7, id="sums"),
    ],
)
def test_loops_that_fill_the_pipeline_end_one_after_the_other(
    offsets: tuple[tuple[int, ...], ...], domain: Domain, depth: int
):
    """Each loop ends at a whole turn of the stream loop, before the pipeline is full."""
    geometry = Geometry(deepest(compiled("f64", offsets, domain, depth).kernels.tiled, depth))
    ends = filling_loops(geometry)
    assert ends and sorted(set(ends)) == list(ends)
    full = geometry.fill + geometry.drain
    assert all(end % geometry.period == 0 and 0 < end <= full for end in ends)


@pytest.mark.parametrize(
    ("offsets", "domain", "depth"),
    [
        pytest.param(STARS[1], (8352, 8352), 1, id="single steps"),
        pytest.param(CUBE, (128, 128, 128), 3, id="warps that wait for each other"),
    ],
)
def test_kernels_without_levels_or_with_exchanges_have_no_filling_loops(
    offsets: tuple[tuple[int, ...], ...], domain: Domain, depth: int
):
    kernel = deepest(compiled("f64", offsets, domain, depth).kernels.tiled, depth)
    assert filling_loops(Geometry(kernel)) == ()


def test_filling_loops_make_one_level_more_each_and_store_nothing():
    """The shuffles of a star: two for each level computed in a step."""
    program = compiled("f64", STARS[1], (8352, 8352), 10)
    kernel = deepest(program.kernels.tiled, 10)
    geometry = Geometry(kernel)
    ends = filling_loops(geometry)
    threads = program.kernels.threads(kernel.sym_name.data)
    loops = [op for op in threads.walk() if isinstance(op, scf.ForOp)]
    # Loops over the columns and over both parts of a chunk surround the others.
    innermost = [
        loop for loop in loops if not any(isinstance(op, scf.ForOp) for op in loop.body.walk())
    ]
    for loop, end in zip(innermost, ends):
        kinds = [type(op) for op in loop.body.walk()]
        assert simt.StoreOp not in kinds
        assert kinds.count(simt.ShuffleOp) == geometry.period * 2 * ((end - 1) // 2)
    assert simt.StoreOp in [type(op) for op in innermost[len(ends)].body.walk()]


FILLING = [
    pytest.param(
        "heat-2d", Schedule("gather", warp_row(cells=2), Buffering(ahead=2)), 3, id="star"
    ),
    pytest.param(
        "box-2d", Schedule("sums", warp_row(cells=2), form=Form.ROWS), 3, id="sums by rows"
    ),
    pytest.param(
        "skewed-2d", Schedule("skewed", warp_row(cells=2), form=Form.ROWS), 2, id="asymmetric"
    ),
    pytest.param(
        "wave-2d", Schedule("wave", warp_row(cells=2), planes=9), 2, id="several fields, low chunks"
    ),
    pytest.param(
        "coupled-2d", Schedule("coupled", warp_row(cells=2), Buffering(ahead=3)), 2, id="coupled"
    ),
    pytest.param("nested-boxes-2d", Schedule("boxes", warp_row(cells=2)), 3, id="boxes"),
    pytest.param(
        "fluxes-2d",
        Schedule("fluxes", warp_row(cells=2), planes=5),
        3,
        id="quotients, lower chunks",
    ),
    pytest.param(
        "variation-2d",
        Schedule("carried", warp_row(cells=2), planes=None),
        3,
        id="carried magnitudes",
    ),
]


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("executor", [e for e in kernel_executors() if e != "planes"])
@pytest.mark.parametrize("halos", ["apart", "common"])
@pytest.mark.parametrize(("name", "schedule", "depth"), FILLING)
def test_runs_with_filling_loops_leave_the_bits_of_numpy(
    name: str, schedule: Schedule, depth: int, halos: Halos, executor: Executor
):
    """In chunks inside the bounds, lower than the pipeline is deep or higher; others do without."""
    program = entry(name).make((61, 150))
    placed = check(program, 2 * depth + 1, executor, *schedule.passes(depth), halos=halos)
    geometry = Geometry(deepest(placed, depth))
    assert filling_loops(geometry)
    assert any(variant.is_interior for variant in geometry.used_variants)
