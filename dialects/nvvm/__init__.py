"""The part of MLIR's nvvm dialect used by the kernels, with MLIR's names, operands and properties.

Operations print generically: MLIR reads the generic form in every release, whereas the pretty syntax changes.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i1, i32, i64
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue
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
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.simt import OrderingEffects


class KeywordAttr(ParametrizedAttribute):
    """Base of the enumerations; a member prints as `<word>`."""

    value: StringAttr
    WORDS: ClassVar[tuple[str, ...]]

    def verify(self) -> None:
        if self.value.data not in self.WORDS:
            raise VerifyException(f"expected one of {', '.join(self.WORDS)}, got {self.value.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_identifier())]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.value.data)


@irdl_attr_definition
class ShflKindAttr(KeywordAttr):
    """How a shuffle picks the source lane. Example: `#nvvm.shfl_kind<down>`"""

    name = "nvvm.shfl_kind"
    WORDS = ("bfly", "up", "down", "idx")

    def __init__(self, word: str):
        super().__init__(StringAttr(word))


@irdl_attr_definition
class CacheModifierAttr(KeywordAttr):
    """The caches filled by a copy. Example: `#nvvm.load_cache_modifier<cg>`"""

    name = "nvvm.load_cache_modifier"
    WORDS = ("ca", "cg", "cs", "lu", "cv")

    def __init__(self, word: str):
        super().__init__(StringAttr(word))


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

    Example:
    `%r = "nvvm.shfl.sync"(%full, %v, %one, %clamp) <{kind = #nvvm.shfl_kind<down>}> : (i32, i32, i32, i32) -> i32`
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
        super().__init__(
            operands=[mask, value, offset, clamp],
            properties={"kind": ShflKindAttr(kind)},
            result_types=[value.type],
        )


@irdl_attr_definition
class ReduxKindAttr(KeywordAttr):
    """How the lanes' values are combined. Example: `#nvvm.reduction_kind<min>`"""

    name = "nvvm.reduction_kind"
    WORDS = ("add", "and", "max", "min", "or", "umax", "umin", "xor")

    def __init__(self, word: str):
        super().__init__(StringAttr(word))


@irdl_op_definition
class ReduxSyncOp(IRDLOperation):
    """
    Combine an integer over the lanes of a warp; all get the result.

    Example: `%r = "nvvm.redux.sync"(%v, %full) <{kind = #nvvm.reduction_kind<min>}> : (i32, i32) -> i32`
    """

    name = "nvvm.redux.sync"
    val = operand_def(i32)
    mask_and_clamp = operand_def(i32)
    kind = prop_def(ReduxKindAttr)
    res = result_def(i32)
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, mask: SSAValue, kind: str):
        super().__init__(
            operands=[value, mask],
            properties={"kind": ReduxKindAttr(kind)},
            result_types=[i32],
        )


@irdl_attr_definition
class VoteKindAttr(KeywordAttr):
    """How the lanes' votes are combined. Example: `#nvvm.vote_sync_kind<all>`"""

    name = "nvvm.vote_sync_kind"
    WORDS = ("any", "all", "uni")

    def __init__(self, word: str):
        super().__init__(StringAttr(word))


@irdl_op_definition
class VoteSyncOp(IRDLOperation):
    """
    Combine a predicate over the lanes of a warp; all get the result.

    Example: `%r = "nvvm.vote.sync"(%full, %p) <{kind = #nvvm.vote_sync_kind<all>}> : (i32, i1) -> i1`
    """

    name = "nvvm.vote.sync"
    mask = operand_def(i32)
    pred = operand_def(i1)
    kind = prop_def(VoteKindAttr)
    res = result_def(i1)
    traits = traits_def(Pure())

    def __init__(self, mask: SSAValue, predicate: SSAValue, kind: str):
        super().__init__(
            operands=[mask, predicate],
            properties={"kind": VoteKindAttr(kind)},
            result_types=[i1],
        )


@irdl_op_definition
class CpAsyncOp(IRDLOperation):
    """
    Start copying `size` bytes from global to shared memory; only the first `cpSize` are read, the
    rest is zero.

    Example:
    `"nvvm.cp.async.shared.global"(%dst, %src) <{size = 16 : i32, modifier = #nvvm.load_cache_modifier<cg>}> : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()`
    """

    name = "nvvm.cp.async.shared.global"
    dst = operand_def(LLVMPointerType)
    src = operand_def(LLVMPointerType)
    cp_size = opt_operand_def(i32)
    size = prop_def(IntegerAttr)
    modifier = prop_def(CacheModifierAttr)
    traits = traits_def(OrderingEffects())

    def __init__(self, dst: SSAValue, src: SSAValue, size: int, cp_size: SSAValue | None = None):
        # Only 16-byte copies can bypass L1.
        super().__init__(
            operands=[dst, src, cp_size],
            properties={
                "size": IntegerAttr(size, i32),
                "modifier": CacheModifierAttr("cg" if size == 16 else "ca"),
            },
        )


@irdl_op_definition
class CpAsyncCommitGroupOp(IRDLOperation):
    """
    Close a group: all copies started since the previous group was closed.

    Example: `"nvvm.cp.async.commit.group"() : () -> ()`
    """

    name = "nvvm.cp.async.commit.group"
    traits = traits_def(OrderingEffects())

    def __init__(self):
        super().__init__()


@irdl_op_definition
class CpAsyncWaitGroupOp(IRDLOperation):
    """
    Wait until at most `n` of the thread's groups are on their way.

    Example: `"nvvm.cp.async.wait.group"() <{n = 2 : i32}> : () -> ()`
    """

    name = "nvvm.cp.async.wait.group"
    n = prop_def(IntegerAttr)
    traits = traits_def(OrderingEffects())

    def __init__(self, pending: int):
        super().__init__(properties={"n": IntegerAttr(pending, i32)})


@irdl_op_definition
class MbarrierInitOp(IRDLOperation):
    """
    Initialise an mbarrier: a phase completes after `count` arrivals.

    Example: `"nvvm.mbarrier.init.shared"(%b, %count) : (!llvm.ptr<3>, i32) -> ()`
    """

    name = "nvvm.mbarrier.init.shared"
    addr = operand_def(LLVMPointerType)
    count = operand_def(i32)
    traits = traits_def(OrderingEffects())

    def __init__(self, addr: SSAValue, count: SSAValue):
        super().__init__(operands=[addr, count])


@irdl_op_definition
class MbarrierArriveOp(IRDLOperation):
    """
    Arrive, with release semantics in the block; the result is the phase before.

    Example: `%s = "nvvm.mbarrier.arrive.shared"(%b) : (!llvm.ptr<3>) -> i64`
    """

    name = "nvvm.mbarrier.arrive.shared"
    addr = operand_def(LLVMPointerType)
    res = result_def(i64)
    traits = traits_def(OrderingEffects())

    def __init__(self, addr: SSAValue):
        super().__init__(operands=[addr], result_types=[i64])


@irdl_op_definition
class MbarrierArriveExpectTxOp(IRDLOperation):
    """
    Arrive, and let the phase wait for `bytes` more bytes of asynchronous copies.

    Example: `"nvvm.mbarrier.arrive.expect_tx.shared"(%b, %bytes) : (!llvm.ptr<3>, i32) -> ()`
    """

    name = "nvvm.mbarrier.arrive.expect_tx.shared"
    addr = operand_def(LLVMPointerType)
    txcount = operand_def(i32)
    traits = traits_def(OrderingEffects())

    def __init__(self, addr: SSAValue, txcount: SSAValue):
        super().__init__(operands=[addr, txcount])


@irdl_op_definition
class MapaOp(IRDLOperation):
    """
    A shared-memory address, mapped to another block of the cluster.

    Example: `%p = "nvvm.mapa"(%a, %rank) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>`
    """

    name = "nvvm.mapa"
    a = operand_def(LLVMPointerType)
    b = operand_def(i32)
    res = result_def(LLVMPointerType)
    traits = traits_def(Pure())

    def __init__(self, a: SSAValue, b: SSAValue, result_type: LLVMPointerType):
        super().__init__(operands=[a, b], result_types=[result_type])


@irdl_op_definition
class ClusterArriveOp(IRDLOperation):
    """
    Arrive at the barrier of the cluster, with release semantics.

    Example: `"nvvm.cluster.arrive"() : () -> ()`
    """

    name = "nvvm.cluster.arrive"
    traits = traits_def(OrderingEffects())

    def __init__(self):
        super().__init__()


@irdl_op_definition
class ClusterWaitOp(IRDLOperation):
    """
    Wait at the barrier of the cluster, with acquire semantics.

    Example: `"nvvm.cluster.wait"() : () -> ()`
    """

    name = "nvvm.cluster.wait"
    traits = traits_def(OrderingEffects())

    def __init__(self):
        super().__init__()


@irdl_op_definition
class FenceMbarrierInitOp(IRDLOperation):
    """
    Let the other blocks of the cluster see initialised mbarriers.

    Example: `"nvvm.fence.mbarrier.init"() : () -> ()`
    """

    name = "nvvm.fence.mbarrier.init"
    traits = traits_def(OrderingEffects())

    def __init__(self):
        super().__init__()


@irdl_op_definition
class MbarrierTryWaitParityOp(IRDLOperation):
    """
    Wait until the last phase of parity `p` is complete, with acquire semantics in the block; a try may
    suspend the thread for `ticks` nanoseconds.

    Example:
    `"nvvm.mbarrier.try_wait.parity.shared"(%b, %p, %t) : (!llvm.ptr<3>, i32, i32) -> ()`
    """

    name = "nvvm.mbarrier.try_wait.parity.shared"
    addr = operand_def(LLVMPointerType)
    phase = operand_def(i32)
    ticks = operand_def(i32)
    traits = traits_def(OrderingEffects())

    def __init__(self, addr: SSAValue, phase: SSAValue, ticks: SSAValue):
        super().__init__(operands=[addr, phase, ticks])


Nvvm = Dialect(
    "nvvm",
    [
        ThreadIdXOp,
        BlockIdXOp,
        BarrierOp,
        WarpSyncOp,
        ShflSyncOp,
        ReduxSyncOp,
        VoteSyncOp,
        CpAsyncOp,
        CpAsyncCommitGroupOp,
        CpAsyncWaitGroupOp,
        MbarrierInitOp,
        MbarrierArriveOp,
        MbarrierArriveExpectTxOp,
        MbarrierTryWaitParityOp,
        MapaOp,
        ClusterArriveOp,
        ClusterWaitOp,
        FenceMbarrierInitOp,
    ],
    [ShflKindAttr, ReduxKindAttr, VoteKindAttr, CacheModifierAttr],
)
