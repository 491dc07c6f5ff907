"""Cell operations in every allowed type, and telling operands for each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.cell_types import STORED_FLOATS
from timetile.dialects.temporal import RoundOp
from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS
from timetile.passes.analysis.cells.cell_values import why_not_in_cell

index = IndexType()


@dataclass(frozen=True)
class Case:
    """
    An operation in some types, with a predicate if the operation has predicates, and the type of
    memory of a rounding.
    """

    operation: type[Operation]
    operands: tuple[Attribute, ...]
    result: Attribute
    predicate: int | None = None
    stored: Attribute | None = None

    def __str__(self) -> str:
        kinds = ",".join(map(str, self.operands))
        number = "" if self.predicate is None else f"-{self.predicate}"
        stored = "" if self.stored is None else f"-{self.stored}"
        return f"{self.operation.name}-{kinds}-{self.result}{number}{stored}"

    @property
    def properties(self) -> str:
        """The properties as text: ` <{...}>`, or nothing."""
        if self.stored is not None:
            return f" <{{stored = {self.stored}}}>"
        return "" if self.predicate is None else f" <{{predicate = {self.predicate} : i64}}>"

    def create(self, block: Block) -> Operation:
        """The operation on the arguments of a block."""
        properties: dict[str, Attribute] = {}
        if self.predicate is not None:
            properties["predicate"] = IntegerAttr(self.predicate, i64)
        if self.stored is not None:
            properties["stored"] = self.stored
        assert issubclass(self.operation, IRDLOperation)
        defined = self.operation.get_irdl_definition().properties
        if "overflowFlags" in defined:
            properties["overflowFlags"] = arith.IntegerOverflowAttr("none")
        if "fastmath" in defined:
            properties["fastmath"] = arith.FastMathFlagsAttr("none")
        return self.operation.create(
            operands=block.args, result_types=[self.result], properties=properties
        )

    def verifies(self) -> bool:
        """The types go together."""
        block = Block(arg_types=self.operands)
        op = self.create(block)
        block.add_op(op)
        try:
            op.verify()
        except VerifyException:
            return False
        return why_not_in_cell(op) is None


@cache
def cases() -> tuple[Case, ...]:
    """All operations but constants, in all combinations of types; found once for several files."""
    return tuple(found_cases())


def found_cases() -> Iterator[Case]:
    """The operations and types that verify."""
    for operation, known in CELL_OPERATIONS.items():
        if operation is arith.ConstantOp:
            continue
        if operation is RoundOp:
            yield from (Case(operation, (f32,), f32, stored=kind) for kind in STORED_FLOATS)
            continue
        predicates: tuple[int | None, ...] = (None,)
        if operation is arith.CmpiOp:
            predicates = tuple(range(10))
        elif operation is arith.CmpfOp:
            predicates = tuple(range(16))
        for operands in product(*known.operands):
            for result in known.result:
                found = [Case(operation, operands, result, p) for p in predicates]
                if found[0].verifies():
                    yield from found


NAN, INF = float("nan"), float("inf")
NEGATIVE_NAN = math.copysign(NAN, -1.0)
"""The results of x86 for invalid operations."""

FLOATS = (
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.7,
    1e-300,
    2.0**31,
    -(2.0**31),
    1e19,
    -1e19,
    1e300,
    INF,
    -INF,
    NAN,
    NEGATIVE_NAN,
)
INTEGERS = (
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    -7,
    31,
    32,
    33,
    63,
    64,
    65,
    1 << 40,
    (1 << 31) - 1,
    -(1 << 31),
    (1 << 63) - 1,
    -(1 << 63),
)


def samples(kind: Attribute) -> NDArray[np.generic]:
    """Numbers of a type: ordinary, special, and at the edges."""
    if kind in (f64, f32):
        with np.errstate(over="ignore"):
            return np.array(FLOATS).astype(np.float64 if kind == f64 else np.float32)
    if kind == i1:
        return np.array([False, True])
    words = np.array(INTEGERS, dtype=np.int64)
    return words.astype(np.int32) if kind == i32 else words


def arguments(case: Case) -> list[NDArray[np.generic]]:
    """Arrays of one length with all combinations of the operands' samples."""
    grid = np.meshgrid(*(samples(kind) for kind in case.operands), indexing="ij")
    return [np.ascontiguousarray(axis.ravel()) for axis in grid]
