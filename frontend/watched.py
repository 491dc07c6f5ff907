"""Numbers of NumPy that note how they are compared: a loop on a GPU repeats the comparisons."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timetile.runtime.kernels.loop_ends import KINDS, Comparison

NUMBERS: tuple[type[Any], ...] = (float, np.floating, np.integer)
"""Types of numbers compared in 8 bytes."""


@dataclass
class Watch:
    """The comparisons of the numbers of a check so far."""

    comparisons: list[Comparison] = field(default_factory=list[Comparison])
    is_known: bool = True
    """All comparisons were with numbers."""

    def number(self, place: int, value: Any) -> Any:
        """A number of the check, of its own type, whose comparisons are noted."""
        made = (WatchedDouble if value.dtype.itemsize == 8 else WatchedSingle)(value)
        made.watch, made.place, made.plain = self, place, value
        return made

    def compared(self, one: Any, kind: str, other: Any) -> Any:
        """The outcome of a comparison, noted."""
        if isinstance(other, WatchedDouble | WatchedSingle):
            outcome = getattr(operator, kind)(one.plain, other.plain)
            self.is_known &= other.watch is self
            made = Comparison(one.place, kind, other.place, True, bool(outcome))
            self.comparisons.append(made)
            return outcome
        outcome = getattr(operator, kind)(one.plain, other)
        near = number_beside(one.plain, other)
        if near is None:
            self.is_known = False
        else:
            self.comparisons.append(Comparison(one.place, kind, near, False, bool(outcome)))
        return outcome


def number_beside(number: Any, other: Any) -> float | None:
    """A number as compared with one of NumPy's; None for no number."""
    if type(other) in (float, int):
        # Python's numbers take the type of the number beside.
        return float(type(number)(other))
    return float(np.float64(other)) if isinstance(other, NUMBERS) else None


class WatchedDouble(np.float64):
    """A number of 8 bytes with a watch."""

    watch: Watch
    place: int
    plain: Any
    """The number without a watch."""


class WatchedSingle(np.float32):
    """A number of 4 bytes with a watch."""

    watch: Watch
    place: int
    plain: Any
    """The number without a watch."""


def comparing(kind: str) -> Any:
    """The method of a comparison."""

    def compare(self: WatchedDouble | WatchedSingle, other: object) -> Any:
        return self.watch.compared(self, kind, other)

    return compare


def hashed(number: WatchedDouble | WatchedSingle) -> int:
    """The hash of the number without a watch."""
    return hash(number.plain)


METHODS = {f"__{kind}__": comparing(kind) for kind in KINDS} | {"__hash__": hashed}
"""A class between these and NumPy's would change how NumPy reads the numbers."""

for made in (WatchedDouble, WatchedSingle):
    for name, method in METHODS.items():
        setattr(made, name, method)
