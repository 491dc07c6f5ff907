"""Devito's norms on timetile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import timetile.devito
from support.devito_case import drawn, dv, grid_of
from timetile.frontend.devito.runs import OperatorPlan

# One worker imports Devito.
pytestmark = pytest.mark.xdist_group("devito")


def by_devito(name: str, f: Any, g: Any) -> Any:
    return dv.inner(f, g) if name == "inner" else getattr(dv, name)(f)


def by_numpy(name: str, f: NDArray[Any], g: NDArray[Any]) -> Any:
    numbers = {"norm": np.linalg.norm(f), "sumall": np.sum(f), "inner": np.sum(f * g)}
    return numbers[name]


@pytest.mark.parametrize("name", ["norm", "sumall", "inner"])
@pytest.mark.filterwarnings("error::timetile.devito.DevitoWarning")
def test_norms_are_sums_in_double_precision(name: str, monkeypatch: pytest.MonkeyPatch):
    count = [0]
    run = OperatorPlan.run

    def counted(plan: OperatorPlan, prepared: Any) -> float:
        count[0] += 1
        return run(plan, prepared)

    monkeypatch.setattr(OperatorPlan, "run", counted)
    grid = grid_of(41, 37)
    f, g = (drawn(dv.Function(name=each, grid=grid), -1, 1) for each in "fg")
    with timetile.devito.backend(executor="cpu"):
        found = by_devito(name, f, g)
    expected = by_numpy(name, np.array(f.data, np.float64), np.array(g.data, np.float64))
    assert abs(found - expected) <= 1e-6 * abs(expected)
    assert count[0] == 1, "the sum runs on timetile"


def test_a_second_derivative_subtracts_behind_its_first_term():
    grid = dv.Grid(shape=(40, 30), dtype=np.float64)
    u = dv.TimeFunction(name="u", grid=grid, time_order=2, save=3)
    f = dv.Function(name="f", grid=grid)
    u.data[:] = 1 + 0.3 * np.random.default_rng(3).random(u.data.shape)
    with timetile.devito.backend(executor="numpy", fp_contract="off"):
        dv.Operator(dv.Eq(f, u.dt2)).apply(dt=0.7, time_m=1, time_M=1)
    before, now, after = (np.array(each) * (1 / 0.7**2) for each in u.data)
    orders = [(before - 2 * now) + after, (after - 2 * now) + before]
    assert any(np.array_equal(np.array(f.data), each) for each in orders)
    assert not np.array_equal(orders[0], (before + after) - 2 * now)
