"""Finds equations without a translation, and says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from timetile.frontend.devito.cells import check_operations
from timetile.frontend.devito.complex_equations import equations_of_parts
from timetile.frontend.devito.complex_parts import ComplexParts
from timetile.frontend.devito.equations import (
    Equation,
    Equations,
    Loop,
    Role,
    TimeArrays,
    equation_of,
    has_computed_places,
    has_time,
    indexed_in,
    is_sparse,
    is_sparse_equation,
    left_of,
    space_of,
)
from timetile.frontend.devito.extra_dimensions import on_each_value
from timetile.frontend.devito.function_slices import Slices
from timetile.frontend.devito.grid_sums import GridSum, grid_sums_of
from timetile.frontend.devito.kinds import stored_kind
from timetile.frontend.devito.library import NotCovered
from timetile.frontend.devito.step_sums import sums_in_steps
from timetile.frontend.devito.subdomain_sets import bounds_of_sets, check_sets, on_each_subdomain


def equations_of(lowered: Sequence[Any]) -> Equations:
    """
    All lowered equations of an operator: of each value of dimensions beside the grid's, or as
    given where that fails. Raises NotCovered, naming an equation without a translation.
    """
    bounds = bounds_of_sets(lowered)
    made = [on_each_subdomain(equation_of(k, each), each, bounds) for k, each in enumerate(lowered)]
    check_sets(lowered, made)
    parts, slices = ComplexParts(), Slices()
    pairs = [equations_of_parts(equation, parts) for each in made for equation in each]
    whole = Equations([equation for pair in pairs for equation in pair], {}, sets=bounds)
    whole.parts = parts
    try:
        split = replace(whole, items=on_each_value(pairs, slices), slices=slices)
        return checked_equations(split, lowered)
    except NotCovered as reason:
        try:
            return checked_equations(whole, lowered)
        except NotCovered:
            raise reason from None


def checked_equations(given: Equations, lowered: Sequence[Any]) -> Equations:
    """
    Equations with numbers, functions and time. Raises NotCovered for one without a translation.
    """
    together, beginnings = sums_in_steps(given.items)
    items = [replace(equation, number=number) for number, equation in enumerate(together)]
    found = replace(given, items=items, functions={}, levels={}, beginnings=beginnings)
    sums = grid_sums_of(items)
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
            check(found, equation, sums)
        except NotCovered as error:
            raise NotCovered(f"{equation.text}: {error}") from None
    check_order(items)
    check_time(found)
    return found


def check(found: Equations, equation: Equation, sums: Mapping[int, GridSum]) -> None:
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
    if equation.number in sums:
        cells = sums[equation.number].cells()
        if cells.where:
            raise NotCovered("it sums cells that a condition chooses")
        check_dense(found, cells)
    elif not is_sparse_equation(equation):
        check_dense(found, equation)
    elif getattr(equation.target, "is_Indexed", False) and has_computed_places(equation):
        check_places(found, equation)


def check_places(found: Equations, equation: Equation) -> None:
    """
    NotCovered for an equation over computed places that reads cells it writes, or whose places
    change during a run.
    """
    target = equation.target
    for read in equation.reads:
        if found.role(read) == found.role(target) and read != target:
            raise NotCovered(
                f"it reads {read}, a cell that the equation itself may write in an order that "
                "Devito chooses"
            )
    for indexed in (target, *equation.reads):
        for place in (inner for index in indexed.indices for inner in indexed_in(index)):
            if has_time(place.function) or place.function.name in found.written:
                raise NotCovered(f"it uses {indexed}, at a place that the operator changes")


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
        own = {loop.dimension for loop in used}
        others = [loop.dimension for loop in equation.loops if loop.dimension not in own]
        over = " and ".join(map(str, others))
        if equation.adds:
            each = " and ".join(map(str, own))
            raise NotCovered(f"it sums over {over} for each {each}; sums over all are covered")
        raise NotCovered(f"it runs over {over} beside the dimensions that it writes")
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
    apart, moved, in_row = False, False, False
    for axis, dimension, index in zip(order, space, read.indices[len(read.indices) - len(space) :]):
        loop, offset = found.loop_of(index, equation)
        own, own_offset = places[axis]
        if loop is None and own is not None:
            if len(space) < len(found.axes):
                raise NotCovered(f"it reads {read}, one row along {dimension} for all cells")
            in_row = True
            continue
        if loop is not own:
            raise NotCovered(f"it reads {read} along another dimension than it writes")
        distance: Any = offset - left_of(read.function, dimension)
        distance -= own_offset - left_of(target.function, space_of(target.function)[axis])
        moved = moved or distance != 0
        apart = apart or (own is None and distance != 0)
    # Whether the equation writes the row is known with the bounds of a call.
    if moved and not apart and not in_row and found.role(read) == found.role(target):
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
