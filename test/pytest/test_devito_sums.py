"""Devito's norms on timetile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timetile.devito
from support.devito_case import dv, grid_of
from timetile.frontend.devito.runs import OperatorPlan

# One worker imports Devito.
pytestmark = pytest.mark.xdist_group("devito")


def filled(function: Any, seed: int) -> Any:
    """The function with drawn cells."""
    draw = np.random.default_rng(seed).standard_normal
    function.data[:] = draw(function.data.shape)
    if np.issubdtype(function.dtype, np.complexfloating):
        function.data[:] += 1j * draw(function.data.shape)
    return function


def a_function(grid: Any, seed: int) -> Any:
    return filled(dv.Function(name=f"f{seed}", grid=grid), seed)


def a_complex_function(grid: Any, seed: int) -> Any:
    return filled(dv.Function(name=f"f{seed}", grid=grid, dtype=np.complex64), seed)


def all_steps(grid: Any, seed: int) -> Any:
    return filled(dv.TimeFunction(name=f"f{seed}", grid=grid, save=3), seed)


def receivers(grid: Any, seed: int) -> Any:
    return filled(dv.SparseTimeFunction(name=f"f{seed}", grid=grid, npoint=4, nt=5), seed)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("sumall", a_function),
        ("inner", a_complex_function),
        ("norm", all_steps),
        ("norm", receivers),
    ],
)
@pytest.mark.filterwarnings("error::timetile.devito.DevitoWarning")
def test_norms_are_sums_in_double_precision(
    name: str, make: Callable[[Any, int], Any], monkeypatch: pytest.MonkeyPatch
):
    count = [0]
    run = OperatorPlan.run

    def counted(plan: OperatorPlan, prepared: Any, call: Any) -> float:
        count[0] += 1
        return run(plan, prepared, call)

    monkeypatch.setattr(OperatorPlan, "run", counted)
    grid = grid_of(11, 7)
    f, g = (make(grid, seed) for seed in (1, 2))
    with timetile.devito.backend(executor="cpu"):
        found = dv.inner(f, g) if name == "inner" else getattr(dv, name)(f)
    a, b = (np.array(each.data, np.complex128) for each in (f, g))
    expected = {"norm": np.linalg.norm(a), "sumall": np.sum(a), "inner": np.sum(a * b)}[name]
    assert abs(found - expected) <= 1e-6 * abs(expected)
    assert count[0] == 1, "the sum runs on timetile"


def test_derivatives_take_differences_first():
    """Behind the first term of a second one; before the weights of a first one, 0 in flat cells."""
    grid = dv.Grid(shape=(40, 30), dtype=np.float64)
    u = dv.TimeFunction(name="u", grid=grid, time_order=2, save=3)
    f, g, slope = (dv.Function(name=name, grid=grid, space_order=8) for name in ("f", "g", "slope"))
    u.data[:] = 1 + 0.3 * np.random.default_rng(3).random(u.data.shape)
    g.data[:] = u.data[0, :, :1]
    with timetile.devito.backend(executor="numpy", fp_contract="off"):
        operator = dv.Operator([dv.Eq(f, u.dt2), dv.Eq(slope, (g * g).dy)])
    operator.apply(dt=0.7, time_m=1, time_M=1)
    before, now, after = (np.array(each) * (1 / 0.7**2) for each in u.data)
    orders = [(before - 2 * now) + after, (after - 2 * now) + before]
    assert any(np.array_equal(np.array(f.data), each) for each in orders)
    assert not np.array_equal(orders[0], (before + after) - 2 * now)
    assert not np.any(slope.data[:, 4:-4]) and np.all(slope.data[:, :4])
    with timetile.devito.backend(executor="numpy", fp_reassoc="on"):
        operator = dv.Operator(dv.Eq(slope, (g * g).dy))
    operator.apply()
    ((function, _),) = operator._timetile.programs.values()
    assert function.text.count("arith.mulf") == 8 + 8, "each place has a weight, for the compiler"
