"""common-halos: the caller promises that rotating buffers are equal around the boxes of their
updates.

Before:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {...}
```
After:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] common_halos {...}
```

If buffers take turns to hold live versions (`Rotation.turns`), the halo of every level of a kernel
is in registers with the level below, and no level reads memory for the halo of another buffer.
Other loops stay unchanged. Without the promise, an odd level of a kernel over two buffers has the
halo of the other buffer. The runtime compares the buffers before a run and makes the promise; in a
pipeline the caller makes the promise.

The promise is about the buffers at the call of a function. A loop gets no promise, with a remark,
if another loop before may write cells outside its bounds, to a rotating buffer. With `everywhere`
the promise holds at the start of every loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects.boxes import CellBox
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.launches.liveness import (
    cycle_bounds,
    cycles_in_turn,
    loop_rotation,
)
from timetile.passes.diagnostics import remark
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.raising.memory import memory_of


def fields_of(buffer: SSAValue) -> set[SSAValue] | None:
    """The possible fields behind a buffer of a time loop; None if unknown."""
    memory = memory_of(buffer)
    owner = memory.owner
    if isinstance(owner, LoopOp):
        cycle = loop_rotation(owner).cycle_of(owner.res.index(memory))
        found: set[SSAValue] = set()
        for role in cycle:
            fields = fields_of(owner.buffers[role])
            if fields is None:
                return None
            found |= fields
        return found
    if isinstance(memory, BlockArgument) and not isinstance(memory.owner.parent_op(), FuncOp):
        return None
    if isinstance(owner, Operation) and owner.regions:
        return None
    return {memory}


def writes_around(other: LoopOp, loop: LoopOp) -> bool:
    """Whether `other` may write rotating buffers of `loop` beside the cells that `loop` writes."""
    rotation, args = loop_rotation(other), other.body.block.args
    for cycle in cycles_in_turn(loop):
        bounds = CellBox.of(cycle_bounds(loop, cycle))
        read = [fields_of(loop.buffers[role]) for role in cycle]
        for update in other.updates:
            if CellBox.of(update.box) in bounds:
                continue
            roles = {r for target in update.targets for r in rotation.cycle_of(args.index(target))}
            for fields in [fields_of(other.buffers[role]) for role in sorted(roles)]:
                if any(fields is None or each is None or fields & each for each in read):
                    return True
    return False


def may_run_before(other: LoopOp, loop: LoopOp) -> bool:
    """
    Whether a time loop stands before another loop of the function, or in a loop of the host around
    both.
    """
    around = loop.parent_op()
    while around is not None and not isinstance(around, FuncOp):
        if around.is_ancestor(other):
            return True
        around = around.parent_op()
    function = around
    if function is None:
        return False
    order = [op for op in function.walk() if isinstance(op, LoopOp)]
    return order.index(other) < order.index(loop)


@dataclass(frozen=True)
class CommonHalosPass(ModulePass):
    """Write the promise on time loops; see the module's documentation."""

    name = "common-halos"

    everywhere: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, "raise-time-loop")
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            loops = [inner for inner in function.walk() if isinstance(inner, LoopOp)]
            for loop in loops:
                if not self.everywhere and self.breaks(loop, loops):
                    remark(
                        loop,
                        "common halos are promised for the start of the call, and an earlier loop "
                        "may write cells around the bounds: every buffer's own halo is read; move "
                        "the loop to a function of its own, with the promise",
                    )
                    continue
                loop.common_halos = UnitAttr()

    @staticmethod
    def breaks(loop: LoopOp, loops: list[LoopOp]) -> bool:
        """
        Whether another time loop of the function breaks the promise before a loop with rotating
        buffers.
        """
        others = [other for other in loops if other is not loop and other.updates]
        return bool(loop.updates) and any(
            may_run_before(other, loop) and writes_around(other, loop) for other in others
        )
