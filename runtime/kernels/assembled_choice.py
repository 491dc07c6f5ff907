"""The schedules of a program's loops, chosen with the assembler.

`choose-schedule` is a pure function of the IR, and knows registers by a model. Here, the deepest
kernel of the model's choice is lowered and assembled; if its steady loop spills, other candidates
are assembled, too, and the best by what the assembler says is written on the loop
(`passes/scheduling/assembled.py`). The chosen kernel is not made again, and the choice is kept in
the cache beside the kernels. Without an assembler, the model's choice stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import dropwhile

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from timetile.dialects.boxes import CellBox, cells_of
from timetile.dialects.syntax import encode_integers
from timetile.dialects.temporal import LoopOp, ScratchOp, UpdateOp
from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.dialects.tile.schedule import ScheduleAttr
from timetile.dialects.verified import ancestor_of
from timetile.passes.analysis.cells.instructions import divides
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.launch import predict
from timetile.passes.diagnostics import collected_remarks
from timetile.passes.scheduling.assembled import (
    CLEAN,
    SQUEEZED,
    WORTH_ASSEMBLING,
    AssembledCandidate,
    AssembledKernel,
    best_assembled,
    clean_first,
    gives_way,
    spills_more_than_few_words,
    unchanged,
)
from timetile.passes.scheduling.assembled_parts import AssembledPart, best_parts, tiles_and_parts
from timetile.passes.scheduling.candidates import Candidate, Trials
from timetile.passes.scheduling.choose_schedule import ModelChoice
from timetile.passes.scheduling.left_out import left_out
from timetile.passes.scheduling.schedule_space import schedules
from timetile.passes.scheduling.turns import warps_of
from timetile.passes.targets.hardware import LANES
from timetile.runtime.cache.keys import key_of
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.assembler import assembler_version, assembles
from timetile.runtime.kernels.kernel import Kernel, Parts
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.machine_code import steady_loop
from timetile.runtime.kernels.making import made_kernel
from timetile.runtime.kernels.measured import ChosenSchedule
from timetile.runtime.kernels.options import Options, run_passes
from timetile.runtime.machine.forks import begin_beside

FEW_REGISTERS = 0.5
"""The share of a thread's registers below which a kernel is predicted to be safe from spills."""

WORTH_SPILLING = 1.25
"""How much faster than a step without spills tiles of more steps must be if these spill."""


@dataclass(frozen=True)
class AssembledSchedule:
    """A schedule that was assembled for a loop, for reports and the cache."""

    depth: int
    """Steps of a launch."""
    schedule: str
    """The schedule's attribute, as text."""
    registers: int
    """Registers of a thread."""
    spilled_words: float
    """Words of a thread that a stream step moves between registers and local memory."""
    gcells_per_second: float
    """The prediction with these spills."""


def steady_step(kernel: Kernel, placed: KernelOp) -> tuple[float, float, int]:
    """
    Of a stream step in the steady loop: words of a thread moved between registers and local memory,
    and all other instructions; and the steps of a turn. `placed` is the kernel at tile level. Zeros
    without machine code.
    """
    steady = None if kernel.cubin is None else steady_loop(kernel.cubin, kernel.arch)
    period = Geometry(placed).period
    if steady is None:
        return 0.0, 0.0, period
    return steady.spill_words / period, steady.useful / period, period


def encode_choice(choice: Sequence[Sequence[AssembledSchedule]]) -> Parts:
    """The assembled schedules of all loops, the best first, as parts of a cache entry."""
    rows = [[asdict(each) for each in loop] for loop in choice]
    return {"schedules.json": json.dumps(rows).encode()}


def decode_choice(parts: Parts) -> list[list[AssembledSchedule]]:
    """The schedules encoded by `encode_choice`. Raises TypeError or ValueError for other parts."""
    return [
        [AssembledSchedule(**each) for each in loop] for loop in json.loads(parts["schedules.json"])
    ]


def with_one_loop(module: ModuleOp, number: int) -> tuple[ModuleOp, LoopOp]:
    """
    A copy of a module with one time loop, and the loop. Scratch fields that other loops read become
    arguments: without a reader the loop would have no kernel.
    """
    copy = module.clone()
    loop = loops_of(copy)[number]
    for buffer, result in zip(loop.buffers, loop.res):
        is_read = result.uses or any(use.operation is not loop for use in buffer.uses)
        if isinstance(buffer.owner, ScratchOp) and is_read:
            function = ancestor_of(loop, FuncOp)
            block = function.body.block
            buffer.replace_all_uses_with(block.insert_arg(buffer.type, len(block.args)))
            function.update_function_type()
    for other in loops_of(copy):
        if other is not loop:
            for result, buffer in zip(other.res, other.buffers):
                result.replace_all_uses_with(buffer)
            other.detach()
            other.erase(safe_erase=False)
    return copy, loop


def without_points(loop: LoopOp) -> None:
    """
    Leave out a loop's lists of points. The steady loop of a kernel has no code of points, and
    spills around such code say little about its time.
    """
    for update in loop.updates:
        if update.points:
            plain = UpdateOp(
                update.targets, update.cell, update.sources, update.tap_list, update.box,
                update.scalars, update.index_axes, update.outside,
            )  # fmt: skip
            Rewriter.replace_op(update, plain)


class LoopAssembler:
    """
    Assembles the deepest kernels of one loop's candidates, without lists of points. `kernels` are
    kept for loops without lists.
    """

    def __init__(self, module: ModuleOp, number: int, options: Options):
        self.module, loop = with_one_loop(module, number)
        self.is_whole = not loop.has_points
        without_points(loop)
        self.options = options
        self.kernels: dict[Candidate, Kernel] = {}
        self.known: dict[Candidate, AssembledKernel] = {}
        self.parts: dict[Candidate, AssembledPart] = {}

    def __call__(self, candidate: Candidate) -> AssembledKernel:
        """What the assembler makes of a candidate's deepest kernel, found once."""
        if candidate not in self.known:
            self.known[candidate] = self.assembled(candidate)
        return self.known[candidate]

    def assembled(self, candidate: Candidate) -> AssembledKernel:
        """What the assembler makes of a candidate's deepest kernel."""
        with collected_remarks():
            module = self.placed(candidate)
            names = loops_of(module)[0].kernel_names
            if not names:
                # Nothing reads what the loop writes.
                return AssembledKernel(candidate.cost.registers, 0.0)
            name = names[0]
            kernel = self.kernels[candidate] = made_kernel(module, name, self.options)
        placed = next(
            op for op in module.ops if isinstance(op, KernelOp) and op.sym_name.data == name
        )
        words, instructions, period = steady_step(kernel, placed)
        # The code holds both sides of a branch for quotients; a single side runs.
        applies = (stage for stage in placed.stages if isinstance(stage, ApplyOp))
        divided = any(divides(module, stage) for stage in applies)
        counted = 0.0 if divided else instructions
        return AssembledKernel(kernel.registers, words, counted, period, instructions * period)

    def placed(self, candidate: Candidate) -> ModuleOp:
        """The module with the placed kernels of a candidate."""
        module = self.module.clone()
        (loop,) = loops_of(module)
        loop.schedule = ScheduleAttr(candidate.schedule)
        loop.depths = encode_integers((candidate.depth,))
        _, placing = self.options.halves_of_tile_passes()
        run_passes(placing, module, verify=False)
        return module

    def part(self, candidate: Candidate) -> AssembledPart:
        """What the assembler makes of the slowest kernel of a candidate, found once."""
        if candidate not in self.parts:
            self.parts[candidate] = self.slowest_part(candidate)
        return self.parts[candidate]

    def slowest_part(self, candidate: Candidate) -> AssembledPart:
        """
        What the assembler makes of the slowest kernel that reads memory: a first part that keeps
        planes has a schedule of its own.
        """
        with collected_remarks():
            module = self.placed(candidate)
            (loop,) = loops_of(module)
            inside = loop.kernel_names[:1] if loop.inside is not None else ()
            kernels = [op for op in module.ops if isinstance(op, KernelOp)]
            asked = [op for op in kernels if op.sym_name.data not in inside] or kernels
            slowest = max(asked, key=lambda op: predict(op, module, self.options.target).seconds)
            name = slowest.sym_name.data
            kernel = self.kernels[candidate] = made_kernel(module, name, self.options)
        share = sum(cells_of(CellBox.of(op.bounds)) for op in asked) / candidate.cost.updates
        return AssembledPart(kernel.registers, kernel.spill_bytes, min(1.0, share))


class AssembledChoice:
    """The schedules of a program's loops, chosen with the assembler."""

    def __init__(
        self,
        options: Options,
        cache: Cache | None,
        key: str,
        begin: Callable[[ModuleOp], None] | None = None,
    ):
        """
        `begin` begins other kernels of a module with a single loop and the model's choice, before
        the assembler is asked: mostly the choice stays.
        """
        self.options, self.cache, self.begin = options, cache, begin
        self.key = key_of(key, "schedules")
        self.kernels: dict[str, Kernel] = {}
        """The chosen deepest kernels, made for the choice."""
        self.seen: list[list[AssembledSchedule]] = []
        """For each loop the assembled schedules, the best first; none where none was assembled."""

    def refine(self, module: ModuleOp, choices: Mapping[LoopOp, ModelChoice]) -> None:
        """
        Replace schedules chosen by the model where the assembler knows better. `choices`: the
        model's choices, by loop.
        """
        if assembler_version() is None or not assembles(self.options.target.name):
            return
        kept = None if self.cache is None else self.cache.decoded(self.key, decode_choice)
        loops = loops_of(module)
        if kept is not None and len(kept) == len(loops):
            self.seen = kept
        else:
            self.seen = [
                self.assembled(module, number, choices.get(loop))
                for number, loop in enumerate(loops)
            ]
            if self.cache is not None:
                self.cache.write(self.key, encode_choice(self.seen))
        for loop, seen in zip(loops, self.seen):
            if seen:
                ChosenSchedule(seen[0].depth, seen[0].schedule).write(loop)

    def assembled(
        self, module: ModuleOp, number: int, choice: ModelChoice | None
    ) -> list[AssembledSchedule]:
        """
        The assembled schedules of a loop, the best first; none if no spill is to be expected, or
        the choice is no candidate, but taken though it spills.
        """
        target = self.options.target
        if choice is None or not choice.fits:
            return []
        if choice.chosen.schedule.reads_memory:
            return self.assembled_parts(module, number, choice)
        first = choice.chosen
        room = target.isa.registers_for(warps_of(first.schedule) * LANES)
        if first.cost.registers < FEW_REGISTERS * room:
            return []
        # The search beyond the count of registers is asked for if the first choice does not spill.
        searched = self.begin_search(choice.trials.spilling(), first)
        assembler = LoopAssembler(module, number, self.options)
        alone = len(loops_of(module)) == 1 and assembler.is_whole
        if alone and self.begin is not None:
            self.begin(module)
        tiles, memory = split_by_memory(choice.others)
        behind = [each for each in tiles if each.worth <= first.worth]
        lowers, shorter = choice.trials.lowers, choice.trials.in_turns_of_one
        seen = best_assembled([first, *behind], assembler, target, lowers, shorter)
        spills = bool(seen[0].kernel.spilled_words)
        # The model may count too many registers: it left out schedules that fit.
        trials, best = choice.trials.spilling(), seen[0].candidate
        more = left_out(trials, seen, choice.comparison.found)
        few = not spills_more_than_few_words(seen[0].kernel)
        if few:
            # The assembler holds more than the limit.
            more += searched() if best is first else self.deeper(trials, best)
        if few or more:
            # Behind spills in long turns, turns of one step were never timed.
            shorter = unchanged if spills else trials.in_turns_of_one
            seen = best_assembled([best, *more], assembler, target, trials.lowers, shorter)
        if spills and is_faster(memory, seen):
            seen = tiles_and_parts(seen, memory, assembler.part, target)
        if alone:
            # With other loops in the function, kernels may have other names.
            kernel = assembler.kernels[seen[0].candidate]
            self.kernels[kernel.name] = kernel
        return [summary_of(each) for each in seen]

    def assembled_parts(
        self, module: ModuleOp, number: int, choice: ModelChoice
    ) -> list[AssembledSchedule]:
        """The assembled schedules of a loop that reads memory by the model, the best first."""
        assembler, lowers = LoopAssembler(module, number, self.options), choice.trials.lowers
        others, memory = split_by_memory(choice.others)
        target = self.options.target
        parts = [choice.chosen, *memory]
        seen = best_parts(parts, assembler.part, target)
        tiles = list(dropwhile(lambda each: not lowers(each), others))
        if is_faster(tiles, seen):
            found = best_assembled(tiles, assembler, target, lowers)
            seen = tiles_and_parts(found, parts, assembler.part, target)
        # The model may count too many registers for tiles of more steps.
        trials = choice.trials.spilling()
        deeper = self.nearly_fitting(trials, choice.chosen)
        if is_faster(deeper, seen):
            found = best_assembled(deeper, assembler, target, trials.lowers)
            clean = [
                each
                for each in found
                if not each.kernel.spilled_words or each.worth > WORTH_SPILLING * seen[0].worth
            ]
            seen = clean_first([*seen, *clean])
        if len(loops_of(module)) == 1 and assembler.is_whole:
            kernel = assembler.kernels[seen[0].candidate]
            self.kernels[kernel.name] = kernel
        return [summary_of(each) for each in seen]

    def begin_search(self, trials: Trials, chosen: Candidate) -> Callable[[], list[Candidate]]:
        """What gives the candidates of more steps, searched beside the assembler."""

        def search() -> list[Candidate]:
            return self.deeper(trials, chosen)

        return search if self.options.depth is not None else begin_beside(search)

    def deeper(self, trials: Trials, chosen: Candidate) -> list[Candidate]:
        """
        The candidates of more steps than the chosen one that the model left out for registers; none
        for a given depth.
        """
        if self.options.depth is not None:
            return []
        every = schedules(trials.loop, trials.target, trials.step)
        considered = (each for each in every if not each.resident)
        return trials.compared(None, considered, above=chosen.depth).found

    def nearly_fitting(self, trials: Trials, chosen: Candidate) -> list[Candidate]:
        """The candidates of more steps that need few registers more than threads have."""
        target = self.options.target
        return [
            each
            for each in self.deeper(trials, chosen)
            if each.cost.registers
            <= SQUEEZED * target.isa.registers_for(warps_of(each.schedule) * LANES)
        ]


def split_by_memory(
    candidates: Sequence[Candidate],
) -> tuple[list[Candidate], list[Candidate]]:
    """The candidates of tiles, and those that read memory."""
    tiles = [each for each in candidates if not each.schedule.reads_memory]
    return tiles, [each for each in candidates if each.schedule.reads_memory]


def is_faster(candidates: Sequence[Candidate], seen: Sequence[AssembledCandidate]) -> bool:
    """
    Whether the first of other candidates is worth assembling: it is faster, or nearly as good as
    the best one, whose steady loop spills.
    """
    least = 1 / CLEAN if gives_way(seen[0]) else WORTH_ASSEMBLING
    return bool(candidates) and candidates[0].worth > least * seen[0].worth


def summary_of(seen: AssembledCandidate) -> AssembledSchedule:
    """An assembled candidate, for reports and the cache."""
    return AssembledSchedule(
        seen.candidate.depth,
        str(ScheduleAttr(seen.candidate.schedule)),
        seen.kernel.registers,
        seen.kernel.spilled_words,
        seen.cost.gcells_per_second,
    )
