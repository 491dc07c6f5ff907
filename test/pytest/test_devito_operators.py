"""Operators of Devito on timetile, against Devito's own C of the same equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import timetile.devito
from support.devito_case import Case, drawn, dv
from support.devito_operators import CASES

# SymPy's matrices warn of Devito's tensors.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # One worker imports Devito.
    pytest.mark.xdist_group("devito"),
]

CLOSE = {"float32": 3e-6, "complex64": 3e-6, "float64": 1e-13}
"""The largest difference beside the largest number."""


HALOS = (
    "the buffers of u have different halos, where successive steps read different buffers; fill "
    "the halo of each, or confirm the difference with halos='apart' of timetile.devito.backend"
)

TOLD = {
    "diffusion": (HALOS,),
    "acoustic_2d_so4": (HALOS,),
    "adjoint_that_injects_receivers": (
        "the loop over time runs a step at a time: equation 6 (v[t - 1, rp_recx + posx + 4, "
        "rp_recy + posy + 4] += dt**2*(rp_recx*px + (1 - rp_recx)*(1 - px))*(rp_recy*py +...) "
        "works at points between the steps",
    ),
}
"""What keeps calls slow."""


def cells(case: Case) -> list[NDArray[Any]]:
    """All cells of the functions changed by an operator."""
    return [np.array(function.data_with_halo) for function in case.changed]


def run_in_c(case: Case, **call: Any) -> list[NDArray[Any]]:
    dv.Operator(case.equations, opt="noop", language="C").apply(**(case.call | call))
    return cells(case)


def check_same(case: Case, found: list[NDArray[Any]], expected: list[NDArray[Any]]) -> None:
    for function, a, b in zip(case.changed, found, expected, strict=True):
        assert np.isfinite(b).all()
        bound = CLOSE[b.dtype.name] * np.abs(b).max()
        assert np.abs(a - b).max() <= bound, function.name


class Middle(dv.SubDomain):
    """The cells four and more from the edge."""

    name = "middle"

    def define(self, dimensions: Any) -> Any:
        return dict.fromkeys(dimensions, ("middle", 4, 4))


def test_receivers_where_no_step_writes_note_the_cells():
    """Memory that is far has no cell to fetch of the steps before the run."""
    middle = Middle()
    grid = dv.Grid(shape=(12, 12), extent=(11.0, 11.0), subdomains=(middle,))
    u = drawn(dv.TimeFunction(name="u", grid=grid))
    u.data[:] = u.data[0]
    rec = dv.SparseTimeFunction(name="rec", grid=grid, npoint=2, nt=4)
    rec.coordinates.data[:] = [[0.0, 0.0], [0.0, 3.0]]
    with timetile.devito.backend(executor="ptx", depth=2):
        operator = dv.Operator([dv.Eq(u.forward, u + 1, subdomain=middle), rec.interpolate(expr=u)])
    assert operator.apply(time_M=3).ran_on.is_timetile
    assert (rec.data == [u.data[0, 0, 0], u.data[0, 0, 3]]).all()


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("name", CASES)
def test_operators_do_as_in_devitos_c(name: str):
    """A DevitoWarning reports a run of Devito's own C, and is an error in the file's tests."""
    expected_case, case = CASES[name](), CASES[name]()
    before = cells(case)
    expected = run_in_c(expected_case)
    with timetile.devito.backend(executor="cpu"):
        operator = dv.Operator(case.equations)
    summary = operator.apply(**case.call)
    assert operator._lib is None, "Devito's own C was compiled"
    check_same(case, cells(case), expected)
    for remark in summary.ran_on.remarks:
        assert not any(word in remark for word in ("%", "@", "<program>", "--halos")), remark
    assert any((a != b).any() for a, b in zip(before, expected))


def on_timetile(case: Case) -> Any:
    with timetile.devito.backend(executor="cpu"):
        return dv.Operator(case.equations)


@pytest.mark.parametrize("name", TOLD)
def test_calls_go_on_with_other_numbers_and_no_compilation(name: str):
    """Another time step and another first step, from any starting buffer."""
    expected_case, case = CASES[name](), CASES[name]()
    operator = on_timetile(case)
    stock = dv.Operator(expected_case.equations, opt="noop", language="C")
    for first, last, dt in ((2, 5, 1.0), (6, 6, 0.5), (7, 9, 0.7), (1, 3, 0.3)):
        stock.apply(time_m=first, time_M=last, dt=dt)
        summary = operator.apply(time_m=first, time_M=last, dt=dt)
        check_same(case, cells(case), cells(expected_case))
    assert len(operator._timetile.programs) == 1
    assert summary.ran_on.remarks == TOLD[name]


def test_calls_take_bounds_and_other_functions():
    expected_case, case = CASES["diffusion"](), CASES["diffusion"]()
    operator = on_timetile(case)
    stock = dv.Operator(expected_case.equations, opt="noop", language="C")
    for each, own in ((operator, case), (stock, expected_case)):
        each.apply(time_M=3, dt=2.0, x_m=2, y_M=9)
        other = drawn(dv.TimeFunction(name="w", grid=own.changed[0].grid, space_order=2), 1, 3)
        each.apply(time_M=3, dt=2.0, u=other, a=dv.Constant(name="b", value=0.25))
        own.changed.append(other)
    check_same(case, cells(case), cells(expected_case))


def test_timetile_is_a_language_of_devito():
    timetile.devito.register(executor="cpu")
    case = CASES["diffusion"]()
    expected = run_in_c(CASES["diffusion"]())
    summary = dv.Operator(case.equations, language="timetile").apply(**case.call)
    check_same(case, cells(case), expected)
    assert summary.timings
    assert str(summary.ran_on) == "timetile" and summary.ran_on.is_timetile


def test_the_language_is_as_before_after_the_block():
    before = dv.configuration["language"]
    with timetile.devito.backend():
        assert dv.configuration["language"] == "timetile"
    assert dv.configuration["language"] == before
