"""A number of all cells of a box: their sum, or the greatest or least cell."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from timetile.dialects.boxes import sizes_of
from timetile.dialects.syntax import element_type, field_bounds

LANES = 32
"""Sums of a block: sum k takes the block's cells k, k + LANES, k + 2 LANES and so on."""

BLOCK_CELLS = 1024
"""Cells of a row in a block, a multiple of LANES."""


class Reduction(StrEnum):
    """The number made of two numbers: their sum, the greater, or the lesser."""

    TOTAL = "total"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"


IDENTITY = {
    Reduction.TOTAL: -0.0,
    Reduction.MAXIMUM: float("-inf"),
    Reduction.MINIMUM: float("inf"),
}
"""The number that leaves each other number as it is."""


@irdl_attr_definition
class ReductionAttr(EnumAttribute[Reduction], SpacedOpaqueSyntaxAttribute):
    """
    The number made of two numbers.

    Example: `#temporal<reduction total>`
    """

    name = "temporal.reduction"


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """
    The sum of the cells of a box of a field (`total`), or the greatest (`maximum`) or the least
    (`minimum`), in a fixed order: equal bits on every executor and for any number of threads.

    1. A row of the box, along the last axis, is cut into blocks of 1024 cells, the last perhaps
       shorter.
    2. In a block lane k of 32 takes the cells k, k + 32, k + 64 and so on, one after the other,
       from the number that changes no other: -0.0, -inf or inf.
    3. The lanes meet in halves: lane k takes lane k + 16, then k + 8, k + 4, k + 2, k + 1.
    4. The numbers of all blocks, in the order of the rows, are the cells of one row for the next
       round, until one number is left.

    `maximum` and `minimum` are NaN if a cell is NaN; 0.0 is greater than -0.0.

    Example:
    ```
    %r = temporal.reduce maximum %u in <[0, 0], [8, 8]> : !stencil.field<[-1,9]x[-1,9]xf64> -> f64
    ```
    """

    name = "temporal.reduce"

    kind = prop_def(ReductionAttr)
    field = operand_def(FieldType)
    box = prop_def(StencilBoundsAttr)
    result = result_def()

    traits = traits_def(MemoryReadEffect())

    assembly_format = "$kind $field `in` $box attr-dict `:` type($field) `->` type($result)"

    def __init__(self, kind: Reduction, field: SSAValue, box: StencilBoundsAttr):
        super().__init__(
            operands=[field],
            result_types=[element_type(field)],
            properties={"kind": ReductionAttr(kind), "box": box},
        )

    @property
    def reduction(self) -> Reduction:
        """The number made of two numbers."""
        return self.kind.data

    @property
    def sizes(self) -> tuple[int, ...]:
        """The cells of the box along each axis."""
        return sizes_of(self.box)

    def verify_(self) -> None:
        bounds, element = field_bounds(self.field), element_type(self.field)
        if element not in (f32, f64):
            raise VerifyException(f"a reduction takes cells of f32 or f64, got {element}")
        if self.result.type != element:
            raise VerifyException(
                f"the result has the type of the cells, {element}, got {self.result.type}"
            )
        if len(self.box.lb) != len(bounds.lb):
            raise VerifyException(
                f"box of rank {len(self.box.lb)} in a field of rank {len(bounds.lb)}"
            )
        for axis, (low, high) in enumerate(zip(self.box.lb, self.box.ub)):
            least, most = tuple(bounds.lb)[axis], tuple(bounds.ub)[axis]
            if low < least or high > most:
                raise VerifyException(
                    f"the box covers [{low}, {high}) along axis {axis}, outside the field's "
                    f"[{least}, {most})"
                )
