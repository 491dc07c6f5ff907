"""common-halos: the caller promises that buffers which take turns have the same cells outside the bounds.

Before: `temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {...}`
After:  `temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] common_halos {...}`

Where buffers take turns to hold one live version (`Rotation.turns`), every level of a kernel then has the halo that the
level below has in registers, and none reads memory for the sake of another buffer's; other loops stay as they are.
Without the promise the halo of an odd level of a kernel over two buffers is the
other buffer's, cell by cell. The runtime compares the buffers before a run, and makes this promise itself where it
holds; in a pipeline it is the caller's.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from timetile.dialects.temporal import LoopOp


class CommonHalosPass(ModulePass):
    """Write the promise on every time loop; see the module's documentation."""

    name = "common-halos"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            loop.common_halos = UnitAttr()
