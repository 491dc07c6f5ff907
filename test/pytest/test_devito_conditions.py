"""
Conditions on time, drawn at random: factors, comparisons, and their combinations by And and Or, as
in Devito's own C.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import timetile.devito
from support.devito_case import dv, grid_of, sympy
from support.sizes import seeds

# One worker imports Devito.
pytestmark = pytest.mark.xdist_group("devito")

COND_EQ: Any = __import__("devito.symbolics", fromlist=["CondEq"]).CondEq
"""An equality that SymPy does not evaluate."""

STEPS = 13
EQUATIONS = 6


def compared(random: Random, time: Any) -> Any:
    """A comparison of the step's number, or two by And or Or."""
    kinds = (COND_EQ, dv.Ne, dv.Lt, dv.Le, dv.Gt, dv.Ge)
    one, other = (random.choice(kinds)(time, random.randrange(STEPS)) for _ in range(2))
    joined = random.choice((None, sympy.And, sympy.Or))
    return one if joined is None else joined(one, other, evaluate=False)


def condition_of(random: Random, name: str, time: Any, has_factor: bool | None = None) -> Any:
    """A ConditionalDimension of time with a factor, a comparison, or both."""
    kind = random.choice(("factor", "condition", "both")) if has_factor is None else "factor"
    given: dict[str, Any] = {"relation": random.choice((sympy.And, sympy.Or))}
    if kind != "condition":
        given["factor"] = random.randint(2, 5)
    if kind != "factor":
        given["condition"] = compared(random, time)
    return dv.ConditionalDimension(name, parent=time, **given)


def conditions(random: Random, number: int, time: Any) -> list[Any]:
    """One or two conditions. Devito's C does not compile where SymPy finds that all are false."""
    while True:
        count = random.randint(1, 2)
        drawn = [condition_of(random, f"c{number}{part}", time) for part in range(count)]
        asked = [each.condition for each in drawn if each.condition is not None]
        found = [kind(*asked) for kind in (sympy.And, sympy.Or)]
        if not asked or not any(each in (sympy.true, sympy.false) for each in found):
            return drawn


def drawn_equations(seed: int) -> tuple[list[Any], list[Any]]:
    """Equations under drawn conditions, and their functions."""
    random = Random(seed)
    grid = grid_of(3, 4, dtype=np.float64)
    time = grid.time_dim
    equations: list[Any] = []
    changed: list[Any] = []
    for number in range(EQUATIONS):
        ends = conditions(random, number, time)
        if random.random() < 0.5:
            every = condition_of(random, f"every{number}", time, has_factor=True)
            f = dv.TimeFunction(
                name=f"f{number}", grid=grid, time_order=0, space_order=0, save=STEPS + 2,
                time_dim=every,
            )  # fmt: skip
            target = random.choice((f, f.forward))
            equations.append(dv.Eq(target, time + 1, implicit_dims=tuple(ends)))
        else:
            f = dv.Function(name=f"f{number}", grid=grid, space_order=0)
            equations.append(dv.Eq(f, 0.5 * f + time + 1, implicit_dims=tuple(ends)))
        changed.append(f)
    return equations, changed


def run(seed: int, language: str) -> list[NDArray[Any]]:
    """The functions of drawn equations after a run."""
    equations, changed = drawn_equations(seed)
    options = {"opt": "noop"} if language == "C" else {}
    dv.Operator(equations, language=language, **options).apply(time_M=STEPS - 1)
    return [np.array(function.data) for function in changed]


@pytest.mark.parametrize("seed", seeds(16))
def test_conditions_are_combined_as_by_devitos_c(seed: int):
    """Warnings of the fallback to Devito's own C are errors in the file."""
    timetile.devito.register(executor="numpy")
    for a, b in zip(run(seed, "timetile"), run(seed, "C"), strict=True):
        assert (a == b).all()


def test_a_second_condition_joined_by_or_stores_its_sample():
    """The last sample of a field saved every second step is stored under a condition of its own."""
    timetile.devito.register(executor="numpy")

    def samples(language: str) -> list[float]:
        grid = grid_of(4, 5)
        time, last = grid.time_dim, 5
        every = dv.ConditionalDimension("every", parent=time, factor=2, relation=sympy.Or)
        at = COND_EQ(time, last)
        end = dv.ConditionalDimension("end", parent=time, condition=at, relation=sympy.Or)
        kept = dv.TimeFunction(
            name="kept", grid=grid, time_order=0, space_order=0, save=4, time_dim=every
        )
        equations = [dv.Eq(kept, time), dv.Eq(kept.forward, time + 1, implicit_dims=end)]
        dv.Operator(equations, language=language).apply(time_M=last)
        return [float(plane[0, 0]) for plane in kept.data]

    assert samples("timetile") == samples("C") == [0, 2, 4, 6]


@pytest.mark.parametrize("is_sampled", [False, True])
def test_a_call_evaluates_no_more_expressions_for_more_steps(
    is_sampled: bool, monkeypatch: pytest.MonkeyPatch
):
    """Work on Devito's expressions does not grow with the number of steps."""
    from timetile.frontend.devito import equations, evaluation, runs

    timetile.devito.register(executor="numpy")
    grid = grid_of(5, 6)
    u = dv.TimeFunction(name="u", grid=grid, space_order=2)
    parts = [dv.Eq(u.forward, u + 0.1 * u.laplace)]
    if is_sampled:
        sub = dv.ConditionalDimension("sub", parent=grid.time_dim, factor=10)
        kept = dv.TimeFunction(name="kept", grid=grid, time_order=0, time_dim=sub, save=21)
        parts.append(dv.Eq(kept, u))
    operator = dv.Operator(parts, language="timetile")
    count = [0]

    def counted(function: Any) -> Any:
        def call(*given: Any) -> Any:
            count[0] += 1
            return function(*given)

        return call

    monkeypatch.setattr(runs, "evaluate", counted(evaluation.evaluate))
    monkeypatch.setattr(evaluation, "evaluate", counted(evaluation.evaluate))
    monkeypatch.setattr(equations.Equations, "role", counted(equations.Equations.role))
    monkeypatch.setattr(equations, "indexed_in", counted(equations.indexed_in))

    def evaluations(steps: int) -> int:
        count[0] = 0
        operator.apply(time_M=steps - 1, dt=0.1)
        return count[0]

    evaluations(20)
    assert evaluations(20) == evaluations(200) > 0


def test_the_number_of_a_coarse_step_is_a_quotient_of_whole_numbers():
    """As in C: `v + u * (time / 3)`, and `u * (time / 3)` kept in every third step."""
    grid = grid_of(5, 6)
    u, v = dv.TimeFunction(name="u", grid=grid), dv.Function(name="v", grid=grid)
    coarse = dv.ConditionalDimension("coarse", parent=grid.time_dim, factor=3)
    kept = dv.TimeFunction(name="kept", grid=grid, save=5, time_dim=coarse)
    u.data[:] = 1
    equations = [dv.Eq(u.forward, u + 1), dv.Eq(kept, u * coarse), dv.Eq(v, v + u * coarse)]
    with timetile.devito.backend(executor="cpu"):
        operator = dv.Operator(equations)
    assert operator.apply(time_M=11).ran_on.is_timetile
    assert kept.data[:, 2, 3].tolist() == [0, 4, 14, 30, 0]
    assert v.data.min() == v.data.max() == sum((1 + t) * (t // 3) for t in range(0, 12, 3))


def test_an_operator_without_cells_leaves_all_as_it_is():
    grid = grid_of(5, 6)
    u, w = dv.TimeFunction(name="u", grid=grid), dv.Function(name="w", grid=grid)
    with timetile.devito.backend(executor="cpu"):
        operator = dv.Operator([dv.Eq(w, w + 1), dv.Eq(u.forward, u + 1)])
    summary = operator.apply(time_M=3, x_m=3, x_M=2)
    assert summary.ran_on.is_timetile and not u.data.any() and not w.data.any()
    operator.apply(time_M=3)
    assert u.data.max() == 4 and w.data.min() == 1
