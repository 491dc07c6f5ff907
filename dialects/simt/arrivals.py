"""Arrivals and waits of the threads of a block, and cells sent between the blocks of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    IntAttr,
    IntegerAttr,
    MemRefType,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.directives import Value, Values
from timetile.dialects.simt.accesses import AccessCanonicalization, WriteEffects, WriteOp
from timetile.dialects.simt.buffers import (
    CLUSTER_SPACE,
    SHARED_SPACE,
    OrderingEffects,
    address_space,
    buffer_element,
    buffer_type,
    cell_count,
    integer,
)
from timetile.dialects.simt.directives import BufferPlace


class ArrivalsOp(IRDLOperation):
    """
    Base of the two halves of a block barrier. Accesses before a thread's arrival are visible
    to all threads after their wait for the phase. Phases are numbered from 0. The first operand
    counts arrivals in shared memory: in a single 64-bit word, or in two words by turns where other
    blocks send, since a sender may be a phase ahead.
    """

    def verify_(self) -> None:
        words = self.operands[0]
        if address_space(words) != SHARED_SPACE or buffer_element(words) not in (i64, None):
            raise VerifyException("arrivals are counted in 64-bit words of shared memory")
        if buffer_element(words) is not None and cell_count(words.type) not in (1, 2):
            raise VerifyException("arrivals are counted in one word, or in two words by turns")


@irdl_op_definition
class ExpectOp(ArrivalsOp):
    """
    Initialise the arrivals for phases with the threads of `warps` warps. A single thread executes
    the operation; a barrier stands before the first arrival.

    Example: `simt.expect %b warps 8`
    """

    name = "simt.expect"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    warps = prop_def(IntegerAttr[I64])
    traits = traits_def(OrderingEffects())

    custom_directives = (Value,)
    assembly_format = "custom<Value>($arrivals, type($arrivals)) `warps` $warps attr-dict"

    def __init__(self, arrivals: SSAValue, warps: int):
        super().__init__(operands=[arrivals], properties={"warps": integer(warps)})


@irdl_op_definition
class ArriveOp(ArrivalsOp):
    """
    The threads of a warp arrive, and go on. The phase completes when all threads of the block and
    all expected bytes from other blocks have arrived.

    Example: `simt.arrive %b phase %p bytes %n : memref<1xi64, 3>`
    """

    name = "simt.arrive"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    phase = operand_def(i32)
    bytes = opt_operand_def(i32)
    traits = traits_def(OrderingEffects())
    assembly_format = "$arrivals `phase` $phase (`bytes` $bytes^)? attr-dict `:` type($arrivals)"

    def __init__(self, arrivals: SSAValue, phase: SSAValue, bytes: SSAValue | None = None):
        super().__init__(operands=[arrivals, phase, bytes])


@irdl_op_definition
class WaitOp(ArrivalsOp):
    """
    Wait until a phase is complete: the phase before the warp's next arrival. Phases before the
    first are complete.

    Example: `simt.wait %b phase %p : memref<1xi64, 3>`
    """

    name = "simt.wait"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    phase = operand_def(i32)
    traits = traits_def(OrderingEffects())
    assembly_format = "$arrivals `phase` $phase attr-dict `:` type($arrivals)"

    def __init__(self, arrivals: SSAValue, phase: SSAValue):
        super().__init__(operands=[arrivals, phase])


@irdl_op_definition
class ClusterBarrierOp(IRDLOperation):
    """
    All threads of the blocks of a cluster wait for each other.

    Example: `simt.cluster_barrier`
    """

    name = "simt.cluster_barrier"

    traits = traits_def(OrderingEffects())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()


@irdl_op_definition
class PeerOp(IRDLOperation):
    """
    A buffer of shared memory in another block of the cluster, by the rank of the other block.

    Example: `%peer = simt.peer %buffer block %rank : memref<512xf64, 3> -> memref<512xf64, 7>`
    """

    name = "simt.peer"

    buffer = operand_def(MemRefType | LLVMPointerType)
    rank = operand_def(i32)
    result = result_def(MemRefType | LLVMPointerType)
    traits = traits_def(Pure())
    assembly_format = "$buffer `block` $rank attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, rank: SSAValue):
        element = buffer_element(buffer)
        peer: Attribute = LLVMPointerType(IntAttr(CLUSTER_SPACE))
        if element is not None:
            peer = buffer_type(element, cell_count(buffer.type), CLUSTER_SPACE)
        super().__init__(operands=[buffer, rank], result_types=[peer])

    def verify_(self) -> None:
        if (address_space(self.buffer), address_space(self.result)) != (
            SHARED_SPACE,
            CLUSTER_SPACE,
        ):
            raise VerifyException("a block's buffer, space 3, has a peer in the cluster, space 7")


@irdl_op_definition
class SendOp(WriteOp):
    """
    Write 1, 2 or 4 cells to another block of the cluster where the mask is on, without waiting. The
    cells count among the bytes expected by the phase; threads of the other block see the cells
    after a wait for the phase.

    Example: `simt.send %a, %b to %peer[%i + 2] mask %m arrivals %w phase %p`
    """

    name = "simt.send"

    arrivals = operand_def(MemRefType | LLVMPointerType)
    phase = operand_def(i32)
    traits = traits_def(WriteEffects(), AccessCanonicalization())

    custom_directives = (BufferPlace, Value, Values)
    assembly_format = (
        f"{WriteOp.WRITTEN} `arrivals` custom<Value>($arrivals, type($arrivals)) "
        "`phase` $phase attr-dict"
    )

    def __init__(
        self,
        cells: Sequence[SSAValue],
        buffer: SSAValue,
        index: SSAValue | None,
        offset: int,
        mask: SSAValue | None,
        arrivals: SSAValue,
        phase: SSAValue,
    ):
        super().__init__(
            operands=[arrivals, phase, list(cells), buffer, index, mask],
            properties={"offset": integer(offset)},
        )

    def verify_(self) -> None:
        super().verify_()
        if {address_space(self.buffer), address_space(self.arrivals)} != {CLUSTER_SPACE}:
            raise VerifyException("cells are sent to a peer, and counted there: space 7")
