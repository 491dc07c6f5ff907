"""Devito's functions with dimensions beside the grid's, on timetile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile.devito
from support.devito_case import drawn, dv, grid_of
from timetile.frontend.devito.function_slices import ArrayPart, Slices
from timetile.frontend.devito.library import NotCovered

# One worker imports Devito.
pytestmark = [
    pytest.mark.xdist_group("devito"),
    pytest.mark.filterwarnings("error::timetile.devito.DevitoWarning"),
]


def frequencies(count: int) -> Any:
    return dv.DefaultDimension(name="f", default_value=count)


def test_a_fourier_integral_has_an_equation_for_each_frequency():
    grid, f = grid_of(5, 4), frequencies(2)
    x, y = grid.dimensions
    time = grid.time_dim
    u = drawn(dv.TimeFunction(name="u", grid=grid))
    rates = dv.Function(name="rates", grid=grid, dimensions=(f,), shape=(2,))
    rates.data[:] = (0.3, 0.7)
    shape = (2, *grid.shape)
    modes = dv.Function(name="modes", grid=grid, dimensions=(f, x, y), shape=shape)
    begin = np.array(u.data[0], np.float64)
    with timetile.devito.backend(executor="numpy"):
        operator = dv.Operator([dv.Eq(u.forward, 0.5 * u), dv.Inc(modes, dv.cos(rates * time) * u)])
    operator.apply(time_M=3)
    for place, rate in enumerate((0.3, 0.7)):
        expected = sum(np.cos(rate * step) * 0.5**step * begin for step in range(4))
        assert np.allclose(modes.data[place], expected, rtol=2e-6)


@pytest.mark.parametrize("is_last", [True, False])
def test_values_of_a_further_dimension_are_functions_of_their_own(is_last: bool):
    grid, f = grid_of(5, 4), frequencies(2)
    step, space = grid.stepping_dim, grid.dimensions
    dimensions = (step, *space, f) if is_last else (step, f, *space)
    shape = (2, 5, 4, 2) if is_last else (2, 2, 5, 4)
    u = drawn(dv.TimeFunction(name="u", grid=grid, dimensions=dimensions, shape=shape))
    begin = np.array(u.data[0] if not is_last else np.moveaxis(u.data[0], -1, 0))
    t, x, y = step, *space
    rest = (x, y, 1) if is_last else (1, x, y)
    with timetile.devito.backend(executor="numpy"):
        operator = dv.Operator([dv.Eq(u.forward, 2 * u + f), dv.Eq(u[t + 1, *rest], 7)])
    operator.apply(time_M=2)
    found = np.moveaxis(u.data[1], -1, 0) if is_last else u.data[1]
    assert np.allclose(found[0], 8 * begin[0], rtol=1e-6)
    assert np.all(found[1] == 7)


def test_a_range_of_a_further_dimension_runs_in_devitos_c():
    grid, f = grid_of(5, 4), frequencies(3)
    u = dv.Function(name="u", grid=grid, dimensions=(f, *grid.dimensions), shape=(3, 5, 4))
    with timetile.devito.backend(executor="numpy"):
        operator = dv.Operator(dv.Eq(u, u + 1))
    with pytest.warns(timetile.devito.DevitoWarning, match="f_m is 1, and was 0 before"):
        operator.apply(f_m=1)
    assert [float(each.min()) for each in u.data] == [0, 1, 1]


def test_a_place_given_by_the_call_keeps_the_equations_whole():
    """No equation for each place: `slot` is a number of the call."""
    grid, f = grid_of(5, 4), frequencies(3)
    u = drawn(dv.Function(name="u", grid=grid))
    kept = dv.Function(name="kept", grid=grid, dimensions=(f, *grid.dimensions), shape=(3, 5, 4))
    slot = dv.Constant(name="slot", dtype=np.int32)
    with timetile.devito.backend(executor="numpy"):
        operator = dv.Operator(dv.Eq(kept.subs(f, slot), 2 * u))
    assert operator.apply(slot=1).ran_on.is_timetile
    assert np.array_equal(kept.data[1], 2 * u.data)
    assert not np.any(kept.data[::2])


def test_parts_of_an_array_that_devito_keeps_are_left_to_devito():
    slices = Slices({"w.1": ArrayPart("w", ((0, 1),))})
    with pytest.raises(NotCovered, match="Devito passes no array of w to the operator"):
        slices.add_to({}, {})
