"""
Schedules chosen for a part with its ghosts, and exchanges chosen with them.

A launch takes whole rounds of blocks: a part of 1024 rows may take two rounds, and three with 120
rows of ghosts. Where ghosts are more than a small share of a part, the schedule is chosen anew for
the part with all its ghosts, and the exchange with the speed predicted for it:

1. The schedule of a part with few ghosts gives a speed, and the speed a number of launches between
   two exchanges.
2. For as many launches, and for half as many, a schedule is chosen for the part with the ghosts of
   all steps.
3. The least predicted time of a step wins, also over ways without so many ghosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.decomposition import Decomposition
from timetile.lowering.plan_launches import PlannedKernel
from timetile.passes.loops.common_halos import CommonHalosPass
from timetile.passes.loops.cut_domain import Domain, cut
from timetile.passes.loops.move_loops import moved_to_origin
from timetile.passes.targets.links import Link
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.options import Options, run_passes
from timetile.runtime.ranks.exchange_choice import (
    DeepestLaunch,
    ExchangeChoice,
    RimWay,
    chosen_exchange,
)
from timetile.runtime.ranks.layout import cells_in
from timetile.runtime.ranks.loop_schedules import (
    LoopSchedule,
    computed_by,
    deepest_of,
    schedules_of,
    without_idle_loops,
)

LARGE_SHARE = 0.03
"""The share of a part that ghosts take before a schedule is chosen for the part with them."""


@dataclass(frozen=True)
class ChosenLoops:
    """The schedules of all loops, chosen for parts with some ghosts."""

    loops: list[LoopSchedule]
    probed: list[Sequence[PlannedKernel]]
    """The kernels, by loop, of the parts that schedules were chosen for."""
    updates: dict[int, str]
    """What the updates of loops compute, by number, in the part of the loop's schedule."""

    def deepest(self, ways: frozenset[RimWay]) -> DeepestLaunch | None:
        """The launch with the most steps; None if its speed is not predicted."""
        depth = deepest_of(self.loops)
        known = (each.gcells_per_second for each in self.loops if depth in each.depths)
        speed = next(filter(None, known), None)
        return None if speed is None else DeepestLaunch(depth, speed, ways)


@dataclass(frozen=True)
class PartChoices:
    """Chooses the schedules of the parts of a program."""

    module: ModuleOp
    decomposition: Decomposition
    cache: Cache | None

    def part(self, rank: int, zone_steps: int) -> ModuleOp:
        """The loops of a part with ghosts for some steps, at the origin."""
        return moved_to_origin(cut(self.module, self.decomposition, rank, zone_steps))

    def ranks_by_size(self) -> list[int]:
        """The ranks, with the most cells first."""
        ranks = range(self.decomposition.count)
        return sorted(ranks, key=lambda rank: -cells_in(self.decomposition.part(rank)))

    def chosen(self, options: Options, zone_steps: int, *, common: bool) -> ChosenLoops:
        """The schedules of the loops, of the largest part that updates cells in a loop."""
        found: dict[int, LoopSchedule] = {}
        probed: list[Sequence[PlannedKernel]] = []
        updates: dict[int, str] = {}
        loops = range(len(loops_of(self.module)))
        for rank in self.ranks_by_size():
            part = self.part(rank, zone_steps)
            numbers = [number for number, loop in enumerate(loops_of(part)) if loop.updates]
            if all(number in found for number in numbers):
                continue
            kernels = self.program(part, options, common=common)
            probed += kernels.facts
            for number, schedule in zip(numbers, schedules_of(kernels), strict=True):
                if number not in found:
                    found[number] = schedule
                    updates[number] = computed_by(loops_of(part)[number])
        return ChosenLoops(
            [found.get(number, LoopSchedule((), "")) for number in loops], probed, updates
        )

    def program(self, part: ModuleOp, options: Options, *, common: bool) -> ProgramKernels:
        """The kernels of a part's loops that update cells."""
        source = part.clone()
        if common:
            run_passes((CommonHalosPass(everywhere=True),), source)
        return ProgramKernels(without_idle_loops(source), options, self.cache)


def with_wide_zones(
    domain: Domain,
    decomposition: Decomposition,
    link: Link,
    found: ChosenLoops,
    choice: ExchangeChoice,
    choose: Callable[[int], ChosenLoops],
) -> tuple[ChosenLoops, ExchangeChoice]:
    """
    The schedules and the exchange that take least. `found`, `choice`: those for few ghosts.
    `choose`: schedules for parts with ghosts for some steps.
    """
    if choice.chosen.ghost_share <= LARGE_SHARE:
        return found, choice
    known: list[tuple[ChosenLoops, ExchangeChoice]] = []
    narrow = [each for each in choice.others if each.ghost_share <= LARGE_SHARE]
    if narrow:
        least = min(narrow, key=lambda cost: cost.seconds)
        others = (choice.chosen, *(each for each in choice.others if each is not least))
        known.append((found, replace(choice, chosen=least, others=others)))
    for launches in dict.fromkeys((choice.chosen.launches, -(-choice.chosen.launches // 2))):
        steps = launches * choice.depth
        wide = choose(steps)
        launch = wide.deepest(frozenset())
        if launch is None or launch.depth > steps:
            continue
        made = chosen_exchange(domain, decomposition, launch, link)
        costs = (made.chosen, *made.others)
        own = [each for each in costs if each.launches == steps // launch.depth]
        if own:
            others = tuple(each for each in costs if each is not own[0])
            known.append((wide, ExchangeChoice(own[0], others, launch.depth)))
    return min(known, key=lambda each: each[1].step_seconds, default=(found, choice))
