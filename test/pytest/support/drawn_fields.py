"""Fields of drawn steps: the shape of the arrays, types, coefficients of fewer axes, and sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

import timetile
from support.drawn_values import is_float
from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import Boundary, FieldSide

Array = np.ndarray[Any, Any]
Region = tuple[slice, ...]


class CannotJudge(Exception):
    """A package for the evaluation of a program is not installed."""


def dtype_of(kind: str) -> Any:
    """NumPy's type of a name. Raises CannotJudge for bfloat16 without its package."""
    if kind == "bfloat16":
        if find_spec("ml_dtypes") is None:
            raise CannotJudge("fields of bfloat16 need the package ml_dtypes")
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(kind)


def computing(kind: str) -> str:
    """The type of values of a field's type: floats of 16 bits compute in float32."""
    return "float32" if kind in ("float16", "bfloat16") else kind


@dataclass(frozen=True)
class DrawnFields:
    """Arrays of a shape, and of a type for each field."""

    shape: tuple[int, ...]
    types: dict[str, str]
    narrow: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """The axes of coefficients of fewer axes."""
    sides: dict[str, tuple[tuple[FieldSide, FieldSide], ...]] = field(
        default_factory=dict[str, tuple[tuple[FieldSide, FieldSide], ...]]
    )
    """The sides of each field with a boundary other than `keep`."""
    scales: dict[str, float] = field(default_factory=dict[str, float])
    """The greatest magnitude of fields of floats, unless 1."""

    @property
    def targets(self) -> list[str]:
        """The fields of all axes: a step may assign them."""
        return [name for name in self.types if name not in self.narrow]

    def number_type(self, used: Iterable[str]) -> Any:
        """The type of numbers without a type: float32 where all arrays go into float32."""
        kinds = [computing(self.types[name]) for name in used]
        return np.float32 if np.result_type(*kinds) == np.float32 else np.float64

    def arrays(self, used: Iterable[str], seed: int) -> dict[str, Array]:
        """Random arrays: integers of the whole range of their type, floats of both signs."""
        rng, found = np.random.default_rng(seed), dict[str, Array]()
        for name in used:
            axes = self.narrow.get(name, range(len(self.shape)))
            shape, kind = tuple(self.shape[axis] for axis in axes), self.types[name]
            if kind == "bool":
                found[name] = rng.random(shape) < 0.5
            elif is_float(kind):
                scale = self.scales.get(name, 1)
                found[name] = (rng.uniform(-1, 1, shape) * scale).astype(dtype_of(kind))
            else:
                ends = np.iinfo(kind)
                found[name] = rng.integers(ends.min, ends.max, shape, np.dtype(kind), endpoint=True)
        return found

    def boundary(self, used: Iterable[str]) -> Boundary:
        """The boundary as written by a user."""

        def written(side: FieldSide) -> Any:
            return side.value if isinstance(side, Kind) else timetile.value(side)

        return {
            name: tuple((written(low), written(high)) for low, high in self.sides[name])
            for name in used
            if name in self.sides
        }

    def text(self) -> str:
        """The fields, a line each."""
        lines = [
            f"{name}: {kind}, {self.narrow.get(name, 'all axes')}, {self.sides.get(name)}, "
            f"up to {self.scales.get(name, 1)}"
            for name, kind in self.types.items()
        ]
        return "\n".join([f"shape {self.shape}", *lines])
