"""The cost model's predictions for all fitting schedules of a loop, the best first, and reasons for
leaving out the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile.kinds import Form, Guards, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.cells.instructions import quotients
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.launches.liveness import loop_rotation
from timetile.passes.analysis.launches.trip_counts import most_steps_at_once
from timetile.passes.cost.launch import launch_cost
from timetile.passes.cost.rim import has_copies
from timetile.passes.cost.terms import Cost
from timetile.passes.cost.traffic import stores_many_fields
from timetile.passes.cost.turn import loop_period
from timetile.passes.loops.split_regions import StepInRegions
from timetile.passes.loops.temporal_fusion import complete_depths
from timetile.passes.scheduling.memory_schedules import PARTED, Inside, PartTrials
from timetile.passes.scheduling.reasons import (
    LONG_CODE,
    NO_CELL,
    NO_KERNEL,
    NO_REGISTERS,
    NO_SPAN,
    TOO_LONG,
    Reason,
)
from timetile.passes.scheduling.rules import (
    SHAPE_RULES,
    Rule,
    exceeds_shared_memory,
    is_short_of_addresses,
    spanning_blocks,
    spills,
    waits_within_a_step,
)
from timetile.passes.scheduling.schedule_space import depths, schedules
from timetile.passes.scheduling.trial import Trial
from timetile.passes.scheduling.trial_kernels import TrialKernels
from timetile.passes.scheduling.turns import (
    fetched_evenly,
    in_short_turns,
    instructions_of,
    turns_twice,
)
from timetile.passes.scheduling.worth import Candidate, by_worth, worth_of
from timetile.passes.targets.parameters import Worth
from timetile.passes.targets.target import Target


@dataclass(frozen=True)
class Rejection:
    """A schedule left out at a depth and beyond."""

    schedule: Schedule
    depth: int
    reason: Reason


@dataclass(frozen=True)
class Comparison:
    """The candidates, the best first, and the schedules left out."""

    found: list[Candidate]
    rejected: list[Rejection]


def first_reason(rules: Iterable[Rule], trial: Trial) -> Reason | None:
    """The reason of the first rule with a reason; None if all rules pass."""
    return next((reason for rule in rules if (reason := rule(trial)) is not None), None)


def is_deep_in_doubles(trial: Trial, geometry: Geometry, factors: Worth) -> bool:
    """Whether rows of warps compute many levels of 8-byte cells, with code of the rim's own."""
    rows = trial.shape.streams and trial.shape.has_rows and trial.facts.words == 2
    deep = rows and trial.depth > factors.double_levels
    return deep and has_copies(geometry, trial.schedule.guards)


def divides_in_narrow_rows(trial: Trial) -> bool:
    """Whether levels of sums by rows in FP32 take quotients of a few cells of a lane at once."""
    facts, schedule = trial.facts, trial.schedule
    several = facts.steps > 1 and facts.dividing > 0 and facts.words == 1
    few = schedule.cells[-1] < trial.target.parameters.worth.divided_row_cells
    return schedule.form is Form.ROWS and trial.shape is TileShape.STRIP and several and few


def divides_in_pairs(trial: Trial) -> bool:
    """Whether levels of a streamed volume in FP64 take quotients of cells side by side."""
    facts, schedule = trial.facts, trial.schedule
    several = facts.steps > 1 and facts.dividing > 0 and facts.words == 2
    return several and trial.shape is TileShape.PENCIL and schedule.cells[-1] > 1


LONGEST = 4000
"""
Most instructions of a thread in a stream step, where another schedule has fewer: the assembler
takes 21 s for 7200, and 6 s for half of them (measured with quotients of 64-bit integers). The
longest schedules of ordinary programs have 3600, and chosen ones 1100.
"""


def with_guards(trial: Trial, geometry: Geometry, ahead: int) -> tuple[Trial, Cost]:
    """
    The choice of guards, for tiles on the rim or all tiles, with the model's prediction. All tiles
    have guards if blocks of a tile wait for the slowest, and in planes of two axes if faster. Only
    rim tiles have guards if tiles of one axis are streamed (measured: j2d5pt FP64 1815 and 1917,
    j2d9pt 887 and 1007).
    """

    def asked(guards: Schedule) -> tuple[Trial, Cost]:
        made = trial.with_schedule(guards)
        return made, launch_cost(made.facts, made.setting, geometry, made.target, ahead)

    on_all = trial.schedule.but(guards=Guards.ALL)
    if trial.setting.has_messages:
        return asked(on_all)
    rim, rim_cost = asked(trial.schedule.but(guards=Guards.RIM))
    if trial.shape.has_rows and geometry.has_guards and not geometry.outline.replaces_cells:
        # Measured: three steps of Yee's equations 161 and 153 GPts/s; fitted with tests everywhere.
        return rim, asked(on_all)[1]
    alike = has_copies(geometry, Guards.ALL) == has_copies(geometry, Guards.RIM)
    # If registers are scarce, the guarded copy spills: only tiles on the rim should run the copy.
    scarce = rim_cost.registers > trial.room(trial.target.parameters.spare.tight)
    if alike or scarce or trial.shape is TileShape.STRIP or trial.setting.layout.blocks > 1:
        return rim, rim_cost
    every, every_cost = asked(on_all)
    return (every, every_cost) if every_cost.seconds < rim_cost.seconds else (rim, rim_cost)


class Trials:
    """Tries schedules of one loop."""

    def __init__(
        self,
        loop: LoopOp,
        module: ModuleOp,
        target: Target,
        may_spill: bool = False,
        step: StepInRegions | None = None,
        inside: Inside | None = None,
    ):
        self.loop, self.target, self.may_spill = loop, target, may_spill
        self.step = step or StepInRegions(loop)
        self.kernels = TrialKernels(loop, module)
        self.parts = PartTrials(self.step, module, inside)
        self.quotients = max((quotients(module, update) for update in loop.updates), default=0)
        """The most quotients and roots of a cell of an update."""
        self.long: list[Candidate] = []
        """Candidates left out as their code is long."""
        self.fitting: dict[tuple[Schedule, int], Candidate] = {}
        """The candidates found so far, by schedule and depth."""

    def spilling(self) -> Trials:
        """
        Trials of the loop that may spill, with the kernels and the candidates found so far: a
        candidate that fits is the same where spills are allowed.
        """
        module, inside = self.kernels.module, self.parts.inside
        trials = Trials(self.loop, module, self.target, True, self.step, inside)
        trials.kernels, trials.fitting = self.kernels, dict(self.fitting)
        return trials

    def trial(self, schedule: Schedule, depth: int) -> Trial | None:
        """A schedule at a depth; None without a kernel."""
        facts = self.kernels.facts(depth, schedule)
        return None if facts is None else Trial(self.kernels, self.target, schedule, depth, facts)

    def depths(self, schedule: Schedule, given: int | None) -> range:
        """The depths to try: the given one if it can be tried, else all."""
        kernels = self.kernels
        shape = kernels.shape(schedule)
        return depths(schedule, shape, given, several_planes=kernels.several_planes)

    def compared(
        self, depth: int | None, considered: Iterable[Schedule], above: int = 0
    ) -> Comparison:
        """
        The fitting candidates, at one depth or at every depth `above` another, the best by the
        model first; of equals the candidate with fewer registers. Deeper kernels of a left-out
        schedule are not tried.
        """
        most = most_steps_at_once(self.loop)
        found: list[Candidate] = []
        rejected: list[Rejection] = []
        for schedule in considered:
            for tried in self.depths(schedule, depth):
                if tried <= above:
                    continue
                if most is not None and tried > most:
                    break
                candidate = self.fitting.get((schedule, tried)) or self.attempt(schedule, tried)
                if isinstance(candidate, Reason):
                    rejected.append(Rejection(schedule, tried, candidate))
                    break
                self.fitting[schedule, tried] = candidate
                found.append(candidate)
        return Comparison(by_worth(found), rejected)

    def attempt(self, schedule: Schedule, depth: int) -> Candidate | Reason:
        """The candidate at a depth, fetching as early as fits, or the reason for none."""
        if schedule.reads_memory:
            return self.attempt_parts(schedule)
        trial = self.trial(schedule, depth)
        if trial is None:
            return Reason(NO_KERNEL)
        if (reason := first_reason(SHAPE_RULES, trial)) is not None:
            return reason
        if schedule.tile is TileLevel.DEVICE:
            blocks = spanning_blocks(trial)
            if blocks is None:
                return Reason(NO_SPAN)
            trial = trial.with_schedule(replace(schedule, blocks=(blocks, *schedule.blocks[1:])))
        if (reason := waits_within_a_step(trial)) is not None:
            return reason
        geometry = trial.geometry
        if geometry is None:
            return Reason(NO_CELL)
        if not self.may_spill and (reason := spills(trial)) is not None:
            return reason
        ahead = trial.fitting_ahead(geometry)
        if ahead is None:
            return exceeds_shared_memory(trial, geometry)
        if (reason := is_short_of_addresses(trial)) is not None:
            return reason
        if trial.is_scarce:
            trial = trial.with_schedule(trial.schedule.but(columns_alone=True))
        return self.finished(trial, geometry, ahead)

    def attempt_parts(self, schedule: Schedule) -> Candidate | Reason:
        """The candidate of kernels that read memory, or the reason for none."""
        cost = self.parts.cost(schedule, self.target)
        room = self.target.isa.registers_for(schedule.layout().threads * schedule.occupancy)
        if cost.registers > room:
            return Reason(NO_REGISTERS, cost.registers, room)
        worth = worth_of(schedule, 1, cost, self.target.parameters.worth)
        return Candidate(schedule, 1, cost, worth * (PARTED if cost.exposed_seconds else 1))

    def finished(self, trial: Trial, geometry: Geometry, ahead: int) -> Candidate | Reason:
        """The candidate of a fitting trial, or the reason for too long code."""
        parameters = self.target.parameters
        twice = turns_twice(trial)
        if twice:
            ahead = fetched_evenly(trial, geometry, ahead)
        trial, cost = with_guards(in_short_turns(trial), geometry, ahead)
        schedule = trial.schedule
        length, most = instructions_of(cost), parameters.worth.resident_instructions
        if schedule.resident and length > most:
            return Reason(TOO_LONG, ceil(length), most)
        if twice:
            # `turns_twice` counted the registers of the second step: a guarded copy of two steps
            # spills no more than a copy of one step.
            schedule = replace(schedule, period=2)
            cost = replace(cost, compute_seconds=cost.compute_seconds / parameters.worth.turns)
        alone = cost.is_slowed_by_further_blocks
        schedule = replace(schedule, ahead=ahead, blocks_alone=alone)
        worth = worth_of(schedule, trial.depth, cost, parameters.worth)
        if self.quotients >= parameters.worth.many_quotients:
            worth *= parameters.worth.quotients**trial.depth
        if divides_in_narrow_rows(trial):
            worth *= parameters.worth.divided_rows
        if divides_in_pairs(trial):
            worth *= parameters.worth.divided_pairs
        if stores_many_fields(trial.facts):
            beyond = max(0, trial.depth - parameters.worth.many_fields_levels)
            worth *= parameters.worth.many_fields**beyond
        if is_deep_in_doubles(trial, geometry, parameters.worth):
            worth *= parameters.worth.deep_doubles
        candidate = Candidate(schedule, trial.depth, cost, worth)
        if length > LONGEST:
            self.long.append(candidate)
            return Reason(LONG_CODE, ceil(length), LONGEST)
        return candidate

    def in_turns_of_one(self, candidate: Candidate) -> Candidate | None:
        """A candidate with turns of one stream step; None where turns have one step already."""
        schedule, depth = candidate.schedule.but(period=1), candidate.depth
        trial = self.trial(schedule, depth)
        if schedule == candidate.schedule or trial is None or trial.facts.natural_period == 1:
            return None
        geometry = trial.geometry
        if geometry is None:
            return None
        # The code of two steps moves planes once, where warps exchange planes in two slots.
        setting = replace(trial.setting, period=loop_period(trial.facts, trial.setting))
        cost = launch_cost(trial.facts, setting, geometry, self.target, schedule.ahead)
        share = cost.gcells_per_second / candidate.cost.gcells_per_second
        return replace(candidate, schedule=schedule, cost=cost, worth=candidate.worth * share)

    def lowers(self, candidate: Candidate) -> bool:
        """
        Whether a kernel of a single step, and those of smaller depths needed for a plan, fit the
        tile and the shared memory with the candidate's schedule, too.
        """
        if candidate.schedule.reads_memory:
            return True
        home_cycles = loop_rotation(self.loop).home_cycles
        return all(
            self.holds(candidate.schedule, depth)
            for depth in complete_depths((candidate.depth,), home_cycles)
        )

    def holds(self, schedule: Schedule, depth: int) -> bool:
        """
        Whether a kernel of a depth leaves cells of the schedule's tile, and fits the shared memory.
        """
        whole = replace(schedule, form=Form.NONE)
        facts = self.kernels.facts(depth, schedule) or self.kernels.facts(depth, whole)
        if facts is None:
            # No later step reads the cells of this step.
            return depth > 1
        trial = Trial(self.kernels, self.target, schedule, depth, facts)
        geometry = trial.geometry
        return geometry is not None and trial.fits_shared(geometry, schedule.ahead)


def compare(loop: LoopOp, module: ModuleOp, target: Target, depth: int | None) -> Comparison:
    """
    All schedules of a loop at one depth or at every depth: fitting ones, and reasons for the
    others.
    """
    trials = Trials(loop, module, target)
    return trials.compared(depth, schedules(loop, target, trials.step))


def candidates(
    loop: LoopOp, module: ModuleOp, target: Target, depth: int | None
) -> list[Candidate]:
    """All fitting candidates, at one depth or at every depth, the best by the model first."""
    return compare(loop, module, target, depth).found
