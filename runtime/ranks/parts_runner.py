"""
Runs time loops on the parts of several sites from one host thread, without waiting for any site.

A loop is planned once, as on one device. Each launch of the plan is made on every part. Before a
launch whose sources have ghosts too old for its steps, the ghosts are pulled from the neighbours:

1. Every site marks its stream behind the launches so far.
2. Every site waits for the marks of its neighbours, and pulls ghosts from the neighbours' buffers.
3. Every site marks its stream behind the pulls. A neighbour waits for the mark before a launch
   that writes the buffer, mostly a launch later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp, SweepOp
from timetile.dialects.tile import CopyOp, LaunchOp, ScratchOp, StepValueOp
from timetile.lowering.plan_launches import PlannedKernel, parts_of_step
from timetile.passes.analysis.launches.liveness import cycles_in_turn
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.executors.series import step_value
from timetile.runtime.host.functions import Host, HostValues
from timetile.runtime.host.halo_notice import HaloNotice
from timetile.runtime.host.halos import compared_in_turn, written_box
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.planning import planned_function
from timetile.runtime.native.loops import rotated
from timetile.runtime.ranks.beside_kernels import BesideLaunch
from timetile.runtime.ranks.cut_program import CutProgram
from timetile.runtime.ranks.exchange import CutField
from timetile.runtime.ranks.first_kernels import FirstLaunch
from timetile.runtime.ranks.loops_in_turn import stale_around
from timetile.runtime.ranks.moved_rims import MovedRims
from timetile.runtime.ranks.part_kernels import PartKernels, PlannedLoop
from timetile.runtime.ranks.parted import STALE, PartedField, PartsMemory
from timetile.runtime.ranks.parts_sweeps import run_on_parts
from timetile.runtime.ranks.present_run import (
    PresentRun,
    launch_order,
    operands_of,
    places_of_fields,
    same_halos,
    taken_by,
)
from timetile.runtime.ranks.rounds import PartRounds, around_loop
from timetile.runtime.ranks.sites import Site
from timetile.runtime.ranks.split_kernels import SplitLaunch
from timetile.runtime.ranks.turns import run_turns


class PartsRunner:
    """
    Runs time loops on the parts of several sites. `cuts`: the program, cut for each site. Runs with
    kernels of several steps compare halos as on one device.
    """

    def __init__(
        self,
        cuts: Sequence[CutProgram],
        kernels: PartKernels,
        sites: Sequence[Site],
        notice: HaloNotice,
        progress: Progress | None = None,
    ):
        self.cuts, self.kernels, self.sites = cuts, kernels, sites
        self.notice, self.progress = notice, progress
        self.memory = PartsMemory(sites, self.cuts_of)
        self.memory.sweeps = self.sweep
        self.rims = MovedRims(sites, self.memory, kernels.ghosts(kernels.moved_steps))
        self.host = Host(
            {
                LaunchOp: self.launch,
                ScratchOp: self.scratch,
                CopyOp: self.copy,
                StepValueOp: step_value,
                scf.ForOp: self.repeat,
            }
        )
        self.plans: dict[tuple[LoopOp, int, bool], Any] = {}
        self.scratches: dict[tuple[Any, ...], PartedField] = {}
        self.scratch_count = 0
        self.places: dict[int, tuple[list[int], list[int]]] = {}
        """For kernels by identity of the facts, the places of read and of written fields."""
        self.of_step: list[PartedField] = []
        """The fields written by the kernels of the present step in parts."""
        self.present: PresentRun | None = None
        self.reach: bool | None = None
        """Whether kernels of all parts may store to buffers of all others; None if unknown."""
        self.seconds: list[Site] = []
        """Sites with a second stream for each part, made when first needed."""
        self.order = launch_order(cuts, sites)
        self.rounds = [PartRounds(site, number) for number, site in enumerate(sites)]
        self.done, self.total = 0, 0

    @property
    def can_record(self) -> bool:
        """Whether launches and exchanges may be recorded: the host has no work between."""
        return True

    def cuts_of(self, value: SSAValue) -> tuple[CutField, ...]:
        """The parts of a field of the program; none for a field of fewer axes."""
        found = [cut.field(value) for cut in self.cuts]
        return tuple(field for field in found if field is not None)

    def __call__(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        if stale := stale_around(loop, buffers):
            self.exchange(stale)
        number = list(self.cuts[0].loops).index(loop)
        common = self.has_common_halos(loop, number, steps, buffers)
        found = self.kernels.planned(number, common=common)
        parts = self.kernels.of_parts(common=common)
        self.done, self.total = 0, steps
        rank = self.planning_rank(loop, found, common=common)
        if rank is None:
            return self.run_in_rounds(loop, steps, buffers, outside, found, parts)
        planned = found[rank]
        assert planned is not None
        own, facts = planned
        of_part = self.cuts[rank].loops[loop]
        last = parts_of_step(facts)[-1].name
        named = {fact.name: fact for fact in facts}
        self.present = PresentRun(loop, of_part, named, parts, last, number, common)
        self.scratch_count, self.of_step, self.rims.have_met = 0, [], False
        if (loop, steps, common) not in self.plans:
            self.plans[loop, steps, common] = planned_function(own, facts, steps)
        around = list(around_loop(of_part, outside).values())
        return self.host.run(self.plans[loop, steps, common], [steps, *buffers, *around])

    def planning_rank(
        self, loop: LoopOp, found: Sequence[PlannedLoop | None], *, common: bool
    ) -> int | None:
        """
        A rank whose plan serves all parts that update cells; None where launches of parts have
        different arguments or steps, or where no part updates cells.
        """
        known = [(n, taken_by(self.cuts[n], loop), p[1]) for n, p in enumerate(found) if p]
        same = bool(known) and all(kind[1:] == known[0][1:] for kind in known)
        return known[0][0] if same else None

    def run_in_rounds(
        self,
        loop: LoopOp,
        steps: int,
        buffers: Sequence[PartedField],
        outside: dict[SSAValue, Any],
        found: Sequence[PlannedLoop | None],
        parts: Sequence[ProgramKernels],
    ) -> Sequence[PartedField]:
        """
        Run each part by plans of its own: some steps, an exchange, some steps. Each plan leaves the
        cells of the plain loop in all buffers.
        """
        names, done = list(buffers), 0
        of_rank0 = self.cuts[0].loops[loop]
        every = 1 if loop.sweep is not None else max(1, self.kernels.zone_steps - 1)
        while done < steps:
            count = min(every, steps - done)
            read = [names[role] for role in of_rank0.exchanged]
            read += [outside[field] for field in loop.captures]
            self.exchange([each for each in dict.fromkeys(read) if each.cuts and each.age])
            for number, planned in enumerate(found):
                if planned is None:
                    continue
                for role in of_rank0.written:
                    self.memory.wait_for_readers(names[role], number)
                given = around_loop(self.cuts[number].loops[loop], outside, done, count)
                self.rounds[number].run(planned, parts[number], count, names, given)
            names = rotated(names, loop.rotation, count)
            for role in of_rank0.written:
                names[role].age, names[role].is_changed = STALE, True
            done += count
            if self.progress is not None:
                self.progress(done, steps)
        return names

    def has_common_halos(
        self, loop: LoopOp, number: int, steps: int, buffers: Sequence[PartedField]
    ) -> bool:
        """Whether the run has launches of several steps, and rotating buffers with equal halos."""
        if self.kernels.options.halos != "compared":
            return False
        found = self.kernels.planned(number, common=True)
        facts = [fact for planned in found if planned is not None for fact in planned[1]]
        if all(fact.steps > steps for fact in facts if fact.steps > 1):
            return False
        turns = set(cycles_in_turn(loop))
        if any(planned and not turns.issuperset(cycles_in_turn(planned[0])) for planned in found):
            # A part has one box of several: the others' cells are not compared.
            return False
        pairs = compared_in_turn(loop)
        for frame, first, other in pairs:
            box = written_box(loop, first)
            if not same_halos(self.sites, box, frame, buffers[first], buffers[other]):
                self.notice.say(loop, first)
                return False
        return bool(pairs)

    def launch(self, op: LaunchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Make a launch on every part, with ghosts fresh enough for the launch's steps."""
        run = self.present
        assert run is not None
        fact = run.facts[op.kernel.string_value()]
        read, written = self.fields_of(run, fact, operands)
        age, stale = self.ages_of(run, fact, read)
        used = self.used_steps(run, fact)
        # Neighbours still read what a launch in place would change.
        in_place = any(field in read for field in written)
        first = None if in_place else self.first_of(run, fact, written)
        beside = None if in_place or first else self.beside_of(run, fact, written)
        is_sent = first is not None or beside is not None
        can_split = bool(stale) and not is_sent and not in_place
        split = self.pieces_of(run, fact) if can_split else None
        if is_sent:
            if stale:
                self.exchange(stale)
            if first is not None:
                self.launch_first(first, op, operands, written)
            elif beside is not None:
                self.rims.launch_beside(beside, self.order, op, operands, written)
        elif split is None:
            if stale:
                self.exchange(stale)
            for number in self.order:
                if run.parts[number].has(fact.name):
                    for field in written:
                        self.memory.wait_for_readers(field, number)
                    own = operands_of(operands, number)
                    self.sites[number].launch(run.parts[number], op, own)
        else:
            self.launch_in_pieces(split, op, operands, stale, written)
        ends = fact.steps > 1 or fact.name == run.last_of_step
        self.rims.have_met = is_sent
        age = 0 if is_sent else age + used
        for field in self.of_step:
            field.age = max(field.age, age)
        for field in written:
            field.age, field.is_changed = age, True
        self.of_step += written
        if ends:
            self.of_step = []
            self.done += fact.steps
            if self.progress is not None:
                self.progress(self.done, self.total)
        return []

    def repeat(self, op: scf.ForOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """The launches of a loop of a plan, as graphs where a cycle of turns is found."""
        records = self.can_record and not self.kernels.options.bound_waits
        run_turns(self, op, operands, values, records=records)
        return []

    def fields_of(
        self, run: PresentRun, fact: PlannedKernel, operands: Sequence[Any]
    ) -> tuple[list[PartedField], list[PartedField]]:
        """The cut fields read and the fields written by a launch."""
        # Kernels keep their facts: an identity stays.
        key = id(fact)
        if key not in self.places:
            self.places[key] = places_of_fields(run, fact)
        read, written = self.places[key]
        found = [operands[place] for place in read]
        return [field for field in found if field.cuts], [operands[place] for place in written]

    def used_steps(self, run: PresentRun, fact: PlannedKernel) -> int:
        """
        The steps by which a launch ages ghosts. A sweep uses ghosts up: zones for several steps of
        a time loop are no wider for sweeps.
        """
        return fact.steps if run.loop.sweep is None else self.kernels.zone_steps

    def ages_of(
        self, run: PresentRun, fact: PlannedKernel, read: Sequence[PartedField]
    ) -> tuple[int, list[PartedField]]:
        """
        The age of ghosts read by a launch, and the fields to exchange before: all fields with aged
        ghosts if some are too old for the launch. Fields written before in the same step in parts
        are a step younger than noted: the launch makes the same step.
        """
        is_sweep = run.loop.sweep is not None
        step = self.kernels.zone_steps if is_sweep else 1
        age = max((0, *(each.age - (step if each in self.of_step else 0) for each in read)))
        if age == 0 if is_sweep else self.kernels.is_fresh(fact, age):
            return age, []
        return 0, [each for each in dict.fromkeys(read) if each.age]

    def beside_of(
        self, run: PresentRun, fact: PlannedKernel, written: Sequence[PartedField]
    ) -> list[BesideLaunch] | None:
        """
        The kernels, by part, of a launch that stores ghosts of other parts; None for a launch that
        does not.
        """
        if not all(field.is_settled for field in written):
            return None
        if self.reach is None:
            sites = self.sites
            self.reach = len(sites) > 1 and all(one.reaches(two) for one in sites for two in sites)
        if not self.reach:
            return None
        return self.kernels.stored_beside(run.number, fact.name, common=run.common)

    def first_of(
        self, run: PresentRun, fact: PlannedKernel, written: Sequence[PartedField]
    ) -> list[FirstLaunch] | None:
        """The kernels, by part, of a launch with rims first; None for a launch without."""
        if len(self.sites) == 1 or not all(field.is_settled for field in written):
            return None
        return self.kernels.rims_first(run.number, fact.name, common=run.common)

    def launch_first(
        self,
        first: Sequence[FirstLaunch],
        op: LaunchOp,
        operands: Sequence[Any],
        written: Sequence[PartedField],
    ) -> None:
        """Make a launch with rims first."""
        seconds = self.second_sites()
        self.rims.launch_first(first, self.order, seconds, op, operands, written)

    def second_sites(self) -> list[Site]:
        """The sites with a second stream for each part."""
        if not self.seconds:
            self.seconds = [site.beside() for site in self.sites]
        return self.seconds

    def pieces_of(self, run: PresentRun, fact: PlannedKernel) -> list[SplitLaunch] | None:
        """The pieces of a launch, by part; None for launches that stay whole."""
        return self.kernels.in_pieces(run.number, fact.name, common=run.common)

    def launch_in_pieces(
        self,
        split: Sequence[SplitLaunch],
        op: LaunchOp,
        operands: Sequence[Any],
        stale: Sequence[PartedField],
        written: Sequence[PartedField],
    ) -> None:
        """
        Launch cells that need no ghosts at once, and pull ghosts and launch the rims meanwhile on
        second streams. Each stream goes on behind both.
        """
        seconds = self.second_sites()
        self.rims.pieces += 1
        for number in range(len(self.sites)):
            for field in written:
                self.memory.wait_for_readers(field, number)
        before = [site.mark() for site in self.sites]
        for number in self.order:
            self.sites[number].launch(split[number].inside, op, operands_of(operands, number))
        self.rims.pull(stale, seconds, before)
        for number in self.order:
            second = seconds[number]
            for kernels in split[number].rims:
                second.launch(kernels, op, operands_of(operands, number))
            self.sites[number].wait(second.mark())

    def exchange(self, fields: Sequence[PartedField]) -> None:
        """Make the ghosts of fields fresh."""
        self.rims.exchange(fields)

    def sweep(self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Any) -> None:
        """Run a sweep of the host on every part."""
        self.rims.have_met = False
        run_on_parts(self.cuts, self.sites, self.memory, self.exchange, op, fields, numbers)

    def scratch(self, op: ScratchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Scratch fields are kept from run to run."""
        like: PartedField = operands[0]
        key = (self.scratch_count, like.shape, like.dtype, like.cuts)
        self.scratch_count += 1
        if key not in self.scratches:
            self.scratches[key] = self.memory.alike(like)
        return [self.scratches[key]]

    def copy(self, op: CopyOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Copy a field on every site."""
        self.rims.have_met = False
        self.memory.copy(*operands)
        return []

    def end_run(self) -> None:
        """All work of a run is done."""

    def close(self) -> None:
        """Give back scratch fields and the fields of operations."""
        while self.scratches:
            self.memory.free(self.scratches.popitem()[1])
        for each in self.rounds:
            each.close()
        self.seconds.clear()
        self.rims.close()
        self.memory.close()
