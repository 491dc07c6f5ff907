"""
A step's values with types, and conversions between types. Numbers without a type of their own
(Python's, scalars, coordinates) are weak: they take the type of the other operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from timetile.dialects.cell_types import wrapped_number
from timetile.frontend.errors import SourcePlace, StencilError
from timetile.frontend.field_types import (
    INTEGER_DTYPES,
    bits_of,
    holds_integers,
    in_range,
    promoted,
)
from timetile.frontend.operations import Arithmetic, Choice, Constant, Conversion, Operation


@dataclass(frozen=True, eq=False)
class Typed:
    """
    A value with its type, by NumPy's name. `weak`: the value takes the type of the other operand.
    """

    operation: Operation
    type: str
    operands: tuple[Typed, ...]
    place: SourcePlace
    weak: bool = False

    @property
    def number(self) -> float | int | bool | None:
        """The number of a constant; None for other values."""
        return self.operation.number if isinstance(self.operation, Constant) else None

    @property
    def is_literal(self) -> bool:
        """Whether the value is an integer of Python."""
        return self.weak and self.type == "int64" and self.number is not None


MODULAR = frozenset(("add", "subtract", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor"))
"""Operations of integers whose last bits depend on the last bits of the operands only."""


def converted(value: Typed, name: str) -> Typed:
    """A value as a number of a type, as NumPy converts."""
    if value.type == name:
        return value
    if value.number is not None:
        return replace(value, operation=Constant(as_type(value.number, name)), type=name)
    if name in INTEGER_DTYPES and value.type in INTEGER_DTYPES:
        if bits_of(name) < bits_of(value.type) and (found := narrowed(value, name)) is not None:
            return found
        if bits_of(name) == bits_of(value.type) and isinstance(value.operation, Conversion):
            return replace(value, type=name)
    return Typed(Conversion(), name, (value,), value.place)


def as_type(number: float | int | bool, name: str) -> float | int | bool:
    """A number of Python as a number of a type."""
    if name == "bool":
        return bool(number)
    if name in INTEGER_DTYPES:
        return wrapped_number(int(number), bits_of(name))
    return float(number)


def narrowed(value: Typed, name: str) -> Typed | None:
    """
    An integer value computed with fewer bits, which are the last bits of the value; None for an
    operation that sees further bits.
    """
    match value.operation:
        case Choice():
            condition, *both = value.operands
            chosen = [converted(each, name) for each in both]
            return Typed(Choice(), name, (condition, *chosen), value.place)
        case Arithmetic(name=function) if function in MODULAR:
            operands = tuple(converted(each, name) for each in value.operands)
            return Typed(value.operation, name, operands, value.place)
        case Conversion() if holds_integers(value.operands[0].type):
            return converted(value.operands[0], name)
        case _:
            return None


def common_type(values: Sequence[Typed], element: str) -> str:
    """
    The type of a result of operands, by NumPy's rules; `element` is the type of weak floats without
    a typed operand. Raises StencilError for integers that no integer type holds.
    """
    strong = [value.type for value in values if not value.weak]
    floats = [value for value in values if not holds_integers(value.type)]
    if all(name == "bool" for name in strong):
        return element if floats else "int64" if len(strong) < len(values) else "bool"
    found = promoted(strong)
    if not holds_integers(found) and all(map(holds_integers, strong)):
        names = " and ".join(dict.fromkeys(strong))
        raise StencilError(
            f"no type of integers holds both {names}; convert an operand, as a.astype(np.int64)",
            values[0].place,
        )
    if holds_integers(found):
        if floats:
            return "float64"
        for value in values:
            if value.is_literal:
                check_literal(value, found)
            elif value.weak:
                found = promoted([found, "int64"])
    return found


def check_literal(value: Typed, name: str) -> None:
    """Raise StencilError for an integer of Python beyond the type of the other operand."""
    if name != "bool" and not in_range(int(value.number or 0), name):
        raise StencilError(
            f"{value.number} is no number of {name}, the type of the other operand; convert the "
            f"operand, as a.astype(np.int64)",
            value.place,
        )


def is_weak(values: Sequence[Typed], name: str) -> bool:
    """Whether a result of the given type is weak: beside others, it takes their type."""
    strong = [value for value in values if not value.weak]
    if any(value.type != "bool" for value in strong):
        return False
    return not strong or name != "bool"
