"""
Equations without a translation run in Devito's own C, and a warning names the equations and the
reason.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest

import timetile.devito
from support.devito_case import drawn, dv, grid_of, sympy
from timetile.frontend.devito.builds import is_quick
from timetile.frontend.devito.calls import RunningCall, calling, running_call
from timetile.frontend.devito.library import NotCovered
from timetile.frontend.devito.runs import check_shared
from timetile.frontend.devito.sparse import reads_itself

# One worker imports Devito.
pytestmark = pytest.mark.xdist_group("devito")


def in_order(u: Any) -> list[Any]:
    t, (x, y) = u.grid.stepping_dim, u.grid.dimensions
    return [dv.Eq(u[t + 1, x, y], u[t + 1, x - 1, y] + 1)]


def a_sum(u: Any) -> list[Any]:
    x, _ = u.grid.dimensions
    line = dv.Function(name="line", dimensions=(x,), shape=(u.grid.shape[0],))
    return [dv.Eq(u.forward, u + 1), dv.Inc(line, u)]


def long_without_sign(u: Any) -> list[Any]:
    mask = dv.Function(name="mask", grid=u.grid, dtype=np.uint32)
    return [dv.Eq(u.forward, u + mask)]


def diagonal(u: Any) -> list[Any]:
    t, (x, _) = u.grid.stepping_dim, u.grid.dimensions
    return [dv.Eq(u.forward, u[t, x, x])]


def unknown_function(u: Any) -> list[Any]:
    return [dv.Eq(u.forward, sympy.sign(u))]


def between(u: Any) -> list[Any]:
    c = dv.Function(name="c", grid=u.grid)
    return [dv.Eq(u.forward, u + 1), dv.Eq(c, 2), dv.Eq(u.forward, u.forward + c)]


def one_moment(u: Any) -> list[Any]:
    kept = dv.TimeFunction(name="kept", grid=u.grid, save=9)
    t, (x, y) = u.grid.time_dim, u.grid.dimensions
    return [dv.Eq(kept[t, x, y], kept[2, x, y] + 1), dv.Eq(u.forward, u + 1)]


def sum_to_one_row(u: Any) -> list[Any]:
    _, y = u.grid.dimensions
    total = dv.Function(name="total", grid=u.grid)
    return [dv.Eq(u.forward, u + 1), dv.Inc(total[0, y], u.forward)]


class Pools(dv.SubDomainSet):
    """Two boxes."""

    name = "pools"


def one_set(u: Any) -> list[Any]:
    pools = Pools(N=2, bounds=(1, 1, np.array([1, 4]), np.array([4, 1])), grid=u.grid)
    c = dv.Function(name="c", grid=u.grid)
    return [dv.Eq(u.forward, u + 1, subdomain=pools), dv.Eq(c, u.forward, subdomain=pools)]


Equations = Callable[[Any], list[Any]]
"""Equations of a function of Devito."""

LEFT: dict[Equations, str] = {
    in_order: "equation 1 (u[t + 1, x + 1, y + 1] = u[t + 1, x, y + 1] + 1): it reads u[t + 1, x, "
    "y + 1], a cell that the equation itself writes in an order that Devito chooses",
    a_sum: "equation 2 (line[x + 1] += u[t, x + 1, y + 1]): it writes a function of other "
    "dimensions than the equations before it do",
    long_without_sign: "equation 1 (u[t + 1, x + 1, y + 1] = mask[x + 1, y + 1] + u[t, x + 1, "
    "y + 1]): mask has cells of uint32; use float32, float64, or integers from int8 to "
    "int64, uint8 or uint16",
    one_set: "equation 2 (c[ix + 1, iy + 1] = u[t + 1, ix + 1, iy + 1]) uses a function of "
    "equation 1 (u[t + 1, ix + 1, iy + 1] = u[t, ix + 1, iy + 1] + 1) on the same set of "
    "subdomains; make the set several subdomains",
    between: "equations without time stand between equations with time; move them",
    one_moment: "kept is read or written at times that may be the same",
    sum_to_one_row: "equation 2 (total[1, y + 1] += u[t + 1, x + 1, y + 1]): it sums over x for "
    "each y; sums over all are covered",
    diagonal: "equation 1 (u[t + 1, x + 1, y + 1] = u[t, x + 1, x + 1]): it reads u[t, x + 1, x + "
    "1] along another dimension than it writes",
    unknown_function: "equation 1 (u[t + 1, x + 1, y + 1] = sign(u[t, x + 1, y + 1])): it computes "
    "sign(u[t, x + 1, y + 1]), and timetile has no operation for sign",
}
"""Equations for Devito's own C, and the reasons."""


def name_of(make: Equations) -> str:
    return getattr(make, "__name__", "")


RUN = (in_order, sum_to_one_row)
"""Equations that also run: the calls of the others are alike."""


@pytest.mark.parametrize("make", LEFT, ids=name_of)
def test_equations_without_a_translation_run_in_devitos_c(make: Equations):
    """A warning names the equation and the reason, and the results are Devito's."""
    u, v = (drawn(dv.TimeFunction(name="u", grid=grid_of(9, 9))) for _ in range(2))
    with (
        timetile.devito.backend(executor="cpu"),
        pytest.warns(timetile.devito.DevitoWarning) as said,
    ):
        operator = dv.Operator(make(v))
    assert [str(each.message) for each in said] == [
        f"Devito's own C runs in place of timetile: {LEFT[make]}"
    ]
    if make not in RUN:
        return
    dv.Operator(make(u), language="C").apply(time_M=3)
    summary = operator.apply(time_M=3)
    assert str(summary.ran_on) == f"Devito's own C: {LEFT[make]}"
    assert timetile.devito.call_counts()[str(summary.ran_on)] == 1
    assert (u.data_with_halo == v.data_with_halo).all()


def test_equations_without_a_translation_for_a_call_run_in_devitos_c():
    """
    The warning comes at the call, before any array has changed. An operator of many terms gets
    Devito's optimised C, with other parameters, for the call.
    """

    def make() -> tuple[Any, list[Any]]:
        u = drawn(dv.TimeFunction(name="u", grid=grid_of(5, 6, 7), space_order=6))
        src = dv.SparseTimeFunction(name="src", grid=u.grid, npoint=1, nt=9)
        src.coordinates.data[:] = [[33.3, 42.0, 21.0]]
        src.data[:] = 0.7
        inject = src.inject(field=u.forward, expr=src * sympy.erfc(src))
        return u, [dv.Eq(u.forward, 2 * u + u.laplace), inject]

    (u, stock), (v, own) = make(), make()
    in_c = dv.Operator(stock, language="C")
    in_c.apply(time_M=3)
    with timetile.devito.backend(executor="cpu"):
        operator = dv.Operator(own)
    assert is_quick(operator)
    with pytest.warns(timetile.devito.DevitoWarning, match="timetile has no operation for erfc$"):
        operator.apply(time_M=3)
    assert [p.name for p in operator.parameters] == [p.name for p in in_c.parameters]
    assert np.abs(u.data_with_halo - v.data_with_halo).max() <= 1e-6 * np.abs(u.data).max()


def test_a_thread_knows_a_call_until_the_end_of_the_call():
    """Two threads may call one operator: one of the calls runs in C, the other on timetile."""
    operator, elsewhere = object(), list[RunningCall | None]()
    with calling(operator) as call:
        with calling(object()), calling(operator) as inner:
            assert inner is call and running_call(operator) is call
        other = Thread(target=lambda: elsewhere.append(running_call(operator)))
        other.start()
        other.join()
    assert elsewhere == [None] and running_call(operator) is None


def test_a_row_that_the_equation_writes_is_read_by_devitos_c():
    """Whether the row is written is known with the bounds of the call."""

    def make() -> tuple[Any, Any]:
        f = drawn(dv.Function(name="f", grid=grid_of(9, 9)))
        _, y = f.dimensions
        return f, dv.Eq(f, 2 * f.indexed[4, y + 1])

    (f, stock), (g, own) = make(), make()
    dv.Operator(stock, language="C").apply()
    with timetile.devito.backend(executor="cpu"):
        operator = dv.Operator(own)
    with pytest.warns(timetile.devito.DevitoWarning, match="in an order that Devito chooses$"):
        operator.apply()
    assert (f.data_with_halo == g.data_with_halo).all()


def test_a_device_of_devitos_runs_devitos_own_code():
    """The code is the code of the platform without timetile."""
    timetile.devito.register(executor="cpu")
    u = dv.TimeFunction(name="u", grid=grid_of(9, 9))
    with pytest.warns(timetile.devito.DevitoWarning, match="nvidiaX is a device of Devito's"):
        own = dv.Operator(dv.Eq(u.forward, u + 1), platform="nvidiaX", language="timetile")
    stock = dv.Operator(dv.Eq(u.forward, u + 1), platform="nvidiaX", language="C")
    assert str(own) == str(stock)
    assert type(own).__bases__ == (type(stock),)


def test_receivers_that_read_other_receivers_run_in_devitos_c():
    """Another point of the same step is old or new by Devito's choice of order."""
    rec = dv.SparseTimeFunction(name="rec", grid=grid_of(9, 9), npoint=3, nt=4)
    u = dv.TimeFunction(name="u", grid=rec.grid)
    time, point = rec.dimensions
    target = rec.indexed[time, point]
    assert reads_itself(target, u.indexify() + target)
    assert reads_itself(target, rec.indexed[time - 1, point] * 2)
    assert not reads_itself(target, u.indexify())
    with pytest.raises(NotCovered, match="another point, which may be new"):
        reads_itself(target, rec.indexed[time, point - 1])


def test_checks_inside_the_loop_are_devitos():
    u = dv.TimeFunction(name="u", grid=grid_of(9, 9))
    with (
        timetile.devito.backend(executor="cpu"),
        pytest.warns(timetile.devito.DevitoWarning, match="errctl='max' asks for checks inside"),
    ):
        dv.Operator(dv.Eq(u.forward, u + 1), opt=("advanced", {"errctl": "max"}))


def test_functions_that_share_memory_are_left_to_devito():
    cells = np.zeros(20)
    check_shared({"f": cells[:12], "g": cells[12:]}, {"f", "g"})
    check_shared({"f": cells, "g": cells[12:]}, {"h"})
    with pytest.raises(NotCovered, match="f and g share memory"):
        check_shared({"g": cells[12:], "f": cells[:14]}, {"g"})
