"""
Sums over several steps, such as the norm of a function over time: a number that is 0 before the
loop over time, grows in the loop, and goes to an array afterwards. The loop adds to the array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from timetile.frontend.devito.equations import Equation
from timetile.frontend.devito.evaluation import Array, evaluate, integer


@dataclass(frozen=True)
class Beginning:
    """The value of a number of an array before the loop over time."""

    target: Any
    value: Any

    def store(self, arrays: Mapping[str, Array], numbers: Mapping[str, Any]) -> None:
        """Store the value in the array of a call."""
        places = tuple(integer(index, numbers) for index in self.target.indices)
        arrays[self.target.function.name][places] = evaluate(self.value, numbers)


def sums_in_steps(
    equations: Sequence[Equation],
) -> tuple[list[Equation], tuple[Beginning, ...]]:
    """The equations, with sums over several steps added to arrays, and the values before."""
    made = list(equations)
    beginnings: list[Beginning] = []
    for end in equations:
        parts = parts_of_sum(end, equations)
        if parts is None:
            continue
        begin, added = parts
        made[made.index(added)] = replace(
            added, target=end.target, shown=end.shown or end.text.partition(" ")[2]
        )
        made.remove(begin)
        made.remove(end)
        if not end.adds:
            beginnings.append(Beginning(end.target, begin.value))
    return made, tuple(beginnings)


def parts_of_sum(end: Equation, equations: Sequence[Equation]) -> tuple[Equation, Equation] | None:
    """The equations that begin and make the sum over steps that an equation stores, if any."""
    number = end.value
    if end.in_time or end.loops or end.when or end.where or not number.is_Symbol:
        return None
    if not getattr(end.target, "is_Indexed", False):
        return None
    users = [each for each in equations if uses(each, number)]
    if len(users) != 3 or users[2] is not end or (end.adds and users[0].value != 0):
        return None
    begin, added, _ = users
    is_begin = begin.target == number and not (begin.in_time or begin.adds or begin.loops)
    is_added = added.target == number and added.in_time and added.adds
    name = end.target.function.name
    others = [each for each in equations if each is not end]
    is_alone = not any(name in functions_used(each) for each in others)
    return (begin, added) if is_begin and is_added and is_alone else None


def uses(equation: Equation, number: Any) -> bool:
    """Whether an equation writes or reads a number."""
    parts = (equation.value, *equation.when, *equation.where)
    return equation.target == number or any(number in each.free_symbols for each in parts)


def functions_used(equation: Equation) -> set[str]:
    """The names of the functions that an equation uses."""
    used = [equation.target, *equation.reads]
    return {each.function.name for each in used if getattr(each, "is_Indexed", False)}
