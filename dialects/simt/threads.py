"""Operations of a thread on registers, and among the lanes of a warp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    I64,
    Float32Type,
    Float64Type,
    IntegerAttr,
    UnitAttr,
    f32,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import HasFolder, Pure
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.cell_types import CELL_BYTES, STORED_TYPES
from timetile.dialects.simt.buffers import OrderingEffects, integer
from timetile.dialects.simt.directives import OneType


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """
    The value of lane + delta of the warp; unset where lane + delta is outside the warp.

    Example: `%l = simt.shuffle %v delta -1 : f64`
    """

    name = "simt.shuffle"

    value = operand_def()
    delta = prop_def(IntegerAttr[I64])
    result = result_def()
    traits = traits_def(Pure())

    custom_directives = (OneType,)
    assembly_format = (
        "$value `delta` $delta attr-dict `:` custom<OneType>(type($value), type($result))"
    )

    def __init__(self, value: SSAValue, delta: int):
        Operation.__init__(
            self, operands=[value], properties={"delta": integer(delta)}, result_types=[value.type]
        )

    def verify_(self) -> None:
        kind = self.value.type
        if kind not in CELL_BYTES or kind in STORED_TYPES or kind != self.result.type:
            raise VerifyException(f"a shuffle moves 4 or 8 bytes, got {self.value.type}")
        if not 0 < abs(self.delta.value.data) < 32:
            raise VerifyException(f"a shuffle reaches 1 to 31 lanes, got {self.delta.value.data}")


@irdl_op_definition
class PickOp(IRDLOperation):
    """
    The value of a lane of the warp, the number of the lane taken modulo 32.

    Example: `%p = simt.pick %v lane %warp : f64`
    """

    name = "simt.pick"

    value = operand_def()
    lane = operand_def(i32)
    result = result_def()
    traits = traits_def(Pure())

    custom_directives = (OneType,)
    assembly_format = (
        "$value `lane` $lane attr-dict `:` custom<OneType>(type($value), type($result))"
    )

    def __init__(self, value: SSAValue, lane: SSAValue):
        Operation.__init__(self, operands=[value, lane], result_types=[value.type])

    def verify_(self) -> None:
        kind = self.value.type
        if kind not in CELL_BYTES or kind in STORED_TYPES or kind != self.result.type:
            raise VerifyException(f"a lane gives 4 or 8 bytes, got {self.value.type}")


class UnaryOp(IRDLOperation):
    """Base of the operations with a single operand and a result of the operand's type."""

    value = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue):
        Operation.__init__(self, operands=[value], result_types=[value.type])


class FoldUniform(HasFolder):
    """A constant is uniform, and so is the result of such an operation."""

    @classmethod
    def fold(cls, op: Operation) -> Sequence[SSAValue] | None:
        maker = op.operands[0].owner
        return op.operands if isinstance(maker, arith.ConstantOp | type(op)) else None


@irdl_op_definition
class UniformOp(UnaryOp):
    """
    A value known to be equal in all lanes of a warp: branches on the value do not diverge inside a
    warp.

    Example: `%u = simt.uniform %warp : i32`
    """

    name = "simt.uniform"

    value = operand_def(i32)
    result = result_def(i32)
    assembly_format = "$value attr-dict `:` type($value)"
    traits = traits_def(Pure(), FoldUniform())


@irdl_op_definition
class AllOp(UnaryOp):
    """
    The condition holds for all lanes of a warp: branches on the result do not diverge inside a
    warp.

    Example: `%a = simt.all %m : i1`
    """

    name = "simt.all"

    value = operand_def(i1)
    result = result_def(i1)
    assembly_format = "$value attr-dict `:` type($value)"
    traits = traits_def(Pure(), FoldUniform())


@irdl_op_definition
class UnsetOp(IRDLOperation):
    """
    An unset value, as of planes before the first. No stored cell may depend on an unset value.

    Example: `%u = simt.unset : f64`
    """

    name = "simt.unset"

    result = result_def()
    assembly_format = "attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def __init__(self, result_type: Attribute):
        super().__init__(result_types=[result_type])


@irdl_op_definition
class MarkOp(IRDLOperation):
    """
    A mark: the operations up to the next mark belong to a stream step of the unrolled body, a stage
    and a row of the thread's cells. Other warps neither read nor write cells of an `inner` row in
    the step. `order-threads` orders operations by marks, and erases marks.

    Example: `simt.mark step 0 stage 3 row 1 inner`
    """

    name = "simt.mark"

    step = prop_def(IntegerAttr[I64])
    stage = prop_def(IntegerAttr[I64])
    row = prop_def(IntegerAttr[I64])
    inner = opt_prop_def(UnitAttr)
    traits = traits_def(OrderingEffects())

    assembly_format = "`step` $step `stage` $stage `row` $row (`inner` $inner^)? attr-dict"

    def __init__(self, step: int, stage: int, row: int, *, inner: bool = False):
        places = {"step": integer(step), "stage": integer(stage), "row": integer(row)}
        Operation.__init__(self, properties=places | ({"inner": UnitAttr()} if inner else {}))


class FoldSplit(HasFolder):
    """The halves of two joined halves."""

    @classmethod
    def fold(cls, op: Operation) -> Sequence[SSAValue] | None:
        maker = op.operands[0].owner
        return maker.operands if isinstance(maker, JoinOp) else None


class FoldJoin(HasFolder):
    """The joined halves of a value of the type."""

    @classmethod
    def fold(cls, op: Operation) -> Sequence[SSAValue] | None:
        maker = op.operands[0].owner
        if not isinstance(maker, SplitOp) or tuple(op.operands) != tuple(maker.results):
            return None
        return maker.operands if maker.value.type == op.results[0].type else None


@irdl_op_definition
class SplitOp(IRDLOperation):
    """
    The low and high halves of an 8-byte value.

    Example: `%lo, %hi = simt.split %v : f64`
    """

    name = "simt.split"

    value = operand_def()
    low = result_def(i32)
    high = result_def(i32)
    assembly_format = "$value attr-dict `:` type($value)"
    traits = traits_def(Pure(), FoldSplit())

    def __init__(self, value: SSAValue):
        Operation.__init__(self, operands=[value], result_types=[i32, i32])


@irdl_op_definition
class JoinOp(IRDLOperation):
    """
    The 8-byte value with two 4-byte halves.

    Example: `%v = simt.join %lo, %hi : f64`
    """

    name = "simt.join"

    low = operand_def(i32)
    high = operand_def(i32)
    result = result_def()
    assembly_format = "$low `,` $high attr-dict `:` type($result)"
    traits = traits_def(Pure(), FoldJoin())

    def __init__(self, low: SSAValue, high: SSAValue, result_type: Attribute):
        Operation.__init__(self, operands=[low, high], result_types=[result_type])


class GuessOp(UnaryOp):
    """Base of the approximations from which Newton's method starts."""

    T: ClassVar = VarConstraint("T", base(Float32Type) | base(Float64Type))

    value = operand_def(T)
    result = result_def(T)
    assembly_format = "$value attr-dict `:` type($result)"


@irdl_op_definition
class ReciprocalOp(GuessOp):
    """
    1 / v, approximately: 20 correct bits in FP64, all but the last bit in FP32. Subnormal numbers
    count as 0.

    Example: `%r = simt.reciprocal %v : f64`
    """

    name = "simt.reciprocal"


@irdl_op_definition
class ReciprocalRootOp(GuessOp):
    """
    1 / sqrt(v), approximately: 20 correct bits in FP64, all but the last bit in FP32. Subnormal
    numbers count as 0.

    Example: `%r = simt.reciprocal_root %v : f64`
    """

    name = "simt.reciprocal_root"


@irdl_op_definition
class FmaUpOp(IRDLOperation):
    """
    `a * b + c`, rounded once, towards plus infinity.

    Example: `%r = simt.fma_up %a, %b, %c : f32`
    """

    name = "simt.fma_up"

    a = operand_def(f32)
    b = operand_def(f32)
    c = operand_def(f32)
    result = result_def(f32)
    assembly_format = "$a `,` $b `,` $c attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue):
        super().__init__(operands=[a, b, c], result_types=[f32])
