"""
Kernels continue fields themselves: at every depth, and under schedules of every kind, steps with
boundaries have the bits of `numpy.pad`, level by level.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import timetile
from support.executors import kernel_executors
from support.few_schedules import few_schedules
from support.padded import EdgeCase, padded
from support.schedules import (
    Schedule,
    block_plane,
    block_row,
    cluster_plane,
    device_plane,
    named,
    solid,
    warp_row,
)
from support.steps import noise
from timetile import Field, coordinate, value
from timetile.dialects.temporal.boundary import Kind
from timetile.dialects.tile import Form, Published, Storage, Sync, TileLevel
from timetile.frontend.boundaries import Boundary
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.explain.edges import series_text
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

P, M, R, C, K = Kind.PERIODIC, Kind.MIRROR, Kind.REFLECT, Kind.CLAMP, Kind.KEEP

ROWS = [
    Schedule("warps", warp_row(2)),
    Schedule("fetched-ahead", warp_row(2), Buffering(ahead=3)),
    Schedule("lanes", warp_row(2), form=Form.LANES),
    Schedule("sums", warp_row(2), form=Form.ROWS),
    Schedule("chunks-chosen", warp_row(2), planes=None),
    Schedule("shared", warp_row(2), Buffering(storage=Storage.SHARED), streaming=None),
    Schedule("exchanged-plane", block_row(), streaming=Streaming(what=Published.PLANE)),
    Schedule("columns", DeviceTilingPass(stream_axis=1, cells=(2,), warps=(1,), pack=2)),
    Schedule("resident", DeviceTilingPass(
        tile=TileLevel.BLOCK, cells=(4, 2), lanes=(1, 32), warps=(4, 1), pack=1,
        stream_axis="none"), planes=None),
    Schedule("memory", DeviceTilingPass(reads="memory"), planes=None),
]  # fmt: skip

PLANES = [
    Schedule("block", block_plane((2, 2), (4, 1)), planes=5),
    Schedule("copies", block_plane((2, 2), (4, 1)), Buffering(ahead=2),
             streaming=Streaming(what=Published.COPIES), planes=5),
    Schedule("rows", block_plane((2, 2), (4, 1)), form=Form.ROWS, planes=5),
    Schedule("cluster", cluster_plane((2, 2), 2, 2), streaming=Streaming(sync=Sync.MBARRIER),
             planes=5),
    Schedule("device", device_plane((3, 1), 2, 2), streaming=Streaming(period=1), planes=5),
    Schedule("volume", solid(TileLevel.BLOCK, (5, 2, 2), (1, 6, 1)), planes=None),
]  # fmt: skip

BOUNDARIES = {
    2: [
        EdgeCase("periodic", ((P, P), (P, P))),
        EdgeCase((("mirror", "reflect"), ("reflect", value(2))), ((M, R), (R, 2.0))),
        EdgeCase(((value(0.5), "clamp"), ("clamp", "mirror")), ((0.5, C), (C, M)), reach=2),
    ],
    3: [
        EdgeCase("periodic", ((P, P), (P, P), (P, P))),
        EdgeCase((value(1), ("mirror", "reflect"), "clamp"), ((1.0, 1.0), (M, R), (C, C))),
    ],
}

SHAPES = {2: (15, 93), 3: (6, 9, 67)}


def check(case: EdgeCase, schedule: Schedule, executor: Executor, dtype: str) -> None:
    """A launch of two steps and one of a single step end like the model with numpy.pad."""
    start, depth = noise(*SHAPES[case.rank]).astype(dtype), 2
    module = case.even().model().module(start.shape, "float32" if dtype == "f4" else "float64")
    program = timetile.compile(
        module, executor=executor, passes=schedule.passes(depth), fp_contract="off", cache=False,
        halos="common",
    )  # fmt: skip
    tiled = str(program.kernels.tiled)
    assert " beyond #temporal.boundary" in tiled, "the fields go on in updates"
    arrays, factor = [start.copy(), start.copy()], start.dtype.type(0.3)
    program(*arrays, factor, depth + 1)
    assert np.array_equal(arrays[1], case.even().expected(start, depth + 1, factor))


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("executor", (*kernel_executors(), "ptx"))
@pytest.mark.parametrize("schedule", ROWS, ids=named)
@pytest.mark.parametrize("case", BOUNDARIES[2], ids=lambda case: str(case.boundary))
def test_plates_go_on_beyond_their_edges_with_equal_bits(
    case: EdgeCase, schedule: Schedule, executor: Executor, dtype: str
):
    check(case, schedule, executor, dtype)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("executor", (*kernel_executors(), "ptx"))
@pytest.mark.parametrize("schedule", PLANES, ids=named)
@pytest.mark.parametrize("case", BOUNDARIES[3], ids=lambda case: str(case.boundary))
def test_volumes_go_on_beyond_their_faces_with_equal_bits(
    case: EdgeCase, schedule: Schedule, executor: Executor, dtype: str
):
    check(case, schedule, executor, dtype)


WAVES: list[tuple[Boundary, tuple[Any, Any]]] = [
    ("periodic", ((P, P), (P, P))),
    (("keep", "periodic"), ((K, K), (P, P))),
    (("periodic", "keep"), ((P, P), (K, K))),
    (("keep", "mirror"), ((K, K), (M, M))),
    (("reflect", "keep"), ((R, R), (K, K))),
    ((value(0.5), "keep"), ((0.5, 0.5), (K, K))),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("shape", [(11, 21), (33, 150)], ids=str)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(("boundary", "edges"), WAVES, ids=lambda each: str(each))
def test_a_wave_goes_on_beside_kept_axes(
    boundary: Boundary, edges: tuple[Any, Any], executor: Executor, shape: tuple[int, int]
):
    check_wave(boundary, edges, executor, shape)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(("boundary", "edges"), WAVES[2:], ids=lambda each: str(each))
def test_a_steady_loop_reaches_planes_beyond_an_end_that_goes_on(
    boundary: Boundary, edges: tuple[Any, Any], executor: Executor
):
    """The first schedules of the search have few planes ahead, and long steady loops."""
    with few_schedules():
        check_wave(boundary, edges, executor, (33, 150))


def check_wave(
    boundary: Boundary, edges: tuple[Any, Any], executor: Executor, shape: tuple[int, int]
) -> None:
    """Two levels, a coefficient, a row of another field, coordinates; four steps, and one."""

    @timetile.stencil(boundary=boundary)
    def wave(u: Field, c: Field, w: Field):
        around = 0.7 * u[-1, 0] + 1.1 * u[1, 0] + 0.9 * u[0, -1] + 1.2 * u[0, 1] - 4 * u[0, 0]
        place = 0.001 * coordinate(0) * coordinate(1)
        u.next = 1.9 * u[0, 0] - 0.9 * u.prev[0, 0] + c[0, 0] * around * w[None, 0] + place

    c, u, before = noise(3, *shape) * 0.1
    row = noise(shape[1])
    model = wave.on(executor=executor, depth=4, fp_contract="off", cache=False)
    state = {"u": u, "c": c, "w": row, "u.prev": before}
    found = model.advance(state, steps=5)["u"]
    kernels = model.program(shape).kernels
    assert max(fact.steps for fact in kernels.facts[0]) == 4
    assert " beyond #temporal.boundary" in str(kernels.tiled)

    inside = tuple(slice(1, -1) if K in sides else slice(None) for sides in edges)
    place, old = 0.001 * np.indices(shape)[0] * np.indices(shape)[1], u.copy()
    old[inside] = before[inside]
    for _ in range(5):
        p = padded(u, [(M, M) if K in sides else sides for sides in edges], 1, {})
        around = 0.7 * p[:-2, 1:-1] + 1.1 * p[2:, 1:-1] + 0.9 * p[1:-1, :-2]
        around = around + 1.2 * p[1:-1, 2:] - 4 * u
        new = u.copy()
        new[inside] = (1.9 * u - 0.9 * old + c * around * row + place)[inside]
        u, old = new, u
    assert np.array_equal(found, u)


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_a_number_decides_beyond_a_kept_edge(order: tuple[int, int, int], executor: Executor):
    """A tap beyond a side with a number, beside the kept cells of another axis, at every level."""
    kinds: tuple[Boundary, ...] = ("periodic", value(0.5), "keep")
    tap = tuple((1, -1, 1)[kind] for kind in order)

    @timetile.stencil(boundary=tuple(kinds[kind] for kind in order))
    def step(u: Field):
        u.next = 0.5 * u[tap] + 0.125

    u = noise(*((5, 5, 30)[kind] for kind in order))
    model = step.on(executor=executor, depth=3, fp_contract="off", cache=False)
    found = model.advance({"u": u}, steps=5)["u"]
    for _ in range(5):
        p = np.moveaxis(u, np.argsort(order), range(3))
        p = np.pad(np.pad(p, ((0, 1), (0, 0), (0, 0)), "wrap"), ((0, 0), (1, 0), (0, 0)),
                   constant_values=0.5)  # fmt: skip
        u = u.copy()
        kept = np.moveaxis(u, np.argsort(order), range(3))
        kept[:, :, :-1] = 0.5 * p[1:, :-1, 1:] + 0.125
    assert np.array_equal(found, u)


SIDES: list[tuple[Boundary, Any]] = [("periodic", P), ("mirror", M), (value(0.5), 0.5)]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(("boundary", "side"), SIDES, ids=str)
def test_a_coefficient_goes_on_in_its_copies(boundary: Boundary, side: Any, executor: Executor):
    """All levels read the planes of one coefficient, beside the cell, from rows copied earlier."""

    @timetile.stencil(boundary=boundary)
    def step(u: Field, c: Field):
        factor = c[0, 1] + c[-1, 0] + 2 * c[1, 0] - c[0, -1]
        u.next = 0.3 * u[0, 0] + factor * (u[1, 0] - 0.5 * u[-1, 0] + 0.3 * u[0, 1])

    start, c = noise(2, 29, 80) * 0.2
    passes = Schedule("ahead", warp_row(2), Buffering(ahead=3)).passes(3)
    program = timetile.compile(
        step.module(start.shape), executor=executor, passes=passes, fp_contract="off", cache=False,
        halos="common",
    )  # fmt: skip
    assert "home #tile.copies" in str(program.kernels.tiled)
    arrays, u = [start.copy(), start.copy()], start
    program(*arrays, c, 7)
    for _ in range(7):
        p, q = (padded(each, ((side, side),) * 2, 1, {}) for each in (u, c))
        factor = q[1:-1, 2:] + q[:-2, 1:-1] + 2 * q[2:, 1:-1] - q[1:-1, :-2]
        u = 0.3 * u + factor * (p[2:, 1:-1] - 0.5 * p[:-2, 1:-1] + 0.3 * p[1:-1, 2:])
    assert np.array_equal(arrays[1], u)


@pytest.mark.parametrize("executor", kernel_executors())
def test_a_mirror_needs_no_read_on_its_other_side(executor: Executor):
    """An upwind step of both axes: the image of a neighbour is the own cell."""

    @timetile.stencil(boundary="mirror")
    def upwind(u: Field):
        u.next = 0.5 * u[0, 0] + 0.3 * u[-1, 0] + 0.1 * u[0, 1] + 0.1 * u[-1, 1]

    u = noise(19, 70)
    model = upwind.on(executor=executor, depth=3, fp_contract="off", cache=False)
    found = model.advance({"u": u}, steps=7)["u"]
    assert max(fact.steps for fact in model.program(u.shape).kernels.facts[0]) == 3
    for _ in range(7):
        p = np.pad(u, 1, "symmetric")
        corner = 0.1 * p[:-2, 2:]
        u = 0.5 * u + 0.3 * p[:-2, 1:-1] + 0.1 * p[1:-1, 2:] + corner
    assert np.array_equal(found, u)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("schedule", PLANES, ids=named)
@pytest.mark.parametrize("ahead", [1, -1])
def test_images_in_other_planes_are_handed_on_in_time(
    ahead: int, schedule: Schedule, executor: Executor
):
    """A tap of other warps looks along the stream one way, and its image the other way."""

    @timetile.stencil(boundary=(("reflect", "reflect"), "mirror", "periodic"))
    def step(u: Field):
        u.next = 0.5 * u[-ahead, 1, -1] + 0.25 * u[-ahead, -1, 0] + 0.2 * u[ahead, 0, -1]

    start = noise(5, 7, 34)
    program = timetile.compile(
        step.module(start.shape), executor=executor, passes=schedule.passes(2), cache=False,
        fp_contract="off", halos="common",
    )  # fmt: skip
    arrays, u = [start.copy(), start.copy()], start
    program(*arrays, 5)
    for _ in range(5):
        p = padded(u, ((R, R), (M, M), (P, P)), 1, {})[::ahead]
        here, there = p[:-2], p[2:]
        new = 0.5 * here[:, 2:, :-2] + 0.25 * here[:, :-2, 1:-1] + 0.2 * there[:, 1:-1, :-2]
        u = new[::ahead]
    assert np.array_equal(arrays[1], u)


@st.composite
def edge_cases(draw: st.DrawFn) -> tuple[EdgeCase, tuple[int, ...], int]:
    """A boundary of one to three axes, small sizes, and a depth."""
    rank = draw(st.integers(1, 3))
    names: list[Any] = []
    edges: list[Any] = []
    for _ in range(rank):
        if draw(st.booleans()):
            names.append("periodic")
            edges.append((P, P))
            continue
        sides = [draw(st.sampled_from(["mirror", "clamp", "reflect", -2.0])) for _ in "ab"]
        names.append(tuple(side if isinstance(side, str) else value(side) for side in sides))
        edges.append(tuple(Kind(side) if isinstance(side, str) else side for side in sides))
    shape = tuple(draw(st.integers(2, 40 if rank < 3 else 9)) for _ in range(rank))
    reach = draw(st.integers(1, 2))
    return EdgeCase(tuple(names), tuple(edges), reach), shape, draw(st.integers(1, 4))


@given(edge_cases(), st.booleans())
def test_drawn_boundaries_keep_their_bits_on_drawn_sizes(
    drawn: tuple[EdgeCase, tuple[int, ...], int], even: bool
):
    """Steps without symmetric reads run, too: in boxes, if kernels cannot continue the fields."""
    case, shape, depth = drawn
    case = case.even() if even else case
    start, steps = noise(*shape), 2 * depth + 1
    executors: tuple[Executor, ...] = ("planes", "cpu", "numpy")
    if np.prod(shape) < 500:
        executors = (*executors, "simt")
    for executor in executors:
        chosen = None if executor in ("cpu", "numpy") else depth
        model = case.model().on(executor=executor, depth=chosen, fp_contract="off", cache=False)
        found = model.advance({"u": start}, steps=steps, k=0.3)["u"]
        assert np.array_equal(found, case.expected(start, steps, 0.3)), executor


HALF = "along axis 0 one side is kept and the other is not"
FAR = "along axis 0 a mirrored cell lies farther away than other reads"


@timetile.stencil(boundary=(("keep", "mirror"), "periodic"))
def half_kept(u: Field):
    u.next = 0.5 * u[0, 0] + 0.25 * (u[-1, 0] + u[1, 0]) + 0.125 * u[0, 1]


@timetile.stencil(boundary=("reflect", "keep"))
def forward(u: Field):
    u.next = 0.5 * u[0, 0] + 0.5 * u[1, 0]


@timetile.stencil(boundary={"u": "periodic", "v": "mirror"})
def unlike(u: Field, v: Field):
    u.next = 0.5 * u[0] + 0.25 * (v[-1] + v[1]) + 0.25 * u[1]


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (half_kept, HALF),
        (forward, FAR),
        (unlike, "along axis 0 fields go on by different boundaries"),
    ],
)
def test_an_explanation_names_the_edge_behind_single_steps(step: timetile.Model, why: str):
    program = step.on(executor="numpy", cache=False).program((40, 50)[: step.step.rank])
    told = [line for line in map(str, program.kernels.remarks) if why in line]
    assert len(told) == 1 and told[0].endswith(
        f"{why}: the edges are updates of their own, and the time loop runs a step at a time; give "
        "both sides of each axis one boundary for all fields, or keep both sides"
    )


def test_an_explanation_names_series():
    @timetile.stencil
    def driven(u: Field, f: timetile.Series):
        u.next = 0.5 * u[0] + 0.25 * (u[-1] + u[1]) + f[0]

    program = driven.on(executor="planes", cache=False).program((3000,))
    assert series_text(program.kernels.loops[0]) == (
        "1 number a step; each level of a kernel takes its own, all cells the same"
    )
    program = half_kept.on(executor="planes", cache=False).program((40, 50))
    assert series_text(program.kernels.loops[0]) is None
