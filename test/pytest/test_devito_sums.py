"""Devito's norms on timetile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import timetile.devito
from support.devito_case import drawn, dv, grid_of
from timetile.frontend.devito import operators


def by_devito(name: str, f: Any, g: Any) -> Any:
    return dv.inner(f, g) if name == "inner" else getattr(dv, name)(f)


def by_numpy(name: str, f: NDArray[Any], g: NDArray[Any]) -> Any:
    numbers = {"norm": np.linalg.norm(f), "sumall": np.sum(f), "inner": np.sum(f * g)}
    return numbers[name]


@pytest.mark.parametrize("name", ["norm", "sumall", "inner"])
@pytest.mark.filterwarnings("error::timetile.devito.DevitoWarning")
def test_norms_are_sums_in_double_precision(name: str, monkeypatch: pytest.MonkeyPatch):
    count = [0]
    run = operators.run

    def counted(prepared: Any) -> float:
        count[0] += 1
        return run(prepared)

    monkeypatch.setattr(operators, "run", counted)
    grid = grid_of(41, 37)
    f, g = (drawn(dv.Function(name=each, grid=grid), -1, 1) for each in "fg")
    with timetile.devito.backend(executor="cpu"):
        found = by_devito(name, f, g)
    expected = by_numpy(name, np.array(f.data, np.float64), np.array(g.data, np.float64))
    assert abs(found - expected) <= 1e-6 * abs(expected)
    assert count[0] == 1, "the sum runs on timetile"
