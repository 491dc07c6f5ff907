"""Sequences of models: the bits of the models in turn, a step each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Field, Model, Scalar, Series, coordinate, repeat, temporary, value
from timetile.frontend.boundaries import Boundary
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


@timetile.stencil
def magnetic(ez: Field, hx: Field, hy: Field):
    hx.next = hx[0, 0] - 0.5 * (ez[0, 1] - ez[0, 0])
    hy.next = hy[0, 0] + 0.5 * (ez[1, 0] - ez[0, 0])


@timetile.stencil
def electric(ez: Field, hx: Field, hy: Field, eps: Field):
    curl = hy[0, 0] - hy[-1, 0] - hx[0, 0] + hx[0, -1]
    ez.next[1:-1, 1:-1] = ez[0, 0] + 0.5 * curl / eps[0, 0]


@timetile.stencil(reach=2)
def carried(u: Field, c: Scalar):
    flux = temporary(c * (u[0, 0] + u[0, -1]))
    u.next = u[0, 0] + flux[0, 0] - flux[0, 1]


@timetile.stencil
def spread(u: Field, c: Scalar, f: Series):
    mean = temporary(0.5 * (u[-1, 0] + u[1, 0]))
    u.next = u[0, 0] + c * (mean[0, 0] - u[0, 0]) + 1e-3 * coordinate(0) * f[0]
    u.next[0:1, :] = u[1, 0]
    u.next[-1:, 2:4] = u.next[0, 0] + u[0, 0]


@timetile.stencil(boundary="periodic")
def pressed(p: Field, u: Field, q: Field, c: Scalar):
    source = temporary(u[1, 0] - u[-1, 0])
    for _ in repeat(4):
        q.next = 0.5 * (p.next[0, 1] + q.next[0, 0])
        p.next = 0.25 * (p.next[-1, 0] + p.next[1, 0] + q.next[0, 1]) - c * source[0, 0]


@timetile.stencil(boundary="periodic")
def corrected(u: Field, p: Field, c: Scalar):
    u.next = u[0, 0] - c * (p[1, 0] - p[-1, 0])


@timetile.stencil
def wave(p: Field, s: Field):
    lap = p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1] - 4 * p[0, 0]
    p.next = 2 * p[0, 0] - p.prev[0, 0] + 0.1 * lap + s[0, 0]


@timetile.stencil
def driven(s: Field, p: Field, f: Series):
    s.next = 0.9 * s[0, 0] + f[0] * timetile.step() - 0.01 * p[0, 0]


@timetile.stencil
def halved(c: Field):
    c.next = (c[0, -1] + c[0, 1]) // 2


@timetile.stencil(boundary="mirror")
def turned(c: Field):
    c.next = c[1, 0] ^ c[0, 0]


def drawn(dtype: str = "float64", *shape: int) -> Any:
    """Random numbers."""
    rng = np.random.default_rng(len(dtype))
    size = shape or (11, 13)
    return rng.integers(0, 200, size, dtype) if "int" in dtype else rng.random(size).astype(dtype)


def plates(*names: str, dtype: str = "float64") -> dict[str, Any]:
    """A state of random arrays."""
    return {name: drawn(dtype) + k for k, name in enumerate(names)}


State = Mapping[str, Any]
Case = tuple[Sequence[Model], State, State]

FORCE = drawn("float64", 60)

CASES: dict[str, Case] = {
    "fdtd": ((magnetic, electric), plates("ez", "hx", "hy", "eps"), {}),
    "one": ((electric,), plates("ez", "hx", "hy", "eps"), {}),
    "twice": ((carried, carried), plates("u"), {"c": 0.2}),
    "both": ((carried, spread, carried), plates("u"), {"c": 0.2, "f": FORCE}),
    "halves": ((carried, spread), plates("u", dtype="float16"), {"c": 0.2, "f": FORCE}),
    "floats": ((spread, carried), plates("u", dtype="float32"), {"c": 0.2, "f": FORCE}),
    "flow": ((corrected, pressed, corrected), plates("u", "p", "q"), {"c": 0.2}),
    "pressed twice": ((pressed, pressed), plates("u", "p", "q"), {"c": 0.2}),
    "wave": ((wave, driven), plates("p", "s"), {"f": FORCE}),
    "driven wave": ((driven, wave), plates("p", "s"), {"f": FORCE}),
    "integers": ((halved, halved), plates("c", dtype="uint8"), {}),
}


def in_turn(case: Case, steps: int, first: int, executor: Any) -> dict[str, Any]:
    """The state after steps of the models in turn."""
    models, given, numbers = case
    state = dict(given)
    for k in range(first, first + steps):
        for model in models:
            step = model.step
            names = (*step.fields, *(f"{name}.prev" for name in step.second))
            own = {name: state[name] for name in names if name in state}
            used = {
                name: numbers[name] for name in (*step.scalars, *step.series) if name in numbers
            }
            state |= model.on(executor=executor).advance(own, 1, first_step=k, **used)
    return state


@pytest.mark.covering
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes"])
@pytest.mark.parametrize("steps", [1, 5])
def test_a_sequence_has_the_bits_of_its_models_in_turn(name: str, executor: Any, steps: int):
    models, given, numbers = CASES[name]
    found = (
        timetile.sequence(*models)
        .on(executor=executor)
        .advance(given, steps, first_step=2, **numbers)
    )
    expected = in_turn(CASES[name], steps, 2, "cpu")
    assert set(found) == set(expected)
    for each, cells in expected.items():
        assert found[each].dtype == cells.dtype
        assert found[each].tobytes() == cells.tobytes(), each


def test_a_sequence_goes_into_a_sequence_and_into_a_batch():
    models, given, numbers = CASES["both"]
    inner = timetile.sequence(models[0], models[1])
    whole = timetile.sequence(inner, models[2])
    expected = timetile.sequence(*models).advance(given, 3, **numbers)["u"]
    assert whole.advance(given, 3, **numbers)["u"].tobytes() == expected.tobytes()
    batch = whole.advance({"u": np.stack([given["u"]] * 2)}, 3, batch=True, **numbers)
    assert all(each.tobytes() == expected.tobytes() for each in batch["u"])


def test_a_sequence_goes_on_until_a_condition_holds():
    flow = timetile.sequence(corrected, pressed)
    state, numbers = plates("u", "p", "q"), {"c": 0.1}

    def small(p: Field) -> Any:
        return timetile.maximum(abs(p.next[0, 0] - p[0, 0])) < 0.5

    ended = flow.advance(state, 50, until=small, every=2, **numbers)
    again = flow.advance(state, ended.steps, **numbers)
    assert ended.stopped and 2 <= ended.steps < 50
    assert ended["p"].tobytes() == again["p"].tobytes()


@timetile.stencil
def line(u: Field):
    u.next = u[-1]


@timetile.stencil
def other_kind(u: Scalar, v: Field):
    v.next = u * v[0, 0]


@timetile.stencil
def profiled(u: Field, v: Field):
    v.next = u[0, None] * v[0, 0]


@timetile.stencil(boundary="periodic")
def around(u: Field):
    u.next = u[-1, 0]


@timetile.stencil
def damped(p: Field):
    p.next = 0.9 * p[0, 0]


@timetile.stencil
def swept(u: Field):
    for _ in repeat(2):
        u.next = u.next[0, 0] + u[0, 1] + u[0, -1]


WRONG: list[tuple[Sequence[Any], type[Exception], str]] = [
    ((), TypeError, "sequence takes models of timetile.stencil; pass one or more"),
    (
        (carried, np.sin), TypeError,
        "sequence takes models of timetile.stencil, got <ufunc 'sin'>; pass decorated functions",
    ),
    (
        (carried, spread.on(depth=2)), ValueError,
        "{0} and {1} have other options; pass models without options, and give options to the "
        "sequence, sequence(...).on(...)",
    ),
    (
        (carried, line), ValueError,
        "{0} has 2 axes, and {1} has 1; a sequence has arrays of one shape, so advance the models "
        "in turn, a step each",
    ),
    (
        (carried, other_kind), ValueError,
        "u is of different kinds in {0} and {1}; give each kind of argument (Field, "
        "Complex, Scalar, Series) a name of its own",
    ),
    (
        (carried, profiled), ValueError,
        "u has axes [0, 1] in {0}, and axes [0] in {1}; a sequence has one array for both, so "
        "index it along the same axes",
    ),
    (
        (carried, around), ValueError,
        "u has another boundary in {0} than in {1}; give both one boundary, or advance the models "
        "in turn, a step each",
    ),
    (
        (wave, damped), ValueError,
        "{0} reads p.prev, and 2 models of the sequence assign p; a step earlier would be in the "
        "middle of a step, so advance the models in turn, a step each",
    ),
    (
        (carried, swept), ValueError,
        "{1} reads u as at the beginning of the step in a repeat that assigns u, and a model "
        "before assigns u, too; keep the value as a temporary before the repeat, or advance the "
        "models in turn, a step each",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("models", "kind", "text"), WRONG)
def test_models_that_do_not_go_together_are_refused(
    models: Sequence[Any], kind: type[Exception], text: str
):
    labels = [each.step.label for each in models if isinstance(each, Model)]
    with pytest.raises(kind) as caught:
        timetile.sequence(*models)
    assert str(caught.value) == text.format(*labels)


def test_arrays_of_a_sequence_have_one_shape():
    fdtd = timetile.sequence(magnetic, electric)
    state = {**plates("ez", "hx", "hy"), "eps": np.ones((11, 12))}
    with pytest.raises(ValueError, match=r"eps has shape \(11, 12\), and ez has \(11, 13\); pass"):
        fdtd.advance(state, 1)


def test_types_that_change_the_numbers_of_a_model_are_refused():
    flow = timetile.sequence(carried, damped)
    state = {"u": drawn("float32"), "p": drawn()}
    with pytest.raises(TypeError) as caught:
        flow.advance(state, 1, c=0.2)
    assert str(caught.value) == (
        f"the arrays of {carried.step.label} are of float32, and other arrays of the sequence make "
        "its numbers of another type; pass arrays of one type, or advance the models in turn"
    )


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["cpu", "planes"])
@pytest.mark.parametrize("boundary", ["periodic", "mirror", "reflect"])
def test_old_values_beyond_an_edge_outlive_new_values_at_the_edge(
    boundary: Boundary, executor: Executor
):
    """A read beyond an edge is of cells far from the reading cell, which may have new values."""

    @timetile.stencil(boundary=boundary)
    def first(u: Field):
        u.next = u[0] + 1.0

    @timetile.stencil(boundary=boundary)
    def second(u: Field):
        u.next[8:10] = 3.0 * u[0]
        u.next[1:2] = 5.0 * u[0]
        u.next[0:1] = u[-2] + u[-1]
        u.next[7:8] = u[4] - u[3]

    pair, u = timetile.sequence(first, second), np.random.default_rng(3).random(10)
    found = pair.on(executor=executor, fp_contract="off", cache=False).advance({"u": u}, 3)["u"]
    modes: dict[Any, Any] = {"periodic": "wrap", "mirror": "symmetric", "reflect": "reflect"}
    for _ in range(3):
        old = u + 1.0
        u, around = old.copy(), np.pad(old, 4, modes[boundary])
        u[8:10], u[1] = 3.0 * old[8:10], 5.0 * old[1]
        u[0], u[7] = around[4 - 2] + around[4 - 1], around[4 + 11] - around[4 + 10]
    assert found.tobytes() == u.tobytes()


@pytest.mark.parametrize("boundary", ["periodic", "mirror", value(0.5), (("mirror", "keep"),)])
def test_assignments_to_regions_after_new_values_read_beyond_an_edge(boundary: Boundary):
    """The copy of the old values is of the field's own cells, and goes on as the field does."""

    @timetile.stencil(boundary=boundary)
    def first(u: Field):
        u.next = u[-1] + u[1]
        u.next[3:4] = u[1]

    @timetile.stencil(boundary=boundary)
    def second(u: Field):
        u.next = 0.5 * u[-1]
        u.next[2:5] = u[2] + u[-1]

    def on(model: Model) -> Model:
        return model.on(executor="numpy", fp_contract="off", cache=False)

    state = {"u": np.random.default_rng(3).random(10)}
    together = on(timetile.sequence(first, second)).advance(state, 3)
    for _ in range(3):
        state = on(second).advance(on(first).advance(state, 1), 1)
    assert together["u"].tobytes() == state["u"].tobytes()
