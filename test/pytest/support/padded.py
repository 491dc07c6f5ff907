"""Steps with boundaries and their evaluation with `numpy.pad`, level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

import timetile
from timetile import Field, Model, Scalar
from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import Boundary, FieldSide

Array = np.ndarray[Any, Any]

PADDED: dict[Kind, Literal["wrap", "symmetric", "reflect", "edge"]] = {
    Kind.PERIODIC: "wrap",
    Kind.MIRROR: "symmetric",
    Kind.REFLECT: "reflect",
    Kind.CLAMP: "edge",
}
"""The modes of numpy.pad, by the kinds of a boundary."""

Sides = tuple[FieldSide, FieldSide]


def padded(array: Array, edges: Sequence[Sides], width: int, scalars: Mapping[str, float]) -> Array:
    """The array, continued by a number of cells on each side, one axis after the other."""
    for axis, sides in enumerate(edges):
        parts = [array]
        for number, side in enumerate(sides):
            widths = [(0, 0)] * array.ndim
            widths[axis] = (width, 0) if number == 0 else (0, width)
            if isinstance(side, Kind):
                around = np.pad(array, widths, PADDED[side])
            else:
                constant = scalars[side] if isinstance(side, str) else side
                around = np.pad(array, widths, "constant", constant_values=constant)
            cells = range(width) if number == 0 else range(-width, 0)
            part = np.take(around, cells, axis=axis)
            parts = [part, *parts] if number == 0 else [*parts, part]
        array = np.concatenate(parts, axis=axis)
    return array


Term = tuple[tuple[int, ...], float]
"""An offset and a factor."""


def even_terms(rank: int, reach: int) -> list[Term]:
    """Reads at places alike on all sides, with factors that differ."""
    most = 2 if rank < 3 else 1
    places = [
        place for place in product((-reach, 0, reach), repeat=rank) if sum(map(bool, place)) <= most
    ]
    return [(place, (0.1 * (1 + n % 5) - 0.02 * n) / rank) for n, place in enumerate(places)]


def terms_of(rank: int, reach: int) -> list[Term]:
    """Reads without any symmetry: at both sides of each axis, at a corner, and at the cell."""
    terms: list[Term] = []
    for axis in range(rank):
        for side, factor in ((-reach, 0.15), (1, -0.2), (reach, 0.25)):
            offset = [0] * rank
            offset[axis] = side
            terms.append((tuple(offset), factor / (axis + 1)))
    terms.append(((reach,) * rank, -0.1))
    terms.append(((0,) * rank, 0.4))
    return terms


@dataclass(frozen=True)
class EdgeCase:
    """A boundary as written by a user, and its sides along each axis."""

    boundary: Boundary
    edges: tuple[Sides, ...]
    reach: int = 1
    is_even: bool = False
    """Whether reads lie alike on all sides, as kernels need behind mirrors."""

    def even(self) -> EdgeCase:
        """The case with reads alike on all sides."""
        return replace(self, is_even=True)

    @property
    def terms(self) -> list[Term]:
        """The reads of the step."""
        return (even_terms if self.is_even else terms_of)(self.rank, self.reach)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.edges)

    def model(self) -> Model:
        """The step."""
        terms = self.terms

        @timetile.stencil(boundary=self.boundary)
        def step(u: Field, k: Scalar):
            total: Any = k * 0.01
            for offset, factor in terms:
                total = total + factor * u[offset]
            u.next = total

        return step

    def expected(self, u: Array, steps: int, k: float) -> Array:
        """The state after some steps."""
        reach, kind = self.reach, u.dtype.type
        for _ in range(steps):
            around = padded(u, self.edges, reach, {"k": k})
            total = np.full(u.shape, kind(k) * kind(0.01))
            for offset, factor in self.terms:
                at = tuple(slice(reach + d, reach + d + n) for d, n in zip(offset, u.shape))
                total = total + kind(factor) * around[at]
            u = total
        return u
