"""
The length of a turn of the loop over a stream: steps until planes in registers, slots at fixed
places and barriers are all back at their start, and operations of a step.
"""

from __future__ import annotations

from math import lcm, prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.traits import SymbolTable

from timetile.dialects.tile import (
    Addressing,
    ApplyOp,
    KernelOp,
    LoadOp,
    RegistersAttr,
    SharedAttr,
)
from timetile.passes.analysis.placed import layout_of


def unrolled_steps(kernel: KernelOp) -> int:
    """Stream steps of one turn of a placed kernel's loop; 1 if nothing is streamed."""
    steps = 1
    for stage in kernel.stages:
        match stage:
            case LoadOp(home=home) | ApplyOp(home=home):
                match home:
                    case RegistersAttr():
                        steps = lcm(steps, home.period.data)
                    case SharedAttr() if home.addressing.data is Addressing.FIXED:
                        steps = lcm(steps, home.slots.data)
                    case _:
                        pass
            case _:
                home = stage.home
                if home is None:
                    continue
                # Barriers repeat after `every` steps: each copy of the body has or lacks a barrier.
                steps = lcm(steps, home.every.data)
                if home.addressing.data is Addressing.FIXED:
                    steps = lcm(steps, home.slots.data)
    return 1 if kernel.stream_axis is None else steps


def operations_of_step(kernel: KernelOp, module: ModuleOp) -> int:
    """
    Taps made by a thread in one stream step, and operations of the module's cell functions on them.
    """
    cells, count = prod(axis.cells for axis in layout_of(kernel).axis_layouts), 0
    for stage in kernel.stages:
        if isinstance(stage, ApplyOp):
            function = SymbolTable.lookup_symbol(module, stage.cell)
            body = function.body.block.ops if isinstance(function, FuncOp) else ()
            count += len(stage.tap_list) + len(body)
    return cells * count
