"""Thread numbers, and operations among the lanes of a warp or the warps of a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import StringAttr, f32, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyOf,
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from timetile.dialects.making import make
from timetile.dialects.nvvm.keywords import KeywordAttr
from timetile.dialects.simt import OrderingEffects


@irdl_attr_definition
class ShflKindAttr(KeywordAttr):
    """How a shuffle picks the source lane. Example: `#nvvm.shfl_kind<down>`"""

    name = "nvvm.shfl_kind"
    WORDS = ("bfly", "up", "down", "idx")

    def __init__(self, word: str):
        super().__init__(StringAttr(word))


@cache
def shuffle_kind(word: str) -> ShflKindAttr:
    """The kind of a shuffle, made once: a kernel has thousands of shuffles."""
    return ShflKindAttr(word)


class SpecialRegisterOp(IRDLOperation):
    """Base of the reads of a special register."""

    res = result_def(i32)
    traits = traits_def(Pure())

    def __init__(self):
        super().__init__(result_types=[i32])


@irdl_op_definition
class ThreadIdXOp(SpecialRegisterOp):
    """The thread's number in its block. Example: `%t = "nvvm.read.ptx.sreg.tid.x"() : () -> i32`"""

    name = "nvvm.read.ptx.sreg.tid.x"


@irdl_op_definition
class BlockIdXOp(SpecialRegisterOp):
    """The block's number. Example: `%b = "nvvm.read.ptx.sreg.ctaid.x"() : () -> i32`"""

    name = "nvvm.read.ptx.sreg.ctaid.x"


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """
    All threads of the block wait for each other.

    Example: `"nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()`
    """

    name = "nvvm.barrier"
    barrier_id = opt_operand_def(i32)
    number_of_threads = opt_operand_def(i32)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(OrderingEffects())

    def __init__(self):
        super().__init__(operands=[None, None])


@irdl_op_definition
class WarpSyncOp(IRDLOperation):
    """
    The lanes named by the mask wait for each other, and see each other's writes.

    Example: `"nvvm.bar.warp.sync"(%full) : (i32) -> ()`
    """

    name = "nvvm.bar.warp.sync"
    mask = operand_def(i32)
    traits = traits_def(OrderingEffects())

    def __init__(self, mask: SSAValue):
        super().__init__(operands=[mask])


@irdl_op_definition
class ShflSyncOp(IRDLOperation):
    """
    Exchange 4 bytes between the lanes of a warp.

    Example: `%r = "nvvm.shfl.sync"(%full, %v, %one, %clamp) <{kind = #nvvm.shfl_kind<down>}> :
    (i32, i32, i32, i32) -> i32`
    """

    name = "nvvm.shfl.sync"
    thread_mask = operand_def(i32)
    val = operand_def(AnyOf.get(i32, f32))
    offset = operand_def(i32)
    mask_and_clamp = operand_def(i32)
    kind = prop_def(ShflKindAttr)
    res = result_def(AnyOf.get(i32, f32))
    traits = traits_def(Pure())

    def __init__(
        self, mask: SSAValue, value: SSAValue, offset: SSAValue, clamp: SSAValue, kind: str
    ):
        operands = [mask, value, offset, clamp]
        make(self, operands, {"kind": shuffle_kind(kind)}, [value.type])


class CombiningOp(IRDLOperation):
    """Base of the operations that combine a value over the lanes of a warp."""

    traits = traits_def(Pure())

    def __init__(self, operands: Sequence[SSAValue], kind: KeywordAttr, result: Attribute):
        super().__init__(operands=operands, properties={"kind": kind}, result_types=[result])


@irdl_attr_definition
class ReduxKindAttr(KeywordAttr):
    """How the lanes' values are combined. Example: `#nvvm.reduction_kind<min>`"""

    name = "nvvm.reduction_kind"
    WORDS = ("add", "and", "max", "min", "or", "umax", "umin", "xor")

    def __init__(self, word: str):
        super().__init__(StringAttr(word))


@irdl_op_definition
class ReduxSyncOp(CombiningOp):
    """
    Combine an integer over the lanes of a warp; all get the result.

    Example: `%r = "nvvm.redux.sync"(%v, %full) <{kind = #nvvm.reduction_kind<min>}> : (i32, i32) ->
    i32`
    """

    name = "nvvm.redux.sync"
    val = operand_def(i32)
    mask_and_clamp = operand_def(i32)
    kind = prop_def(ReduxKindAttr)
    res = result_def(i32)

    def __init__(self, value: SSAValue, mask: SSAValue, kind: str):
        super().__init__([value, mask], ReduxKindAttr(kind), i32)


@irdl_attr_definition
class VoteKindAttr(KeywordAttr):
    """How the lanes' votes are combined. Example: `#nvvm.vote_sync_kind<all>`"""

    name = "nvvm.vote_sync_kind"
    WORDS = ("any", "all", "uni")

    def __init__(self, word: str):
        super().__init__(StringAttr(word))


@irdl_op_definition
class VoteSyncOp(CombiningOp):
    """
    Combine a predicate over the lanes of a warp; all get the result.

    Example: `%r = "nvvm.vote.sync"(%full, %p) <{kind = #nvvm.vote_sync_kind<all>}> : (i32, i1) ->
    i1`
    """

    name = "nvvm.vote.sync"
    mask = operand_def(i32)
    pred = operand_def(i1)
    kind = prop_def(VoteKindAttr)
    res = result_def(i1)

    def __init__(self, mask: SSAValue, predicate: SSAValue, kind: str):
        super().__init__([mask, predicate], VoteKindAttr(kind), i1)
