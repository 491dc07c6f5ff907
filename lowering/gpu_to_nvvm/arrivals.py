"""Arrivals become mbarriers; a cluster's barrier and peers become operations of the hardware.

One or two words of shared memory count arrivals. Of two words, the last bit of a phase chooses one,
and the next bit is the parity on the word.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntAttr, i64
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects import nvvm, simt
from timetile.dialects.simt import CLUSTER_SPACE
from timetile.dialects.tile import LANES
from timetile.lowering.gpu_to_nvvm.pointers import (
    DYNAMIC_INDEX,
    FunctionValues,
    moved,
    pointer_type,
)
from timetile.passes.patterns import Patterns

SUSPENDED_NANOSECONDS = 1_000_000
"""The operand of MLIR's wait: most nanoseconds of sleep before a thread looks again."""


@dataclass(frozen=True)
class ArrivalPattern(RewritePattern):
    """Base of the patterns for operations on a phase: finds the word that counts the phase."""

    values: FunctionValues

    def word_of(self, arrivals: SSAValue, phase: SSAValue, rewriter: PatternRewriter) -> SSAValue:
        """Where a phase is counted."""
        if self.values.words[arrivals] == 1:
            return arrivals
        turn = rewriter.insert(arith.AndIOp(phase, self.values.int(1, rewriter))).result
        kind = pointer_type(arrivals)
        return rewriter.insert(llvm.GEPOp(arrivals, [DYNAMIC_INDEX], i64, [turn], kind)).result


class ConvertExpect(ArrivalPattern):
    """
    Initialisation of all words, and of two words so that other blocks see both, too. Every thread
    arrives.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.ExpectOp, rewriter: PatternRewriter, /) -> None:
        count = self.values.int(op.warps.value.data * LANES, rewriter)
        words = self.values.words[op.arrivals]
        for word in range(words):
            where = moved(op.arrivals, word, i64, rewriter)
            rewriter.insert(nvvm.MbarrierInitOp(where, count))
        if words > 1:
            rewriter.insert(nvvm.FenceMbarrierInitOp())
        rewriter.erase(op)


class ConvertArrive(ArrivalPattern):
    """Arrivals."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.ArriveOp, rewriter: PatternRewriter, /) -> None:
        word = self.word_of(op.arrivals, op.phase, rewriter)
        if op.bytes is None:
            rewriter.replace(op, nvvm.MbarrierArriveOp(word), [])
        else:
            rewriter.replace(op, nvvm.MbarrierArriveExpectTxOp(word, op.bytes))


class ConvertWait(ArrivalPattern):
    """Waits. Phases take turns on a word, and one bit tells them apart."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.WaitOp, rewriter: PatternRewriter, /) -> None:
        values = self.values
        word, turn = self.word_of(op.arrivals, op.phase, rewriter), op.phase
        if values.words[op.arrivals] == 2:
            turn = rewriter.insert(arith.ShRUIOp(turn, values.int(1, rewriter))).result
        parity = arith.AndIOp(turn, values.int(1, rewriter))
        ticks = values.int(SUSPENDED_NANOSECONDS, rewriter)
        wait = nvvm.MbarrierTryWaitParityOp(word, parity.result, ticks)
        rewriter.replace(op, [parity, wait])


class ConvertSend(ArrivalPattern):
    """Sends to another block of the cluster."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.SendOp, rewriter: PatternRewriter, /) -> None:
        pointer = self.values.pointer(op, op.buffer, op.index, rewriter)
        word = self.word_of(op.arrivals, op.phase, rewriter)
        offset = op.offset.value.data
        new = simt.SendOp(list(op.cells), pointer, None, offset, op.mask, word, op.phase)
        rewriter.replace(op, new)


class ConvertPeer(ArrivalPattern):
    """Addresses in another block of the cluster."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.PeerOp, rewriter: PatternRewriter, /) -> None:
        values, cluster = self.values, llvm.LLVMPointerType(IntAttr(CLUSTER_SPACE))
        peer = nvvm.MapaOp(op.buffer, op.rank, cluster)
        values.elements[peer.res] = values.elements[op.buffer]
        values.words[peer.res] = values.words[op.buffer]
        rewriter.replace(op, peer)


class ConvertClusterBarrier(RewritePattern):
    """Barriers of a cluster."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.ClusterBarrierOp, rewriter: PatternRewriter, /) -> None:
        rewriter.replace(op, [nvvm.ClusterArriveOp(), nvvm.ClusterWaitOp()])


def arrival_patterns(values: FunctionValues) -> Patterns:
    """The patterns of arrivals and clusters."""
    return {
        simt.ExpectOp: ConvertExpect(values),
        simt.ArriveOp: ConvertArrive(values),
        simt.WaitOp: ConvertWait(values),
        simt.SendOp: ConvertSend(values),
        simt.PeerOp: ConvertPeer(values),
        simt.ClusterBarrierOp: ConvertClusterBarrier(),
    }
