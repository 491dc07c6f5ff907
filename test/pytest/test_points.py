"""Sources and receivers: values added at points, cells noted; every executor, at any depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from support.blocked import passes
from support.executors import kernel_executors
from support.steps import noise
from timetile import Field, Points, Scalar
from timetile.frontend import point_runs
from timetile.runtime.program.compiled_program import Executor

STEPS = 11
SHAPE = (23, 37)


@timetile.stencil
def wave(u: Field, c: Scalar, shot: Points, traces: Points):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next = 2 * u[0, 0] - u.prev[0, 0] + c * around
    shot.add(u)
    traces.read(u)


def inside(count: int, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> Any:
    """Places between cells that steps of reach 1 give new values."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.uniform(1, size - 2.001, count) for size in shape], axis=1)


def sources(shape: tuple[int, ...] = SHAPE) -> Points:
    """Sources in one cell, in corners, beside each other, and elsewhere."""
    places = inside(9, shape)
    places[1] = places[0]
    places[2] = 1
    places[3] = np.array(shape) - 2
    places[4] = places[5] + 0.25
    return Points(places, noise(STEPS, 9))


def receivers(shape: tuple[int, ...] = SHAPE) -> Points:
    """Receivers in rows, in corners, and on sources."""
    places = inside(40, shape, seed=1)
    places[:10, 0] = shape[0] // 2 - 0.5
    places[10] = 1
    places[11] = np.array(shape) - 2
    places[12] = inside(9, shape)[0]
    return Points(places)


def add(u: Any, points: Points, step: int) -> None:
    """Add the values of a step, point by point."""
    assert points.values is not None
    values = np.broadcast_to(points.values[step], points.count).astype(u.dtype)
    weights: Any = points.weights.astype(u.dtype)
    for cell, weight, point in zip(points.cells, weights, points.points):
        u[tuple(cell)] += weight * values[point]


def read(u: Any, points: Points) -> Any:
    """The sum of each point."""
    sums, weights = np.zeros(points.count, u.dtype), points.weights
    for cell, weight, point in zip(points.cells, weights, points.points):
        sums[point] += u.dtype.type(weight) * u[tuple(cell)]
    return sums


def expected(u: Any) -> tuple[Any, Any]:
    """The wave and its traces after all steps."""
    now, before, traces, kind = u.copy(), u.copy(), list[Any](), u.dtype.type
    for step in range(STEPS):
        i, new = now[1:-1, 1:-1], now.copy()
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] - kind(4) * i
        new[1:-1, 1:-1] = kind(2) * i - before[1:-1, 1:-1] + kind(0.2) * around
        add(new, sources(), step)
        traces.append(read(new, receivers()))
        before, now = now, new
    return now, np.array(traces)


def on(model: timetile.Model, executor: Executor, depth: int | None = None) -> timetile.Model:
    """A step on an executor."""
    return model.on(executor=executor, depth=depth, fp_contract="off", cache=False)


def check_wave(model: timetile.Model, dtype: Any = np.float64) -> None:
    """The wave has the bits of NumPy, and so have the traces."""
    u = noise(*SHAPE).astype(dtype)
    state = model.advance({"u": u}, STEPS, c=0.2, shot=sources(), traces=receivers())
    wanted, traces = expected(u)
    assert np.array_equal(state["u"], wanted)
    assert np.array_equal(state.samples["traces"], traces)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("executor", ["numpy", "cpu"])
def test_sources_and_receivers_have_the_bits_of_numpy(executor: Executor, dtype: Any):
    """On the processor in passes of three steps."""
    with passes(3, 2, 5):
        check_wave(on(wave, executor), dtype)


@pytest.mark.covering
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("executor", (*kernel_executors(), "ptx"))
def test_kernels_of_any_depth_have_the_bits_of_numpy(executor: Executor, depth: int):
    model = on(wave, executor, depth)
    check_wave(model, np.float32 if depth == 2 else np.float64)
    rooms = point_runs.rooms_of(wave.step, {"shot": sources(), "traces": receivers()}, STEPS)
    program = model.program(SHAPE, "float32" if depth == 2 else "float64", rooms)
    assert max(fact.steps for fact in program.kernels.facts[0]) == depth


@timetile.stencil
def drift(u: Field, traces: Points):
    u.next = u[-2, 1] / (abs(u[-2, 1]) + 1)
    traces.read(u)


def test_noted_planes_without_a_later_reader_are_computed():
    cells = np.argwhere(np.ones((6, 35))) + np.array([2, 0])
    traces = Points.of_entries(cells, np.ones(len(cells)), np.arange(len(cells)))
    state = on(drift, "planes", 2).advance({"u": noise(8, 36)}, 4, traces=traces)
    u = noise(8, 36)
    for noted in state.samples["traces"]:
        u[2:, :-1] = u[:-2, 1:] / (abs(u[:-2, 1:]) + 1)
        assert np.array_equal(noted, u[2:, :-1].reshape(-1))


@pytest.mark.covering
@pytest.mark.parametrize("shot, traces", [(95.5, 100.25), (20, 170.5), (1, 188), (60.5, 60.5)])
@pytest.mark.parametrize("executor, depth", [("simt", 3), ("ptx", 4)])
def test_long_chunks_run_planes_with_points_between_planes_without(
    executor: Executor, depth: int, shot: float, traces: float
):
    u, row = noise(190, 40), np.linspace(1, 38, 30)
    given: dict[str, Any] = {
        "shot": Points([[shot, 20.5]], noise(5)),
        "traces": Points(np.stack([np.full(30, traces), row], axis=1)),
    }
    found = on(wave, executor, depth).advance({"u": u}, 5, c=0.2, **given)
    judge = on(wave, "numpy").advance({"u": u}, 5, c=0.2, **given)
    assert np.array_equal(found["u"], judge["u"])
    assert np.array_equal(found.samples["traces"], judge.samples["traces"])


@timetile.stencil
def line(u: Field, a: Points, b: Points):
    u.next = 0.25 * u[-1] + 0.5 * u[0] + 0.25 * u[1]
    a.add(u)
    b.read(u)


@timetile.stencil
def volume(u: Field, a: Points, b: Points):
    u.next = 0.5 * u[0, 0, 0] + 0.25 * (u[-1, 0, 0] + u[0, 1, 0])
    a.add(u)
    b.read(u)


def in_numpy(u: Any, a: Points, b: Points, steps: int) -> tuple[Any, Any]:
    """`line` and `volume`."""
    traces: list[Any] = []
    for step in range(steps):
        new = u.copy()
        if u.ndim == 1:
            new[1:-1] = 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]
        else:
            new[1:, :-1] = 0.5 * u[1:, :-1] + 0.25 * (u[:-1, :-1] + u[1:, 1:])
        add(new, a, step)
        traces.append(read(new, b))
        u = new
    return u, np.array(traces)


@pytest.mark.covering
@pytest.mark.parametrize("model, shape", [(line, (150,)), (volume, (7, 19, 41))])
@pytest.mark.parametrize(
    "executor, depth",
    [("numpy", None), ("cpu", None), ("planes", 3), ("simt", 2), ("ptx", 3)],
)
def test_points_lie_along_any_number_of_axes(
    model: timetile.Model, shape: tuple[int, ...], executor: Executor, depth: int | None
):
    a, b, u = sources(shape), receivers(shape), noise(*shape)
    state = on(model, executor, depth).advance({"u": u}, 5, a=a, b=b)
    wanted, traces = in_numpy(u, a, b, 5)
    assert np.array_equal(state["u"], wanted)
    assert np.array_equal(state.samples["b"], traces)


@timetile.stencil
def coupled(u: Field, v: Field, a: Points, b: Points, c: Points):
    u.next = 0.5 * (v[-1, 0] + u[0, 1])
    v.next[2:-3, 1:-1] = v[0, 0] + 0.25 * (u.next[1, 0] - u[0, 0])
    a.add(v)
    b.read(v)
    c.add(u)


@pytest.mark.covering
@pytest.mark.parametrize(
    "executor, depth",
    [("numpy", None), ("cpu", None), ("planes", 3), ("simt", 2), ("ptx", 2)],
)
def test_points_come_after_all_assignments(executor: Executor, depth: int | None):
    """The second assignment reads values without those of `c`."""
    inner = (SHAPE[0] - 6, SHAPE[1])
    places = inside(6, inner) + np.array([2, 0])
    a, c = Points(places, noise(STEPS)), Points(places[:2], noise(STEPS, 2))
    b = Points(places[::-1])
    u, v, traces = noise(*SHAPE), noise(*SHAPE)[::-1].copy(), np.zeros(0)
    state = on(coupled, executor, depth).advance({"u": u, "v": v}, 6, a=a, b=b, c=c)
    for step in range(6):
        new, other = u.copy(), v.copy()
        new[1:, :-1] = 0.5 * (v[:-1, :-1] + u[1:, 1:])
        other[2:-3, 1:-1] = v[2:-3, 1:-1] + 0.25 * (new[3:-2, 1:-1] - u[2:-3, 1:-1])
        add(other, a, step)
        traces = read(other, b)
        add(new, c, step)
        u, v = new, other
    assert np.array_equal(state["u"], u)
    assert np.array_equal(state["v"], v)
    assert np.array_equal(state.samples["b"][-1], traces)


@timetile.stencil(boundary="periodic")
def ring(u: Field, a: Points, b: Points):
    u.next = 0.5 * (u[-1, 0] + u[0, 1])
    a.add(u)
    b.read(u)


@pytest.mark.parametrize("executor", ["cpu", "simt"])
def test_points_of_periodic_fields_run_a_step_at_a_time(executor: Executor):
    a, b, u = sources(), receivers(), noise(*SHAPE)
    state = on(ring, executor).advance({"u": u}, 4, a=a, b=b)
    for step in range(4):
        u = 0.5 * (np.roll(u, 1, 0) + np.roll(u, -1, 1))
        add(u, a, step)
    assert np.array_equal(state["u"], u)
    assert np.array_equal(state.samples["b"][-1], read(u, b))


@timetile.stencil(boundary=("mirror", timetile.value(-1.0)))
def channel(u: Field, a: Points, b: Points):
    u.next = 0.5 * (u[-1, 0] + u[1, 0]) + 0.25 * (u[0, -1] + u[0, 1])
    a.add(u)
    b.read(u)


@pytest.mark.covering
@pytest.mark.parametrize("executor, depth", [("cpu", None), ("planes", 3), ("simt", 1), ("ptx", 2)])
def test_kernels_take_points_beside_mirrors_and_values(executor: Executor, depth: int | None):
    """The tiles begin before the field: along the rows, with points in its last cells."""
    shape = (31, 108)
    a = Points([[20.25, 106.5], [0, 3.5], [30, 107]], noise(5, 3))
    b = Points([[29.5, 105.25], [0, 0.5], [20, 107]])
    u = noise(*shape)
    model = on(channel, executor, depth)
    state = model.advance({"u": u}, 5, a=a, b=b)
    for step in range(5):
        tall, wide = np.pad(u, ((1, 1), (0, 0)), "edge"), np.pad(u, 1, constant_values=-1.0)
        u = 0.5 * (tall[:-2] + tall[2:]) + 0.25 * (wide[1:-1, :-2] + wide[1:-1, 2:])
        add(u, a, step)
    assert np.array_equal(state["u"], u)
    assert np.array_equal(state.samples["b"][-1], read(u, b))
    if depth is not None:
        program = model.program(
            shape, "float64", point_runs.rooms_of(model.step, {"a": a, "b": b}, 5)
        )
        assert max(fact.steps for fact in program.kernels.facts[0]) == depth


def test_runs_in_pieces_have_the_samples_of_one_run(monkeypatch: pytest.MonkeyPatch):
    model, kept = on(wave, "cpu"), list[Any]()
    given: dict[str, Any] = {"c": 0.2, "shot": sources(), "traces": receivers()}
    whole = model.advance({"u": noise(*SHAPE)}, STEPS, **given)
    monkeypatch.setattr(point_runs, "TABLE_NUMBERS", 4 * 256)
    short = on(wave, "cpu").advance({"u": noise(*SHAPE)}, STEPS, **given)
    monkeypatch.undo()
    stops = model.advance({"u": noise(*SHAPE)}, STEPS, keep=kept, every=4, **given)
    begun = model.advance({"u": noise(*SHAPE)}, 5, **given)
    ended = model.advance(begun, STEPS - 5, first_step=5, **given)
    for other in (short, stops):
        assert np.array_equal(other["u"], whole["u"])
        assert np.array_equal(other.samples["traces"], whole.samples["traces"])
    assert np.array_equal(ended.samples["traces"], whole.samples["traces"][5:])
    assert len(kept) == 3


def test_any_weights_are_a_list_of_entries():
    cells, weights = np.array([[3, 4], [3, 5], [9, 9]]), np.array([0.5, -1.25, 2.0])
    points = Points.of_entries(cells, weights, [0, 0, 1], np.ones((STEPS, 2)))
    divided = points.times(np.full(SHAPE, 2.0))
    assert np.array_equal(divided.weights, [1.0, -2.5, 4.0])
    state = on(line_of_zeros, "cpu").advance({"u": np.zeros(SHAPE)}, 2, a=divided)
    found = state["u"]
    assert found[3, 4] == 2.0
    assert found[3, 5] == -5.0
    assert found[9, 9] == 8.0
    assert np.count_nonzero(found) == 3


@timetile.stencil
def line_of_zeros(u: Field, a: Points):
    u.next[1:-1, 1:-1] = u[0, 0]
    a.add(u)


def test_zero_points_change_nothing():
    a, b = Points(np.zeros((0, 1)), np.zeros((STEPS, 0))), Points(np.zeros((0, 1)))
    state = on(line, "planes", 2).advance({"u": noise(64)}, 3, a=a, b=b)
    assert np.array_equal(state["u"], in_numpy(noise(64), a, b, 3)[0])
    assert state.samples["b"].shape == (3, 0)


# Refusals.


@pytest.mark.parametrize(
    "points, problem, text",
    [
        (3.0, TypeError, "a is a float; pass timetile.Points(places, values)"),
        (Points([[5.0]]), ValueError, "a has values for 0 steps, and the run ends with step 2"),
        (Points([[5.0]], [1.0, 2.0]), ValueError, "a has values for 2 steps"),
        (
            Points([[5.0, 6.0]], np.ones(9)),
            ValueError,
            "places along 2 axes, and the arrays",
        ),
        (Points([[-0.5]], np.ones(9)), ValueError, "reaches cell (-1,) outside arrays of shape"),
        (Points([[0.5]], np.ones(9)), ValueError, "reaches cell (0,), and the step gives u new"),
    ],
)
def test_wrong_points_are_refused(points: Any, problem: type[Exception], text: str):
    with pytest.raises(problem) as found:
        on(line, "cpu").advance({"u": noise(64)}, 3, a=points, b=Points([[5.0]]))
    assert text in str(found.value)


def test_wrong_places_and_values_are_refused():
    with pytest.raises(ValueError, match="places have shape"):
        Points([1.0, 2.0])
    with pytest.raises(ValueError, match="values have shape"):
        Points([[1.0]], np.ones((3, 2)))
    with pytest.raises(TypeError, match="a number for each step"):
        Points([[1.0]], ["a"])
    with pytest.raises(ValueError, match="cells are integers"):
        Points.of_entries([[1.5]], [1.0])
    with pytest.raises(ValueError, match="a weight and a point each"):
        Points.of_entries([[1]], [1.0, 2.0])
    with pytest.raises(ValueError, match="reads, and takes no values"):
        given: dict[str, Any] = {"a": Points([[5.0]], [1.0]), "b": Points([[5.0]], [1.0])}
        on(line, "cpu").advance({"u": noise(64)}, 1, **given)
    with pytest.raises(TypeError, match="elements of int32"):
        on(line_of_zeros, "cpu").advance(
            {"u": np.zeros(SHAPE, np.int32)}, 1, a=Points([[5.0, 5.0]], [1.0])
        )


def test_batches_sequences_and_snapshots_are_refused():
    given: dict[str, Any] = {"a": Points([[5.0]], np.ones(9)), "b": Points([[5.0]])}
    with pytest.raises(ValueError, match="whose lists are of one state"):
        line.advance({"u": noise(2, 64)}, 1, batch=True, **given)
    with pytest.raises(ValueError, match="has points, which end a step"):
        timetile.sequence(line, line)
    with pytest.raises(ValueError, match="snapshots have no samples"):
        line.snapshots({"u": noise(64)}, 4, 2, **given)
    with pytest.raises(ValueError, match="the sizes of their lists are not known"):
        line.module((64,))
