"""The launches of a time loop for every number of steps, as one table: see `docs/bundle.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import RoleKind
from timetile.lowering.plan_launches import (
    PlannedKernel,
    kernels_period,
    launch_operands,
    parts_of_step,
    plan_kernels,
)
from timetile.passes.analysis.launches.launch_planning import LaunchPlan, PlannedLaunch
from timetile.passes.analysis.launches.liveness import loop_rotation

CountedOperand = tuple[str, int]
"""`("buffer", k)` or `("number", k)`, counted in the loop."""


@dataclass(frozen=True)
class LaunchRow:
    """A launch: the kernel's name, and operands in the order of the kernel's parameters."""

    kernel: str
    operands: tuple[CountedOperand, ...]


@dataclass(frozen=True)
class PlanRow:
    """
    The launches of a run of the loop. `launches` are positions in the loop's list of launches:
    those of `[first, first + length)` are repeated `repeats` times in all, and advance `turn`
    steps. `scratch`: the number of scratch buffers. `left`: the buffer of each result.
    """

    copies: tuple[tuple[int, int], ...]
    scratch: int
    launches: tuple[int, ...]
    first: int
    length: int
    repeats: int
    turn: int
    left: tuple[int, ...]


@dataclass
class LoopEntry:
    """
    A time loop. `buffers` and `captures` are values of the program; results become the values from
    `results` on. Buffers are counted in the loop: `buffers`, then scratch buffers of the sizes
    `scratch`, then `captures`.

    `plans[n]` is the plan of n steps. A number of steps from `len(plans)` on has the plan of whole
    `period`s less, with as many steps more in repeats. A loop with `fixed` steps has one plan.
    """

    fixed: int | None
    buffers: list[int]
    captures: list[int]
    results: int
    scratch: list[int]
    numbers: list[dict[str, int | float]]
    period: int = 1
    launches: list[LaunchRow] = field(default_factory=list[LaunchRow])
    plans: list[PlanRow] = field(default_factory=list[PlanRow])


class LoopTable:
    """Gathers the plans of one time loop."""

    def __init__(self, loop: LoopOp, kernels: Sequence[PlannedKernel], fixed: int | None):
        self.rotation = loop_rotation(loop)
        self.kernels, self.parts = kernels, parts_of_step(kernels)
        self.fused = {kernel.steps: kernel for kernel in kernels if kernel.steps > 1}
        first, self.period = kernels_period(self.rotation, kernels)
        steps = range(first) if fixed is None else (fixed,)
        self.steps = dict(enumerate(steps))
        self.found = [plan_kernels(self.rotation, kernels, each) for each in steps]
        self.roles = len(loop.res)
        self.scratch_like = self.likes()
        self.launches: dict[LaunchRow, int] = {}

    def likes(self) -> list[set[int]]:
        """For each scratch buffer, the roles that give its bytes in some plan."""
        likes: list[set[int]] = []
        for plan in self.found:
            for number, like in enumerate(plan.scratch_like):
                if number == len(likes):
                    likes.append(set())
                likes[number].add(like)
        return likes

    def rows(self) -> list[PlanRow]:
        """The plans, as rows."""
        return [self.row(plan, self.steps[k]) for k, plan in enumerate(self.found)]

    def row(self, plan: LaunchPlan, steps: int) -> PlanRow:
        """One plan; a launch of a step in parts is a launch of each part."""
        end = plan.first + plan.length
        parts = [
            [at for launch in some for at in self.numbered(launch)]
            for some in (
                plan.launches[: plan.first],
                plan.launches[plan.first : end],
                plan.launches[end:],
            )
        ]
        return PlanRow(
            plan.copies,
            len(plan.scratch_like),
            tuple(at for part in parts for at in part),
            len(parts[0]),
            len(parts[1]),
            plan.repeats if plan.length else 0,
            sum(launch.steps for launch in plan.launches[plan.first : end]),
            tuple(self.rotation.own(role, steps) for role in range(self.roles)),
        )

    def numbered(self, launch: PlannedLaunch) -> list[int]:
        """The positions of the kernels' launches in the list, added where missing."""
        kernels = self.parts if launch.final else (self.fused[launch.steps],)
        rows = [
            LaunchRow(
                kernel.name,
                tuple(
                    self.operand(*each) for each in launch_operands(self.rotation, kernel, launch)
                ),
            )
            for kernel in kernels
        ]
        return [self.launches.setdefault(row, len(self.launches)) for row in rows]

    def operand(self, kind: RoleKind, index: int) -> CountedOperand:
        """An operand by the loop's counting."""
        if kind is RoleKind.SCALAR:
            return "number", index
        if kind is RoleKind.CAPTURE:
            return "buffer", self.roles + len(self.scratch_like) + index
        assert kind is RoleKind.SOURCE, "a bundle has no series"
        return "buffer", index
