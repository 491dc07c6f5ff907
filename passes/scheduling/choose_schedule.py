"""choose-schedule: choose depth, tiles and placement, and write the choice on the loop for later
passes.

Before:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @heat(%a[0, -1], %a[0, 0], %a[1, 0]) in <[0, 0], [4096, 4096]>
}
```
After, with `arch=sm_90`:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [16, 8, 4, 2, 1]
    schedule #tile.schedule<pack 8, ahead 5, occupancy 1> {
  temporal.update %b = @heat(%a[0, -1], %a[0, 0], %a[1, 0]) in <[0, 0], [4096, 4096]>
}
```

`schedule_space.py` lists the considered schedules: tiles of a warp for one and two axes, of a block
for small plates and for three axes, of a cluster or the device, in several widths, and every depth
with planes fitting the registers. `candidates.py` asks the cost model (`cost`) about each. The
fastest wins whose kernels fit at all depths of a plan. Kernels that read every tap from memory are
among the candidates (`memory_schedules.py`), with a remark if no tile fits. The choice is a pure
function of the IR, the options and the target.

Fields of `#tile.schedule` as options are constraints (`constraints.py`): with `tile=device` the
choice is among tiles of the device. A loop without a fitting schedule under the constraints is
refused. `timetile explain` tells what each constraint costs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import ceil

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.temporal import MOST_DEPTH, LoopOp
from timetile.dialects.tile.kinds import Addressing, Form, Guards, Storage, Sync, TileLevel
from timetile.dialects.tile.schedule import LEAST, PARTS, Schedule, ScheduleAttr
from timetile.passes.analysis.boundaries import check_kept
from timetile.passes.analysis.launches.liveness import live_arguments, written_arguments
from timetile.passes.analysis.launches.trip_counts import most_steps_at_once
from timetile.passes.cost.traffic import stores_many_fields
from timetile.passes.diagnostics import (
    CompileError,
    check_options,
    collected_remarks,
    refuse,
    remark,
)
from timetile.passes.enum_options import EnumOptionsPass
from timetile.passes.loops.split_regions import StepInRegions
from timetile.passes.loops.temporal_fusion import complete_depths, write_depths
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.scheduling.candidates import (
    Candidate,
    Comparison,
    Trials,
    instructions_of,
)
from timetile.passes.scheduling.constraints import Constraints
from timetile.passes.scheduling.inside_schedule import InsideTiles
from timetile.passes.scheduling.schedule_space import lean_schedules, schedules
from timetile.passes.targets.target import DEFAULT_ARCH, Target, target_named
from timetile.passes.tiling.step_parts import memory_schedule

SPILLED_REGISTERS = 400
"""
A kernel that must spill may ask for as many registers, where a thread has 255. Beyond, every plane
is written to memory and read back, and kernels that read taps from memory do less.
"""


CLIFF = 0.85
"""The share of a depth's speed below which a fitting schedule gives way to a spilling one."""


NEARLY_EQUAL = 0.98
"""
The share of the best worth from which fewer of many steps are taken. Predictions of one kind err by
more, and each step needs registers and rims. One H200, GPts/s, by steps: advection in FP64 2186 by
16 and 2478 by 14, heat in FP32 3350 by 12 and 3628 by 11, waves in FP32 2550 by 16 and 2642 by 15.
"""

FEWEST = 7 / 8
"""
The least share of the steps: a step of few is worth more (nine points in FP32 2255 by 7 and 2171 by
6).
"""


FREE = Constraints()
"""No constraints."""


@dataclass(frozen=True)
class ModelChoice:
    """A candidate chosen by the model, and the schedules compared for it."""

    trials: Trials
    chosen: Candidate
    comparison: Comparison
    depth: int | None
    """The compared depth; None for all depths."""
    fits: bool = True
    """Whether the chosen candidate fits the registers by the model."""

    @property
    def others(self) -> tuple[Candidate, ...]:
        """The other candidates, the best first. Some may not lower: ask `trials`."""
        found = self.comparison.found
        return tuple(candidate for candidate in found if candidate is not self.chosen)


CHOICES: ContextVar[dict[LoopOp, ModelChoice] | None] = ContextVar("CHOICES", default=None)


@contextmanager
def collected_choices() -> Generator[dict[LoopOp, ModelChoice]]:
    """
    Collect the choices made in the block, by loop, for a further choice among the candidates. Loops
    without a fitting candidate are left out.
    """
    choices: dict[LoopOp, ModelChoice] = {}
    token = CHOICES.set(choices)
    try:
        yield choices
    finally:
        CHOICES.reset(token)


def note_choice(choice: ModelChoice) -> None:
    """Tell the collector of choices, if any, about a choice."""
    if (choices := CHOICES.get()) is not None:
        choices[choice.trials.loop] = choice


def length(candidate: Candidate) -> float:
    """The length of a candidate's code."""
    return instructions_of(candidate.cost)


def fitting(
    loop: LoopOp,
    module: ModuleOp,
    target: Target,
    depth: int | None,
    constraints: Constraints = FREE,
    inside: InsideTiles | None = None,
) -> Candidate | None:
    """
    The fastest candidate by the model, the first of equals. If not even one step fits the
    registers, or a requested depth does not, registers are spilled. If the fields of one step do
    not fit the shared memory, blocks are lean. If the code of every tile is long, the shortest
    code is taken. For a requested depth, spilling tiles are also taken if all others are much
    slower. `inside`: the tiles of first parts of the loop's step, if parts may keep planes.
    """
    step, cost = (None, None) if inside is None else (inside.step, inside.cost)
    trials = Trials(loop, module, target, step=step, inside=cost)
    considered = schedules(loop, target, trials.step)
    comparison = trials.compared(depth, constraints.among(considered))

    def lowers(candidate: Candidate) -> bool:
        return trials.lowers(candidate) and constraints.holds(loop, module, candidate, target)

    if not comparison.found and depth in (None, 1):
        # The shortest code of all schedules left out for long code.
        shortest = islice(filter(lowers, sorted(trials.long, key=length)), 1)
        comparison = replace(comparison, found=list(shortest))
    compared = comparison.found
    found = next(filter(lowers, compared), None)
    if found is not None and all(each.schedule.reads_memory for each in compared):
        if not trials.long:
            remark_on_memory(loop, found.schedule)
        note_choice(ModelChoice(trials, found, comparison, depth))
        return found
    if found is not None and depth is None:
        if trials.kernels.shape(found.schedule).streams:
            facts = trials.kernels.facts(found.depth, found.schedule)
            many = facts is not None and stores_many_fields(facts)
            found = with_fewer_steps(found, compared, lowers, many=many)
        note_choice(ModelChoice(trials, found, comparison, depth))
        return found
    for lean in (False, True):
        spilled = spilling(trials, depth or 1, constraints, lean=lean)
        if found is not None:
            much_slower = spilled is not None and found.worth < CLIFF * spilled.worth
            taken = spilled if spilled is not None and much_slower else found
            note_choice(ModelChoice(trials, taken, comparison, depth, fits=taken is found))
            return taken
        if spilled is not None:
            too_many = depth is None and spilled.cost.registers > SPILLED_REGISTERS
            if not too_many:
                note_choice(ModelChoice(trials, spilled, comparison, depth, fits=False))
            return None if too_many else spilled
    return None


def kind_of_tile(schedule: Schedule) -> Schedule:
    """A schedule without what follows from the number of steps."""
    return schedule.but(
        ahead=0, period=None, guards=Guards.RIM, columns_alone=False, blocks_alone=False
    )


def with_fewer_steps(
    chosen: Candidate,
    compared: Iterable[Candidate],
    lowers: Callable[[Candidate], bool],
    *,
    many: bool,
) -> Candidate:
    """
    Of the candidates nearly as good as the best one, the one of fewest steps: of its kind, or of
    any kind for volumes of `many` fields. Yee's equations in FP32, one H200: 175 GPts/s by four
    steps and 174 by three in long runs, 140 and 161 in runs of 0.1 s, predictions alike.
    """
    kind, least = kind_of_tile(chosen.schedule), NEARLY_EQUAL * chosen.worth
    first = 1 if many else ceil(FEWEST * chosen.depth)
    fewer = (each for each in compared if first <= each.depth < chosen.depth)
    good = (each for each in fewer if each.worth >= least and lowers(each))
    alike = (each for each in good if many or kind_of_tile(each.schedule) == kind)
    return min(alike, key=lambda each: each.depth, default=chosen)


def spilling(
    trials: Trials, depth: int, constraints: Constraints, *, lean: bool
) -> Candidate | None:
    """The fastest candidate that may spill; never a resident tile, held in registers alone."""
    loop = trials.loop
    considered = lean_schedules(loop) if lean else schedules(loop, trials.target, trials.step)
    streamed = constraints.among(each for each in considered if not each.resident)
    held = first_that_lowers(trials.spilling(), depth, streamed)
    module = trials.kernels.module
    if held is None or not constraints.holds(loop, module, held, trials.target):
        return None
    return held


def first_that_lowers(
    trials: Trials, depth: int | None, considered: Iterable[Schedule]
) -> Candidate | None:
    """The best candidate whose single-step kernel and shallower kernels also fit the tile."""
    return next(filter(trials.lowers, trials.compared(depth, considered).found), None)


def choose(
    loop: LoopOp,
    module: ModuleOp,
    target: Target,
    depth: int | None,
    constraints: Constraints = FREE,
    inside: InsideTiles | None = None,
) -> tuple[Schedule, int]:
    """
    The schedule of a loop, and its depth: the given depth, or the deepest fitting depth below that
    is useful for a plan, or one step read from memory, always possible without constraints.
    """
    tried = (None,) if depth is None else complete_depths((depth,))
    for given in tried:
        found = fitting(loop, module, target, given, constraints, inside)
        if found is not None:
            return constraints.late(found.schedule), found.depth
    if constraints:
        refuse(
            loop,
            f"no schedule with {constraints} fits the program and {target.title}; give "
            "choose-schedule fewer or other constraints, or a smaller depth",
        )
    schedule = memory_schedule(loop)
    remark_on_memory(loop, schedule)
    return schedule, 1


def remark_on_memory(loop: LoopOp, schedule: Schedule) -> None:
    """A remark that no tile holds a step of a loop."""
    parts = "" if not schedule.cuts else f", and a step runs as {len(schedule.cuts) + 1} kernels"
    remark(
        loop,
        "no tile holds a step, with too far taps or too many fields: every tap is "
        f"read from memory, one step a launch{parts}",
    )


def why_less(loop: LoopOp, given: int) -> str:
    """Why a loop does not take as many steps at once as are asked for."""
    live, written = live_arguments(loop), written_arguments(loop)
    if not any(live[k] and written[source] for k, source in enumerate(loop.rotation)):
        return (
            f"no step reads cells that an earlier step writes: a launch of {given} steps would "
            "gain nothing"
        )
    return (
        f"no tile holds {given} steps at once, as their overlap, planes, fields or code are too "
        "much"
    )


def planes_kept(loop: LoopOp, target: Target) -> Candidate | None:
    """The tile of a loop of single steps; None if kernels that read memory are faster."""
    module = loop.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    with collected_choices(), collected_remarks():
        found = fitting(loop, module, target, 1)
    if found is None or found.schedule.reads_memory:
        return None
    return found


@dataclass(frozen=True)
class ChooseSchedulePass(EnumOptionsPass):
    """Choose a schedule for every time loop; see the module's documentation."""

    name = "choose-schedule"

    arch: str = DEFAULT_ARCH
    depth: int | None = None
    multiprocessors: int | None = None
    tile: TileLevel | None = None
    cells: tuple[int, ...] | None = None
    lanes: tuple[int, ...] | None = None
    warps: tuple[int, ...] | None = None
    blocks: tuple[int, ...] | None = None
    pack: int | None = None
    form: Form | None = None
    storage: Storage | None = None
    addressing: Addressing | None = None
    ahead: int | None = None
    period: int | None = None
    delay: int | None = None
    every: int | None = None
    sync: Sync | None = None
    occupancy: int | None = None
    guards: Guards | None = None
    resident: bool | None = None
    columns_alone: bool | None = None
    blocks_alone: bool | None = None
    reads_memory: bool | None = None
    regions: bool | None = None

    @property
    def constraints(self) -> Constraints:
        """The given fields of a schedule."""
        given = {name: getattr(self, name, None) for name in PARTS}
        return Constraints({name: value for name, value in given.items() if value is not None})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(
            self, depth=1, multiprocessors=1, cells=1, lanes=1, warps=1, blocks=1, **LEAST
        )
        if self.depth is not None and self.depth > MOST_DEPTH:
            raise CompileError(f"{self.name}: depth is at most {MOST_DEPTH}, got {self.depth}")
        target = target_named(self.arch, self.multiprocessors)
        loops = [inner for inner in op.walk() if isinstance(inner, LoopOp)]
        if not loops:
            remark_without_loops(self, op, "raise-time-loop")
        for loop in loops:
            if not loop.updates or loop.schedule is not None:
                continue
            check_kept(loop, images=True)
            given = max(loop.depth_list) if loop.depths is not None else self.depth
            most = most_steps_at_once(loop)
            if given is not None and most is not None:
                given = min(given, most)
            inside = InsideTiles(StepInRegions(loop), partial(planes_kept, target=target))
            schedule, depth = choose(loop, op, target, given, self.constraints, inside)
            loop.schedule = ScheduleAttr(schedule)
            tile = inside.tile(schedule)
            loop.inside = None if tile is None else ScheduleAttr(tile.schedule)
            if given is not None and depth < given:
                remark(loop, f"{why_less(loop, given)}: it takes {depth}")
            if loop.depths is None or depth < max(loop.depth_list):
                write_depths(loop, [depth])
