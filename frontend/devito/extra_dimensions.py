"""
Equations over dimensions beside the grid's, such as the frequencies of a transform: an equation for
each value of the dimension, on functions of the grid.

If `f` has three values, `u(t, f, x, y, z)` becomes `u.0`, `u.1` and `u.2`, three functions of
`(t, x, y, z)` whose arrays are parts of the array of `u`. A function of `f` alone becomes numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from timetile.frontend.devito.equations import Equation, has_time, space_of
from timetile.frontend.devito.function_slices import ArrayPart, Slices
from timetile.frontend.devito.library import NotCovered, module, sympy
from timetile.frontend.devito.pickled import unevaluated

MOST_EQUATIONS = 64
"""The most equations made of an operator's."""

Values = Mapping[Any, int]
"""Values of dimensions."""


def extra_dimensions(equations: Sequence[Equation]) -> dict[Any, int]:
    """The dimensions beside the grid's of functions of the grid, with the numbers of values."""
    found: dict[Any, int] = {}
    for equation in equations:
        for indexed in (*equation.reads, equation.target):
            function: Any = getattr(indexed, "function", None)
            if not getattr(indexed, "is_Indexed", False) or is_at_points(function):
                continue
            space = space_of(function)
            if not any(dimension.root.is_Space for dimension in space):
                continue
            sizes = function.shape_allocated[-len(space) :]
            for dimension, size in zip(space, sizes, strict=True):
                if not dimension.root.is_Space:
                    found[dimension] = int(size)
    return found


def is_weight(indexed: Any) -> bool:
    """Whether an indexed function is one number for all cells, such as a weight."""
    function = indexed.function
    is_of_grid = any(each.root.is_Space or each.is_Time for each in function.dimensions)
    return not is_of_grid and all(sympy.sympify(index).is_Integer for index in indexed.indices)


def is_at_points(function: Any) -> bool:
    """Whether the function has values at points beside the grid."""
    return bool(getattr(function, "is_AbstractSparseFunction", False))


def number_of_equations(equations: Sequence[Equation], extra: Mapping[Any, int]) -> int:
    """The equations made of some equations."""
    sizes = [[extra.get(loop.dimension, 1) for loop in each.loops] for each in equations]
    return sum(int(np.prod(each)) for each in sizes)


def on_each_value(groups: Sequence[Sequence[Equation]], slices: Slices) -> list[Equation]:
    """
    The equations of all values of dimensions beside the grid's, in order; the given equations if
    there is no such dimension, or if more than `MOST_EQUATIONS` would be made. Equations of a group
    stay together. Raises NotCovered for an equation whose values depend on each other.
    """
    every = [equation for group in groups for equation in group]
    written = {e.target.function for e in every if getattr(e.target, "is_Indexed", False)}
    extra = extra_dimensions(every)
    count = number_of_equations(every, extra)
    if count > MOST_EQUATIONS:
        check_count(extra, every, count)
        return every
    has_numbers = any(is_weight(read) for equation in every for read in equation.reads)
    if not extra and not has_numbers:
        return every
    made: list[Equation] = []
    for group in groups:
        loops = [loop for loop in group[0].loops if loop.dimension in extra]
        for loop in loops:
            slices.ranges += [(loop.first, 0), (loop.last, extra[loop.dimension] - 1)]
        for equation in group:
            check_own_reads(equation, extra, bool(loops))
        for places in product(*(range(extra[loop.dimension]) for loop in loops)):
            values = {loop.dimension: place for loop, place in zip(loops, places, strict=True)}
            made += [Substitution(slices, extra, values, written).of(each) for each in group]
    return made


def check_count(extra: Mapping[Any, int], equations: Sequence[Equation], count: int) -> None:
    """Raise NotCovered for more equations with functions over time than are made."""
    for equation in equations:
        function = getattr(equation.target, "function", None)
        if (
            function is not None
            and has_time(function)
            and not extra.keys().isdisjoint(function.dimensions)
        ):
            raise NotCovered(
                f"{equation.text}: an equation for each value of "
                f"{', '.join(str(each) for each in extra)} makes {count} equations, and at most "
                f"{MOST_EQUATIONS} are made"
            )


def check_own_reads(equation: Equation, extra: Mapping[Any, int], has_loop: bool) -> None:
    """Raise NotCovered for an equation that reads its own results of other values."""
    target = equation.target
    if not getattr(target, "is_Indexed", False):
        if has_loop:
            raise NotCovered(f"{equation.text}: it computes a number at each point")
        return
    axes = [axis for axis, each in enumerate(target.function.dimensions) if each in extra]
    for read in equation.reads:
        if read.function is not target.function:
            continue
        is_now = not has_time(read.function) or read.indices[0] == target.indices[0]
        if is_now and any(read.indices[axis] != target.indices[axis] for axis in axes):
            raise NotCovered(
                f"{equation.text}: it reads {read}, a cell that the equation itself writes in an "
                "order that Devito chooses"
            )


@dataclass
class Substitution:
    """Puts values of dimensions into equations."""

    slices: Slices
    extra: Mapping[Any, int]
    values: Values
    written: set[Any]

    def of(self, equation: Equation) -> Equation:
        """The equation at the values. Messages show the equation as given."""
        try:
            return replace(
                equation,
                target=self.expression(equation.target),
                value=self.expression(equation.value),
                loops=tuple(p for p in equation.loops if p.dimension not in self.values),
                when=tuple(map(self.expression, equation.when)),
                where=tuple(map(self.expression, equation.where)),
                shown=equation.shown or equation.text.partition(" ")[2],
            )
        except NotCovered as error:
            raise NotCovered(f"{equation.text}: {error}") from None

    def expression(self, expression: Any) -> Any:
        """The expression at the values, in the order of its parts."""
        if getattr(expression, "is_Indexed", False):
            return self.indexed(expression)
        if expression in self.values:
            return sympy.Integer(self.values[expression])
        if not expression.args:
            return expression
        parts = [self.expression(each) for each in expression.args]
        if all(new is old for new, old in zip(parts, expression.args, strict=True)):
            return expression
        if expression.is_Add or expression.is_Mul or expression.is_Pow:
            return unevaluated(expression.func, parts)
        return expression.func(*parts)

    def indexed(self, indexed: Any) -> Any:
        """The cell of a part, or a number; other cells as they are."""
        function = indexed.function
        indices = [sympy.sympify(self.expression(index)).doit() for index in indexed.indices]
        axes = [k for k, each in enumerate(function.dimensions) if each in self.extra]
        if is_weight(indexed) and function not in self.written:
            axes = list(range(len(indices)))
        if is_at_points(function) or not axes:
            same = all(a is b for a, b in zip(indices, indexed.indices, strict=True))
            return indexed if same else function.indexed[tuple(indices)]
        places = tuple((axis, self.place(indexed, function, axis, indices[axis])) for axis in axes)
        name = ".".join([function.name, *(str(place) for _, place in places)])
        if len(axes) == len(function.dimensions):
            if function in self.written:
                raise NotCovered(f"it uses {indexed}, which the operator writes")
            self.slices.known[name] = ArrayPart(function.name, places)
            return module("devito.types").Scalar(name=name, dtype=function.dtype)
        rest = [k for k in range(len(function.dimensions)) if k not in axes]
        if name not in self.slices.known:
            part = function._rebuild(
                name=name,
                dimensions=tuple(function.dimensions[k] for k in rest),
                shape=tuple(function.shape[k] for k in rest),
            )
            self.slices.known[name] = ArrayPart(function.name, places, part)
        return self.slices.known[name].function.indexed[tuple(indices[k] for k in rest)]

    def place(self, indexed: Any, function: Any, axis: int, index: Any) -> int:
        """The place along a dimension beside the grid's. NotCovered for no place of the array."""
        if not index.is_Integer or not 0 <= int(index) < int(function.shape_allocated[axis]):
            raise NotCovered(f"it uses {indexed}, at no place of {function.dimensions[axis]}")
        return int(index)
