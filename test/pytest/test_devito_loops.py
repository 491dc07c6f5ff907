"""Operators of Devito with several loops over time run on timetile, against Devito's own C."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import timetile.devito
from support.devito_case import Case, drawn, dv, grid_of

# One worker imports Devito.
pytestmark = pytest.mark.xdist_group("devito")


def function_of(name: str, grid: Any) -> Any:
    """A function over time with random cells."""
    return drawn(dv.TimeFunction(name=name, grid=grid, space_order=2))


def forth_and_back() -> Case:
    """One function goes forwards in time, another backwards, driven by what the first left."""
    grid = grid_of(11, 13)
    u, v, m = (
        function_of("u", grid),
        function_of("v", grid),
        drawn(dv.Function(name="m", grid=grid)),
    )
    equations = [dv.Eq(u.forward, u + 0.1 * u.laplace), dv.Eq(v.backward, v + 0.2 * v.laplace + m)]
    return Case(equations, [u, v], {"time_m": 1, "time_M": 5})


def back_and_sources() -> Case:
    """The loop backwards has a source, and the loop forwards has receivers."""
    grid = grid_of(11, 13)
    u, v = function_of("u", grid), function_of("v", grid)
    points = np.array([[33.0, 41.0], [52.5, 60.0]])
    source = dv.SparseTimeFunction(name="s", grid=grid, npoint=2, nt=8, coordinates=points)
    traces = dv.SparseTimeFunction(name="r", grid=grid, npoint=2, nt=8, coordinates=points)
    source.data[:] = np.random.default_rng(3).random((8, 2))
    equations = [
        dv.Eq(u.forward, u + 0.1 * u.laplace),
        traces.interpolate(expr=u),
        dv.Eq(v.backward, v + 0.2 * v.laplace),
        source.inject(field=v.backward, expr=source),
    ]
    return Case(equations, [u, v, traces], {"time_m": 1, "time_M": 5})


CASES = {"forth and back": forth_and_back, "back and sources": back_and_sources}


def cells(case: Case) -> list[Any]:
    """All cells of the changed functions."""
    return [
        np.array(each.data_with_halo if each.is_TimeFunction else each.data)
        for each in case.changed
    ]


@pytest.mark.parametrize("name", CASES)
def test_several_loops_do_as_in_devitos_c(name: str):
    in_c, case = CASES[name](), CASES[name]()
    dv.Operator(in_c.equations, opt="noop", language="C").apply(**in_c.call)
    with warnings.catch_warnings():
        warnings.simplefilter("error", timetile.devito.DevitoWarning)
        with timetile.devito.backend(executor="cpu"):
            operator = dv.Operator(case.equations)
        assert len(operator._timetile.loops) == 2
        assert operator.apply(**case.call).ran_on.is_timetile
    for found, expected in zip(cells(case), cells(in_c), strict=True):
        assert np.abs(found - expected).max() <= 3e-6 * np.abs(expected).max()


def test_loops_that_write_one_function_run_in_devitos_c():
    u = function_of("u", grid_of(11, 13))
    t, (x, y) = u.grid.stepping_dim, u.grid.dimensions
    equations = [dv.Eq(u.forward, u + 1), dv.Eq(u[t - 1, x, y], u[t, x, y] + 2)]
    said = "several loops over time write u; make the operator several operators"
    with pytest.warns(timetile.devito.DevitoWarning, match=said), timetile.devito.backend():
        operator = dv.Operator(equations)
    assert not operator.apply(time_m=1, time_M=3).ran_on.is_timetile
