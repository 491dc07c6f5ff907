"""Kernels of several levels that fetch a coefficient once, on every executor."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import FieldType

import timetile
from support.executors import thread_executors
from timetile import Field
from timetile.dialects.tile import CopiesAttr, ExchangeOp, KernelOp, LoadOp, Published
from timetile.frontend.field_types import DType
from timetile.frontend.model import Model
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


@timetile.stencil
def source(u: Field, f: Field):
    u.next = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - f[0, 0])


@timetile.stencil
def flux(u: Field, k: Field):
    down = (k[0, 0] + k[1, 0]) * (u[1, 0] - u[0, 0])
    up = (k[0, 0] + k[-1, 0]) * (u[0, 0] - u[-1, 0])
    right = (k[0, 0] + k[0, 1]) * (u[0, 1] - u[0, 0])
    left = (k[0, 0] + k[0, -1]) * (u[0, 0] - u[0, -1])
    u.next = u[0, 0] + 0.2 * (down - up + right - left)


@timetile.stencil
def two_fields(p: Field, q: Field, a: Field, b: Field):
    p.next = p[0, 0] + a[0, 0] * (q[1, 0] - q[-2, 0]) - b[0, 1]
    q.next = q[0, 0] + b[0, 0] * (p.next[0, 0] - p.next[0, -1]) + a[2, 0]


def weighted(u: Field, k: Field):
    across = k[1, 0] * u[1, 0] - k[-1, 0] * u[-1, 0]
    u.next = u[0, 0] + 0.2 * (across + k[0, 1] * u[0, 1])


@timetile.stencil
def wave(u: Field, c: Field):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + c[0, 0, 0] * (around - 6 * u[0, 0, 0])


@timetile.stencil
def volume_flux(u: Field, k: Field):
    deep = (k[0, 0, 0] + k[1, 0, 0]) * (u[1, 0, 0] - u[0, 0, 0]) - k[-2, 0, 0]
    down = (k[0, 0, 0] + k[0, 1, 0]) * (u[0, 1, 0] - u[0, 0, 0]) - k[0, -1, 0] * u[0, -1, 0]
    right = (k[0, 0, 0] + k[0, 0, 1]) * (u[0, 0, 1] - u[0, 0, 0]) - k[0, 0, -1] * u[0, 0, -1]
    u.next = u[0, 0, 0] + 0.1 * (deep + down + right)


def weighted_volume(u: Field, k: Field):
    across = k[1, 0, 0] * u[1, 0, 0] - k[-1, 0, 0] * u[-1, 0, 0]
    u.next = u[0, 0, 0] + 0.2 * (across + k[0, 0, 1] * u[0, 0, 1] - k[0, 1, 0] * u[0, -1, 0])


def tiles(depth: int, cells: int, ahead: int) -> str:
    """A pipeline of strips of two warps."""
    return (
        f"temporal-fusion{{depths={depth}}},device-tiling{{cells={cells} pack=2}},"
        f"multi-queue-buffering{{ahead={ahead}}},register-streaming,carry-halos,peel-boundaries"
    )


def volume_tiles(depth: int, rows: int, warps: int, ahead: int, what: str = "copies") -> str:
    """A pipeline of tiles of two axes, held by a block."""
    return (
        f"temporal-fusion{{depths={depth}}},"
        f"device-tiling{{tile=block cells={rows},1 lanes=1,32 warps={warps},1}},"
        f"multi-queue-buffering{{ahead={ahead}}},register-streaming{{what={what}}},"
        "carry-halos,peel-boundaries"
    )


def copies_of(kernels: Any) -> list[int]:
    """The slots of the rings of copies of a program's kernels."""
    loads = (op for op in kernels.tiled.walk() if isinstance(op, LoadOp))
    return [load.home.slots.data for load in loads if isinstance(load.home, CopiesAttr)]


def after(
    model: Model,
    shape: tuple[int, ...],
    dtype: DType,
    executor: Executor,
    depth: int,
    passes: str | None = None,
):
    """The arrays after a launch of a depth and one of a step, and the compiled kernels."""
    module = model.module(shape, dtype)
    program = timetile.compile(
        module, executor=executor, halos="common", cache=False, passes=passes
    )
    drawn = np.random.default_rng(5)
    function = next(op for op in module.walk() if isinstance(op, FuncOp))
    # A field's versions are arguments of their own: `u`, `u_next` and, for two steps, `u_prev`.
    hints = [arg.name_hint or "" for arg in function.args if isinstance(arg.type, FieldType)]
    names = [hint.removesuffix("_next").removesuffix("_prev") for hint in hints]
    made = {name: drawn.random(shape).astype(dtype) for name in dict.fromkeys(names)}
    arrays = [made[name].copy() for name in names]
    # Fields that go on beyond their arrays come with the number of steps.
    steps = depth + 1
    numbers = [steps] * (len(function.args) - len(arrays))
    program(*arrays, *numbers, steps=steps)
    return arrays, program.kernels


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
@pytest.mark.parametrize(
    "model, shape, dtype, schedule, slots",
    [
        pytest.param(source, (15, 150), "float64", (4, 4, 2), 8, id="own cells"),
        pytest.param(source, (19, 129), "float32", (5, 2, 3), 8, id="narrow rows"),
        pytest.param(flux, (15, 150), "float32", (3, 4, 1), 8, id="neighbours"),
        pytest.param(flux, (19, 131), "float64", (4, 2, 2), 8, id="neighbours, narrow rows"),
        pytest.param(two_fields, (17, 140), "float64", (2, 2, 1), 4, id="two coefficients"),
    ],
)
def test_levels_that_share_copies_compute_the_same_bits(
    model: Model,
    shape: tuple[int, int],
    dtype: DType,
    schedule: tuple[int, int, int],
    slots: int,
    executor: Executor,
):
    expected, _ = after(model, shape, dtype, "numpy", schedule[0])
    found, kernels = after(model, shape, dtype, executor, schedule[0], tiles(*schedule))
    assert slots in copies_of(kernels)
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("what", ["copies", "edges", "plane"])
@pytest.mark.parametrize(
    "model, schedule",
    [
        pytest.param(wave, (3, 3, 4, 1), id="own cells"),
        pytest.param(wave, (4, 2, 8, 2), id="narrow rows"),
        pytest.param(volume_flux, (2, 3, 4, 2), id="neighbours"),
    ],
)
def test_levels_of_a_volume_share_copies(
    model: Model,
    schedule: tuple[int, int, int, int],
    what: str,
    dtype: DType,
    executor: Executor,
):
    shape, depth = (7, 15, 37), schedule[0]
    expected, _ = after(model, shape, dtype, "numpy", depth)
    found, kernels = after(model, shape, dtype, executor, depth, volume_tiles(*schedule, what))
    if model is wave:
        assert copies_of(kernels)
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.covering
@pytest.mark.parametrize("executor", thread_executors())
@pytest.mark.parametrize("boundary", ["periodic", "mirror", timetile.value(0.5)], ids=repr)
def test_copies_of_a_volume_go_on_beyond_the_field(boundary: Any, executor: Executor):
    model = timetile.stencil(boundary=boundary)(weighted_volume)
    expected, _ = after(model, (6, 15, 35), "float64", "numpy", 2)
    found, _ = after(model, (6, 15, 35), "float64", executor, 2, volume_tiles(2, 2, 4, 1))
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.covering
@pytest.mark.parametrize("executor", thread_executors())
@pytest.mark.parametrize("boundary", ["periodic", "mirror", timetile.value(0.5)], ids=repr)
def test_copies_go_on_beyond_the_field(boundary: Any, executor: Executor):
    """A reader looks beyond the field in every level, at rows that arrived steps ago."""
    model = timetile.stencil(boundary=boundary)(weighted)
    expected, _ = after(model, (15, 150), "float64", "numpy", 3)
    found, kernels = after(model, (15, 150), "float64", executor, 3, tiles(3, 2, 1))
    assert copies_of(kernels)
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.covering
@pytest.mark.parametrize("executor", thread_executors())
@pytest.mark.parametrize("what", ["copies", "edges", "plane"])
@pytest.mark.parametrize("cells, warps, ahead", [(1, 2, 1), (4, 2, 3)])
def test_warps_look_at_cells_of_a_coefficient_in_other_warps(
    cells: int, warps: int, ahead: int, what: str, executor: Executor
):
    """In copies, in edges, or in planes of an exchange."""
    passes = (
        f"temporal-fusion{{depths=3}},device-tiling{{tile=block cells={cells} lanes=32 "
        f"warps={warps}}},multi-queue-buffering{{ahead={ahead}}},register-streaming{{what={what}}},"
        "carry-halos,peel-boundaries"
    )
    expected, _ = after(flux, (15, 151), "float32", "numpy", 3)
    found, kernels = after(flux, (15, 151), "float32", executor, 3, passes)
    exchanges = [op for op in kernels.tiled.walk() if isinstance(op, ExchangeOp)]
    assert Published(what) in [each.what.data for each in exchanges if each.what]
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("model, shape", [(flux, (4096, 4096)), (wave, (256, 256, 256))])
def test_a_kernel_fetches_each_coefficient_once(model: Model, shape: tuple[int, ...]):
    kernels = model.on(executor="planes", depth=4, cache=False).program(shape, "float64").kernels
    for kernel in (op for op in kernels.tiled.ops if isinstance(op, KernelOp)):
        loads = [stage for stage in kernel.stages if isinstance(stage, LoadOp) and stage.data]
        assert len(loads) == len({load.data for load in loads})
