"""Sums of the cells of the grid: norms of Devito's, and `Inc` into a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from timetile.frontend.devito.equations import Equation, has_time, is_sparse, space_of
from timetile.frontend.devito.library import NotCovered


@dataclass(frozen=True)
class GridSum:
    """
    A number made of the grid's cells, for the target of `equation`: the value of `added` in all
    cells, and `begin`. `keeps` adds the number to the target's old number.
    """

    equation: Equation
    added: Equation
    begin: Any
    keeps: bool
    first_part: Equation | None = None
    """The added real parts, if `added` are imaginary parts."""

    def cells(self) -> Equation:
        """The equation of the added cells, with a function of the grid as the target."""
        loops = {loop.dimension for loop in self.added.loops}
        first = [] if self.first_part is None else self.first_part.reads
        for read in [*self.added.reads, *first]:
            indices = read.indices[len(read.indices) - len(space_of(read.function)) :]
            moved = [loops & index.free_symbols for index in indices]
            if not is_sparse(read.function) and len(moved) == len(loops) and all(moved):
                return replace(self.added, target=read, adds=False, number=self.equation.number)
        raise NotCovered("it sums no function of all dimensions of the sum")


def is_one_number(equation: Equation) -> bool:
    """Whether the equation writes one number of a function."""
    target = equation.target
    if not getattr(target, "is_Indexed", False):
        return False
    if space_of(target.function) and not is_sparse(target.function):
        return False
    loops = {loop.dimension for loop in equation.loops}
    places = target.indices[1:] if has_time(target.function) else target.indices
    return not any(loops & index.free_symbols for index in places)


def is_over_grid(equation: Equation) -> bool:
    """Whether the equation adds over dimensions of the grid alone."""
    loops = equation.loops
    return bool(loops) and equation.adds and all(each.dimension.root.is_Space for each in loops)


def grid_sums_of(equations: Sequence[Equation]) -> dict[int, GridSum]:
    """The sums over the grid, by the numbers of the equations that write the sums."""
    found: dict[int, GridSum] = {}
    begins: dict[Any, Equation] = {}
    sums: dict[Any, Equation] = {}
    for equation in equations:
        target, value = equation.target, equation.value
        if not getattr(target, "is_Indexed", False):
            (sums if equation.adds else begins)[target] = equation
        elif is_one_number(equation) and is_over_grid(equation):
            found[equation.number] = GridSum(
                equation, equation, 0, True, first_part_of(equation, equations)
            )
        elif is_one_number(equation) and value in sums and is_over_grid(sums[value]):
            parts = (begins[value], sums[value], equation)
            if len({(part.in_time, part.when) for part in parts}) > 1 or equation.loops:
                raise NotCovered(
                    f"{equation.text}: it sums cells of several steps; sum each step with Inc"
                )
            begin = begins[value].value
            found[equation.number] = GridSum(
                equation, sums[value], begin, equation.adds, first_part_of(sums[value], equations)
            )
    return found


def first_part_of(equation: Equation, equations: Sequence[Equation]) -> Equation | None:
    """The equation of the real parts, for an equation of imaginary parts."""
    return equations[equation.number - 1] if equation.is_second_part else None
