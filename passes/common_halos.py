"""common-halos: the caller promises that buffers which take turns have the same cells outside the bounds.

Before: `temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {...}`
After:  `temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] common_halos {...}`

Where buffers take turns to hold one live version (`Rotation.turns`), every level of a kernel then has the halo that the
level below has in registers, and none reads memory for the sake of another buffer's; other loops stay as they are.
Without the promise the halo of an odd level of a kernel over two buffers is the
other buffer's, cell by cell. The runtime compares the buffers before a run, and makes this promise itself where it
holds; in a pipeline it is the caller's.

The caller promises it of the buffers that a function is called with. A loop before which another may write cells
outside its bounds, to a buffer that takes turns, is left without the promise, with a remark; so is one that follows
such a loop in the next turn of a loop around both. With `everywhere` the promise is made of every loop as it begins.
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
from timetile.passes.analysis.launches.liveness import rotation_of, written_bounds
from timetile.passes.diagnostics import remark
from timetile.passes.raising.memory import memory_of


def fields_of(buffer: SSAValue) -> set[SSAValue] | None:
    """The fields that a buffer of a time loop may be; None where that is not known."""
    memory = memory_of(buffer)
    owner = memory.owner
    if isinstance(owner, LoopOp):
        cycle = rotation_of(owner).cycle_of(owner.res.index(memory))
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
    """A time loop may write cells outside the bounds of another one, to buffers of that which take turns."""
    bounds, rotation = CellBox.of(written_bounds(loop)), rotation_of(other)
    turns = [loop.buffers[role] for cycle in rotation_of(loop).turns for role in cycle]
    read = [fields_of(buffer) for buffer in turns]
    args = other.body.block.args
    for update in other.updates:
        if CellBox.of(update.box) in bounds:
            continue
        roles = {r for target in update.targets for r in rotation.cycle_of(args.index(target))}
        for fields in [fields_of(other.buffers[role]) for role in sorted(roles)]:
            if any(fields is None or each is None or fields & each for each in read):
                return True
    return False


def may_run_before(other: LoopOp, loop: LoopOp) -> bool:
    """A time loop stands before another one of the function, or in a loop of the host around both."""
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
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            loops = [inner for inner in function.walk() if isinstance(inner, LoopOp)]
            for loop in loops:
                if not self.everywhere and self.breaks(loop, loops):
                    remark(
                        loop,
                        "halos in common are promised for the call, and a loop that runs before it may write around "
                        "its bounds: it reads each buffer's own halo; give it a function of its own to promise them "
                        "there",
                    )
                    continue
                loop.common_halos = UnitAttr()

    @staticmethod
    def breaks(loop: LoopOp, loops: list[LoopOp]) -> bool:
        """Another time loop of the function breaks the promise before a loop that makes use of it."""
        others = [other for other in loops if other is not loop and other.updates]
        return bool(loop.updates) and any(
            may_run_before(other, loop) and writes_around(other, loop) for other in others
        )
