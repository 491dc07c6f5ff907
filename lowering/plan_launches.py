"""plan-launches: the time loop becomes launches of its kernels.

Before:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] kernels [@heat_d11, ..., @heat_step] {...}
```
After, with `steps=1000`:
```
tile.launch @heat_d11(%A, %B, %A, %B)
scf.for %e = %c0 to %c42 step %c1 {
  tile.launch @heat_d11(%B, %A, %B, %A)
  tile.launch @heat_d11(%A, %B, %A, %B)
}
...
tile.launch @heat_step(%B, %A, %B, %A)
```
With an even depth data alternates between `%A` and a copy of `%A`, because the halo of `%A` belongs
around the data (`tile.scratch`, `tile.copy`). A launch of a lowered kernel says how the kernel is
launched, for hosts in any language: `tile.launch @heat_d11(...) with #tile.launch<steps 11, roles
[...], grid 131, block 128, ...>`. `passes/analysis/launches/launch_planning.py` makes the
plan. The number of steps is the option's, or the loop's constant. A loop with a number known only
at run time stays unchanged, and the runtime plans each call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from timetile.dialects.series import is_series
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import (
    CopyOp,
    KernelOp,
    LaunchOp,
    RoleAttr,
    RoleKind,
    ScratchOp,
    StepValueOp,
)
from timetile.lowering.launch_facts import known_launch_facts
from timetile.passes.analysis.launches.launch_planning import (
    LaunchPlan,
    PlannedLaunch,
    plan,
    plan_period,
)
from timetile.passes.analysis.launches.liveness import loop_rotation
from timetile.passes.analysis.launches.plans_in_place import period_in_place, plan_in_place
from timetile.passes.analysis.launches.rotation import Rotation
from timetile.passes.analysis.launches.trip_counts import constant_steps
from timetile.passes.diagnostics import check_options, refuse, remark
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.patterns import rewrite_once
from timetile.passes.raising.narrow_fields import read_field


@dataclass(frozen=True)
class PlannedKernel:
    """The facts of a kernel needed by a plan."""

    name: str
    steps: int
    roles: tuple[RoleAttr, ...]

    @property
    def reads_halos(self) -> bool:
        """Whether cells outside the bounds come from buffers of their own."""
        return any(role.kind.data is RoleKind.HALO for role in self.roles)


def kernel_facts(module: ModuleOp) -> dict[str, PlannedKernel]:
    """The kernels of a module, lowered or not, by name."""
    facts: dict[str, PlannedKernel] = {}
    for op in module.ops:
        match op:
            case KernelOp():
                name = op.sym_name.data
                facts[name] = PlannedKernel(name, op.steps.data, tuple(op.roles))
            case gpu.ModuleOp() if (launch := known_launch_facts(op)) is not None:
                name = op.sym_name.data
                facts[name] = PlannedKernel(name, launch.steps.data, launch.roles.data)
            case _:
                pass
    return facts


def parts_of_step(kernels: Sequence[PlannedKernel]) -> tuple[PlannedKernel, ...]:
    """The kernels that together advance a single step and store all results, in launch order."""
    return tuple(kernel for kernel in kernels if kernel.steps == 1)


def plan_kernels(
    rotation: Rotation, kernels: Sequence[PlannedKernel], steps: int, *, goes_on: bool = False
) -> LaunchPlan:
    """
    The plan of a loop with these kernels. Kernels without halo arguments read halos around their
    sources, on the program's own buffers, as do all kernels of a step in parts. `goes_on`: another
    run follows.
    """
    if runs_in_place(kernels):
        return plan_in_place(rotation, steps)
    depths = tuple(k.steps for k in kernels if k.steps > 1)
    return plan(rotation, depths, steps, goes_on=goes_on)


def runs_in_place(kernels: Sequence[PlannedKernel]) -> bool:
    """Whether the kernels of a step read halos on the program's own buffers."""
    return not any(kernel.reads_halos for kernel in parts_of_step(kernels))


def kernels_period(rotation: Rotation, kernels: Sequence[PlannedKernel]) -> tuple[int, int]:
    """
    `(first, period)`, in steps: `plan_kernels` for any number of steps from `first` on gives the
    plan of `period` steps less, with more repeats.
    """
    if runs_in_place(kernels):
        return period_in_place(rotation)
    return plan_period(rotation, tuple(k.steps for k in kernels if k.steps > 1))


def launch_operands(
    rotation: Rotation, kernel: PlannedKernel, launch: PlannedLaunch
) -> list[tuple[RoleKind, int]]:
    """
    The operands of a planned launch. `(SOURCE, k)`: buffer k of the plan; otherwise a capture, a
    scalar or the number of a series, by position.
    """
    found: list[tuple[RoleKind, int]] = []
    for kind, index in (role.role for role in kernel.roles):
        match kind:
            case RoleKind.SOURCE:
                found.append((RoleKind.SOURCE, launch.sources[index]))
            case RoleKind.TARGET:
                found.append((RoleKind.SOURCE, launch.targets[index]))
            case RoleKind.HALO:
                found.append((RoleKind.SOURCE, rotation.own(index, launch.time)))
            case _:
                found.append((kind, index))
    return found


class LoopPlanner:
    """Makes the launches of one time loop, with single steps last."""

    def __init__(self, loop: LoopOp, kernels: Sequence[PlannedKernel]):
        self.loop = loop
        self.rotation = loop_rotation(loop)
        self.kernels, self.parts = kernels, parts_of_step(kernels)
        self.fused = {kernel.steps: kernel for kernel in kernels if kernel.steps > 1}

    def replace(self, steps: int, rewriter: PatternRewriter, *, goes_on: bool = False) -> None:
        """Put the launches of `steps` steps in the loop's place. `goes_on`: another run follows."""
        found = plan_kernels(self.rotation, self.kernels, steps, goes_on=goes_on)
        buffers = list(self.loop.buffers)
        ops: list[Operation] = []
        for like in found.scratch_like:
            scratch = ScratchOp(buffers[like])
            ops.append(scratch)
            buffers.append(scratch.result)
        ops += [CopyOp(buffers[a], buffers[b]) for a, b in found.copies]
        ops += self.launches(found, buffers)
        roles = range(len(self.loop.res))
        left = [buffers[self.rotation.own(role, steps)] for role in roles]
        rewriter.insert(ops)
        rewriter.replace(self.loop, [], left)

    def launches(self, found: LaunchPlan, buffers: list[SSAValue]) -> list[Operation]:
        """The launches, with repeated ones as a loop."""
        end = found.first + found.length
        before = self.launched(found.launches[: found.first], buffers)
        turn = found.launches[found.first : end]
        passed = sum(launch.steps for launch in turn) * max(found.repeats - 1, 0)
        after = self.launched(found.launches[end:], buffers, passed=passed)
        if not found.length:
            return [*before, *after]
        body = Block(arg_types=[IndexType()])
        body.add_ops(self.launched(turn, buffers, body.args[0]))
        body.add_op(scf.YieldOp())
        low, high, step = (
            arith.ConstantOp(IntegerAttr(n, IndexType())) for n in (0, found.repeats, 1)
        )
        return [*before, low, high, step, scf.ForOp(low, high, step, [], body), *after]

    def launched(
        self,
        launches: Sequence[PlannedLaunch],
        buffers: list[SSAValue],
        turn: SSAValue | None = None,
        passed: int = 0,
    ) -> list[Operation]:
        """
        Some of a plan's launches as operations: one for each part of a single step, behind the
        numbers of series at the launch's steps. `turn`: the number of the turn of a loop over the
        launches. `passed`: the steps of turns before the launches that the plan does not list.
        """
        kernels = [
            (launch, kernel)
            for launch in launches
            for kernel in (self.parts if launch.final else (self.fused[launch.steps],))
        ]
        if not any(map(is_series, self.loop.scalars)):
            return [self.launch(kernel, launch, buffers, {}) for launch, kernel in kernels]
        period = sum(launch.steps for launch in launches)
        start = arith.ConstantOp(IntegerAttr(0 if turn is None else period, IndexType()))
        ops: list[Operation] = [start]
        if turn is not None:
            ops.append(arith.MuliOp(turn, start.result))
        begin = ops[-1].results[0]
        for launch, kernel in kernels:
            numbers = self.step_values(kernel, begin, launch.time + passed)
            ops += [*numbers.values()]
            results = {index: op.result for index, op in numbers.items()}
            ops.append(self.launch(kernel, launch, buffers, results))
        return ops

    def step_values(
        self, kernel: PlannedKernel, begin: SSAValue, time: int
    ) -> dict[int, StepValueOp]:
        """
        The numbers of series for a launch `time` steps after a step of the run, by index of role.
        """
        scalars, numbers = self.loop.scalars, dict[int, StepValueOp]()
        for kind, index in (role.role for role in kernel.roles):
            if kind is RoleKind.SERIES:
                step, number = divmod(index, len(scalars))
                numbers[index] = StepValueOp(scalars[number], begin, time + step)
        return numbers

    def launch(
        self,
        kernel: PlannedKernel,
        launch: PlannedLaunch,
        buffers: list[SSAValue],
        numbers: Mapping[int, SSAValue],
    ) -> LaunchOp:
        """One launch, with operands by role; `numbers` of series by index."""
        operands: list[SSAValue] = []
        for kind, index in launch_operands(self.rotation, kernel, launch):
            match kind:
                case RoleKind.CAPTURE:
                    operands.append(read_field(self.loop.captures[index]).field)
                case RoleKind.SCALAR:
                    operands.append(self.loop.scalars[index])
                case RoleKind.SERIES:
                    operands.append(numbers[index])
                case _:
                    operands.append(buffers[index])
        return LaunchOp(kernel.name, operands)


@dataclass(frozen=True)
class LaunchKernels(RewritePattern):
    """
    A time loop becomes launches of its kernels, found by name. `steps`: the number of steps; None
    for the number that the program states.
    """

    kernels: dict[str, PlannedKernel]
    steps: int | None

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopOp, rewriter: PatternRewriter, /) -> None:
        if not op.kernel_names:
            refuse(op, "the loop has no kernels; run device-tiling first")
        steps = self.steps if self.steps is not None else constant_steps(op)
        if steps is None:
            remark(op, "the number of steps is known only at run time; the runtime plans the loop")
            return
        missing = [name for name in op.kernel_names if name not in self.kernels]
        if missing:
            refuse(op, f"the kernel @{missing[0]} is not in the module; run device-tiling again")
        kernels = [self.kernels[name] for name in op.kernel_names]
        LoopPlanner(op, kernels).replace(max(steps, 0), rewriter)


@dataclass(frozen=True)
class PlanLaunchesPass(ModulePass):
    """Plan every time loop with kernels; see the module's documentation."""

    name = "plan-launches"

    steps: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, steps=0)
        remark_without_loops(self, op, "raise-time-loop,device-tiling")
        rewrite_once(list(op.walk()), {LoopOp: LaunchKernels(kernel_facts(op), self.steps)})
        describe_launches(op)


def describe_launches(module: ModuleOp) -> None:
    """Give each launch of a lowered kernel the launch facts of the kernel."""
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, gpu.ModuleOp)}
    for launch in [op for op in module.walk() if isinstance(op, LaunchOp)]:
        launch.facts = known_launch_facts(kernels.get(launch.kernel.string_value()))
