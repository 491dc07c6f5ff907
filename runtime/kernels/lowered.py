"""The lowered kernel of a module with one kernel, and the kernel's launch facts."""

from __future__ import annotations

from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from timetile.dialects.tile import KernelOp, LaunchAttr
from timetile.lowering.launch_facts import known_launch_facts
from timetile.passes.diagnostics import refuse

NOT_LOWERED = (
    "the passes that were given do not lower it to the code of threads; they need at least "
    "lower-tile-to-gpu"
)


def lowered_kernel(module: ModuleOp) -> gpu.ModuleOp:
    """
    The gpu.module that passes made of a module with one kernel. Raises CompileError if given passes
    made none.
    """
    kernel: Operation = module
    for op in module.ops:
        if isinstance(op, gpu.ModuleOp):
            return op
        if isinstance(op, KernelOp):
            kernel = op
    refuse(kernel, NOT_LOWERED)


def launch_facts(kernel: gpu.ModuleOp) -> LaunchAttr:
    """How a kernel is launched. Raises CompileError unless lower-tile-to-gpu made the kernel."""
    facts = known_launch_facts(kernel)
    if facts is None:
        refuse(kernel, NOT_LOWERED)
    return facts
