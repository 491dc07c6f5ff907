"""The types of a model's fields and numbers, by NumPy's names, in programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from timetile.dialects.cell_types import FIELD_DTYPES

DType = Literal[
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64",
    "uint32", "uint16", "uint8", "bool",
]  # fmt: skip
"""The type of the elements of an array, by NumPy's name."""

FieldTypes = Mapping[str, DType]
"""The type of each field."""

GivenType = DType | type[np.generic] | np.dtype[Any]
"""A type as a user gives it: `"float32"`, `np.float32` or `array.dtype`."""

GivenTypes = GivenType | Mapping[str, GivenType]
"""One type of all fields, or a type for each."""

FloatType = Float32Type | Float64Type

INTEGER_BITS = {8: i8, 16: i16, 32: i32, 64: i64}

INTEGER_DTYPES: dict[str, Attribute] = {
    f"{sign}int{bits}": kind for sign in ("", "u") for bits, kind in INTEGER_BITS.items()
}
"""The types of integers: operations, not types, know about signs."""

ARRAY_DTYPES: dict[str, Attribute] = {**FIELD_DTYPES, **INTEGER_DTYPES, "bool": i8}
"""A field's type, by the type of the array. A truth value is an integer of 8 bits, 0 or 1."""

NUMBER_TYPES: dict[str, Attribute] = {"float64": f64, "float32": f32, **INTEGER_DTYPES, "bool": i1}
"""The type of a number in a cell, by NumPy's name."""


def holds_integers(name: str) -> bool:
    """Whether a type is of integers or of truth values."""
    return name in INTEGER_DTYPES or name == "bool"


def bits_of(name: str) -> int:
    """The bits of an integer type, by NumPy's name."""
    return int(name.lstrip("uint"))


def in_range(number: int, name: str) -> bool:
    """Whether an integer is a number of an integer type."""
    low = 0 if name.startswith("u") else -(1 << bits_of(name) - 1)
    return low <= number < low + (1 << bits_of(name))


def value_type(name: str) -> str:
    """The type in which cells compute: float32 for 16-bit floats, else the field's."""
    return "float32" if name in ("float16", "bfloat16") else name


def promoted(names: Iterable[str]) -> str:
    """The type that operands of the named types give, by NumPy's rules."""
    return np.result_type(*names).name


def elements_of(types: FieldTypes) -> dict[str, Attribute]:
    """The type of each field in the program."""
    return {name: ARRAY_DTYPES[dtype] for name, dtype in types.items()}


def computing_type(types: Iterable[str]) -> FloatType:
    """
    The type of a step's numbers without a type of their own, as scalars: f32 if all fields go into
    float32, by NumPy's rules; else f64.
    """
    found = promoted(map(value_type, types))
    return f32 if found == "float32" else f64
