"""A stencil program as data: buffers, rotation, and the updates of one step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from support.expressions import Expression, Tap

Array = NDArray[Any]
Element = Literal["f32", "f64"]

DTYPES: dict[Element, type[np.floating[Any]]] = {"f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class Box:
    """Cells `[lower, upper)` per axis, in the program's coordinates."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    @staticmethod
    def of(domain: tuple[int, ...]) -> Box:
        """The cells from 0 on."""
        return Box((0,) * len(domain), domain)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in zip(self.lower, self.upper, strict=True))

    def grown(self, low: tuple[int, ...], high: tuple[int, ...]) -> Box:
        """The box with `low` more cells below and `high` more above."""
        return Box(
            tuple(a - n for a, n in zip(self.lower, low, strict=True)),
            tuple(u + n for u, n in zip(self.upper, high, strict=True)),
        )


@dataclass(frozen=True)
class Buffer:
    """
    A field argument with its bounds, halos included. A field of fewer axes has cells along `axes`
    of the domain only; None for all axes.
    """

    name: str
    bounds: Box
    element: Element
    axes: tuple[int, ...] | None = None

    @property
    def own_bounds(self) -> Box:
        """The bounds along the field's own axes."""
        if self.axes is None:
            return self.bounds
        lower, upper = self.bounds.lower, self.bounds.upper
        return Box(tuple(lower[k] for k in self.axes), tuple(upper[k] for k in self.axes))


@dataclass(frozen=True)
class Store:
    """
    A result of an update, stored to a buffer's cells in a box; cells outside the box keep their
    values.
    """

    result: int
    buffer: str
    box: Box


@dataclass(frozen=True)
class Update:
    """
    One apply and its stores. All taps are read before any store. Taps and stores name the carried
    arguments of the time loop, or buffers outside the rotation.
    """

    results: tuple[Expression, ...]
    stores: tuple[Store, ...]

    @property
    def nodes(self) -> list[Expression]:
        """Every expression once, operands first."""
        return list(dict.fromkeys(node for result in self.results for node in result.walk()))

    @property
    def sources(self) -> list[str]:
        """The tapped buffers, in order."""
        return list(dict.fromkeys(n.buffer for n in self.nodes if isinstance(n, Tap)))


@dataclass(frozen=True)
class Program:
    """
    A function of buffers, scalars and a number of steps. The time loop carries the buffers
    `carried`, under equal names; after a step, name k is the buffer of name `rotation[k]` before.
    """

    element: Element
    buffers: tuple[Buffer, ...]
    carried: tuple[str, ...]
    rotation: tuple[int, ...]
    updates: tuple[Update, ...]
    scalars: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.buffers[0].bounds.lower)

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)


SCALAR_KINDS = ("i1", "i32", "i64", "index")
"""Types of scalars other than the program's type: `count_i32` is of type i32."""


def scalar_kind(name: str, element: Element) -> str:
    """The type of a scalar, by its name."""
    kind = name.rpartition("_")[2]
    return kind if kind in SCALAR_KINDS else element


def random_scalar(name: str, rng: np.random.Generator) -> float:
    """A number for a scalar of a given name: small, of either sign for signed types."""
    match scalar_kind(name, "f64"):
        case "i1":
            return int(rng.integers(2))
        case "i32" | "i64":
            return int(rng.integers(-3, 4))
        case "index":
            return int(rng.integers(4))
        case _:
            return float(rng.uniform(0.01, 0.1))


@dataclass
class Inputs:
    """Arrays by buffer and scalars by name."""

    arrays: dict[str, Array]
    scalars: dict[str, float] = field(default_factory=dict[str, float])

    def copy(self) -> Inputs:
        return Inputs({name: a.copy() for name, a in self.arrays.items()}, dict(self.scalars))

    def arguments(self, program: Program, steps: int) -> list[Any]:
        """The arguments of the program's function, by position."""
        scalars = [self.scalars[name] for name in program.scalars]
        return [*(self.arrays[b.name] for b in program.buffers), *scalars, steps]


def cycles_of(rotation: tuple[int, ...]) -> list[list[int]]:
    """The cycles of the rotation, as groups of positions."""
    groups: list[list[int]] = []
    for start in range(len(rotation)):
        if any(start in group for group in groups):
            continue
        group, position = [start], rotation[start]
        while position != start:
            group.append(position)
            position = rotation[position]
        groups.append(group)
    return groups


def share_halos(program: Program, arrays: dict[str, Array]) -> None:
    """Give all buffers of a cycle equal cells outside the boxes written to them."""
    for first, *others in cycles_of(program.rotation):
        names = [program.carried[k] for k in (first, *others)]
        stores = [store for update in program.updates for store in update.stores]
        boxes = [store.box for store in stores if store.buffer in names]
        start = program.buffer(names[0]).bounds.lower
        inside = (
            tuple(
                slice(
                    max(0, min(box.lower[k] for box in boxes) - start[k]),
                    max(0, max(box.upper[k] for box in boxes) - start[k]),
                )
                for k in range(program.rank)
            )
            if boxes
            else (slice(0, 0),)
        )
        for name in names[1:]:
            own = arrays[name][inside].copy()
            arrays[name][...] = arrays[names[0]]
            arrays[name][inside] = own


def random_inputs(program: Program, seed: int, *, common_halos: bool = False) -> Inputs:
    """
    Positive numbers of one magnitude: no zero hides a mistake and no step overflows. With
    `common_halos`, buffers of a cycle have equal numbers outside the boxes written to them.
    """
    rng = np.random.default_rng(seed)
    arrays = {
        b.name: rng.uniform(0.5, 1.5, b.own_bounds.shape).astype(DTYPES[b.element])
        for b in program.buffers
    }
    if common_halos:
        share_halos(program, arrays)
    return Inputs(arrays, {name: random_scalar(name, rng) for name in program.scalars})
