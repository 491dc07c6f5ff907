"""Numbers of threads become special registers; exchanges of lanes become operations of a warp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, gpu, llvm
from xdsl.dialects.builtin import i32
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects import nvvm, simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.tile import LANES
from timetile.lowering.gpu_to_nvvm.pointers import FunctionValues
from timetile.passes.diagnostics import refuse
from timetile.passes.patterns import Patterns

FULL_WARP = -1


@dataclass(frozen=True)
class ConvertNumber(RewritePattern):
    """The number of a thread or a block, as a special register; casts to i32 vanish."""

    register: type[nvvm.SpecialRegisterOp]

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: gpu.ThreadIdOp | gpu.BlockIdOp, rewriter: PatternRewriter, /
    ) -> None:
        number = rewriter.insert(self.register()).res
        for use in list(op.result.uses):
            cast = use.operation
            rewriter.replace(cast, [], [number])
        rewriter.erase(op)


def check_numbers(ops: Sequence[Operation]) -> None:
    """Refuse numbers of threads and blocks along other axes than x, or not used as i32."""
    for op in [op for op in ops if type(op) is gpu.ThreadIdOp or type(op) is gpu.BlockIdOp]:
        if op.dimension.data != DimensionEnum.X:
            refuse(op, "kernels are one-dimensional; use dimension x")
        for use in op.result.uses:
            cast = use.operation
            if not (isinstance(cast, arith.IndexCastOp) and cast.result.type == i32):
                refuse(op, "thread and block numbers are used as i32; cast the numbers")


@dataclass(frozen=True)
class ConvertShuffle(RewritePattern):
    """Shuffles, in halves for a 64-bit value."""

    values: FunctionValues

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.ShuffleOp, rewriter: PatternRewriter, /) -> None:
        delta = op.delta.value.data
        kind, clamp = ("up", 0) if delta < 0 else ("down", 31)
        mask, distance, bound = (
            self.values.int(number, rewriter) for number in (FULL_WARP, abs(delta), clamp)
        )

        def shuffle(value: SSAValue) -> nvvm.ShflSyncOp:
            return nvvm.ShflSyncOp(mask, value, distance, bound, kind)

        replace_by_words(rewriter, op, op.value, shuffle)


@dataclass(frozen=True)
class ConvertPick(RewritePattern):
    """Values of lanes named by number, in halves for a 64-bit value."""

    values: FunctionValues

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.PickOp, rewriter: PatternRewriter, /) -> None:
        mask, bound = (self.values.int(number, rewriter) for number in (FULL_WARP, LANES - 1))

        def pick(value: SSAValue) -> nvvm.ShflSyncOp:
            return nvvm.ShflSyncOp(mask, value, op.lane, bound, "idx")

        replace_by_words(rewriter, op, op.value, pick)


def replace_by_words(
    rewriter: PatternRewriter,
    op: Operation,
    value: SSAValue,
    move: Callable[[SSAValue], nvvm.ShflSyncOp],
) -> None:
    """Replace an operation by a move: one for 32 bits, one for each half of 64."""
    if CELL_BYTES[value.type] == 4:
        rewriter.replace(op, move(value))
        return
    split = simt.SplitOp(value)
    low, high = move(split.low), move(split.high)
    join = simt.JoinOp(low.res, high.res, value.type)
    rewriter.replace(op, [split, low, high, join])


@dataclass(frozen=True)
class ConvertUniform(RewritePattern):
    """Uniform values: the result of a reduction over the warp lies in a uniform register."""

    values: FunctionValues

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.UniformOp, rewriter: PatternRewriter, /) -> None:
        full = self.values.int(FULL_WARP, rewriter)
        rewriter.replace(op, nvvm.ReduxSyncOp(op.value, full, "min"))


@dataclass(frozen=True)
class ConvertAll(RewritePattern):
    """Votes of a warp."""

    values: FunctionValues

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.AllOp, rewriter: PatternRewriter, /) -> None:
        full = self.values.int(FULL_WARP, rewriter)
        rewriter.replace(op, nvvm.VoteSyncOp(full, op.value, "all"))


class EraseMark(RewritePattern):
    """Marks of the order of threads, which no later pass reads."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: simt.MarkOp, rewriter: PatternRewriter, /) -> None:
        rewriter.erase(op)


class ConvertBarrier(RewritePattern):
    """Barriers of a block."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: gpu.BarrierOp, rewriter: PatternRewriter, /) -> None:
        rewriter.replace(op, nvvm.BarrierOp())


class ConvertReturn(RewritePattern):
    """Returns of a kernel."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: gpu.ReturnOp, rewriter: PatternRewriter, /) -> None:
        rewriter.replace(op, llvm.ReturnOp())


def thread_patterns(values: FunctionValues) -> Patterns:
    """The patterns of threads, warps and blocks."""
    return {
        gpu.ThreadIdOp: ConvertNumber(nvvm.ThreadIdXOp),
        gpu.BlockIdOp: ConvertNumber(nvvm.BlockIdXOp),
        simt.ShuffleOp: ConvertShuffle(values),
        simt.PickOp: ConvertPick(values),
        simt.UniformOp: ConvertUniform(values),
        simt.AllOp: ConvertAll(values),
        simt.MarkOp: EraseMark(),
        gpu.BarrierOp: ConvertBarrier(),
        gpu.ReturnOp: ConvertReturn(),
    }
