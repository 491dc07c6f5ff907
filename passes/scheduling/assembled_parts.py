"""The choice among schedules that read memory, with the assembler.

Threads with several cells share loads and results, and hold many values at once: the model's count
of registers is far off for wide stencils. The model's best schedule is assembled. While the slowest
kernel spills, schedules with fewer blocks or fewer cells follow, until no other is expected to be
faster. Where a tile spills in its steady loop, schedules nearly as good as the tile follow, until
one without spills is assembled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.spills import WORD_BYTES, spilled_parts
from timetile.passes.scheduling.assembled import (
    CLEAN,
    AssembledCandidate,
    AssembledKernel,
    clean_first,
    lacks_clean,
)
from timetile.passes.scheduling.candidates import Candidate
from timetile.passes.targets.target import Target

MOST_PARTS = 6
"""Most schedules assembled for a choice."""


SPILLING = 0.97
"""The factor on the worth of a schedule that spills: of equals, another is chosen."""


@dataclass(frozen=True)
class AssembledPart:
    """Registers of a thread of the slowest kernel of a step, and bytes of its local memory."""

    registers: int
    frame: int


def threads_of(schedule: Schedule) -> int:
    """Threads of a multiprocessor."""
    return schedule.layout().threads * schedule.occupancy


def with_part(candidate: Candidate, part: AssembledPart, target: Target) -> AssembledCandidate:
    """A candidate with its slowest kernel assembled."""
    schedule, cost = candidate.schedule, candidate.cost
    threads = cost.updates // prod(schedule.cells)
    spilled = spilled_parts(cost, part.frame, threads, threads_of(schedule), target)
    kernel = AssembledKernel(part.registers, part.frame / WORD_BYTES)
    return AssembledCandidate(candidate, kernel, spilled)


def worth_of_seen(seen: AssembledCandidate) -> float:
    """The measure of an assembled schedule for comparisons."""
    return seen.worth * (SPILLING if seen.kernel.spilled_words else 1.0)


def spills_alike(candidate: Candidate, seen: Sequence[AssembledCandidate], target: Target) -> bool:
    """
    A thread with as many cells or fewer needed more registers: all given ones, and one for each two
    words of local memory.
    """
    cells = prod(candidate.schedule.cells)
    room = target.isa.registers_for(threads_of(candidate.schedule))
    return any(
        each.kernel.spilled_words
        and prod(each.candidate.schedule.cells) <= cells
        and room < each.kernel.registers + each.kernel.spilled_words / 2
        for each in seen
    )


AssemblePart = Callable[[Candidate], AssembledPart]
"""Assembles the slowest kernel of a candidate's step."""


def best_parts(
    candidates: Sequence[Candidate],
    assemble: AssemblePart,
    target: Target,
    tiles: Sequence[AssembledCandidate] = (),
) -> list[AssembledCandidate]:
    """
    The assembled candidates, the best first; `candidates` are the model's best first, at least one.
    Behind `tiles`, whose best one spills, candidates follow until one without spills may be taken
    in its place.
    """
    seen: list[AssembledCandidate] = []
    for candidate in candidates:
        best = max(map(worth_of_seen, seen), default=0.0)
        if candidate.worth <= best and tiles and lacks_clean([*tiles, *seen]):
            best = max(each.worth for each in tiles) / CLEAN
        if len(seen) == MOST_PARTS or candidate.worth <= best:
            break
        if not spills_alike(candidate, seen, target):
            seen.append(with_part(candidate, assemble(candidate), target))
    return sorted(seen, key=worth_of_seen, reverse=True)


def tiles_and_parts(
    tiles: Sequence[AssembledCandidate],
    candidates: Sequence[Candidate],
    assemble: AssemblePart,
    target: Target,
) -> list[AssembledCandidate]:
    """
    Assembled tiles and candidates that read memory, the best first: a tile that spills in its
    steady loop behind a candidate of any kind that spills nothing and is nearly as good.
    """
    return clean_first([*tiles, *best_parts(candidates, assemble, target, tiles)])
