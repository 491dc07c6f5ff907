"""The types of a model's fields, by the types of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from xdsl.ir import Attribute

from timetile.dialects.cell_types import FIELD_DTYPES

DType = Literal["float64", "float32", "float16", "bfloat16"]
"""The type of the elements of an array, by NumPy's name."""

FieldTypes = Mapping[str, DType]
"""The type of each field."""


def elements_of(types: FieldTypes) -> dict[str, Attribute]:
    """The type of each field in the program."""
    return {name: FIELD_DTYPES[dtype] for name, dtype in types.items()}
