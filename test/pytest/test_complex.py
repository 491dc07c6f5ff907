"""Complex fields: the bits of pairs of real fields written by hand, and of NumPy."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Complex, ComplexValue, Field, Model, Scalar

pytestmark = pytest.mark.usefixtures("chosen_among_few")


@timetile.stencil(boundary={"psi": "periodic"})
def quantum(psi: Complex, v: Field, dt: Scalar):
    lap = psi[-1, 0] + psi[1, 0] + psi[0, -1] + psi[0, 1] - 4 * psi[0, 0]
    psi.next = psi[0, 0] + dt * (1j * (0.5 * lap - v[0, 0] * psi[0, 0]))


@timetile.stencil(boundary={"re": "periodic", "im": "periodic"})
def by_hand(re: Field, im: Field, v: Field, dt: Scalar):
    lap = re[-1, 0] + re[1, 0] + re[0, -1] + re[0, 1] - 4 * re[0, 0]
    lam = im[-1, 0] + im[1, 0] + im[0, -1] + im[0, 1] - 4 * im[0, 0]
    first = re[0, 0] + dt * (-1.0 * (0.5 * lam - v[0, 0] * im[0, 0]))
    im.next = im[0, 0] + dt * (1.0 * (0.5 * lap - v[0, 0] * re[0, 0]))
    re.next = first


@timetile.stencil
def leapfrog(a: Complex, b: Complex, n: Field):
    n.next = a[0].abs2() + b[0].real
    b.next = (b[0] * a[-1].conj() - (2 - 1j) * a[1]) / 4
    b.next[0:1] = 1.5
    b.next = b.next[0] - np.conj(a[0]) + np.float64(2) * b[0]
    a.next = a.prev[0] + 0.25 * (1 - (a[1] - a[-1])) / n.next[0]


def drawn(*shape: int, dtype: str = "complex128") -> Any:
    """Random complex numbers."""
    rng = np.random.default_rng(len(shape))
    return (rng.random(shape) - 0.5 + 1j * rng.random(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes"])
def test_a_complex_field_has_the_bits_of_a_pair_by_hand(executor: Any, dtype: str):
    psi = drawn(12, 15, dtype=dtype)
    v = np.ascontiguousarray(drawn(12, 15).real.astype(psi.real.dtype))
    before = psi.copy()
    found = quantum.on(executor=executor).advance({"psi": psi, "v": v}, 5, dt=0.1)
    pair = {"re": psi.real.copy(), "im": psi.imag.copy(), "v": v}
    expected = by_hand.on(executor=executor).advance(pair, 5, dt=0.1)
    assert set(found) == {"psi", "v"} and found["v"] is v and np.array_equal(psi, before)
    assert found["psi"].dtype == dtype
    cells: Any = found["psi"]
    assert cells.real.tobytes() == expected["re"].tobytes()
    assert cells.imag.tobytes() == expected["im"].tobytes()


def in_numpy(a: Any, old: Any, b: Any, n: Any) -> tuple[Any, Any, Any, Any]:
    """A step of `leapfrog`."""
    m = a.real * a.real + a.imag * a.imag + b.real
    c = b.copy()
    c[1:-1] = (b[1:-1] * a[:-2].conj() - (2 - 1j) * a[2:]) / 4
    c[0] = 1.5
    c = c - a.conj() + 2 * b
    new = a.copy()
    new[1:-1] = old[1:-1] + 0.25 * (1 - (a[2:] - a[:-2])) / m[1:-1]
    return new, a, c, m


@pytest.mark.parametrize("executor", ["cpu", "planes"])
def test_every_operation_is_numpys(executor: Any):
    a, b, n = drawn(30), drawn(30) + 2, np.zeros(30)
    model = leapfrog.on(executor=executor, fp_contract="off")
    state = model.advance({"a": a, "b": b, "n": n}, 3)
    now = (a, a, b, n)
    for _ in range(3):
        now = in_numpy(*now)
    assert set(state) == {"a", "a.prev", "b", "n"}
    for name, wanted in zip(("a", "a.prev", "b", "n"), now, strict=True):
        assert np.allclose(state[name], wanted, rtol=1e-13, atol=1e-15), name
    assert np.array_equal(state["n"], now[3])
    again = model.advance(state, 2)
    whole = model.advance({"a": a, "b": b, "n": n}, 5)
    assert all(again[name].tobytes() == whole[name].tobytes() for name in whole)


def test_complex_fields_go_into_batches_snapshots_conditions_and_pickles(tmp_path: Path):
    psi, v = drawn(3, 9, 8), np.zeros((9, 8))
    expected = [quantum.advance({"psi": each, "v": v}, 4, dt=0.1)["psi"] for each in psi]
    batch = quantum.advance({"psi": psi, "v": v}, 4, dt=0.1, batch=True)["psi"]
    assert all(x.tobytes() == y.tobytes() for x, y in zip(batch, expected, strict=True))
    given = {"psi": psi[0], "v": v}
    kept: list[timetile.State[Any]] = []
    quantum.advance(given, 4, dt=0.1, keep=kept, every=2)
    assert [each.steps for each in kept] == [2, 4]
    assert kept[1]["psi"].tobytes() == expected[0].tobytes()
    pieces = [state for _, state in quantum.snapshots(given, 4, 2, dt=0.1)]
    assert pieces[1]["psi"].tobytes() == expected[0].tobytes()
    h5py: Any = pytest.importorskip("h5py")
    quantum.advance(given, 4, dt=0.1, keep=tmp_path / "run.h5", every=4)
    with h5py.File(tmp_path / "run.h5") as file:
        assert np.array_equal(file["psi"][0], expected[0])

    def is_wide(psi: Complex) -> Any:
        return timetile.total(psi.next[0, 0].abs2()) > 0

    assert quantum.advance(given, 8, dt=0.1, until=is_wide, every=4).steps == 4
    for twin in (pickle.loads(pickle.dumps(quantum)), copy.deepcopy(quantum)):
        assert twin.advance(given, 4, dt=0.1)["psi"].tobytes() == expected[0].tobytes()


@timetile.stencil(boundary={"psi": "periodic"})
def damped(psi: Complex, dt: Scalar):
    psi.next = psi[0, 0] * (1 - dt)


def test_complex_fields_go_into_a_sequence():
    both: Model = timetile.sequence(quantum, damped)
    state: dict[str, Any] = {"psi": drawn(9, 8), "v": np.ones((9, 8))}
    found = both.advance(state, 2, dt=0.1)
    for _ in range(2):
        state |= quantum.advance(state, 1, dt=0.1)
        state |= damped.advance({"psi": state["psi"]}, 1, dt=0.1)
    assert found["psi"].tobytes() == state["psi"].tobytes()


def test_jax_arrays_come_back_as_jax_arrays():
    jnp: Any = pytest.importorskip("jax.numpy")
    psi, v = drawn(9, 8, dtype="complex64"), np.ones((9, 8), np.float32)
    expected = quantum.advance({"psi": psi, "v": v}, 3, dt=0.1)["psi"]
    given = {"psi": jnp.asarray(psi), "v": jnp.asarray(v)}
    found = quantum.advance(given, 3, dt=0.1)["psi"]
    assert type(found) is type(given["psi"])
    assert np.asarray(found).tobytes() == expected.tobytes()


def test_a_real_value_beside_a_complex_number_is_a_complex_value():
    @timetile.stencil
    def mixed(z: Complex, v: Field):
        made = 1j * v[0] * z[-1] + v[0] * (1 - 2j) / 2 - (3j - v[1]) + 2j * v[0]
        z.next = made + np.exp(1j * v[0]) * np.exp(z[1])

    z, v = drawn(12), np.linspace(0.1, 0.7, 12)
    after: dict[str, Any] = mixed.advance(z=z, v=v, steps=1)
    found = np.asarray(after["z"])[1:-1]
    own = v[1:-1]
    wanted = 1j * own * z[:-2] + own * (1 - 2j) / 2 - (3j - v[2:]) + 2j * own
    wanted = wanted + np.exp(1j * own) * np.exp(z[2:])
    assert np.allclose(found, wanted, rtol=1e-14)


DIVIDED = (
    "a division by a complex value is not expressed; write a * b.conj() / b.abs2(), and "
    "a * (1 / c) for a complex number c"
)
COMPARED = "complex values have no comparisons; compare a.real and a.imag"
NEEDED = (
    "the value is complex, and a real number is needed here; take a.real or a.imag, declare an "
    "assigned field as timetile.Complex, and write a complex number beside a complex value"
)

WRONG: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda z, u: z[0] / z[1], DIVIDED),
    (lambda z, u: 1 / z[0], DIVIDED),
    (lambda z, u: abs(z[0]), "abs of a complex value is a root; write np.sqrt(a.abs2())"),
    (lambda z, u: z[0] == z[1], COMPARED),
    (lambda z, u: z[0] < 1, COMPARED),
    (
        lambda z, u: 1 if z[0] else 2,
        "a complex value has no truth value; compare a.real and a.imag",
    ),
    (
        lambda z, u: np.log(z[0]),
        "np.log of a complex value is not expressed; write it with a.real, a.imag, a.conj(), "
        "a.abs2(), np.exp and the operators + - * /",
    ),
    (lambda z, u: timetile.where(u[0] > 0, z[0], z[1]), NEEDED),
    (lambda z, u: u[0] / 2j, DIVIDED),
]


@pytest.mark.parametrize(("value", "reason"), WRONG)
def test_an_operation_that_is_not_expressed_is_refused(
    value: Callable[[Any, Any], Any], reason: str
):
    def wrong(z: Complex, u: Field):
        z.next = value(z, u)

    with pytest.raises(timetile.StencilError) as caught:
        timetile.stencil(wrong)
    assert caught.value.reason == reason


def test_a_real_field_takes_no_complex_value():
    def wrong(z: Complex, u: Field):
        value: Any = z[0]
        u.next = value

    with pytest.raises(timetile.StencilError) as caught:
        timetile.stencil(wrong)
    assert caught.value.reason == NEEDED


@timetile.stencil(boundary="periodic")
def midpoint(psi: Complex, dt: Scalar):
    psi.next = psi[0] + 0.5 * dt * (1j * (psi[-1] - 2 * psi[0] + psi[1]))
    near = psi.next[-1] - 2 * psi.next[0] + psi.next[1]
    psi.next = psi[0] + dt * (1j * near)


@pytest.mark.parametrize("executor", ["cpu", "planes"])
def test_new_values_of_both_parts_are_read_before_either_changes(executor: Any):
    psi = drawn(33)
    exact = midpoint.on(executor=executor, fp_contract="off")
    found = exact.advance({"psi": psi}, 3, dt=0.125)["psi"]
    for _ in range(3):
        near = np.roll(psi, 1) - 2 * psi + np.roll(psi, -1)
        half = psi + 0.5 * 0.125 * (1j * near)
        near = np.roll(half, 1) - 2 * half + np.roll(half, -1)
        psi = psi + 0.125 * (1j * near)
    assert np.allclose(found, psi, rtol=1e-14, atol=1e-15)


def test_a_pair_of_values_is_a_complex_value():
    def step(z: Complex, u: Field):
        z.next = z[0] + ComplexValue(u[0], -1.0) * u[1]

    u = np.arange(6.0)
    found = timetile.stencil(step).advance({"z": np.zeros(6, complex), "u": u}, 1)["z"]
    assert np.array_equal(found[:-1], (u - 1j)[:-1] * u[1:])


def test_real_arrays_of_a_complex_field_are_refused():
    with pytest.raises(TypeError) as caught:
        damped.advance({"psi": np.ones((4, 4))}, 1, dt=0.1)
    assert str(caught.value) == (
        f"psi is a complex field of {damped.step.label}; pass an array of complex64 or complex128, "
        "as a.astype(np.complex128)"
    )
