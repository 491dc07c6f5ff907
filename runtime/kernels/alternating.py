"""
Launches between two checks of a condition: the newest values of each field move to and fro between
two buffers.

Other runs leave in each buffer the values of the plain loop, and so the last launch makes one step.
Between two checks nobody reads older values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from timetile.dialects.series import is_series
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import RoleKind
from timetile.lowering.plan_launches import LoopPlanner, PlannedKernel
from timetile.passes.analysis.launches.launch_planning import LaunchPlan, PlannedLaunch
from timetile.passes.analysis.launches.liveness import loop_rotation


def partners(loop: LoopOp) -> dict[int, int] | None:
    """
    For each role with moving live values, the role of the other buffer; None for a loop whose
    launches do not alternate between two buffers.
    """
    rotation, found = loop_rotation(loop), dict[int, int]()
    if loop.sweep is not None or loop.has_points or any(map(is_series, loop.scalars)):
        return None
    for role in range(len(rotation.rotate)):
        if not rotation.is_moved(role):
            continue
        cycle = rotation.cycle_of(role)
        others = [k for k in cycle if k != role]
        if len(others) != 1 or rotation.live[others[0]] or not rotation.common_halos:
            return None
        found[role] = others[0]
    return found


def leaves_all(loop: LoopOp) -> bool:
    """Whether launches of several steps store every field that a step writes."""
    rotation = loop_rotation(loop)
    written = [cycle for cycle in rotation.cycles if any(rotation.written[k] for k in cycle)]
    return all(any(rotation.live[k] for k in cycle) for cycle in written)


def depths_of(kernels: Sequence[PlannedKernel]) -> tuple[int, ...]:
    """The steps of a loop's launches, deepest first; of a step in parts there is no launch."""
    steps = [kernel.steps for kernel in kernels]
    return tuple(sorted({d for d in steps if steps.count(d) == 1}, reverse=True))


def alternating_plan(launches: Sequence[int], own: int, moved: Mapping[int, int]) -> LaunchPlan:
    """
    Launches with some steps each, where `moved` roles of `own` change buffers; equal launches at
    the start are pairs of a loop.
    """
    equal = next((k for k, d in enumerate(launches) if d != launches[0]), len(launches))
    pairs = max(equal // 2, 1)
    listed: list[PlannedLaunch] = []
    done = 0
    for number, steps in enumerate(launches[2 * (pairs - 1) :]):
        begin = {k: k for k in range(own)}
        other = {**begin, **moved}
        here, there = (other, begin) if number % 2 else (begin, other)
        listed.append(PlannedLaunch(steps, steps == 1, done, here, there))
        done += steps
    return LaunchPlan((), tuple(listed), (), 0, 2 if pairs > 1 else 0, pairs)


def alternating_function(
    loop: LoopOp, kernels: Sequence[PlannedKernel], launches: Sequence[int]
) -> FuncOp:
    """
    A host function of launches with some steps each, with the arguments of a loop's plans. Fields
    of numbers keep the buffers of their roles.
    """
    outside = [loop.steps, *loop.buffers, *loop.captures, *loop.scalars]
    block = Block(arg_types=[value.type for value in outside])
    mapping: dict[SSAValue, SSAValue] = dict(zip(outside, block.args))
    copy = loop.clone(mapping)
    holder = Block([copy])
    moved = partners(loop)
    assert moved is not None
    buffers: list[SSAValue] = [*block.args[1 : 1 + len(loop.buffers)]]
    plan = alternating_plan(launches, len(buffers), moved)
    block.add_ops(LoopPlanner(copy, kernels).launches(plan, buffers))
    block.add_op(ReturnOp(*buffers))
    kinds = [value.type for value in buffers]
    name = f"launch_{sum(launches)}_steps"
    function = FuncOp(name, (block.arg_types, kinds), Region(block))
    holder.erase_op(copy)
    return function


def stores_numbers(kernel: PlannedKernel, roles: Sequence[int]) -> bool:
    """Whether a kernel stores the buffers of some roles."""
    return {(RoleKind.TARGET, role) for role in roles} <= {role.role for role in kernel.roles}
