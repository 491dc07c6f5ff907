"""Splits an equation on a SubDomainSet into one equation for each subdomain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from timetile.frontend.devito.equations import Equation, Loop
from timetile.frontend.devito.library import NotCovered

SetBounds = Mapping[str, "np.ndarray[Any, Any]"]
"""Cells left out on each side by each subdomain of a set, by the name of the set."""


def set_dimensions(lowered: Any) -> list[Any]:
    """The dimensions of a set of subdomains in a lowered equation."""
    dimensions = [interval.dim for interval in lowered.ispace.intervals]
    return [each for each in dimensions if getattr(each, "is_MultiSub", False)]


def bounds_of_sets(lowered: Sequence[Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The bounds of all sets of subdomains in lowered equations."""
    functions = [each.functions for equation in lowered for each in set_dimensions(equation)]
    return {function.name: np.array(function.data) for function in functions}


def on_each_subdomain(equation: Equation, lowered: Any, bounds: SetBounds) -> list[Equation]:
    """An equation for each subdomain of a set, in order; the equation alone outside of sets."""
    dimensions = set_dimensions(lowered)
    if not dimensions:
        return [equation]
    rows = bounds[dimensions[0].functions.name]
    return [one_subdomain(equation, dimensions, row) for row in rows]


def one_subdomain(equation: Equation, dimensions: Sequence[Any], row: Any) -> Equation:
    """The equation on one subdomain, with numbers for the cells left out on each side."""
    known = {
        side: int(row[index])
        for each in dimensions
        for side, index in zip(each.thickness, each.bounds_indices, strict=True)
    }
    loops = tuple(
        Loop(loop.dimension, loop.first.subs(known), loop.last.subs(known))
        for loop in equation.loops
    )
    return replace(equation, loops=loops)


def check_sets(lowered: Sequence[Any], made: Sequence[Sequence[Equation]]) -> None:
    """
    NotCovered for consecutive equations on one set with a common written function: Devito computes
    all equations on a subdomain before the next subdomain.
    """
    for place in range(1, len(lowered)):
        names = {each.functions.name for each in set_dimensions(lowered[place])}
        for earlier in reversed(range(place)):
            if names.isdisjoint(each.functions.name for each in set_dimensions(lowered[earlier])):
                break
            first, second = made[earlier][0], made[place][0]
            if len(made[place]) > 1 and share_written(first, second):
                raise NotCovered(
                    f"{second.text} uses a function of {first.text} on the same set of "
                    "subdomains; make the set several subdomains"
                )


def share_written(first: Equation, second: Equation) -> bool:
    """Whether an equation writes a function read or written by the other equation."""
    written = [{each.target.function.name} for each in (first, second)]
    used = [
        {read.function.name for read in each.reads} | own
        for each, own in zip((first, second), written)
    ]
    return not (written[0].isdisjoint(used[1]) and written[1].isdisjoint(used[0]))
