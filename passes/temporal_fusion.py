"""temporal-fusion: the depths for which kernels are made.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`
After:  `temporal.loop %n (...) rotate [1, 0] depths [12, 8, 4, 2, 1] {...}`

A kernel of depth d advances d steps per pass over memory. Besides the given depths there are always
the powers of two below the deepest, so that any number of steps has a short plan, and 1 (the last
steps run one at a time, straight into the program's buffers). Where data can stay in the program's own
buffers, as with two that take turns and an odd depth, these are as near to the powers as that allows:
`depths [11, 9, 5, 3, 1]`. Without the option the depths are left to `choose-schedule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.syntax import encode_integers
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.liveness import rotation_of
from timetile.passes.diagnostics import CompileError


def complete_depths(depths: Sequence[int], order: int = 1) -> tuple[int, ...]:
    """
    The given depths, the powers of two below the deepest, and 1; deepest first. Where data stays in the
    program's buffers if launches advance one step more than a multiple of `order`, and the deepest does, the
    next such depths take the powers' place.
    """
    deepest = max(depths)
    apart = order if (deepest - 1) % order == 0 else 1
    powers = [(1 << k) + (1 - (1 << k)) % apart for k in range(deepest.bit_length())]
    return tuple(sorted({*depths, *(p for p in powers if p < deepest), 1}, reverse=True))


def home_order(loop: LoopOp) -> int:
    """
    Launches that advance one step more than a multiple of this leave all live data in the buffers in which
    the program would have it; 1 where fused kernels do not count on that.
    """
    moves = rotation_of(loop)
    live = [role for role, is_live in enumerate(moves.live) if is_live]
    at_home = all(moves.has_home(role, single_steps=False) for role in live)
    return moves.order if at_home else 1


@dataclass(frozen=True)
class TemporalFusionPass(ModulePass):
    """Write the temporal depths; see the module's documentation."""

    name = "temporal-fusion"

    depths: tuple[int, ...] | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.depths is None:
            return
        if not self.depths or min(self.depths) < 1:
            raise CompileError(f"temporal-fusion: depths must be positive, got {list(self.depths)}")
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            loop.depths = encode_integers(complete_depths(self.depths, home_order(loop)))
