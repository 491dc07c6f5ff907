"""temporal-fusion: choose the depths for which kernels are made.

Before:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @heat(%a[0, -1], %a[0, 0], %a[1, 0]) in <[0, 0], [4096, 4096]>
}
```
After, with `depths=12`:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [12, 8, 4, 2, 1] {
  temporal.update %b = @heat(%a[0, -1], %a[0, 0], %a[1, 0]) in <[0, 0], [4096, 4096]>
}
```

A kernel of depth d advances d steps in one pass over memory. Besides the given depths there are the
powers of two below the deepest: any number of steps has a short plan, and 1 (the last steps run one
at a time, straight into the program's buffers). If data can stay in the program's own buffers, as
for two rotating buffers and an odd depth, the smaller depths are the nearest with this property:
`depths [11, 9, 5, 3, 1]`. Without the option, `choose-schedule` chooses the depths.

A loop with a constant number of steps gets only the depths of its plan: `depths [1]` for one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.syntax import encode_integers
from timetile.dialects.temporal import MOST_DEPTH, LoopOp, point_run_before
from timetile.passes.analysis.launches.liveness import loop_rotation
from timetile.passes.analysis.launches.trip_counts import (
    constant_steps,
    depths_taken,
    most_steps_at_once,
)
from timetile.passes.diagnostics import CompileError, remark
from timetile.passes.not_raised import remark_without_loops


def complete_depths(depths: Sequence[int], home_cycles: Sequence[int] = ()) -> tuple[int, ...]:
    """
    The given depths, the powers of two below the deepest, and 1; deepest first. If launches of the
    deepest depth leave data in the program's own buffers, being no multiple of
    `Rotation.home_cycles`, each power is replaced by the next depth that does, too.
    """
    deepest = max(depths)

    def moves_on(depth: int) -> bool:
        return all(depth % length for length in home_cycles)

    fitting = [d for d in range(1, deepest) if moves_on(d) or not moves_on(deepest)]
    powers = (1 << k for k in range(deepest.bit_length()))
    chosen = (next((d for d in fitting if d >= power), deepest) for power in powers)
    return tuple(sorted({*depths, *chosen, 1}, reverse=True))


def write_depths(loop: LoopOp, depths: Sequence[int]) -> None:
    """
    Write the depths on a loop, completed by smaller ones. If the program states the number of
    steps, only depths of the loop's plan are written, none deeper than a launch of the plan can be.
    """
    home_cycles = loop_rotation(loop).home_cycles if loop.updates else ()
    most = most_steps_at_once(loop)
    wanted = depths if most is None else [min(depth, most) for depth in depths]
    loop.depths = encode_integers(depths_taken(loop, complete_depths(wanted, home_cycles)))


def is_step_beside_lists(loop: LoopOp) -> bool:
    """Whether a loop is the step of a host's time loop that may run as kernels with lists."""
    around = loop.parent_op()
    return isinstance(around, scf.ForOp) and point_run_before(around) is not None


def remark_left_out(loop: LoopOp, depths: Sequence[int]) -> None:
    """Remark on each given depth without a use for the loop's number of steps."""
    left_out = sorted(set(depths) - set(loop.depth_list), reverse=True)
    if left_out and not is_step_beside_lists(loop):
        remark(
            loop,
            f"no launch advances {' or '.join(map(str, left_out))} steps of a program with "
            f"{constant_steps(loop)} steps: the plan has kernels of "
            f"{', '.join(map(str, loop.depth_list))}",
        )


@dataclass(frozen=True)
class TemporalFusionPass(ModulePass):
    """Write the temporal depths; see the module's documentation."""

    name = "temporal-fusion"

    depths: tuple[int, ...] | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.depths is None:
            return
        if not self.depths or not 1 <= min(self.depths) <= max(self.depths) <= MOST_DEPTH:
            raise CompileError(
                f"temporal-fusion: depths are numbers from 1 to {MOST_DEPTH}, got "
                f"{list(self.depths)}"
            )
        loops = [inner for inner in op.walk() if isinstance(inner, LoopOp)]
        if not loops:
            remark_without_loops(self, op, "raise-time-loop")
        for loop in loops:
            write_depths(loop, self.depths)
            remark_left_out(loop, self.depths)
