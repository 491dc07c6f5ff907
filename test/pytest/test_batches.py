"""Batches: every index of the first axis is a state of its own, with the bits of a loop."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Field, Model, Scalar, Series

pytestmark = pytest.mark.usefixtures("chosen_among_few")

COUNT = 5


@timetile.stencil
def rod(u: Field, k: Scalar):
    u.next = u[0] + k * (u[-1] - 2 * u[0] + u[1])


@timetile.stencil
def heat(u: Field, c: Field, k: Scalar):
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
    u.next = u[0, 0] + k * c[0, 0] * (around - 4 * u[0, 0])


@timetile.stencil(boundary=("periodic", "mirror"))
def wave(p: Field, damping: Field, f: Series):
    lap = p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1] - 4 * p[0, 0]
    p.next = 2 * p[0, 0] - (1 - damping[0, None]) * p.prev[0, 0] + 0.1 * lap
    p.next[3:4, 2:5] = p.next[0, 0] + f[0] * timetile.step()


@timetile.stencil(reach=2)
def inside(u: Field, v: Field, k: Scalar):
    flow = timetile.temporary(k * (u[0, 0] - u[0, -1]))
    u.next = u[0, 0] + flow[0, 1] - flow[0, 0] + timetile.coordinate(0) * 1e-3
    for _ in timetile.repeat(3):
        u.next = 0.5 * u.next[0, 0] + 0.25 * (u.next[0, 1] + u.next[0, -1])
    v.next = v[0, 0] + k * u.next[1, 0] / timetile.extent(1)


@timetile.stencil(boundary=timetile.value("k"))
def filled(u: Field, k: Scalar):
    u.next = 0.5 * (u[-1] + u[1])


@timetile.stencil(boundary="periodic")
def life(c: Field):
    n = sum(c[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    c.next = timetile.where((n == 3) | ((n == 2) & (c[0, 0] == 1)), 1, 0)


@timetile.stencil
def block(u: Field, p: Field, m: Field, k: Scalar):
    """States lie in a row, with other rims at the ends of axis 0."""
    flow = timetile.temporary(k * (u[1, 0, 0] - u[0, 1, 0]))
    u.next = u[0, 0, 0] + flow[0, 0, 0] - flow[-1, 0, 1]
    u.next[0:1, :, :] = u.next[1, 0, 0]
    lap = p[-2, 0, 0] + p[2, 0, 0] + p[0, 1, 0] + p[0, -1, 0] - 4 * p[0, 0, 0]
    p.next = 2 * p[0, 0, 0] - p.prev[0, 0, 0] + m[0, None, None] * lap * u.next[0, 0, 0]


@timetile.stencil(boundary=("periodic", "keep", "keep"))
def wheel(u: Field, k: Scalar):
    """States take turns."""
    u.next = u[0, 0, 0] + k * (u[-1, 0, 0] + u[0, 1, 0] + u[0, 0, 1] - 3 * u[0, 0, 0])


@timetile.stencil
def mixed(u: Field, v: Field, k: Scalar):
    u.next = u[0] + k * (u[-1] - u[1])
    v.next = v[0] + k * u[0]


def drawn(*shape: int, dtype: str = "float64") -> Any:
    """Random numbers."""
    rng = np.random.default_rng(sum(shape))
    return (
        rng.integers(0, 2, shape).astype(dtype)
        if dtype == "uint8"
        else rng.random(shape).astype(dtype)
    )


Given = Mapping[str, Any]
Case = tuple[Model, Given, Given, set[str]]
"""A model, a state, numbers, and the names without an axis of the batch."""

CASES: dict[str, Case] = {
    "rod": (rod, {"u": drawn(COUNT, 33)}, {"k": 0.2}, {"k"}),
    "rods": (rod, {"u": drawn(COUNT, 33, dtype="float32")}, {"k": drawn(COUNT)}, set()),
    "halves": (rod, {"u": drawn(COUNT, 20, dtype="float16")}, {"k": drawn(COUNT)}, set()),
    "heat": (heat, {"u": drawn(COUNT, 14, 19), "c": drawn(14, 19)}, {"k": 0.1}, {"c", "k"}),
    "heats": (
        heat, {"u": drawn(COUNT, 14, 19), "c": drawn(COUNT, 14, 19)}, {"k": drawn(COUNT)}, set()
    ),
    "wave": (
        wave,
        {"p": drawn(COUNT, 9, 12), "p.prev": drawn(COUNT, 9, 12) / 2, "damping": drawn(9)},
        {"f": drawn(40)},
        {"damping", "f"},
    ),
    "waves": (
        wave, {"p": drawn(COUNT, 9, 12), "damping": drawn(COUNT, 9)}, {"f": drawn(COUNT, 40)}, set()
    ),
    "inside": (
        inside, {"u": drawn(COUNT, 9, 8), "v": drawn(COUNT, 9, 8)}, {"k": drawn(COUNT)}, set()
    ),
    "filled": (filled, {"u": drawn(COUNT, 9)}, {"k": drawn(COUNT)}, set()),
    "filled alike": (filled, {"u": drawn(COUNT, 9)}, {"k": 3.0}, {"k"}),
    "life": (life, {"c": drawn(COUNT, 12, 11, dtype="uint8")}, {}, set()),
    "block": (
        block,
        {
            "u": drawn(COUNT, 7, 6, 9), "p": drawn(COUNT, 7, 6, 9), "m": drawn(COUNT, 7),
            "p.prev": drawn(COUNT, 7, 6, 9) / 2,
        },
        {"k": drawn(COUNT)},
        set(),
    ),
    "wheel": (wheel, {"u": drawn(COUNT, 7, 6, 9)}, {"k": drawn(COUNT)}, set()),
    "mixed": (
        mixed, {"u": drawn(COUNT, 9, dtype="float32"), "v": drawn(COUNT, 9)}, {"k": drawn(COUNT)},
        set(),
    ),
}  # fmt: skip


def alone(case: Case, k: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """State and numbers of an index."""
    _, state, numbers, shared = case
    found = [
        {name: value if name in shared else value[k] for name, value in given.items()}
        for given in (state, numbers)
    ]
    return found[0], found[1]


@pytest.mark.covering
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes"])
@pytest.mark.parametrize("steps", [1, 6])
def test_a_batch_has_the_bits_of_a_loop(name: str, executor: Any, steps: int):
    case = CASES[name]
    model, state, numbers, _ = case
    before = copy.deepcopy(dict(state))
    on = model.on(executor=executor)
    found = on.advance(state, steps, batch=True, first_step=3, **numbers)
    assert found.steps == steps and all(np.array_equal(before[n], state[n]) for n in state)
    for k in range(COUNT):
        own, own_numbers = alone(case, k)
        expected = model.on(executor="cpu").advance(own, steps, first_step=3, **own_numbers)
        assert set(found) == set(expected)
        for each in (*model.step.written, *(f"{n}.prev" for n in model.step.second)):
            assert found[each].dtype == expected[each].dtype
            assert found[each][k].tobytes() == expected[each].tobytes(), (each, k)
    assert all(found[n] is state[n] for n in model.step.fields if n not in model.step.written)


@pytest.mark.parametrize("name", ["heats", "block", "wheel"])
def test_snapshots_of_a_batch_are_those_of_one_run(name: str):
    model, state, numbers, _ = CASES[name]
    kept: list[timetile.State[Any]] = []
    last = model.advance(state, 7, keep=kept, every=3, batch=True, **numbers)
    pieces = [*model.snapshots(state, 7, 3, batch=True, **numbers)]
    assert [each.steps for each in kept] == [done for done, _ in pieces] == [3, 6, 7]
    for each, (_, piece) in zip(kept, pieces, strict=True):
        assert each["u"].tobytes() == piece["u"].tobytes()
    assert pieces[-1][1]["u"].tobytes() == last["u"].tobytes()


@pytest.mark.parametrize("name", ["heats", "block"])
def test_a_batch_of_jax_arrays_comes_back_as_jax_arrays(name: str):
    jnp: Any = pytest.importorskip("jax.numpy")
    model, state, numbers, _ = CASES[name]
    small = {each: array.astype(np.float32) for each, array in state.items()}
    expected = model.advance(small, 4, batch=True, **numbers)["u"]
    given = {each: jnp.asarray(array) for each, array in small.items()}
    found = model.advance(given, 4, batch=True, **numbers)
    assert type(found["u"]) is type(given["u"])
    assert np.asarray(found["u"]).tobytes() == expected.tobytes()


def test_a_batch_of_any_size_uses_one_program_of_a_batch():
    twin = copy.copy(heat)
    twin.advance({"u": np.ones((3, 6, 6)), "c": np.ones((6, 6))}, 1, batch=True, k=0.1)
    assert "0, 3]x[0, 6]x[0, 6]" in twin.mlir.replace(",", ", ")
    assert "kernel" in str(twin.explain())
    twin.advance({"u": np.ones((6, 6)), "c": np.ones((6, 6))}, 1, k=0.1)
    assert "0, 3]" not in twin.mlir.replace(",", ", ")
    row, (_, state, numbers, _) = copy.copy(block), CASES["block"]
    row.advance(state, 1, batch=True, **numbers)
    assert f"[0,{COUNT * 7}]x[0,6]x[0,9]" in row.mlir.replace(" ", "")


SQUARE = np.ones((4, 6))
WRONG: list[tuple[Given, Given, type[Exception], str]] = [
    (
        {"u": np.ones((3, 4, 6)), "c": SQUARE}, {"batch": False}, ValueError,
        "u has shape (3, 4, 6), and {label} indexes it along 2 axes; pass an array of as many "
        "axes, or batch=True for a batch along the first axis",
    ),
    (
        {"u": np.ones((2, 3, 4, 6)), "c": SQUARE}, {"batch": False}, ValueError,
        "u has shape (2, 3, 4, 6), and {label} indexes it along 2 axes; pass an array of as many "
        "axes",
    ),
    (
        {"u": SQUARE, "c": SQUARE}, {}, ValueError,
        "u has shape (4, 6), and {label} indexes it along 2 axes; pass 3 axes for a batch, the "
        "index of the batch first",
    ),
    (
        {"u": np.ones((3, 4, 6)), "c": np.ones((2, 4, 6))}, {}, ValueError,
        "c has 2 indices along its first axis, and u has 3; pass arrays of one batch",
    ),
    (
        {"u": np.ones((3, 4, 6)), "c": np.ones((4, 5))}, {}, ValueError,
        "c has shape (4, 5), and u has (3, 4, 6); pass c of shape (4, 6)",
    ),
    (
        {"u": np.ones((0, 4, 6)), "c": SQUARE}, {}, ValueError,
        "u has no index along its first axis; pass a batch of some",
    ),
    (
        {"u": np.ones((3, 4, 6)), "c": SQUARE}, {"k": np.ones(4)}, ValueError,
        "k has 4 indices along its first axis, and the batch has 3; pass a number for each, or one "
        "for all",
    ),
    (
        {"u": np.ones((3, 4, 6)), "c": SQUARE}, {"k": np.array(["a"] * 3)}, TypeError,
        "k has a number for each index, got array(['a', 'a', 'a'], dtype='<U1'); pass an array",
    ),
    (
        {"u": np.ones((3, 4, 6)), "c": SQUARE}, {"batch": 1}, TypeError,
        "batch is True or False, got 1; write batch=True for arrays with a batch along their first "
        "axis",
    ),
    (
        {"u": np.ones((3, 4, 6)), "c": SQUARE}, {"until": bool}, ValueError,
        "until ends the run of one state, and the states of a batch would end at different steps; "
        "leave out until, or advance each index by itself",
    ),
    (
        {"u": np.ones((3, 4, 6))}, {}, TypeError,
        '{label} needs an array for c; pass {{"c": ...}} in the state',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("state", "options", "kind", "text"), WRONG)
def test_a_wrong_batch_is_refused(state: Given, options: Given, kind: type[Exception], text: str):
    given: dict[str, Any] = {"batch": True, "k": 0.1, **options}
    with pytest.raises(kind) as caught:
        heat.advance(state, **given)
    assert str(caught.value) == text.format(label=heat.step.label)


def test_no_argument_of_a_step_is_named_batch():
    def wrong(u: Field, batch: Scalar):
        u.next = batch * u[0]

    with pytest.raises(timetile.StencilError, match="batch is an argument of advance; take"):
        timetile.stencil(wrong)
