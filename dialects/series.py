"""
Series: numbers that change from step to step, as a memref of one axis among the scalars of an
update. Step t of a time loop takes entry t; the cell function takes the number.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa


def is_series(value: SSAValue) -> bool:
    """Whether a scalar of an update is a series."""
    return isinstance(value.type, MemRefType)


def number_type(value: SSAValue) -> Attribute:
    """The type of the number that a cell takes for a scalar or a series."""
    kind = value.type
    if not isinstance(kind, MemRefType):
        return kind
    return cast("MemRefType[Attribute]", kind).element_type


def verify_series(value: SSAValue) -> None:
    """VerifyException for a memref of several axes."""
    kind = value.type
    if isa(kind, MemRefType[Attribute]) and kind.get_num_dims() != 1:
        raise VerifyException(f"a series has one axis, got {kind}")
