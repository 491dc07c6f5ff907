"""The predicates of arith.cmpi and arith.cmpf, by number, in the order of MLIR."""

from __future__ import annotations

from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS

INTEGER_PREDICATES = tuple(CMPI_COMPARISON_OPERATIONS)
"""`eq`, `ne`, then signed comparisons as `slt`, then unsigned comparisons as `ult`."""

FLOAT_PREDICATES = tuple(CMPF_COMPARISON_OPERATIONS)
"""
`false`, ordered comparisons as `olt`, `ord`, comparisons as `ult` that hold beside NaN, `uno`,
`true`.
"""

INTEGER_NUMBERS = {name: number for number, name in enumerate(INTEGER_PREDICATES)}
"""The number of each integer predicate."""


def relation(predicate: str) -> str:
    """The relation of a predicate without the first letter of its class: `lt` for `slt`, `olt`."""
    return predicate if predicate in ("eq", "ne") else predicate[1:]


def is_unsigned(number: int) -> bool:
    """Whether an integer predicate compares unsigned numbers."""
    return INTEGER_PREDICATES[number].startswith("u")
