"""An operator of Devito as a test case: equations, changed functions, and a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

dv: Any = import_module("devito")
"""Devito has no types."""

sympy: Any = import_module("sympy")
"""SymPy has no types."""

dv.configuration["log-level"] = "ERROR"


@dataclass
class Case:
    """An operator's equations, the changed functions, and the arguments of the call."""

    equations: list[Any]
    changed: list[Any]
    call: dict[str, Any]


Make = Callable[[], Case]


def noted_in(cases: dict[str, Make]) -> Callable[[Make], Make]:
    """A decorator: adds a case to a table, under the function's name."""

    def note(make: Make) -> Make:
        cases[getattr(make, "__name__", "")] = make
        return make

    return note


def grid_of(*shape: int, dtype: Any = np.float32, **options: Any) -> Any:
    """A grid of cells of 10 by 10."""
    extent = tuple(10.0 * (n - 1) for n in shape)
    return dv.Grid(shape=shape, extent=extent, dtype=dtype, **options)


def drawn(function: Any, low: float = 0.0, high: float = 1.0) -> Any:
    """A function by name, filled with random cells between two bounds, halo included."""
    random = np.random.default_rng(sum(map(ord, function.name)))
    data: Any = function.data_with_halo
    shape: tuple[int, ...] = data.shape
    data[:] = (low + (high - low) * random.random(shape)).astype(function.dtype)
    return function


def all_of(*functions: Any) -> list[Any]:
    """The components of vectors and tensors, each once."""
    parts = [part for function in functions for part in function]
    return sorted(set(parts), key=lambda part: part.name)
