"""The choice among schedules that read memory, with the assembler.

Threads with several cells share loads and results, and hold many values at once: the model's count
of registers is far off for wide stencils. The model's best schedule is assembled. While the slowest
kernel spills, schedules follow by the speed expected with spills as of assembled kernels, until
none is expected to be faster. Where a tile spills in its steady loop, schedules nearly as good as
the tile follow, until a schedule without spills is assembled. A first part with kept planes
has a separate schedule, and is not asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, prod

from timetile.dialects.tile.schedule import Schedule
from timetile.passes.cost.spills import WORD_BYTES, spilled_parts
from timetile.passes.scheduling.assembled import (
    AssembledCandidate,
    AssembledKernel,
    clean_first,
    in_order,
    is_instead,
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
    """
    The slowest kernel reading memory: registers a thread, bytes of local memory, and the share of
    the step's cells in kernels reading memory.
    """

    registers: int
    frame: int
    share: float = 1.0


def threads_of(schedule: Schedule) -> int:
    """Threads of a multiprocessor."""
    return schedule.layout().threads * schedule.occupancy


def with_part(candidate: Candidate, part: AssembledPart, target: Target) -> AssembledCandidate:
    """A candidate with its slowest kernel assembled."""
    schedule, cost = candidate.schedule, candidate.cost
    threads = int(part.share * cost.updates) // prod(schedule.cells)
    spilled = spilled_parts(cost, part.frame, threads, threads_of(schedule), target)
    kernel = AssembledKernel(part.registers, part.frame / WORD_BYTES)
    return AssembledCandidate(candidate, kernel, spilled)


def worth_of_seen(seen: AssembledCandidate) -> float:
    """The measure of an assembled schedule for comparisons."""
    return seen.worth * (SPILLING if seen.kernel.spilled_words else 1.0)


def expected_part(
    candidate: Candidate, seen: Sequence[AssembledCandidate], share: float, target: Target
) -> AssembledCandidate:
    """
    A candidate with the expected spills: a thread of the same parts, with as many cells or
    fewer, needed all of its registers, and one more for each two words of local memory. `share`:
    of the step's cells, in kernels reading memory.
    """
    cells, cuts = prod(candidate.schedule.cells), candidate.schedule.cuts
    room = target.isa.registers_for(threads_of(candidate.schedule))
    spilled = (each for each in seen if each.kernel.spilled_words)
    needed = (
        each.kernel.registers + each.kernel.spilled_words / 2
        for each in spilled
        if each.candidate.schedule.cuts == cuts and prod(each.candidate.schedule.cells) <= cells
    )
    missing = max(0.0, max(needed, default=0.0) - room)
    part = AssembledPart(room, ceil(2 * WORD_BYTES * missing), share)
    return with_part(candidate, part, target)


AssemblePart = Callable[[Candidate], AssembledPart]
"""Assembles the slowest kernel of a candidate's step."""


def next_part(
    candidates: Sequence[Candidate],
    seen: Sequence[AssembledCandidate],
    tiles: Sequence[AssembledCandidate],
    share: float,
    target: Target,
) -> Candidate | None:
    """
    The candidate to assemble next: expected to be faster than all assembled ones, or to spill
    nothing where the best of `tiles` spills; None for no such candidate. `share`: of the step's
    cells, in kernels reading memory.
    """
    expected = [expected_part(each, seen, share, target) for each in candidates]
    hoped = max(expected, key=worth_of_seen, default=None)
    if hoped is None or worth_of_seen(hoped) > max(map(worth_of_seen, seen), default=0.0):
        return None if hoped is None else hoped.candidate
    if not tiles or not lacks_clean([*tiles, *seen]):
        return None
    best = in_order([*tiles, *seen])[0]
    instead = (each.candidate for each in expected if is_instead(each, best))
    return next(instead, None)


def best_parts(
    candidates: Sequence[Candidate],
    assemble: AssemblePart,
    target: Target,
    tiles: Sequence[AssembledCandidate] = (),
) -> list[AssembledCandidate]:
    """
    The assembled candidates, the best first; `candidates` are the model's best first, at least one.
    Behind `tiles` whose best one spills, candidates follow until a candidate without spills is
    nearly as good.
    """
    seen: list[AssembledCandidate] = []
    left, share = list(candidates), 1.0
    while len(seen) < MOST_PARTS:
        candidate = next_part(left, seen, tiles, share, target)
        if candidate is None:
            break
        left.remove(candidate)
        part = assemble(candidate)
        share = part.share
        seen.append(with_part(candidate, part, target))
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
