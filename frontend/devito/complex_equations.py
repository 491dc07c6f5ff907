"""
Equations of complex cells as pairs of equations: of the real parts, and then of the imaginary
parts. All reads of a pair come before both writes.

A call copies an operator's complex arrays to arrays of the parts, and copies written arrays back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from timetile.frontend.devito.complex_parts import (
    PARTS,
    ComplexParts,
    is_complex,
    part_names,
    without_suffix,
)
from timetile.frontend.devito.equations import Equation, indexed_in
from timetile.frontend.devito.evaluation import Array
from timetile.frontend.devito.library import NotCovered, sympy


def is_of_reals(equation: Equation) -> bool:
    """All cells and numbers of an equation are real."""
    target = equation.target
    every = [equation.value, *equation.where, *equation.when]
    if getattr(target, "is_Indexed", False):
        every.append(target)
    elif is_complex(target):
        return False
    reads = [each.function for part in every for each in indexed_in(part)]
    symbols = [symbol for part in every for symbol in part.free_symbols]
    if any(map(is_complex, [*reads, *symbols])):
        return False
    return not any(is_of_complex(e) for part in every for e in sympy.preorder_traversal(part))


def is_of_complex(expression: Any) -> bool:
    """The expression is the imaginary unit, or a function of complex numbers."""
    return expression is sympy.I or type(expression).__name__ in PARTS


def equations_of_parts(equation: Equation, parts: ComplexParts) -> list[Equation]:
    """
    The equations of the parts of an equation, the second one marked; the equation alone if
    all cells and numbers are real. Raises NotCovered for a complex equation without parts.
    """
    if is_of_reals(equation):
        return [equation]
    try:
        return pair_of_equations(equation, parts)
    except NotCovered as error:
        raise NotCovered(f"{equation.text}: {error}") from None


def pair_of_equations(equation: Equation, parts: ComplexParts) -> list[Equation]:
    """A complex equation as two real ones. Raises NotCovered without its place."""
    target = equation.target
    if any(parts.of(where)[1] != 0 for where in (*equation.where, *equation.when)):
        raise NotCovered("it compares complex numbers")
    is_number = not getattr(target, "is_Indexed", False)
    if is_number and not all(loop.dimension.root.is_Space for loop in equation.loops):
        raise NotCovered("it sums complex numbers at points; sum their parts")
    real, imaginary = parts.of(equation.value)
    shown = equation.text.partition(" ")[2]
    if not is_complex(target if is_number else target.function):
        return [replace(equation, value=real, shown=shown)]
    first, second = parts.of(target)
    return [
        replace(equation, target=first, value=real, shown=shown),
        replace(equation, target=second, value=imaginary, shown=shown, is_second_part=True),
    ]


def add_parts(arrays: dict[str, Array], numbers: dict[str, Any], parts: ComplexParts) -> None:
    """
    Add the arrays and numbers of the parts to those of a call. Functions of numbers are computed in
    double precision, as by the C of complex numbers.
    """
    if parts.functions:
        single = [
            name for name, value in numbers.items() if getattr(value, "dtype", None) == np.float32
        ]
        numbers |= {name: float(numbers[name]) for name in single}
    for name in parts.numbers & numbers.keys():
        value = complex(numbers[name])
        numbers |= dict(zip(part_names(name), (value.real, value.imag), strict=True))
    for name in {without_suffix(each) for each in parts.functions} & arrays.keys():
        array: Any = arrays[name]
        for part, cells in zip(part_names(name), (array.real, array.imag), strict=True):
            arrays[part] = np.ascontiguousarray(cells)


def write_back(arrays: Mapping[str, Array], written: Iterable[str], parts: ComplexParts) -> None:
    """Copy the written parts of a call to the complex arrays."""
    for name in {without_suffix(each) for each in written if each in parts.functions}:
        first, second = (arrays[part] for part in part_names(name))
        array: Any = arrays[name]
        array.real[...] = first
        array.imag[...] = second
