"""temporal-fusion: the depths for which kernels are made.

Before: `temporal.loop %n (...) rotate [1, 0] {...}`
After:  `temporal.loop %n (...) rotate [1, 0] depths [12, 8, 4, 2, 1] {...}`

A kernel of depth d advances d steps per pass over memory. Besides the given depths there are always
the powers of two below the deepest, so that any number of steps has a short plan, and 1 (the last
steps run one at a time, straight into the program's buffers). Without the option the depths are left
to `choose-schedule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.syntax import encode_integers
from timetile.dialects.temporal import LoopOp
from timetile.passes.diagnostics import CompileError


def complete_depths(depths: Sequence[int]) -> tuple[int, ...]:
    """The given depths, the powers of two below the deepest, and 1; deepest first."""
    deepest = max(depths)
    powers = [1 << k for k in range(deepest.bit_length()) if 1 << k < deepest]
    return tuple(sorted({*depths, *powers, 1}, reverse=True))


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
            loop.depths = encode_integers(complete_depths(self.depths))
