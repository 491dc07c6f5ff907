"""Operators with cells of integers and of two precisions, drawn at random, as in Devito's own C."""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import timetile.devito
from support.devito_case import dv, grid_of, sympy
from support.sizes import seeds
from timetile.frontend.devito.complex_parts import ComplexParts
from timetile.frontend.devito.library import NotCovered

# One worker imports Devito.
pytestmark = pytest.mark.xdist_group("devito")

INT_DIV: Any = import_module("devito.symbolics").IntDiv
"""A quotient of integers as in C."""

DTYPES = (
    np.int8, np.int16, np.uint8, np.uint16, np.int32, np.int64, np.float32, np.float64,
)  # fmt: skip


def filled(function: Any, random: np.random.Generator) -> Any:
    """A function with whole numbers from 0 to 8, or with numbers between 0 and 1."""
    data: Any = function.data_with_halo
    shape: tuple[int, ...] = data.shape
    whole = np.issubdtype(function.dtype, np.integer)
    data[:] = random.integers(0, 9, shape) if whole else random.random(shape)
    return function


def term(random: Random, functions: list[Any], grid: Any, count: Any) -> Any:
    """A term of a drawn equation; numbers stay small."""
    x, y = grid.dimensions
    f = random.choice(functions)
    moved = f.subs({x: x + random.choice((-1, 1))}) if random.random() < 0.5 else f
    whole = np.issubdtype(f.dtype, np.integer)
    kinds = [
        lambda: moved * random.randint(-3, 3),
        lambda: moved * 0.375,
        lambda: f + x - 2 * y,
        lambda: count * f,
        lambda: dv.Max(moved, count),
        lambda: dv.Abs(f - 5),
        lambda: count / (f + 1) - f / count,
        lambda: f**2 / 4,
        lambda: f / (x + 2),
    ]
    if whole:
        # Devito loses functions that are read in quotients alone.
        kinds.append(lambda: INT_DIV(moved, 3) - moved)
    return random.choice(kinds)()


def run(seed: int, language: str) -> tuple[list[NDArray[Any]], Any]:
    """The functions of drawn equations after a run, and the operator."""
    random, numbers = Random(seed), np.random.default_rng(seed)
    grid = grid_of(6, 7)
    count = dv.Constant(name="count", value=3, dtype=np.int32)
    functions: list[Any] = []
    equations: list[Any] = []
    for number, dtype in enumerate(random.sample(DTYPES, 4)):
        f = dv.Function(name=f"f{number}", grid=grid, dtype=dtype, space_order=2)
        functions.append(filled(f, numbers))
    for number in range(2):
        dtype = random.choice(DTYPES)
        u = dv.TimeFunction(name=f"u{number}", grid=grid, dtype=dtype, space_order=2)
        functions.append(filled(u, numbers))
        small = sum(term(random, functions, grid, count) for _ in range(3))
        old = random.choice((u, 0.25 * u))
        equations.append(dv.Eq(u.forward, old + small))
    counts = functions[0]
    condition = dv.Gt(functions[1], 1)
    chosen = dv.ConditionalDimension("chosen", parent=grid.dimensions[-1], condition=condition)
    equations.append(dv.Inc(counts, functions[1], implicit_dims=chosen))
    options = {"opt": "noop"} if language == "C" else {}
    operator = dv.Operator(equations, language=language, **options)
    operator.apply(time_M=1)
    return [np.array(f.data_with_halo) for f in functions], operator


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.filterwarnings("error::timetile.devito.DevitoWarning")
def test_integers_and_precisions_are_mixed_as_in_devitos_c(seed: int):
    timetile.devito.register(executor="cpu")
    expected, _ = run(seed, "C")
    found, operator = run(seed, "timetile")
    assert operator._lib is None, "Devito's own C was compiled"
    for a, b in zip(found, expected, strict=True):
        if np.issubdtype(a.dtype, np.integer):
            assert (a == b).all()
        else:
            assert np.abs(a - b).max() <= 3e-6 * np.abs(b).max()


def test_a_real_function_may_be_named_like_a_part():
    part = dv.Function(name="u__re", grid=grid_of(4, 4))
    with timetile.devito.backend(executor="cpu"):
        operator = dv.Operator(dv.Eq(part, part + 1))
    assert operator.apply().ran_on.is_timetile
    assert np.all(part.data == 1)


def test_functions_of_complex_numbers_are_computed_in_double_precision():
    """Spacings are float32, and Devito's C may call the function of float32."""
    grid = grid_of(4, 4)
    phase = dv.Function(name="phase", grid=grid, dtype=np.complex128)
    w = dv.Constant(name="w", dtype=np.complex128, value=0.3 - 0.2j)
    with timetile.devito.backend(executor="cpu"):
        operator = dv.Operator(dv.Eq(phase, sympy.exp(sympy.I - grid.dimensions[0].spacing) * w))
    assert operator.apply().ran_on.is_timetile
    assert np.allclose(phase.data, np.exp(1j - 10) * (0.3 - 0.2j), rtol=1e-14, atol=0)


def test_complex_functions_are_numpys():
    """Devito 4.8 prints the real `sqrtf` and `sinh` for some of them, and loses a part."""
    names = ("cos", "cosh", "log", "sin", "sinh", "sqrt", "tan", "tanh")
    grid, draw = grid_of(5, 4), np.random.default_rng(2).uniform
    z = dv.Function(name="z", grid=grid, dtype=np.complex128)
    z.data[:] = draw(-2, 2, z.shape) + 1j * draw(-2, 2, z.shape)
    made = [dv.Function(name=f"w_{name}", grid=grid, dtype=np.complex128) for name in names]
    with timetile.devito.backend(executor="numpy"):
        operator = dv.Operator(
            [dv.Eq(w, getattr(sympy, name)(z)) for w, name in zip(made, names, strict=True)]
        )
    assert operator.apply().ran_on.is_timetile
    for w, name in zip(made, names, strict=True):
        expected = getattr(np, name)(np.array(z.data))
        assert np.allclose(w.data, expected, rtol=1e-12, atol=1e-12), name


def test_other_complex_functions_are_named():
    with pytest.raises(
        NotCovered, match="of complex numbers, and timetile has no operation for asin"
    ):
        ComplexParts().of(sympy.asin(sympy.I + sympy.Symbol("w")))
