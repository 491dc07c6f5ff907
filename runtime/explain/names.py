"""How values, bounds and attributes are called in an explanation."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue


def name_of(value: SSAValue) -> str:
    """`%u`, or `%1` by position where the program has no name for a block's argument."""
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    return f"%{value.index}" if isinstance(value, BlockArgument) else "a value without a name"


def names(values: Iterable[SSAValue]) -> str:
    """Values by name, with commas; `none` without values."""
    return ", ".join(map(name_of, values)) or "none"


def spans(bounds: StencilBoundsAttr) -> str:
    """`[0, 8) x [0, 8)`."""
    return " x ".join(f"[{low}, {high})" for low, high in zip(bounds.lb, bounds.ub))


def short(attribute: Attribute) -> str:
    """An attribute printed without its dialect."""
    return str(attribute).removeprefix("#").removeprefix("tile.")
