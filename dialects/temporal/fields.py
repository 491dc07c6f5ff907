"""
Fields made by a function: scratch for values of a step, fields spread along more axes, and gathered
cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.directives import Values
from timetile.dialects.effects import AllocatesResult
from timetile.dialects.syntax import (
    INTEGERS,
    decode_integers,
    element_type,
    encode_integers,
    field_bounds,
)


@irdl_op_definition
class ScratchOp(IRDLOperation):
    """
    A field of the function's own, for values of a step. Cells are unknown until written by an
    update.

    Example:
    ```
    %mid = temporal.scratch : !stencil.field<[-1,65]xf64>
    ```
    """

    name = "temporal.scratch"

    field = result_def(FieldType)

    traits = traits_def(AllocatesResult())

    assembly_format = "attr-dict `:` type($field)"

    def __init__(self, kind: FieldType[Attribute]):
        super().__init__(result_types=[kind])

    def verify_(self) -> None:
        field_bounds(self.field)


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """
    A field spread along more axes: cell c is the source's cell at the coordinates of c along
    `axes`. The operation reads the source at the operation's place in the program.

    Example:
    ```
    %wide = temporal.broadcast %A axes [1]
      : !stencil.field<[-1,65]xf64> to !stencil.field<[0,4]x[0,8]xf64>
    ```
    """

    name = "temporal.broadcast"

    source = operand_def(FieldType)
    field = result_def(FieldType)
    axes = prop_def(INTEGERS)

    traits = traits_def(AllocatesResult(), MemoryReadEffect())

    assembly_format = "$source `axes` $axes attr-dict `:` type($source) `to` type($field)"

    def __init__(self, source: SSAValue, axes: Sequence[int], kind: FieldType[Attribute]):
        super().__init__(
            operands=[source], result_types=[kind], properties={"axes": encode_integers(axes)}
        )

    @property
    def axis_list(self) -> tuple[int, ...]:
        """The result's axes along which the source has cells, in the source's order."""
        return decode_integers(self.axes)

    def verify_(self) -> None:
        source, wide = field_bounds(self.source), field_bounds(self.field)
        axes, rank = self.axis_list, len(wide.lb)
        if len(axes) != len(source.lb) or list(axes) != sorted(set(axes)):
            raise VerifyException(
                f"axes must be {len(source.lb)} increasing numbers, got {list(axes)}"
            )
        if axes and not 0 <= axes[0] <= axes[-1] < rank:
            raise VerifyException(f"axes {list(axes)} of a field of rank {rank}")
        if element_type(self.source) != element_type(self.field):
            raise VerifyException("source and result must have cells of one type")
        for k, axis in enumerate(axes):
            has = tuple(source.lb)[k], tuple(source.ub)[k]
            wants = tuple(wide.lb)[axis], tuple(wide.ub)[axis]
            if wants[0] < has[0] or wants[1] > has[1]:
                raise VerifyException(
                    f"the result covers [{wants[0]}, {wants[1]}) along axis {axis}, "
                    f"outside the source's [{has[0]}, {has[1]})"
                )


class GatherCanonicalization(HasCanonicalizationPatternsTrait):
    """Gathers without a reader."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from timetile.dialects.temporal.canonicalize import EraseUnreadGather

        return (EraseUnreadGather(),)


@irdl_op_definition
class GatherOp(IRDLOperation):
    """
    For every cell c of the target: `target[c] = source[p(c)]`, where coordinate k of the place p(c)
    is cell c of place field k. A coordinate outside the source's bounds counts as the nearest
    coordinate inside. The place fields are of i64, one for each axis of the source, with the bounds
    of the target.

    Example:
    ```
    temporal.gather %near = %A at (%i, %j)
        : !stencil.field<[0,8]xf64> from !stencil.field<[-1,9]x[-1,9]xf64>
    ```
    """

    name = "temporal.gather"

    target = operand_def(FieldType)
    source = operand_def(FieldType)
    places = var_operand_def(FieldType)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), GatherCanonicalization())

    custom_directives = (Values,)
    assembly_format = (
        "$target `=` $source `at` ` ` `(` custom<Values>($places, type($places)) `)` attr-dict "
        "`:` type($target) `from` type($source)"
    )

    def __init__(self, target: SSAValue, source: SSAValue, places: Sequence[SSAValue]):
        super().__init__(operands=[target, source, places])

    def verify_(self) -> None:
        target, rank = field_bounds(self.target), len(field_bounds(self.source).lb)
        if len(self.places) != rank:
            raise VerifyException(
                f"a place in a field of rank {rank} has {rank} coordinates, got {len(self.places)}"
            )
        for place in self.places:
            if element_type(place) != i64 or field_bounds(place) != target:
                raise VerifyException(
                    f"place fields hold i64 in the bounds of the target, got {place.type}"
                )
        if element_type(self.source) != element_type(self.target):
            raise VerifyException("source and target must have cells of one type")
