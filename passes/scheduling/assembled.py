"""The choice among schedules that the assembler has seen.

The cost model ranks schedules by a count of registers, and for bodies unlike its samples the count
is off. `best_assembled` has the model's best schedule assembled, costs the spills of its steady
loop, corrects the count for similar schedules, and goes on with the best of the others, until the
best assembled schedule is at least as fast as any other is expected to be. A kernel without spills
ends the search at once: the search then costs nothing, as the kernel is needed anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, prod

from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.spills import (
    issue_slots,
    issued_cost,
    spilled_cost,
    without_counted_spills,
)
from timetile.passes.cost.terms import Cost
from timetile.passes.scheduling.candidates import Candidate
from timetile.passes.scheduling.turns import instructions_of, warps_of
from timetile.passes.targets.hardware import CACHED_INSTRUCTIONS, LANES
from timetile.passes.targets.target import Target

MOST_ASSEMBLED = 4
"""Most kernels assembled for a choice."""

WORTH_ASSEMBLING = 1.05
"""A schedule is assembled if expected to be faster than the best one so far by this factor."""

WORTH_A_STEP = 1.02
"""
For a schedule with one step more and without spills, this factor is enough. One H200, insulated
walls in FP64: 948 GPts/s by 9 steps, and 1046 by 10, with 1.025 expected.
"""

SQUEEZED = 1.12
"""
How many registers of demand the assembler holds in a register of the limit, nearly without spills:
demands grow by level, and kernels of heat, waves and fluxes in FP64 keep their speed up to 1.12 to
1.28 of the limit (benchmarks/results/choice-h100.json).
"""

FAR_BEYOND = 2
"""
How many times the instruction cache a turn with branches for quotients is, with both sides of the
branches, where turns are taken to be slow: a lattice of 9 velocities in FP32 runs at 82 GPts/s in
turns of two steps and 4460 instructions, and at 152 in turns of one; shallow water in FP64 is best
with 2698 instructions (one H200).
"""

BEYOND = 1.4
"""
How many times the instruction cache a turn is, with both sides of branches, from where on turns of
one step within the cache are taken if expected to be `NEARLY` as fast. One H200, GPts/s of long
turns and of turns of one: acoustic waves in FP64 (2030 instructions) 258 and 228, shallow water in
FP64 (2698) 146 and 135 and in FP32 (3290) 282 and 282, a lattice of 9 velocities in FP64 (3037) 45
and 68.
"""

NEARLY = 0.99
"""See `BEYOND`; turns of one step of shallow water in FP32 are expected at 0.895."""

FEW_WORDS = 12
"""
Words moved in a turn of the loop up to which the assembler still holds a level more: the next level
of waves, fluxes and edges in FP64 moves up to 48 (benchmarks/results/choice-h100.json).
"""


NO_WORDS = 1
"""
Words of a turn that count as none: a number loaded once in some 2700 instructions, as by three
steps of shallow water in FP64 (one H200: 150 GPts/s, and 123 by two steps without).
"""

INSTRUCTIONS_OF_A_WORD = 1400
"""
Instructions of a turn for each further word that counts as none: stars of radius 3 in 3D and FP32
move 2 words in turns of 2885 instructions, and none with three rows in place of four (one H200: 524
and 471 GPts/s). A wave of order 8 in bf16 moves 2 in 2270, and none with three rows (407 and 492).
"""

CLEAN = 1.25
"""A schedule that spills is taken over one that does not if faster by this factor."""

MORE_FOR_CLEAN = 2
"""Most kernels assembled more, for a schedule without spilled words."""

SPILLED_IN_TURNS = range(8, 17)
"""
Words moved in a stream step where turns of one step may do without. One H200, GPts/s: a lattice of
9 velocities in FP32 moves 13 in turns of two steps and none in turns of one (82 and 155), elastic
waves in FP64 12 and none (152 and 160). A wave with damping in FP64 moves 3, and is slower in turns
of one (258 and 228); kernels with 25 words and more move as many in turns of one.
"""


@dataclass(frozen=True)
class AssembledKernel:
    """What the assembler made of the deepest kernel of a candidate."""

    registers: int
    """Registers of a thread."""
    spilled_words: float
    """
    32-bit words of a thread moved between registers and local memory in a stream step of the
    steady loop.
    """
    instructions: float = 0.0
    """
    Instructions of a warp in a stream step of the steady loop, without spills; 0 where unknown, as
    for code with branches for quotients.
    """
    period: int = 1
    """Stream steps of a turn of the loop."""
    length: float = 0.0
    """Instructions of a turn in the code: with branches for quotients, those of both sides."""


def spills_more_than_few_words(kernel: AssembledKernel) -> bool:
    """Whether a turn of the loop moves so many words that a level more is not worth a try."""
    return kernel.spilled_words * kernel.period > FEW_WORDS


def is_far_beyond_cache(kernel: AssembledKernel) -> bool:
    """Whether a turn is much longer than the instruction cache."""
    return kernel.length > FAR_BEYOND * CACHED_INSTRUCTIONS


def is_clean(kernel: AssembledKernel) -> bool:
    """Whether a turn of the loop moves no words, or so few that its time does not change."""
    few = max(NO_WORDS, kernel.length // INSTRUCTIONS_OF_A_WORD)
    return kernel.spilled_words * kernel.period <= few + 1e-6


@dataclass(frozen=True)
class AssembledCandidate:
    """A candidate, its assembled kernel, and the cost with the kernel's spills."""

    candidate: Candidate
    kernel: AssembledKernel
    cost: Cost

    @property
    def worth(self) -> float:
        """The candidate's measure for comparisons, with the kernel's spills."""
        share = self.cost.gcells_per_second / self.candidate.cost.gcells_per_second
        return self.candidate.worth * share


Assembler = Callable[[Candidate], AssembledKernel]
"""Assembles the deepest kernel of a candidate."""

Shorter = Callable[[Candidate], Candidate | None]
"""Gives a candidate with turns of one stream step; None where turns have one step already."""


def with_kernel(
    candidate: Candidate, kernel: AssembledKernel, target: Target
) -> AssembledCandidate:
    """A candidate with its assembled kernel."""
    instructions, warps = kernel.instructions, warps_of(candidate.schedule)
    loop = instructions * kernel.period
    if not instructions and is_far_beyond_cache(kernel):
        instructions, loop = instructions_of(candidate.cost), kernel.length
    slots = issue_slots(instructions, loop, candidate.cost.cycles, warps, target)
    cost = issued_cost(without_counted_spills(candidate.cost), slots)
    period, blocks = kernel.period, candidate.schedule.occupancy
    spilled = spilled_cost(cost, kernel.spilled_words, warps, target, period=period, blocks=blocks)
    return AssembledCandidate(candidate, kernel, spilled)


def kept_cells(candidate: Candidate) -> int:
    """Cells kept by a thread for all levels, the measure of a kernel's size."""
    return candidate.depth * prod(candidate.schedule.cells)


def are_alike(one: Schedule, other: Schedule) -> bool:
    """Whether the count of registers is off for the same reasons."""
    return (one.tile, one.form, one.resident) == (other.tile, other.form, other.resident)


def unlikeness(one: Candidate, other: Candidate) -> tuple[int, bool]:
    """How far the sizes of two kernels are apart, and whether turns differ in length."""
    differ = one.schedule.period != other.schedule.period
    return abs(kept_cells(one) - kept_cells(other)), differ


def expected(
    candidate: Candidate, seen: Sequence[AssembledCandidate], target: Target
) -> AssembledCandidate:
    """
    A candidate with its expected kernel: by the model, corrected by the similar assembled kernel of
    the nearest size. A register missing for a demand beyond `SQUEEZED` is a word moved in
    each stream step.
    """
    cells, cost = kept_cells(candidate), candidate.cost
    alike = (each for each in seen if are_alike(each.candidate.schedule, candidate.schedule))
    known = min(alike, key=lambda each: unlikeness(each.candidate, candidate), default=None)
    if known is None:
        return with_kernel(candidate, AssembledKernel(cost.registers, 0.0), target)
    room = SQUEEZED * target.isa.registers_for(warps_of(candidate.schedule) * LANES)
    spilled = known.kernel.spilled_words
    many = spills_more_than_few_words(known.kernel)
    needed = room + spilled if many else known.kernel.registers
    off = (needed - known.candidate.cost.registers) * cells / kept_cells(known.candidate)
    missing = max(0.0, cost.registers + off - room)
    more = known.kernel.instructions / known.candidate.cost.cycles.issue
    issued = more * cost.cycles.issue
    period = candidate.schedule.period or known.kernel.period
    kernel = AssembledKernel(cost.registers, missing, issued, period)
    return with_kernel(candidate, kernel, target)


def anything(candidate: Candidate) -> bool:
    """Every candidate may be assembled."""
    return True


def unchanged(candidate: Candidate) -> Candidate | None:
    """No candidate has another with shorter turns."""
    return None


def in_both_turns(
    candidate: Candidate, assemble: Assembler, target: Target, shorter: Shorter
) -> list[AssembledCandidate]:
    """
    An assembled candidate, the best first: where turns of several stream steps spill, or leave the
    instruction cache, also with turns of one step.
    """
    made = with_kernel(candidate, assemble(candidate), target)
    kernel, short = made.kernel, shorter(candidate)
    if kernel.period == 1 or short is None:
        return [made]
    long = kernel.instructions * kernel.period > CACHED_INSTRUCTIONS or is_far_beyond_cache(kernel)
    spills = ceil(kernel.spilled_words) in SPILLED_IN_TURNS
    if not (spills or long):
        cached = in_cached_turns(made, short, assemble, target)
        return [made if cached is None else cached]
    more = short.cost.cycles.issue / candidate.cost.cycles.issue
    hoped = AssembledKernel(kernel.registers, 0.0, kernel.instructions * more)
    least = 1.0 if spills else WORTH_ASSEMBLING
    if with_kernel(short, hoped, target).worth <= least * made.worth:
        return [made]
    return in_order([made, in_turns_beside(made, short, assemble(short), target)])


def in_cached_turns(
    made: AssembledCandidate, short: Candidate, assemble: Assembler, target: Target
) -> AssembledCandidate | None:
    """
    The candidate with turns of one stream step in place of an assembled candidate without spills
    with turns far beyond the instruction cache; None where long turns fit, or are clearly faster.
    """
    alike = with_kernel(short, AssembledKernel(made.kernel.registers, 0.0), target)
    is_long = made.kernel.length > BEYOND * CACHED_INSTRUCTIONS and is_clean(made.kernel)
    if not is_long or alike.worth < NEARLY * made.worth:
        return None
    found = with_kernel(short, assemble(short), target)
    fits = found.kernel.length <= CACHED_INSTRUCTIONS
    return found if fits and is_clean(found.kernel) else None


def in_turns_beside(
    made: AssembledCandidate, short: Candidate, kernel: AssembledKernel, target: Target
) -> AssembledCandidate:
    """
    A candidate with turns of one stream step, beside the assembled one with longer turns: the moves
    of planes take computing time in proportion to all instructions, also where arithmetic in FP64
    takes longer than the issue. One H200, a wave with a coefficient in FP64: 697 GPts/s by turns of
    one (625 instructions a step for 418), 872 predicted without, and 772 by a step less.
    """
    found = with_kernel(short, kernel, target)
    if not (kernel.instructions and made.kernel.instructions):
        return found
    slower = kernel.instructions / made.kernel.instructions
    long = without_counted_spills(made.candidate.cost)
    seconds = max(found.cost.compute_seconds, slower * long.compute_seconds)
    return replace(found, cost=replace(found.cost, compute_seconds=seconds))


def in_order(seen: Sequence[AssembledCandidate]) -> list[AssembledCandidate]:
    """Assembled candidates, the best first."""
    return sorted(seen, key=lambda each: -each.worth)


def best_assembled(
    candidates: Sequence[Candidate],
    assemble: Assembler,
    target: Target,
    lowers: Callable[[Candidate], bool] = anything,
    shorter: Shorter = unchanged,
) -> list[AssembledCandidate]:
    """
    The assembled candidates, the best first; `candidates` are the model's best first, at least one.
    At most `MOST_ASSEMBLED` are assembled. `lowers` tells whether a candidate behind the first can
    be assembled at all; `shorter` gives a candidate with turns of one stream step. Behind a first
    candidate faster with such turns, others have such turns, too.
    """
    first, *others = candidates
    seen = in_both_turns(first, assemble, target, shorter)
    if seen[0].candidate is not first:
        others = [shorter(each) or each for each in others]
    tried = 1
    while others and tried < MOST_ASSEMBLED:
        hoped = max(
            (expected(candidate, seen, target) for candidate in others), key=lambda each: each.worth
        )
        if hoped.worth <= worth_more(hoped, in_order(seen)[0]):
            break
        others.remove(hoped.candidate)
        if lowers(hoped.candidate):
            seen += in_both_turns(hoped.candidate, assemble, target, shorter)
            tried += 1
    best = in_order(seen)[0]
    if gives_way(best):
        least = max((each.worth for each in seen if is_instead(each, best)), default=0.0)
        behind = (each for each in others if each.worth > least and may_be_clean(each, best))
        fewer = (each for each in behind if lowers(each))
        for candidate in islice(fewer, MORE_FOR_CLEAN):
            seen.append(with_kernel(candidate, assemble(candidate), target))
            if is_instead(seen[-1], best):
                break
    return clean_first(seen)


def worth_more(hoped: AssembledCandidate, best: AssembledCandidate) -> float:
    """The worth from which on a candidate is assembled, beside the best one."""
    one, other = hoped.candidate, best.candidate
    tiles = [each.schedule.but(ahead=0, period=None) for each in (one, other)]
    next_step = one.depth == other.depth + 1 and tiles[0] == tiles[1]
    is_known = next_step and is_clean(hoped.kernel) and is_clean(best.kernel)
    return (WORTH_A_STEP if is_known else WORTH_ASSEMBLING) * best.worth


def is_instead(seen: AssembledCandidate, best: AssembledCandidate) -> bool:
    """Whether a candidate without spilled words is taken in place of the best one, with some."""
    return is_clean(seen.kernel) and CLEAN * seen.worth >= best.worth


def gives_way(seen: AssembledCandidate) -> bool:
    """
    Whether a candidate gives way to another without spilled words: its steady loop spills. Kernels
    that read memory have no loop, and the cost has all of their spills.
    """
    return not seen.candidate.schedule.reads_memory and not is_clean(seen.kernel)


def lacks_clean(seen: Sequence[AssembledCandidate]) -> bool:
    """Whether the best assembled candidate spills, and none without spills is nearly as good."""
    best = in_order(seen)[0]
    return gives_way(best) and not any(is_instead(each, best) for each in seen)


def may_be_clean(candidate: Candidate, best: AssembledCandidate) -> bool:
    """Whether a candidate keeps fewer cells than the best one, and may be taken in its place."""
    fewer = kept_cells(candidate) < kept_cells(best.candidate)
    return fewer and CLEAN * candidate.worth >= best.worth


def clean_first(seen: Sequence[AssembledCandidate]) -> list[AssembledCandidate]:
    """
    Assembled candidates, the best first; one with spilled words behind a candidate without that is
    nearly as good.
    """
    order = in_order(seen)
    best = order[0]
    if not gives_way(best):
        return order
    instead = next((each for each in order if is_instead(each, best)), best)
    return [instead, *(each for each in order if each is not instead)]
