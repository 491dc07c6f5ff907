"""
Models inside functions of JAX: jit, vmap and scan give the bits of calls outside. All run in
processes of their own, as JAX's threads forbid forks ever after.
"""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Complex, Field, Scalar, Series

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed"
)


@timetile.stencil
def heat(u: Field, k: Field, c: Scalar):
    u.next = u[0, 0] + c * k[0, 0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@timetile.stencil
def wave(p: Field, c: Scalar):
    p.next = 2 * p[0] - p.prev[0] + c * (p[-1] - 2 * p[0] + p[1])


@timetile.stencil
def turned(psi: Complex, c: Scalar):
    psi.next = psi[0] + 1j * (c * (psi[-1] - 2 * psi[0] + psi[1]))


@timetile.stencil
def driven(u: Field, force: Series):
    u.next = u[-1] + force[0]


def jax_of(precision: str) -> Any:
    """JAX, with arrays of a precision."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", precision == "float64")
    return jax


def cells(*shape: int, dtype: str = "float64") -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).random(shape).astype(dtype)


def same(found: Any, expected: Any) -> None:
    assert np.asarray(found).dtype == expected.dtype
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def in_jit(precision: str) -> None:
    jax, u, k = jax_of(precision), cells(10, 12, dtype=precision), cells(10, 12, dtype=precision)

    def run(u: Any, c: Any, steps: Any) -> Any:
        return heat.advance({"u": u + 0, "k": k}, steps=steps, c=c)

    found = jax.jit(run)(u, np.asarray(0.1, precision), 5)
    same(
        found["u"],
        heat.advance({"u": u, "k": k}, steps=5, c=float(np.asarray(0.1, precision)))["u"],
    )
    same(found["k"], k)


def in_a_second_order(precision: str) -> None:
    jax, p = jax_of(precision), cells(20)
    expected = wave.advance({"p": p, "p.prev": p * 0.5}, steps=4, c=0.3)

    def run(p: Any) -> Any:
        return wave.advance({"p": p, "p.prev": p * 0.5}, steps=4, c=0.3)

    found = jax.jit(run)(p)
    assert sorted(found) == sorted(expected)
    for name, array in expected.items():
        same(found[name], array)


def with_complex_cells(precision: str) -> None:
    jax, psi = jax_of(precision), cells(20) + 1j * cells(20)

    def run(psi: Any) -> Any:
        return turned.advance({"psi": psi}, steps=3, c=0.1)["psi"]

    same(jax.jit(run)(psi), run(psi))


def with_a_series(precision: str) -> None:
    jax, u, force = jax_of(precision), cells(9), cells(6)

    def run(force: Any) -> Any:
        return driven.advance({"u": u}, steps=6, force=force)["u"]

    same(jax.jit(run)(force), run(force))


def in_scan(precision: str) -> None:
    jax, u, k = jax_of(precision), cells(10, 12), cells(10, 12)

    def turn(state: Any, _: Any) -> Any:
        state = heat.advance(state, steps=2, c=0.1)
        return state, state["u"]

    _, kept = jax.lax.scan(turn, {"u": u, "k": k}, length=3)
    for number, (_, state) in enumerate(heat.snapshots({"u": u, "k": k}, 6, 2, c=0.1)):
        same(kept[number], state["u"])


def in_vmap(precision: str) -> None:
    jax, us, ks = jax_of(precision), cells(3, 10, 12), cells(2, 10, 12)
    cs = np.array([0.1, 0.2, 0.3])

    def run(u: Any, k: Any, c: Any) -> Any:
        return heat.advance({"u": u, "k": k}, steps=3, c=c)["u"]

    found = jax.jit(jax.vmap(run, (0, None, 0)))(us, ks[0], cs)
    same(found, np.stack([run(u, ks[0], float(c)) for u, c in zip(us, cs)]))
    twice = jax.vmap(jax.vmap(run, (0, None, None)), (None, 0, None))
    same(jax.jit(twice)(us, ks, 0.1), np.stack([[run(u, k, 0.1) for u in us] for k in ks]))

    def whole(us: Any) -> Any:
        return heat.advance({"u": us, "k": ks[0]}, steps=3, c=0.1, batch=True)["u"]

    same(jax.jit(whole)(us), np.stack([run(u, ks[0], 0.1) for u in us]))


def while_tracing(precision: str) -> None:
    """Errors come from the call, not from the host's call in the middle of a run."""
    jax, u = jax_of(precision), cells(10, 12)

    def lacking(u: Any) -> Any:
        return heat.advance({"u": u}, steps=5, c=0.1)

    def with_work_between_steps(u: Any) -> Any:
        return heat.advance({"u": u, "k": u}, c=0.1, until=bool, keep=list[Any]())

    with pytest.raises(TypeError, match="needs an array for k; pass"):
        jax.jit(lacking)(u)
    words = (
        "until and keep cannot run inside a function that JAX traces; advance the state outside "
    )
    with pytest.raises(TypeError, match=words + "jax.jit, or by a number of steps"):
        jax.jit(with_work_between_steps)(u)


def batch_of_a_batch(precision: str) -> None:
    jax, us = jax_of(precision), cells(2, 3, 10, 12)

    def run(us: Any) -> Any:
        return heat.advance({"u": us, "k": us[0]}, steps=3, c=0.1, batch=True)["u"]

    with pytest.raises(Exception, match="has two axes of states; leave out batch"):
        jax.jit(jax.vmap(run))(us)


CHECKS = {
    "float32": (in_jit,),
    "float64": (
        in_jit,
        in_a_second_order,
        with_complex_cells,
        with_a_series,
        in_scan,
        in_vmap,
        while_tracing,
        batch_of_a_batch,
    ),
}


def run_all(precision: str) -> None:
    for check in CHECKS[precision]:
        check(precision)


@pytest.mark.parametrize("precision", CHECKS)
def test_traced_calls_give_the_bits_of_calls_outside(precision: str):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(run_all, (precision,))
