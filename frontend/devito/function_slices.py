"""Parts of functions: an array at one place of some of its axes, as a function of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timetile.frontend.devito.evaluation import Array, integer
from timetile.frontend.devito.library import NotCovered


@dataclass(frozen=True)
class ArrayPart:
    """The part of an array: of a function, at places along some of its axes."""

    of: str
    places: tuple[tuple[int, int], ...]
    function: Any = None
    """The function of the part; None for a number."""

    def part(self, array: Array) -> Any:
        """The part of an array, without a copy."""
        places = dict(self.places)
        return array[tuple(places.get(axis, slice(None)) for axis in range(array.ndim))]


@dataclass
class Slices:
    """The parts of functions with dimensions beside the grid's, by name."""

    known: dict[str, ArrayPart] = field(default_factory=dict[str, ArrayPart])
    ranges: list[tuple[Any, int]] = field(default_factory=list[tuple[Any, int]])
    """Bounds of loops, and their values for which the equations are made."""

    def add_to(self, arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
        """
        Add the parts to the arrays and the numbers of a call. Raises NotCovered for a call whose
        loops have other bounds than the equations are made for.
        """
        for bound, value in self.ranges:
            if integer(bound, numbers) != value:
                raise NotCovered(f"{bound} is {integer(bound, numbers)}, and was {value} before")
        for name, each in self.known.items():
            if each.of not in arrays:
                raise NotCovered(f"Devito passes no array of {each.of} to the operator")
            part = each.part(arrays[each.of])
            if each.function is None:
                numbers[name] = part
                continue
            levels = part[0] if each.function.dimensions[0].is_Time else part
            arrays[name] = part if levels.flags.c_contiguous else np.ascontiguousarray(part)

    def write_back(self, arrays: Mapping[str, Array], written: Iterable[str]) -> set[str]:
        """Copy written parts to the arrays; the names of the written functions."""
        found: set[str] = set()
        for name in written:
            if name not in self.known:
                found.add(name)
                continue
            each = self.known[name]
            found.add(each.of)
            part = each.part(arrays[each.of])
            if not np.shares_memory(part, arrays[name]):
                part[...] = arrays[name]
        return found


def original_name(name: str) -> str:
    """The name of the function of a part."""
    return name.partition(".")[0]
