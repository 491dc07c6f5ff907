"""Messages of the compiler about a translated operator, in the words of Devito's equations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from timetile.frontend.devito.complex_parts import without_suffix
from timetile.frontend.devito.equations import Equation
from timetile.frontend.devito.function_slices import original_name
from timetile.frontend.devito.functions import Function
from timetile.frontend.devito.parameters import Argument, Meaning

NEEDS_STEP = "the loop depends on the time index, and kernels do not"
"""The remark on a loop with work for the host between its steps."""

NAMED = re.compile(r"%(?:p(?P<argument>\d+)|(?P<function>[\w.]+)_level\d+)")
"""A field or a scalar of the translated function."""

IN_TURN = re.compile(r"(?P<name>\w+)(?: and (?P=name))+ take turns, and differ outside .*?, where")
"""The notice of halos that differ between the buffers of a function."""

OPTION = "--halos apart (halos='apart' in Python)"
"""The way out of the notice."""

OF_EQUATION = re.compile(r"%(?:e(?P<sweep>\d+)(?:_[acst]\d+)?|n(?P<entry>\d+)_(?:k|\d+))\b")
"""A value of a translated equation."""


def devito_name(argument: Argument) -> str:
    """Devito's name of an argument."""
    match argument.meaning:
        case Meaning.FIELD:
            return without_suffix(original_name(argument.of.function))
        case Meaning.SCALAR | Meaning.MADE:
            return str(argument.of[0])
        case Meaning.MEMORY:
            return str(argument.of)
        case Meaning.START:
            return "the first step"
        case Meaning.STEPS:
            return "the number of steps"
        case _:
            return "an array of points"


def in_devitos_words(
    reason: str, line: int | None, function: Function, equations: Sequence[Equation]
) -> str:
    """
    A sentence of the compiler on a line of a translated function, with the equation behind the line
    and with Devito's names.
    """

    def name(found: re.Match[str]) -> str:
        number = found["argument"]
        if number is not None:
            return devito_name(function.arguments[int(number)])
        return without_suffix(original_name(found["function"]))

    text = NAMED.sub(name, reason).replace("@devito", "the operator")
    text = text.replace("the time loop runs", "the loop over time runs")
    text = IN_TURN.sub(r"the buffers of \g<name> have different halos, where", text)
    text = text.replace(OPTION, "halos='apart' of timetile.devito.backend")
    if NEEDS_STEP in text:
        at_points = [entries.statement.equation.text for entries in function.entries]
        why = f"{at_points[0]} works at points" if at_points else "an equation needs the step"
        return text.replace(NEEDS_STEP, f"{why} between the steps")
    equation = equation_of_line(line, function, equations)
    return text if equation is None else f"{equation.text}: {text}"


def equation_of_line(
    line: int | None, function: Function, equations: Sequence[Equation]
) -> Equation | None:
    """The equation whose translation has a line, counted from 1."""
    lines = function.text.splitlines()
    found: Any = None if line is None else OF_EQUATION.search(lines[line - 1])
    if found is None:
        return None
    if found["sweep"] is not None:
        return equations[int(found["sweep"])]
    return function.entries[int(found["entry"])].statement.equation
