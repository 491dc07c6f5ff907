"""Plans of launches made for each call: a loop and its steps become a function of launches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import LaunchOp
from timetile.lowering.plan_launches import LoopPlanner, PlannedKernel


def launched_by(plan: FuncOp) -> list[str]:
    """The names of the kernels that a plan launches, each once, in the order of first launches."""
    launches = (op for op in plan.walk() if isinstance(op, LaunchOp))
    return list(dict.fromkeys(each.kernel.string_value() for each in launches))


def planned_function(
    loop: LoopOp, kernels: Sequence[PlannedKernel], steps: int, *, goes_on: bool = False
) -> FuncOp:
    """
    A host function that runs `steps` steps of the loop. Arguments are the loop's buffers, captured
    fields and scalars, in this order; the function returns the loop's results. `goes_on`: another
    run follows, and buffers without live data are left with anything.
    """
    outside = [loop.steps, *loop.buffers, *loop.captures, *loop.scalars]
    block = Block(arg_types=[value.type for value in outside])
    mapping: dict[SSAValue, SSAValue] = dict(zip(outside, block.args))
    copy = loop.clone(mapping)
    block.add_ops([copy, ReturnOp(*copy.res)])
    function = FuncOp(f"run_{steps}_steps", (block.arg_types, list(loop.res.types)), Region(block))
    holder = ModuleOp([function])
    LoopPlanner(copy, kernels).replace(steps, PatternRewriter(copy), goes_on=goes_on)
    function.detach()
    del holder
    return function
