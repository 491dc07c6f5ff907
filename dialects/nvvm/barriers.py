"""Mbarriers, and operations between the blocks of a cluster."""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from timetile.dialects.nvvm.ordering import OrderingOp
from timetile.dialects.simt import OrderingEffects


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
class ClusterArriveOp(OrderingOp):
    """
    Arrive at the barrier of the cluster, with release semantics.

    Example: `"nvvm.cluster.arrive"() : () -> ()`
    """

    name = "nvvm.cluster.arrive"


@irdl_op_definition
class ClusterWaitOp(OrderingOp):
    """
    Wait at the barrier of the cluster, with acquire semantics.

    Example: `"nvvm.cluster.wait"() : () -> ()`
    """

    name = "nvvm.cluster.wait"


@irdl_op_definition
class FenceMbarrierInitOp(OrderingOp):
    """
    Let the other blocks of the cluster see initialised mbarriers.

    Example: `"nvvm.fence.mbarrier.init"() : () -> ()`
    """

    name = "nvvm.fence.mbarrier.init"


@irdl_op_definition
class MbarrierTryWaitParityOp(IRDLOperation):
    """
    Wait until the last phase of parity `p` is complete, with acquire semantics in the block; a try
    may suspend the thread for `ticks` nanoseconds.

    Example: `"nvvm.mbarrier.try_wait.parity.shared"(%b, %p, %t) : (!llvm.ptr<3>, i32, i32) -> ()`
    """

    name = "nvvm.mbarrier.try_wait.parity.shared"
    addr = operand_def(LLVMPointerType)
    phase = operand_def(i32)
    ticks = operand_def(i32)
    traits = traits_def(OrderingEffects())

    def __init__(self, addr: SSAValue, phase: SSAValue, ticks: SSAValue):
        super().__init__(operands=[addr, phase, ticks])
