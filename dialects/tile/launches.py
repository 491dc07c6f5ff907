"""The operations of a launch plan: scratch buffers, copies and launches of kernels, in a host
function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    FlatSymbolRefAttrConstr,
    IndexType,
    IntAttr,
    MemRefType,
    SymbolRefAttr,
)
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import (
    EffectInstance,
    HasCanonicalizationPatternsTrait,
    MemoryEffect,
    MemoryEffectKind,
    NoMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.directives import Number
from timetile.dialects.effects import AllocatesResult
from timetile.dialects.series import number_type, verify_series
from timetile.dialects.tile.launch_facts import LaunchAttr


@irdl_op_definition
class ScratchOp(IRDLOperation):
    """
    A buffer of the host function, as large as a field of the program; the cells are unset.

    Example: `%x = tile.scratch like %A : !stencil.field<[-1,9]xf64> -> !stencil.field<[-1,9]xf64>`
    """

    name = "tile.scratch"

    like = operand_def(FieldType)
    result = result_def(FieldType)

    assembly_format = "`like` $like attr-dict `:` type($like) `->` type($result)"
    traits = traits_def(AllocatesResult())

    def __init__(self, like: SSAValue):
        super().__init__(operands=[like], result_types=[like.type])


class CopyEffects(MemoryEffect):
    """A copy reads a field and writes another."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        copy = cast(CopyOp, op)
        return {
            EffectInstance(MemoryEffectKind.READ, copy.source),
            EffectInstance(MemoryEffectKind.WRITE, copy.target),
        }


class FieldCopyCanonicalization(HasCanonicalizationPatternsTrait):
    """Copies without effect."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from timetile.dialects.tile.canonicalize import EraseSelfCopy

        return (EraseSelfCopy(),)


@irdl_op_definition
class CopyOp(IRDLOperation):
    """
    Copy a whole field into another of the same type, halos included.

    Example: `tile.copy %A to %x : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>`
    """

    name = "tile.copy"

    source = operand_def(FieldType)
    target = operand_def(FieldType)

    assembly_format = "$source `to` $target attr-dict `:` type($source) `,` type($target)"
    traits = traits_def(CopyEffects(), FieldCopyCanonicalization())

    def __init__(self, source: SSAValue, target: SSAValue):
        super().__init__(operands=[source, target])

    def verify_(self) -> None:
        if self.source.type != self.target.type:
            raise VerifyException(f"copy from {self.source.type} to {self.target.type}")


@irdl_op_definition
class StepValueOp(IRDLOperation):
    """
    The number of a series at a step of a run, read by the host ahead of a launch: `plus` steps
    after the given step.

    Example: `%v = tile.step_value %series at %step plus 3 : memref<9xf64> -> f64`
    """

    name = "tile.step_value"

    series = operand_def(MemRefType)
    step = operand_def(IndexType)
    plus = prop_def(IntAttr)
    result = result_def()

    custom_directives = (Number,)
    assembly_format = (
        "$series `at` $step `plus` custom<Number>($plus) attr-dict `:` type($series) `->` "
        "type($result)"
    )
    traits = traits_def(NoMemoryEffect())

    def __init__(self, series: SSAValue, step: SSAValue, plus: int):
        super().__init__(
            operands=[series, step],
            properties={"plus": IntAttr(plus)},
            result_types=[number_type(series)],
        )

    def verify_(self) -> None:
        verify_series(self.series)
        if self.result.type != number_type(self.series):
            raise VerifyException(f"a number of {self.series.type} as {self.result.type}")


class LaunchEffects(MemoryEffect):
    """A launch reads and writes the operands that are fields."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {
            EffectInstance(kind, value)
            for value in cast(LaunchOp, op).arguments
            if isinstance(value.type, FieldType)
            for kind in (MemoryEffectKind.READ, MemoryEffectKind.WRITE)
        }


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """
    A launch of a kernel over the whole domain. `facts`, after `with`: how the kernel is launched,
    once the kernel is lowered.

    Example: `tile.launch @heat_d4(%A, %B) : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>`
    """

    name = "tile.launch"

    arguments = var_operand_def()
    kernel = prop_def(FlatSymbolRefAttrConstr)
    facts = opt_prop_def(LaunchAttr)

    assembly_format = (
        "$kernel `(` $arguments `)` (`with` qualified($facts)^)? attr-dict `:` type($arguments)"
    )
    traits = traits_def(LaunchEffects())

    def __init__(self, kernel: str, arguments: Sequence[SSAValue]):
        super().__init__(operands=[list(arguments)], properties={"kernel": SymbolRefAttr(kernel)})

    def verify_(self) -> None:
        if self.facts is not None and len(self.facts.roles) != len(self.arguments):
            raise VerifyException(
                f"{len(self.arguments)} arguments for the {len(self.facts.roles)} roles of the "
                "kernel"
            )
