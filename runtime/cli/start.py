"""Contents of fields at the start of a run without a file: shapes, and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.stencil import StencilBoundsAttr

from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.host.parameters import Parameter

Array = NDArray[Any]

COEFFICIENTS = (0.05, 0.15)
"""Random coefficients: stable for explicit steps of heat and waves, in up to three dimensions."""

DISCS = (((0.36, 0.33, 0.35), 0.19), ((0.66, 0.72, 0.6), 0.12), ((0.8, 0.28, 0.7), 0.07))
"""Centres and radii, in parts of the domain."""


def places(bounds: StencilBoundsAttr, inside: StencilBoundsAttr) -> list[Array]:
    """
    The place of each cell of a field along each axis, in parts of the cells inside: from 0 to 1.
    """
    lines: list[Array] = []
    around = list(zip(bounds.lb, bounds.ub, inside.lb, inside.ub))
    for axis, (low, high, first, end) in enumerate(around):
        shape = [1] * len(around)
        shape[axis] = high - low
        lines.append(((np.arange(low, high) - first + 0.5) / (end - first)).reshape(shape))
    return lines


def distance(lines: Sequence[Array], centre: Sequence[float]) -> Array:
    """How far each cell lies from a centre."""
    squares = [(line - middle) ** 2 for line, middle in zip(lines, centre)]
    return np.sqrt(sum(squares, start=np.zeros(())))


def gaussian(lines: Sequence[Array]) -> Array:
    """A round bump of height 1 in the middle, a sixteenth of the domain wide."""
    return np.exp(-((distance(lines, [0.5] * len(lines)) * 16) ** 2) / 2)


def discs(lines: Sequence[Array]) -> Array:
    """1 in three discs, 0 around."""
    within = [distance(lines, centre) < radius for centre, radius in DISCS]
    return np.logical_or.reduce(within).astype(np.float64)


def sine(lines: Sequence[Array]) -> Array:
    """A standing wave between -1 and 1: one wavelength along each axis, 0 at the rim."""
    result = np.ones(())
    for line in lines:
        result = result * np.sin(2 * np.pi * line)
    return result


SHAPES: dict[str, Callable[[Sequence[Array]], Array]] = {
    "discs": discs,
    "gaussian": gaussian,
    "sine": sine,
}
"""The choices of `--init`."""


def shaped(
    shape: str, bounds: StencilBoundsAttr, inside: StencilBoundsAttr, dtype: np.dtype[Any]
) -> Array:
    """The cells of a field at the start, halo included. `inside` are the cells written by steps."""
    return np.ascontiguousarray(SHAPES[shape](places(bounds, inside)), dtype=dtype)


@dataclass(frozen=True)
class Range:
    """The range of a field's random numbers, given as `--random-range u=-1:1`."""

    text: str
    low: float
    high: float

    @staticmethod
    def parsed(setting: str) -> tuple[str, Range]:
        """The field's name, and the range; UsageError where the text is none."""
        key, equals, text = setting.partition("=")
        low, colon, high = text.partition(":")
        option = f"--random-range {setting}"
        if not (equals and colon):
            raise UsageError(f"{option} is no range; write --random-range {key or 'u'}=-1:1")
        try:
            ends = float(low), float(high)
        except ValueError as error:
            raise UsageError(f"{option} has ends other than numbers; write {key}=-1:1") from error
        if not (np.isfinite(ends).all() and ends[0] <= ends[1]):
            raise UsageError(f"{option} has ends in the wrong order; write the smaller end first")
        return key, Range(option, *ends)


def random_cells(
    parameter: Parameter, shape: tuple[int, ...], seed: int, wanted: Range | None, *, constant: bool
) -> Array:
    """
    Random cells of a field, from an own stream of random numbers: of a range, or between 0 and 1
    (integers: below 100), or, for a `constant` field not written by steps, of coefficients.
    """
    random = np.random.default_rng((seed, parameter.position))
    dtype = dtype_of(parameter.kind)
    if dtype.kind == "f":
        low, high = COEFFICIENTS if constant else (0.0, 1.0)
        if wanted is not None:
            low, high = wanted.low, wanted.high
            check_ends(parameter, wanted, float(np.finfo(dtype).max))
        return (low + (high - low) * random.random(shape)).astype(dtype)
    if wanted is None:
        # Random integers are small, and not all zero.
        return (100 * random.random(shape)).astype(dtype)
    limits = np.iinfo(dtype)
    if wanted.low < limits.min or wanted.high > limits.max:
        raise UsageError(
            f"{wanted.text} goes beyond the numbers of {parameter.kind}; give a smaller range"
        )
    if wanted.low != int(wanted.low) or wanted.high != int(wanted.high):
        raise UsageError(f"{wanted.text} is of a field of {parameter.kind}; give whole numbers")
    return random.integers(int(wanted.low), int(wanted.high), shape, dtype, endpoint=True)


def check_ends(parameter: Parameter, wanted: Range, most: float) -> None:
    """Raise UsageError for a range beyond the numbers of a field's type, or wider than they are."""
    if max(-wanted.low, wanted.high, wanted.high - wanted.low) >= most:
        raise UsageError(
            f"{wanted.text} goes beyond the numbers of {parameter.kind}; give a smaller range"
        )
