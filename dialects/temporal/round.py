"""Rounding of a cell's number to the type in which a field stores it."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.cell_types import STORED_FLOATS


@irdl_op_definition
class RoundOp(IRDLOperation):
    """
    The number of the type `stored` (f16 or bf16) nearest to the operand, as f32; of two equally
    near, the number with an even last bit. Cells compute with such numbers, and fields store them
    without a change.

    Example:
    ```
    %b = temporal.round %a as f16 : f32
    ```
    """

    name = "temporal.round"

    value = operand_def(f32)
    result = result_def(f32)
    stored = prop_def(Attribute)

    traits = traits_def(Pure())

    assembly_format = "$value `as` $stored attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, stored: Attribute):
        super().__init__(operands=[value], result_types=[f32], properties={"stored": stored})

    def verify_(self) -> None:
        if self.stored not in STORED_FLOATS:
            raise VerifyException(
                f"a number is rounded to a type of memory (f16 or bf16), got {self.stored}"
            )
