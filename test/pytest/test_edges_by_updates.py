"""
Edges and layers with updates of their own: tiles and steps that meet no box do nothing for it, and
every cell is right at any depth. Kernels that divide copy no zeros for threads without cells.
"""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith, scf
from xdsl.ir import Operation

import timetile
from support.steady_loops import kinds
from timetile import Field
from timetile.dialects import simt
from timetile.frontend.model import Model
from timetile.frontend.values import Value
from timetile.passes.analysis.geometry.regions import Lying, lying

pytestmark = pytest.mark.usefixtures("chosen_by_model")


def mean(u: Field) -> Value:
    return 0.5 * u[0, 0] + 0.125 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@timetile.stencil
def plain(u: Field):
    u.next = mean(u)


@timetile.stencil
def insulated(u: Field):
    u.next = mean(u)
    u.next[:, 0:1] = u[0, 1]
    u.next[:, -1:] = u[0, -1]
    u.next[0:1, :] = u[1, 0]
    u.next[-1:, :] = u[-1, 0]


@timetile.stencil
def layered(u: Field):
    u.next = mean(u)
    u.next[1:6, 1:-1] = 0.9 * u[0, 0]
    u.next[-6:-1, 1:-1] = 0.8 * u[-1, 0]
    u.next[6:-6, 1:4] = 0.7 * u[0, -1]
    u.next[20:24, 8:-8] = 0.25 * u[0, 1]


@timetile.stencil
def divided(u: Field, w: Field):
    u.next = mean(u) / w[0, 0]
    w.next = 0.5 * w[0, 0] + 0.5 * u[0, 0] / w[0, -1]


def loops(step: Model, depth: int) -> list[Operation]:
    """The storing loops of the deepest kernel on a large plate, the shortest first."""
    program = step.module((4096, 4096), "float32")
    made = timetile.compile(program, executor="cpu", depth=depth, halos="common", cache=False)
    module = made.kernels.hardware(made.kernels.facts[0][0].name)
    found = [
        op for op in module.walk() if isinstance(op, scf.ForOp) and "simt.store global" in kinds(op)
    ]
    return sorted(found, key=lambda loop: sum(1 for _ in loop.walk()))


def count(loop: Operation, kind: type[Operation]) -> int:
    return sum(isinstance(op, kind) for op in loop.walk())


def test_tiles_inside_do_not_compute_edges():
    edged, bare = loops(insulated, 3)[0], loops(plain, 3)[0]
    for kind in (arith.SelectOp, arith.CmpiOp):
        assert count(edged, kind) == count(bare, kind), kind.name


@pytest.mark.covering
@pytest.mark.parametrize("step", [insulated, layered], ids=["insulated", "layered"])
@pytest.mark.parametrize(("depth", "shape"), [(1, (90, 130)), (3, (41, 301))])
def test_edges_by_updates_have_the_bits_of_numpy_at_any_depth(
    step: Model, depth: int, shape: tuple[int, int]
):
    start = {"u": np.random.default_rng(5).random(shape, dtype=np.float32)}
    steps = 2 * depth + 1
    expected = step.on(executor="numpy").advance(start, steps=steps)["u"]
    found = step.on(executor="simt", depth=depth).advance(start, steps=steps)["u"]
    np.testing.assert_array_equal(found, expected)


def test_no_thread_copies_zeros_where_a_step_divides():
    for loop in loops(divided, 2):
        copies = [op for op in loop.walk() if isinstance(op, simt.CopyAsyncOp)]
        assert all(op.mask is None for op in copies)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (range(3, 9), Lying.INSIDE),
        (range(2, 9), Lying.BOTH),
        (range(3, 10), Lying.BOTH),
        (range(0, 3), Lying.OUTSIDE),
        (range(9, 12), Lying.OUTSIDE),
    ],
)
def test_cells_lie_against_a_box(cells: range, expected: Lying):
    assert lying(cells, 3, 9) is expected
