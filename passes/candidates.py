"""What the cost model says of every schedule of a loop that fits, the best first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntAttr, ModuleOp

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile_attributes import LayoutAttr
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import ceil_div
from timetile.passes.analysis.geometry.residency import SCHEDULERS
from timetile.passes.analysis.launches.liveness import rotation_of, written_bounds
from timetile.passes.analysis.launches.trip_counts import most_steps_at_once
from timetile.passes.analysis.queues.lags import assign_lags
from timetile.passes.contract_cells import cell_functions
from timetile.passes.cost.kernel import KernelCost
from timetile.passes.cost.rim import has_copies, weighs_spills
from timetile.passes.cost.terms import Cost
from timetile.passes.device_tiling import KernelBuilder, default_stream
from timetile.passes.exchanges import add_exchanges, publish
from timetile.passes.kernel_forms import KernelForm
from timetile.passes.register_streaming import delay_exchanges
from timetile.passes.schedule import Guards, Schedule
from timetile.passes.schedule_space import (
    DEEPEST,
    DEEPEST_BOX,
    DEEPEST_LINE,
    depths,
    reach,
    schedules,
    shuffles_several_planes,
)
from timetile.passes.split_sums import split_kernel
from timetile.passes.targets.parameters import Worth
from timetile.passes.targets.target import Target
from timetile.passes.temporal_fusion import complete_depths


@dataclass(frozen=True)
class Candidate:
    """A schedule at a depth, and what the model says of it."""

    schedule: Schedule
    depth: int
    cost: Cost
    worth: float
    """What candidates are compared by: the predicted speed (GCells/s), less where predictions are less certain."""
    tight: bool = False
    """Registers may suffice for the interior copy, but not for the guarded ones: those spill."""


def worth_of(schedule: Schedule, depth: int, cost: Cost, factors: Worth, *, tight: bool) -> float:
    """The predicted speed (GCells/s), less for depth, for spills, and for kinds of kernels that fall short of it."""
    speed = cost.gcells_per_second * factors.level**depth
    if schedule.stays and schedule.tile == "device":
        speed *= factors.device_stays
    wide = schedule.form == "rows" and schedule.cells[-1] >= factors.wide_sum_cells
    if wide and depth > 1:
        speed *= factors.wide_sums
    return speed * (factors.tight if tight else 1.0)


class Trials:
    """Tries schedules of one loop; the kernel of a depth and form is built once for all layouts."""

    def __init__(self, loop: LoopOp, module: ModuleOp, target: Target, *, may_spill: bool = False):
        self.loop, self.target, self.may_spill = loop, target, may_spill
        self.parameters = target.parameters
        self.module = module
        self.rank = len(written_bounds(loop).lb)
        self.far = reach(loop)
        self.several_planes = shuffles_several_planes(loop)
        self.costs: dict[KernelForm, KernelCost | None] = {}

    def spilling(self) -> Trials:
        """Trials of the loop that may spill; they share the kernels that were built."""
        trials = Trials(self.loop, self.module, self.target, may_spill=True)
        trials.costs = self.costs
        return trials

    def cost_of(self, depth: int, schedule: Schedule) -> KernelCost | None:
        """The kernel of a depth, ready for layouts like the schedule's; None where it has no form."""
        form = KernelForm.of(schedule, depth, self.far)
        if form not in self.costs:
            self.costs[form] = self.build(form, schedule.layout())
        return self.costs[form]

    def build(self, form: KernelForm, layout: LayoutAttr) -> KernelCost | None:
        """A kernel of a form; `layout` is any that has it."""
        stream = None if form.stays else default_stream(self.rank)
        builder = KernelBuilder(self.loop, form.depth, store_all=form.depth == 1)
        builder.single_steps = form.depth == 1
        kernel = builder.build("trial", stream)
        if not kernel.stages:
            return None
        # A module of its own: splitting sums adds cell functions.
        scratch = ModuleOp([*(f.clone() for f in cell_functions(self.module)), kernel])
        if form.sums != "none" and not split_kernel(kernel, scratch, form.sums):
            return None
        kernel.layout = layout
        add_exchanges(kernel)
        assign_lags(kernel)
        publish(kernel, None, int(form.copies))
        delay_exchanges(kernel, max(form.delay, form.every), always=form.split)
        model = KernelCost(kernel, scratch, self.target, split=form.split)
        model.every = form.every
        return model

    def ranked(self, depth: int | None, considered: Iterable[Schedule]) -> list[Candidate]:
        """
        The candidates that fit, at one depth or at every depth, the best by the model first; of equals the one
        that needs fewer registers.
        """
        deepest = DEEPEST_LINE if self.rank == 1 else DEEPEST
        if self.rank == 3 and self.several_planes:
            deepest = DEEPEST_BOX
        most = most_steps_at_once(self.loop)
        found: list[Candidate] = []
        for schedule in considered:
            for tried in depths(schedule, deepest, depth):
                if most is not None and tried > most:
                    break
                candidate = self.attempt(schedule, tried)
                if candidate is None:
                    break
                found.append(candidate)
        return sorted(found, key=lambda candidate: (-candidate.worth, candidate.cost.registers))

    def attempt(self, schedule: Schedule, depth: int) -> Candidate | None:
        """The candidate at a depth, fetching as early as fits; None where it does not fit at all."""
        model = self.cost_of(depth, schedule)
        if model is None:
            return None
        if schedule.stays and model.dividing:
            # How many registers such cells take is not known: two kernels alike need 150 and 255 (assembled).
            return None
        kernel = model.kernel
        kernel.layout = schedule.layout()
        kernel.occupancy = IntAttr(schedule.occupancy)
        model.guards, model.meets = schedule.guards, schedule.sync == "grid"
        if (
            len(schedule.cells) >= 2
            and depth > 1
            and schedule.cells[0] < self.far[-len(schedule.cells)]
        ):
            # Neighbours further than the next warp, or block, would need whole planes.
            return None
        if len(schedule.cells) == 2 and depth > 1:
            rows = replace(schedule, form="rows")
            if (
                self.rank == 3
                and self.several_planes
                and schedule.form == "none"
                and self.cost_of(depth, rows)
            ):
                # Three planes would be exchanged for every level, and sums by rows need one.
                return None
        if schedule.tile == "device":
            blocks = self.spanning_blocks(model, schedule)
            if blocks is None:
                return None
            schedule = replace(schedule, blocks=(blocks, *schedule.blocks[1:]))
            kernel.layout = schedule.layout()
        late = schedule.stays or all(e.exchange.delay.data for e in model.exchanges)
        if schedule.blocks and not late:
            # Blocks synchronise a step late, and that would cost lag.
            return None
        try:
            geometry = Geometry(kernel, model.needs)
        except ValueError:
            # The overlap leaves no cell of the tile.
            return None
        ahead = self.fitting_ahead(model, geometry, schedule)
        if ahead is None:
            return None
        if self.is_scarce(schedule, model):
            if geometry.has_narrow_accesses:
                # More accesses a row, and more addresses and masks: the loop inside would spill.
                return None
            schedule = replace(schedule, columns="alone")
        model.joins = schedule.columns is None
        twice = self.turns_twice(model, schedule)
        even = twice and (schedule.columns is not None or model.words == 1)
        if even and self.fits_shared(model, geometry, schedule, ahead + ahead % 2):
            # Planes of both turns are fetched into one group of slots, whose place is found once (measured: 2%, of sums
            # in FP32 half of one; others in FP64 spill, and lose by shared memory).
            ahead += ahead % 2
        guards, cost = self.predict(schedule, model, geometry, ahead)
        if (
            schedule.stays
            and cost.cycles.issue * SCHEDULERS > self.parameters.worth.staying_instructions
        ):
            return None
        schedule = replace(schedule, guards=guards)
        if twice:
            # The second turn's registers were asked for: a guarded copy spills no more than with one.
            schedule = replace(schedule, period=2)
            cost = replace(cost, compute_seconds=cost.compute_seconds / self.parameters.worth.turns)
        # The heights of chunks cover what spills, where they weigh it; with columns alone what spills is run by few.
        spare = model.spare_registers - (0 if model.joins else self.parameters.registers.joining)
        tight = not weighs_spills(geometry, model.natural_period) and (
            cost.registers > self.free_registers(schedule, spare)
        )
        schedule = replace(schedule, ahead=ahead)
        worth = worth_of(schedule, depth, cost, self.parameters.worth, tight=tight)
        return Candidate(schedule, depth, cost, worth, tight)

    def predict(
        self, schedule: Schedule, model: KernelCost, geometry: Geometry, ahead: int
    ) -> tuple[Guards, Cost]:
        """
        Which tiles run the copy with guards, those on the rim or all, and what the model says of it. All, where a
        block holds a tile of a plane of two axes (measured with one axis: j2d5pt FP64 1815 and 1917, j2d9pt 887 and 1007);
        all, too, where the device holds it and blocks wait for the slowest (27 points 195 and 239, j3d7pt 427 and 444).
        """
        assert geometry.kernel.layout is not None
        if geometry.kernel.layout.has_messages:
            model.guards = "all"
            return "all", model.predict(geometry, ahead)
        model.guards = "rim"
        rim = model.predict(geometry, ahead)
        alike = has_copies(geometry, "all") == has_copies(geometry, "rim")
        # Where registers are scarce the guarded copy spills: few tiles are to run it then.
        scarce = rim.registers > self.free_registers(schedule, self.parameters.spare.tight)
        if alike or scarce or self.rank == 2 or geometry.kernel.layout.blocks > 1:
            return "rim", rim
        model.guards = "all"
        every = model.predict(geometry, ahead)
        return ("all", every) if every.seconds < rim.seconds else ("rim", rim)

    def turns_twice(self, model: KernelCost, schedule: Schedule) -> bool:
        """Two steps of a loop that keeps sums of one axis fit the registers side by side, and its code is short enough."""
        if self.rank != 2 or schedule.form != "rows" or model.period > 1:
            return False
        if model.long_constants > self.parameters.computing.constants_at_hand:
            # Each turn would make them anew, or keep them in registers.
            return False
        # Levels of both steps are at work: a few addresses, and something of each. Where columns are alone the loop inside
        # keeps its registers whatever the guarded ones spill (assembled: 9 points at seven levels of six cells).
        more = self.parameters.registers.turns_level * model.kernel.steps.data
        if schedule.columns is None:
            more += self.parameters.registers.turns
        fits = model.registers() + more <= self.free_registers(
            schedule, self.parameters.spare.turns
        )
        return (
            fits and 2 * model.taps_of_step() <= self.parameters.worth.turns_taps[model.words * 4]
        )

    def is_scarce(self, schedule: Schedule, model: KernelCost) -> bool:
        """A strip that keeps sums has no registers left for chunks that go on in the next column."""
        if self.rank != 2 or schedule.form != "rows":
            return False
        free = self.free_registers(
            schedule, self.parameters.spare.tight + self.parameters.registers.joining
        )
        return model.registers() > free

    def spanning_blocks(self, model: KernelCost, schedule: Schedule) -> int | None:
        """
        The blocks of a tile that spans the first axis of the plane, so that it overlaps no other there, and of one that
        stays as many at most as the schedule has; None where the device does not hold so many, or a block is enough.
        """
        try:
            tiling = Geometry(model.kernel, model.needs).axes[0]
        except ValueError:
            return None
        blocks = ceil_div(tiling.span, tiling.layout.block_extent)
        most = self.target.resident_blocks(schedule.occupancy)
        if schedule.stays:
            if blocks < schedule.blocks[0] < most:
                # As many blocks as the device holds span the axis, too: that is the same schedule.
                return None
            blocks = min(blocks, schedule.blocks[0])
        return blocks if 1 < blocks <= most else None

    def lowers(self, candidate: Candidate) -> bool:
        """
        A kernel of a single step, and those of the depths below that complete a plan, fit the tile and the shared
        memory with the candidate's schedule, too.
        """
        home_cycles = rotation_of(self.loop).home_cycles
        return all(
            self.holds(candidate.schedule, depth)
            for depth in complete_depths((candidate.depth,), home_cycles)
        )

    def holds(self, schedule: Schedule, depth: int) -> bool:
        """A kernel of a depth leaves cells of the schedule's tile, and what it shares fits."""
        whole = replace(schedule, form="none")
        model = self.cost_of(depth, schedule) or self.cost_of(depth, whole)
        if model is None:
            # No later step reads what it computes.
            return depth > 1
        model.kernel.layout = schedule.layout()
        model.kernel.occupancy = IntAttr(schedule.occupancy)
        try:
            geometry = Geometry(model.kernel, model.needs)
        except ValueError:
            return False
        return self.fits_shared(model, geometry, schedule, schedule.ahead)

    def free_registers(self, schedule: Schedule, spare: int) -> int:
        """Registers of a thread for what a kernel keeps, with some to spare."""
        isa = self.target.isa
        blocks = schedule.layout().threads * schedule.occupancy
        per_thread = isa.registers_per_multiprocessor // blocks
        return min(isa.registers_per_thread, per_thread) - spare

    def spare_registers(self, model: KernelCost, schedule: Schedule) -> int:
        """Registers that the copies with guards need beside what a kernel keeps."""
        if self.rank == 2 and not schedule.stays:
            # In one dimension nothing is kept, and in three a third of the tiles may be guarded.
            return min(model.spare_registers, self.parameters.spare.tight)
        # Sums take more than others in FP32, and less in FP64.
        return self.parameters.spare.sums if model.sums_early else model.spare_registers

    def fitting_ahead(
        self, model: KernelCost, geometry: Geometry, schedule: Schedule
    ) -> int | None:
        """
        How early planes are fetched: as early as saturates the memory, at most as the schedule has it,
        and so that rings and mail fit the shared memory; None where they never do, or the planes do
        not fit the registers.
        """
        spare = self.spare_registers(model, schedule)
        if model.registers() > self.free_registers(schedule, spare) and not self.may_spill:
            return None
        wanted = model.saturating_ahead(geometry)
        if self.rank == 3 and model.kernel.steps.data > 1:
            wanted = max(wanted, self.parameters.worth.least_ahead)
        wanted = min(schedule.ahead, wanted)
        for ahead in range(wanted, min(wanted, 1) - 1, -1):
            if self.fits_shared(model, geometry, schedule, ahead):
                return ahead
        return None

    def fits_shared(
        self, model: KernelCost, geometry: Geometry, schedule: Schedule, ahead: int
    ) -> bool:
        """Rings of so many planes ahead, and mail, fit the shared memory."""
        isa = self.target.isa
        shared = isa.shared_per_multiprocessor // schedule.occupancy - isa.shared_overhead
        return model.shared_bytes(geometry, ahead) <= min(isa.shared_per_block, shared)


def candidates(
    loop: LoopOp, module: ModuleOp, target: Target, depth: int | None
) -> list[Candidate]:
    """All candidates that fit, at one depth or at every depth, the best by the model first."""
    return Trials(loop, module, target).ranked(depth, schedules(loop, target))


def predict(kernel: KernelOp, module: ModuleOp, target: Target) -> Cost:
    """What the model says of a kernel whose queues have homes."""
    geometry, model = Geometry(kernel), KernelCost(kernel, module, target)
    variants = () if kernel.variants is None else kernel.variants
    model.guards = "rim" if any(variant.is_interior for variant in variants) else "all"
    model.joins = any(variant.joined.data for variant in variants)
    return model.predict(geometry, geometry.ahead)
