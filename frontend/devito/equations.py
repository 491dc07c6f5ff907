"""Devito's lowered equations, as updates of whole boxes or as work at points."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np

from timetile.frontend.devito.complex_parts import ComplexParts
from timetile.frontend.devito.function_slices import Slices
from timetile.frontend.devito.library import NotCovered, module, sympy


class TimeArrays(Enum):
    """
    The arrays of a function over time. LEVELS: several buffers rotate from step to step. SLOTS: the
    step gives the index of an array. ONE: the function has no time.
    """

    LEVELS = auto()
    SLOTS = auto()
    ONE = auto()


@dataclass(frozen=True)
class Role:
    """
    One array of a function during a step. `at` is a level, counted from the step's own, modulo the
    number of buffers, or the index of a slot.
    """

    function: str
    series: TimeArrays
    at: Any = 0


@dataclass(frozen=True)
class Loop:
    """A loop over one dimension, from its first to its last value. Both are expressions."""

    dimension: Any
    first: Any
    last: Any


@dataclass(frozen=True)
class Equation:
    """
    An equation. `target` is an indexed function, or a number of a sparse operation. `loops` are
    over all dimensions but time; `when` are conditions on time, `where` conditions on cells.
    """

    number: int
    target: Any
    value: Any
    adds: bool
    loops: tuple[Loop, ...]
    in_time: bool
    when: tuple[Any, ...]
    where: tuple[Any, ...]
    shown: str = ""
    """The equation as in Devito, if it was complex there."""
    is_second_part: bool = False
    """The equation of the imaginary parts behind the equation of the real parts."""

    @property
    def text(self) -> str:
        """How messages name the equation."""
        if self.shown:
            return f"equation {self.shown}"
        sign = "+=" if self.adds else "="
        value = str(self.value)
        short = value if len(value) <= 60 else f"{value[:57]}..."
        return f"equation {self.number + 1} ({self.target} {sign} {short})"

    @property
    def reads(self) -> list[Any]:
        """The indexed functions read by the equation, each once."""
        places = [self.value, *self.where, *((self.target,) if self.adds else ())]
        found = [i for part in places for i in indexed_in(part)]
        return list(dict.fromkeys(found))


@dataclass
class Equations:
    """All equations of an operator, in order, and their functions by name."""

    items: list[Equation]
    functions: dict[str, Any]
    time: Any = None
    axes: tuple[Any, ...] = ()
    levels: dict[str, int] = field(default_factory=dict[str, int])
    """The number of buffers of each function with rotating buffers."""
    sets: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, Any])
    """The bounds of the subdomains of each set, by name."""
    parts: ComplexParts = field(default_factory=ComplexParts)
    """The parts of complex functions and numbers."""
    slices: Slices = field(default_factory=Slices)
    """The parts of functions with dimensions beside the grid's."""
    beginnings: tuple[Any, ...] = ()
    """Values of numbers of arrays before the loop over time."""

    @property
    def written(self) -> frozenset[str]:
        """The functions written by some equation, at any step."""
        targets = [equation.target for equation in self.items]
        return frozenset(t.function.name for t in targets if getattr(t, "is_Indexed", False))

    def role(self, indexed: Any) -> Role:
        """The array of an indexed function. Raises NotCovered for an unknown time index."""
        function = indexed.function
        if not has_time(function):
            return Role(function.name, TimeArrays.ONE)
        dimension, at = function.dimensions[0], indexed.indices[0]
        if not dimension.is_Stepping:
            return Role(function.name, TimeArrays.SLOTS, at)
        if dimension in at.free_symbols:
            step = at - dimension
            if not step.is_Integer or dimension.root is not self.time:
                raise NotCovered(f"{indexed} has no time index that timetile knows")
            return Role(
                function.name, TimeArrays.LEVELS, int(step) % int(function.shape_allocated[0])
            )
        return Role(function.name, TimeArrays.SLOTS, at)

    def loop_of(self, index: Any, equation: Equation) -> tuple[Loop | None, Any]:
        """The loop moving an index, if any, and the offset added to the loop's value."""
        loops = [loop for loop in equation.loops if loop.dimension in index.free_symbols]
        if not loops:
            return None, index
        offset = index - loops[0].dimension
        if len(loops) > 1 or loops[0].dimension in offset.free_symbols:
            raise NotCovered(f"the index {index} is no loop's value and a constant")
        return loops[0], offset


def indexed_in(expression: Any) -> list[Any]:
    """The indexed functions in an expression, in order."""
    if getattr(expression, "is_Indexed", False):
        inner = [i for index in expression.indices for i in indexed_in(index)]
        return [expression, *inner]
    return [i for argument in expression.args for i in indexed_in(argument)]


def has_time(function: Any) -> bool:
    """The function's first dimension is time."""
    return bool(function.dimensions) and bool(function.dimensions[0].is_Time)


def space_of(function: Any) -> tuple[Any, ...]:
    """The dimensions of a function but time."""
    return tuple(function.dimensions[1:] if has_time(function) else function.dimensions)


def left_of(function: Any, dimension: Any) -> int:
    """The cells of a function's array before its domain along a dimension."""
    return int(function._size_nodomain[dimension].left)


def is_sparse(function: Any) -> bool:
    """The function has values at points, or describes the points."""
    return bool(getattr(function, "is_AbstractSparseFunction", False)) or not all(
        dimension.root.is_Space for dimension in space_of(function)
    )


def is_sparse_equation(equation: Equation) -> bool:
    """
    Whether the equation runs over points beside the grid or over computed places, or computes a
    number for such an equation.
    """
    if not getattr(equation.target, "is_Indexed", False):
        return True
    over_grid = all(loop.dimension.root.is_Space for loop in equation.loops)
    return not over_grid or has_computed_places(equation)


def has_computed_places(equation: Equation) -> bool:
    """
    Whether an index of an equation over the grid is no loop's value and a constant: every fourth
    cell (`IntDiv`), or a place read from a function.
    """
    dimensions = {loop.dimension for loop in equation.loops}
    return any(
        is_computed_place(sympy.sympify(index), dimensions)
        for indexed in (equation.target, *equation.reads)
        for index in indexed.indices[len(indexed.indices) - len(space_of(indexed.function)) :]
    )


def is_computed_place(index: Any, dimensions: set[Any]) -> bool:
    """Whether an index is neither a loop's dimension with a constant nor equal for all cells."""
    moving = index.free_symbols & dimensions
    if indexed_in(index):
        return True
    return bool(moving) and bool((index - next(iter(moving))).free_symbols & dimensions)


def conditions_of(lowered: Any) -> list[tuple[Any, Any]]:
    """
    The conditions of a lowered equation, each with a dimension, or with None. Devito combines the
    conditions of a dimension, but not the conditions that keep indices inside an array.
    """
    clusters = module("devito.ir.clusters.algorithms")
    (guarded,) = clusters.guard([clusters.Cluster(lowered, lowered.ispace)])
    return [*guarded.guards.items(), *guarded.exprs[0].conditionals.items()]


def equation_of(number: int, lowered: Any) -> Equation:
    """One lowered equation of Devito's."""
    loops: list[Loop] = []
    in_time = False
    for interval in lowered.ispace.intervals:
        dimension = interval.dim
        if dimension.is_Time:
            in_time = True
            continue
        first = dimension.symbolic_min + interval.lower
        loops.append(Loop(dimension, first, dimension.symbolic_max + interval.upper))
    if lowered.is_Reduction and str(lowered.operation) != "+":
        raise NotCovered(
            f"equation {number + 1} reduces by {lowered.operation}; only sums are covered"
        )
    guards = conditions_of(lowered)
    when = tuple(value for key, value in guards if key is not None and key.is_Time)
    where = tuple(value for key, value in guards if key is None or not key.is_Time)
    return Equation(
        number,
        lowered.lhs,
        lowered.rhs,
        bool(lowered.is_Reduction),
        tuple(loops),
        in_time,
        when,
        where,
    )
