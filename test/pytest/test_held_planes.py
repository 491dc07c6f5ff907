"""The unrolling with which planes age by renaming, for sums in several orders."""

import pytest
from xdsl.dialects.builtin import ModuleOp

import timetile
from timetile import Field, Scalar
from timetile.dialects.tile import KernelOp
from timetile.frontend.model import Model
from timetile.passes.analysis.queues.storage import natural_period


@timetile.stencil
def by_planes(u: Field, k: Scalar):
    u.next = u[0, 0] + k * (u[-1, 0] + u[0, -1] - 4 * u[0, 0] + u[0, 1] + u[1, 0])


@timetile.stencil
def far_planes_first(u: Field, k: Scalar):
    u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@timetile.stencil
def newest_in_a_factor(u: Field):
    u.next = u[-1, 0] * u[1, 0] + u[0, 0]


@timetile.stencil
def oldest_in_a_late_product(u: Field):
    u.next = (u[1, 0] - u[0, 0]) * u[-1, 0]


@timetile.stencil
def other_field(u: Field, v: Field):
    u.next = u[-1, 0] + v[1, 0]
    v.next = v[-1, 0] - 0.5 * v[1, 0]


def kernels_of(model: Model, depth: int) -> ModuleOp:
    """The placed kernels of a model."""
    program = model.on(executor="planes", depth=depth, cache=False).program((4096, 4096), "float64")
    return program.kernels.tiled


@pytest.mark.parametrize(
    "model, period",
    [
        pytest.param(by_planes, 2, id="the newest plane enters last"),
        pytest.param(far_planes_first, 3, id="a sum begins with both far planes"),
        pytest.param(newest_in_a_factor, 3, id="a product of both far planes"),
        pytest.param(oldest_in_a_late_product, 3, id="a factor waits for the newest plane"),
        pytest.param(other_field, 3, id="the newest plane of another field"),
    ],
)
def test_a_plane_that_meets_the_newest_needs_a_step_more(model: Model, period: int):
    module = kernels_of(model, 3)
    deepest = next(op for op in module.ops if isinstance(op, KernelOp) and op.steps.data == 3)
    assert natural_period(deepest) == period


def test_planes_alone_decide_and_not_their_number():
    """Deeper kernels age planes with the unrolling of a single step."""
    for depth in (2, 5):
        module = kernels_of(far_planes_first, depth)
        assert {natural_period(op) for op in module.ops if isinstance(op, KernelOp)} == {3}
