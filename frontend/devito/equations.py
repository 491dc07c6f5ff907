"""Reads Devito's lowered equations as updates of whole boxes, and finds equations without a
translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from timetile.frontend.devito.cells import check_operations
from timetile.frontend.devito.kinds import stored_kind
from timetile.frontend.devito.library import NotCovered, module


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

    @property
    def text(self) -> str:
        """How messages name the equation."""
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
    Whether the equation runs over points beside the grid, or computes a number for such an
    equation.
    """
    if not getattr(equation.target, "is_Indexed", False):
        return True
    return not all(loop.dimension.root.is_Space for loop in equation.loops)


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


def equations_of(lowered: Sequence[Any]) -> Equations:
    """
    All lowered equations of an operator. Raises NotCovered, naming an equation without a
    translation.
    """
    items = [equation_of(number, each) for number, each in enumerate(lowered)]
    found = Equations(items, {})
    for equation in items:
        parts = [*equation.reads, equation.target]
        for part in parts:
            if getattr(part, "is_Indexed", False):
                found.functions[part.function.name] = part.function
    times = {
        interval.dim.root for each in lowered for interval in each.ispace.intervals
        if interval.dim.is_Time
    }  # fmt: skip
    if len(times) > 1:
        raise NotCovered("there are several dimensions of time")
    found.time = next(iter(times), None)
    for equation in items:
        try:
            check(found, equation)
        except NotCovered as error:
            raise NotCovered(f"{equation.text}: {error}") from None
    check_order(items)
    check_time(found)
    return found


def check(found: Equations, equation: Equation) -> None:
    """NotCovered for an equation without a translation."""
    for indexed in (*equation.reads, equation.target):
        if not getattr(indexed, "is_Indexed", False):
            continue
        function = indexed.function
        if not is_sparse(function):
            stored_kind(function)
        role = found.role(indexed)
        if role.series is TimeArrays.LEVELS:
            found.levels[function.name] = int(function.shape_allocated[0])
    if is_sparse_equation(equation):
        return
    check_dense(found, equation)


def check_dense(found: Equations, equation: Equation) -> None:
    """Raise NotCovered for an equation over the grid that is no update of a box."""
    target = equation.target
    space = space_of(target.function)
    roots = tuple(dimension.root for dimension in space)
    found.axes = found.axes or roots
    if roots != found.axes:
        raise NotCovered("it writes a function of other dimensions than the equations before it do")
    if len(roots) > 3:
        raise NotCovered(f"it writes a function of {len(roots)} dimensions; three are covered")
    places = [found.loop_of(index, equation) for index in target.indices[-len(space) :]]
    used = [loop for loop, _ in places if loop is not None]
    if len(used) < len(equation.loops):
        raise NotCovered("it sums over a dimension that its target does not have")
    for (loop, _), dimension in zip(places, space):
        if loop is not None and loop.dimension.root is not dimension.root:
            raise NotCovered(
                f"it writes {target.function.name} along other dimensions than its own"
            )
    for part in (equation.value, *equation.where):
        check_operations(part)
    for read in equation.reads:
        check_read(found, equation, places, read)


def check_read(
    found: Equations, equation: Equation, places: Sequence[tuple[Loop | None, Any]], read: Any
) -> None:
    """
    Raise NotCovered for a read at a varying distance from the cell, or dependent on the order of
    cells.
    """
    target = equation.target
    if is_sparse(read.function):
        raise NotCovered(f"it reads {read}, which is no function of the grid, at every cell")
    space = space_of(read.function)
    order = [found.axes.index(d.root) if d.root in found.axes else -1 for d in space]
    if -1 in order or order != sorted(set(order)):
        raise NotCovered(
            f"it reads {read.function.name}, whose dimensions are not the grid's in order"
        )
    apart, moved = False, False
    for axis, dimension, index in zip(order, space, read.indices[len(read.indices) - len(space) :]):
        loop, offset = found.loop_of(index, equation)
        own, own_offset = places[axis]
        if loop is None and own is not None:
            raise NotCovered(f"it reads {read}, one row along {dimension} for all cells")
        if loop is not own:
            raise NotCovered(f"it reads {read} along another dimension than it writes")
        distance: Any = offset - left_of(read.function, dimension)
        distance -= own_offset - left_of(target.function, space_of(target.function)[axis])
        moved = moved or distance != 0
        apart = apart or (own is None and distance != 0)
    if moved and not apart and found.role(read) == found.role(target):
        raise NotCovered(
            f"it reads {read}, a cell that the equation itself writes in an order that Devito "
            "chooses"
        )


def check_order(items: Sequence[Equation]) -> None:
    """NotCovered where equations with and without time take turns more than once."""
    places = [k for k, equation in enumerate(items) if equation.in_time]
    if places and places != list(range(places[0], places[-1] + 1)):
        raise NotCovered("equations without time stand between equations with time; move them")


def check_time(found: Equations) -> None:
    """NotCovered where two arrays of a function may be one during a step."""
    roles: dict[str, list[Role]] = {}
    for equation in found.items:
        for indexed in (*equation.reads, equation.target):
            if getattr(indexed, "is_Indexed", False) and not is_sparse(indexed.function):
                roles.setdefault(indexed.function.name, []).append(found.role(indexed))
    for name, own in roles.items():
        slots = [role for role in dict.fromkeys(own) if role.series is TimeArrays.SLOTS]
        distances = [role.at - slots[0].at for role in slots]
        fixed = all(distance.is_Integer for distance in distances)
        if slots and (not fixed or name in found.levels):
            raise NotCovered(f"{name} is read or written at times that may be the same")
