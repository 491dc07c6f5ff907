"""The remark of passes on time loops and kernels that meet a program before its time loops."""

from __future__ import annotations

from xdsl.dialects import gpu, stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.temporal import LoopOp, SweepOp
from timetile.passes.diagnostics import remark

BEFORE_THREADS = "raise-time-loop,device-tiling,lower-tile-to-gpu"
"""The passes to run before passes on a kernel's threads."""


def remark_without_loops(item: ModulePass, module: ModuleOp, before: str) -> None:
    """
    Say that a pass finds nothing in a program of the stencil dialect without time loops; `before`
    names the passes to run before.
    """
    # A loop, or a kernel made of one, comes early in a module, and ends the search.
    if any(isinstance(op, LoopOp | SweepOp | gpu.ModuleOp) for op in module.walk()):
        return
    if any(isinstance(op, stencil.ApplyOp) for op in module.walk()):
        remark(
            module,
            f"{item.name} changes nothing: the program has no temporal.loop yet; run {before} "
            "before",
        )
