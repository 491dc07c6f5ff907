"""
The kernels of all parts of a program on several devices.

A schedule is chosen for one part, the largest, and used by all: launches of all parts then advance
equal numbers of steps, and run through one plan. Parts of equal extents share their kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.decomposition import Decomposition, Ghosts
from timetile.dialects.temporal import LoopOp, PartAttr
from timetile.lowering.plan_launches import PlannedKernel, parts_of_step
from timetile.passes.analysis.geometry.limits import check_loop
from timetile.passes.diagnostics import refuse
from timetile.passes.loops.cut_domain import Domain, around_function, loop_name
from timetile.passes.targets.links import NVLINK, Link
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.options import Options
from timetile.runtime.ranks.beside_kernels import BesideLaunch, beside_launch
from timetile.runtime.ranks.exchange_choice import ExchangeChoice, RimWay, chosen_exchange
from timetile.runtime.ranks.first_kernels import FirstLaunch, first_launch
from timetile.runtime.ranks.loop_schedules import (
    LoopSchedule,
    deepest_of,
    schedules_of,
    write_schedules,
)
from timetile.runtime.ranks.part_choices import ChosenLoops, PartChoices, with_wide_zones
from timetile.runtime.ranks.split_kernels import (
    PIECES_SECONDS,
    SHORTEST_LAUNCH,
    SplitLaunch,
    split_launch,
)

MOST_LONGER = 0.05
"""The share of a launch that rims first may take longer where nothing is predicted."""

GUESSED_STEPS = 8
"""Steps of a launch assumed for the ghost zone of a part with few ghosts."""


T = TypeVar("T")

MakesLaunch = Callable[
    [ProgramKernels, LoopOp, LoopOp, PartAttr, Ghosts, PlannedKernel], "T | None"
]
"""
Makes the kernels of a launch on a part: from the part's kernels, the program's loop, the part's
loop, the part, the moved cells of the ghost zone, and the facts of the launch.
"""

PlannedLoop = tuple[LoopOp, list[PlannedKernel]]
"""A loop of a part, and the facts of its kernels."""


def needed_steps(fact: PlannedKernel) -> int:
    """
    The steps of ghosts that a launch uses up. Where cells outside the bounds come from buffers of
    their own, the outermost ghosts may be stale there, and one step more is used up.
    """
    return fact.steps + (1 if fact.reads_halos else 0)


class PartKernels:
    """
    The kernels of the parts of a decomposition. `steps`: the steps between two exchanges, chosen by
    `chosen_exchange` unless asked for. Launches never advance more. Ghost zones are for
    `zone_steps` steps. `ranks`: the parts that kernels are made for; all unless given. `link`: the
    cost of exchanges.
    """

    def __init__(
        self,
        module: ModuleOp,
        decomposition: Decomposition,
        options: Options,
        cache: Cache | None,
        asked: int | None = None,
        ranks: Sequence[int] | None = None,
        link: Link = NVLINK,
    ):
        self.module, self.decomposition = module, decomposition
        self.options, self.cache, self.link = options, cache, link
        self.ranks = range(decomposition.count) if ranks is None else ranks
        self.made: dict[bool, list[ProgramKernels]] = {}
        self.schedules: dict[bool, list[LoopSchedule]] = {}
        self.splits: dict[tuple[ProgramKernels, int, str], SplitLaunch | None] = {}
        self.besides: dict[tuple[int, str, bool], list[BesideLaunch] | None] = {}
        self.firsts: dict[tuple[int, str, bool], list[FirstLaunch] | None] = {}
        self.choices = PartChoices(module, decomposition, cache)
        common = options.halos == "compared"
        narrow = self.found = self.chosen((asked or GUESSED_STEPS) + 1, common=common)
        """The schedules of the parts."""
        self.ways = self.possible_ways
        self.exchange: ExchangeChoice | None = None
        """Why there are so many steps between two exchanges; None if asked for, or unknown."""
        deepest = deepest_of(self.found.loops)
        self.steps = asked or deepest
        if asked is None:
            self.choose_exchange(narrow, common=common)
        elif deepest > asked:
            self.found = self.chosen(asked + 1, common=common, depth=asked)
        self.schedules[common] = self.found.loops
        self.cut_parts()
        while self.exchange is not None and not self.goes_as_chosen(self.exchange.way):
            self.ways -= {self.exchange.way}
            self.choose_exchange(narrow, common=common)
            self.schedules[common] = self.found.loops
            self.cut_parts()

    @cached_property
    def domain(self) -> Domain:
        """The domain of the program, which has one."""
        domain = Domain.of(self.module)
        assert domain is not None
        return domain

    def chosen(self, zone_steps: int, *, common: bool, depth: int | None = None) -> ChosenLoops:
        """The schedules of loops for parts with ghosts for some steps; of a depth, if given."""
        options = self.options if depth is None else replace(self.options, depth=depth)
        return self.choices.chosen(options, zone_steps, common=common)

    def choose_exchange(self, found: ChosenLoops, *, common: bool) -> None:
        """
        Choose the launches between two exchanges for the loop with the deepest launch, if its speed
        is predicted, and schedules for parts with many ghosts. `found`: for few ghosts.
        """
        launch = found.deepest(self.ways)
        if launch is None:
            return
        domain = self.domain
        choice = chosen_exchange(domain, self.decomposition, launch, self.link)
        if not self.options.given.tile and self.options.depth is None:
            choose = partial(self.chosen, common=common)
            known = domain, self.decomposition, self.link
            found, choice = with_wide_zones(*known, found, choice, choose)
        self.found, self.exchange, self.steps = found, choice, choice.steps

    def cut_parts(self) -> None:
        """Cut the program into parts, with ghosts for the steps between two exchanges."""
        # Kernels with halo arguments need a step more.
        reads_halos = any(fact.reads_halos for facts in self.found.probed for fact in facts)
        self.zone_steps = max(2, self.steps + 1 if reads_halos else self.steps)
        self.moved_steps = self.zone_steps - 1 if reads_halos else self.zone_steps
        """Exchanges make ghosts of so many steps fresh: no kernel reads the outermost as data."""
        self.modules = [self.part(rank) for rank in self.ranks]
        self.made.clear()
        self.besides.clear()
        self.firsts.clear()

    def goes_as_chosen(self, way: RimWay) -> bool:
        """
        Whether the deepest kernel of each loop has its rims go a way. Ranks of several processes
        agree in a run: a rank knows its own kernels only.
        """
        if way == "copied" or len(self.ranks) < self.decomposition.count:
            return True
        common = self.options.halos == "compared"
        deepest = deepest_of(self.schedules[common])
        made = self.rims_first if way == "first" else self.stored_beside
        for number, chosen in enumerate(self.schedules[common]):
            planned = next(filter(None, self.planned(number, common=common)), None)
            if planned is None or deepest not in chosen.depths:
                continue
            if made(number, planned[1][0].name, common=common) is None:
                return False
        return True

    @property
    def possible_ways(self) -> frozenset[RimWay]:
        """
        Further ways that rims can probably go: a step is one kernel, and kernels store to parts of
        the own process. Time and spilled registers of a kernel are known after its compilation.
        """
        counts = self.decomposition.counts
        has_parts = any(len(parts_of_step(facts)) > 1 for facts in self.found.probed)
        has_points = any(loop.has_points for loop in loops_of(self.module))
        if has_parts or has_points or not self.link.reaches:
            return frozenset()
        is_slabs = all(count == 1 for count in counts[1:])
        ways: set[RimWay] = {"first"} if sum(count > 1 for count in counts) == 1 else set()
        if is_slabs and len(self.ranks) == self.decomposition.count:
            ways.add("stored")
        return frozenset(ways)

    def part(self, rank: int) -> ModuleOp:
        """The loops of a part, at the origin."""
        return self.choices.part(rank, self.zone_steps)

    @property
    def hidden_share(self) -> float:
        """
        The predicted seconds of an exchange that launches in pieces hide, over those of a launch; 1
        if not predicted.
        """
        if self.exchange is None:
            return 1.0
        cost = self.exchange.chosen
        if cost.launch_seconds < SHORTEST_LAUNCH:
            return 0.0
        return max(0.0, cost.exchange_seconds - PIECES_SECONDS) / cost.launch_seconds

    def part_of(self, rank: int) -> PartAttr:
        """The part of a rank, with its ghost zone."""
        return PartAttr(rank, self.decomposition, self.ghosts(self.zone_steps), self.zone_steps)

    def ghosts(self, steps: int) -> Ghosts:
        """The ghost zone of some steps."""
        return self.domain.ghosts(steps, self.decomposition.periodic)

    def is_fresh(self, fact: PlannedKernel, age: int) -> bool:
        """Whether ghosts of an age are fresh enough for a launch."""
        return age + needed_steps(fact) <= self.zone_steps and age + fact.steps <= self.moved_steps

    def of_parts(self, *, common: bool) -> list[ProgramKernels]:
        """
        The kernels of each part, in order of ranks; parts with equal loops share kernels. `common`:
        for common halos of buffers that take turns.
        """
        if common not in self.made:
            self.made[common] = self.placed(common=common)
        return self.made[common]

    def placed(self, *, common: bool) -> list[ProgramKernels]:
        """The kernels of each part, with the schedules chosen for all."""
        if common not in self.schedules:
            most = min(self.steps, self.zone_steps - 1)
            chosen = self.chosen(self.zone_steps, common=common)
            if deepest_of(chosen.loops) > most:
                chosen = self.chosen(self.zone_steps, common=common, depth=most)
            self.found = replace(self.found, updates=chosen.updates)
            self.schedules[common] = chosen.loops
        given = self.options.given
        _, placing = self.options.halves_of_tile_passes()
        options = replace(self.options, passes=(*placing, *given.threads, *given.hardware))
        shared: dict[str, ProgramKernels] = {}
        found: list[ProgramKernels] = []
        for part in self.modules:
            if not given.tile:
                part = part.clone()
                write_schedules(part, self.schedules_for(part, common=common))
            kernels = shared.setdefault(
                str(part), self.choices.program(part, options, common=common)
            )
            found.append(kernels)
        for kernels in shared.values():
            for loop in kernels.loops:
                check_loop(loop)
        self.check_launches(found)
        return found

    def schedules_for(self, part: ModuleOp, *, common: bool) -> list[LoopSchedule]:
        """The schedules of a part: those of all, or its own where its updates need others."""
        shared, loops = self.schedules[common], loops_of(part)
        if all(
            each.serves(loop, self.found.updates.get(number, ""))
            for number, (loop, each) in enumerate(zip(loops, shared, strict=True))
        ):
            return shared
        most = min(self.steps, self.zone_steps - 1)
        found = schedules_of(self.choices.program(part, self.options, common=common))
        if deepest_of(found) > most:
            options = replace(self.options, depth=most)
            found = schedules_of(self.choices.program(part, options, common=common))
        own = iter(found)
        return [next(own) if loop.updates else each for loop, each in zip(loops, shared)]

    def planned(self, number: int, *, common: bool) -> list[PlannedLoop | None]:
        """
        The loop of a number, of each part, and the facts of its kernels; None for a part that
        updates no cell.
        """
        found: list[PlannedLoop | None] = []
        for kernels in self.of_parts(common=common):
            names = [around_function(loop).sym_name.data for loop in kernels.loops]
            place = names.index(loop_name(number)) if loop_name(number) in names else None
            known = None if place is None else (kernels.loops[place], kernels.facts[place])
            found.append(known)
        return found

    def in_pieces(self, number: int, name: str, *, common: bool) -> list[SplitLaunch] | None:
        """
        For each part, the pieces of a launch: of the loop's deepest kernel, or of the first kernel
        where a step has several. None unless each part has pieces.
        """
        found: list[SplitLaunch] = []
        for rank, kernels, planned in zip(
            self.ranks, self.of_parts(common=common), self.planned(number, common=common)
        ):
            if planned is None:
                return None
            loop, facts = planned
            deepest = facts[0]
            if deepest.name != name or loop.sweep is not None or loop.has_points:
                return None
            key = kernels, rank, name
            if key not in self.splits:
                part = self.part_of(rank)
                self.splits[key] = split_launch(kernels, loop, part, deepest, self.hidden_share)
            split = self.splits[key]
            if split is None:
                return None
            found.append(split)
        return found

    def stored_beside(self, number: int, name: str, *, common: bool) -> list[BesideLaunch] | None:
        """
        The kernels of a launch of a loop's deepest kernel that store beside, by part; None unless
        each part has one, or if rims go another way.
        """
        key = number, name, common
        if self.exchange is not None and self.exchange.way != "stored":
            return None
        if key not in self.besides:
            self.besides[key] = self.sent(number, name, common, beside_launch)
        return self.besides[key]

    def rims_first(self, number: int, name: str, *, common: bool) -> list[FirstLaunch] | None:
        """
        The kernels of a launch of a loop's deepest kernel with rims first, by part; None unless
        each part has them, or if rims go another way.
        """
        key = number, name, common
        if self.exchange is not None and self.exchange.way != "first":
            return None
        if key not in self.firsts:
            chosen = self.exchange
            limits = (MOST_LONGER, 0.0) if chosen is None else chosen.limits_of_first
            self.firsts[key] = self.sent(number, name, common, partial(first_launch, *limits))
        return self.firsts[key]

    def sent(self, number: int, name: str, common: bool, make: MakesLaunch[T]) -> list[T] | None:
        """The kernels, by part, of a loop's deepest launch; None unless each part has one."""
        found: list[T] = []
        loop = loops_of(self.module)[number]
        if loop.sweep is not None or loop.has_points:
            return None
        for rank, kernels, planned in zip(
            self.ranks, self.of_parts(common=common), self.planned(number, common=common)
        ):
            if planned is None:
                return None
            own, facts = planned
            if facts[0].name != name or len(parts_of_step(facts)) > 1:
                return None
            if self.is_fresh(facts[0], facts[0].steps):
                return None
            moved, part = self.ghosts(self.moved_steps), self.part_of(rank)
            made = make(kernels, loop, own, part, moved, facts[0])
            if made is None:
                return None
            found.append(made)
        return found

    def check_launches(self, found: list[ProgramKernels]) -> None:
        """CompileError for a launch of more steps than the ghost zone is for."""
        for kernels in found:
            for loop, facts in zip(kernels.loops, kernels.facts):
                deepest = max(map(needed_steps, facts), default=1)
                if deepest > self.zone_steps:
                    refuse(
                        loop,
                        f"the given passes make launches that need ghosts of {deepest} steps, and "
                        f"ghosts are for {self.zone_steps}; give exchange_every={deepest}",
                    )
