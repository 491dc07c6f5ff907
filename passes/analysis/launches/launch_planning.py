"""Plans the launches running a time loop, and the buffers that each launch reads and writes.

A launch never writes a buffer read by the launch, so live versions move from buffer to buffer by
the rules of `placements.py`. Kernels reading data with the halo around (`Rotation.has_home`) find
both in the program's own buffer, or in a scratch buffer that began as a copy of the own buffer:
launches write no halo. (Buffers with common halos are all equally good.) In the end every buffer
holds what the unfused program leaves. Versions that only the last steps write are written by
launches of a single step, straight into the program's buffers; earlier launches may put other live
data anywhere.

Every number of steps has a plan, as launches of single steps always do. The time to find a plan
grows with the buffers, the longest cycle of the rotation and the number of depths, but not with the
number of steps: placements soon repeat, and long runs are a loop over one period.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import gcd, lcm

from timetile.passes.analysis.launches.placements import (
    Course,
    LaunchSegment,
    Placed,
    VersionPlacer,
    least_scratch,
    placements,
)
from timetile.passes.analysis.launches.rotation import Rotation

MOST_SEQUENCES = 128
"""Most sequences of launches compared if none takes as few buffers as the kernels could do with."""

MOST_ROUNDS = 8
"""
Rounds of a cycle's rotation before placements must repeat. Otherwise the cycle's buffers are used
in pairs.
"""


@dataclass(frozen=True)
class PlannedLaunch:
    """
    One launch: a kernel advancing `steps` steps from `time` on, with the buffers by role. `final`:
    the kernel stores all results of its single step. Numbers from the count of roles on are scratch
    buffers.
    """

    steps: int
    final: bool
    time: int
    sources: dict[int, int]
    targets: dict[int, int]


@dataclass(frozen=True)
class LaunchPlan:
    """
    A plan: the copies `(from, to)`, then the launches, with `[first, first + length)` run `repeats`
    times.
    """

    copies: tuple[tuple[int, int], ...]
    launches: tuple[PlannedLaunch, ...]
    scratch_like: tuple[int, ...]
    """For each scratch buffer, a role with a buffer of equal type."""
    first: int = 0
    length: int = 0
    repeats: int = 1


def as_two_launches(depth: int, depths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The ways to replace one launch by two launches of known depths, the most even pair first."""
    pairs = [(a, depth - a) for a in depths if depth - a in depths and a >= depth - a]
    yield from sorted(pairs, key=lambda pair: pair[0] - pair[1])


def sequences(total: int, tail: int, depths: Sequence[int]) -> Iterator[list[LaunchSegment]]:
    """Launches advancing `total` steps, the last `tail` steps one at a time."""
    rest = total - tail
    if rest < 0:
        return
    fused: list[int] = []
    for depth in sorted(depths, reverse=True):
        fused += [depth] * (rest // depth)
        rest %= depth
    if rest:
        return
    final = [LaunchSegment(1, True)] * tail
    yield [LaunchSegment(d, False) for d in fused] + final
    for k in range(len(fused) - 1, -1, -1):
        if k + 1 < len(fused) and fused[k] == fused[k + 1]:
            continue
        for pair in as_two_launches(fused[k], depths):
            changed = [*fused[:k], *fused[k + 1 :], *pair]
            yield [LaunchSegment(d, False) for d in sorted(changed, reverse=True)] + final


def courses(total: int, longest: int, depths: Sequence[int]) -> Iterator[list[LaunchSegment]]:
    """
    Sequences of launches advancing `total` steps and ending with single steps: only sequences with
    launches of several steps.
    """
    for tail in range(min(total, longest + 4)):
        yield from sequences(total, tail, depths)


@dataclass(frozen=True)
class Steady:
    """
    How placements repeat if every launch advances `depth` steps: from launch `first` on, the
    placements before a launch equal the placements `period` launches later. `paired`: cycles with
    repeating placements only if buffers are used in pairs.
    """

    depth: int
    first: int
    period: int
    paired: frozenset[Rotation]

    @property
    def end(self) -> int:
        """The launch after the first period."""
        return self.first + self.period

    def repeats_in(self, segments: Sequence[LaunchSegment], placed: Placed) -> bool:
        """The first period of a course may be repeated."""
        period = segments[: self.end]
        if len(period) < self.end or any(segment.steps != self.depth for segment in period):
            return False
        return placed.states[self.first] == placed.states[self.end]


def steady(parts: Sequence[Rotation], order: int, depth: int, *, fused: bool) -> Steady:
    """
    How placements repeat where all launches advance `depth` steps, far from the end: after whole
    rounds of `order` steps.
    """
    first, period = 1, lcm(2, order // gcd(order, depth))
    paired: set[Rotation] = set()
    for part in dict.fromkeys(parts):
        segments = (LaunchSegment(depth, depth == 1),) * (MOST_ROUNDS * len(part.rotate))
        found = repetition(Course(part, segments, fused, endless=True))
        if found is None:
            paired.add(part)
            found = repetition(Course(part, segments, fused, endless=True, paired=True))
            assert found is not None, "buffers in pairs change places every round of the rotation"
        first, period = max(first, found[0]), lcm(period, found[1])
    return Steady(depth, first, period, frozenset(paired))


@lru_cache(maxsize=256)
def repetition(course: Course) -> tuple[int, int] | None:
    """
    The launch from which on placements repeat, with and without copies of the first versions, and
    the period in launches. None if placements do not repeat along the course.
    """
    first, period = 0, 1
    for copied in dict.fromkeys((frozenset[int](), frozenset(course.live))):
        placer = VersionPlacer(course, copied)
        known: dict[tuple[object, ...], int] = {}
        for launch in range(len(course.segments)):
            state = tuple(sorted(placer.placed.states[-1].items()))
            time = course.times[launch] % len(course.cycle.rotate)
            key = (state, len(placer.placed.scratch), time)
            if key in known:
                first, period = max(first, known[key]), lcm(period, launch - known[key])
                break
            known[key] = launch
            placer.advance(launch)
        else:
            return None
    return first, period


class Search:
    """The search for launches running some steps, with placements for each written cycle."""

    def __init__(
        self, rotation: Rotation, depths: Sequence[int], steps: int, *, goes_on: bool = False
    ):
        self.rotation, self.steps, self.goes_on = rotation, steps, goes_on
        self.fused = sorted({depth for depth in depths if depth > 1}, reverse=True)
        self.cycles = [c for c in rotation.cycles if any(rotation.written[k] for k in c)]
        self.parts = [rotation.part(cycle) for cycle in self.cycles]
        self.longest = max((len(cycle) for cycle in self.cycles), default=1)

    def plan(self) -> LaunchPlan:
        """The best plan, with launches of several steps if possible."""
        if self.fused and (found := self.plan_with(self.fused)) is not None:
            return found
        found = self.plan_with(())
        assert found is not None, "launches of single steps have placements"
        return found

    def steps_kept(self, known: Steady) -> int:
        """The least number of steps outside the loop over a period of the deepest launches."""
        return 2 * self.longest + 4 + known.depth * (known.end + 2)

    def plan_with(self, fused: Sequence[int]) -> LaunchPlan | None:
        """
        The cheapest plan with launches of depths `fused` and, in the end, of single steps; None if
        no placement exists.
        """
        deepest = max(fused, default=1)
        known = steady(self.parts, self.rotation.order, deepest, fused=bool(self.fused))
        # Whole periods of the deepest launches are cut out of the planned steps, and return as a
        # loop.
        keep = self.steps_kept(known)
        repeats = max(0, (self.steps - keep) // (deepest * known.period))
        short = self.steps - repeats * deepest * known.period
        if not fused:
            found: Iterator[list[LaunchSegment]] = iter([[LaunchSegment(1, True)] * short])
        else:
            found = islice(courses(short, self.longest, fused), MOST_SEQUENCES)
        chosen: tuple[list[LaunchSegment], list[Placed]] | None = None
        least: tuple[int, int] | None = None
        for segments in found:
            along = [
                Course(
                    part,
                    tuple(segments),
                    bool(self.fused),
                    paired=part in known.paired,
                    goes_on=self.goes_on,
                )
                for part in self.parts
            ]
            placed = [self.best(course, known if repeats else None) for course in along]
            complete = [each for each in placed if each is not None]
            if len(complete) < len(placed):
                continue
            cost = sum(len(each.scratch) for each in complete), sum(p.copied for p in complete)
            if least is None or cost < least:
                least, chosen = cost, (segments, complete)
            if cost == (sum(map(least_scratch, along)), 0):
                break
        if chosen is None:
            return None
        return self.assembled(*chosen, known, repeats)

    @staticmethod
    def best(course: Course, known: Steady | None) -> Placed | None:
        """
        The cheapest placements of one cycle that repeat like `known`; None if no placement does.
        """
        for placed in placements(course):
            if known is None or known.repeats_in(course.segments, placed):
                return placed
        return None

    def assembled(
        self,
        segments: Sequence[LaunchSegment],
        placed: Sequence[Placed],
        known: Steady,
        repeats: int,
    ) -> LaunchPlan:
        """The placements of all cycles as one plan, in numbers of the program's buffers."""
        scratch_like: list[int] = []
        copies: list[tuple[int, int]] = []
        sources: list[dict[int, int]] = [{} for _ in segments]
        targets: list[dict[int, int]] = [{} for _ in segments]
        for cycle, own in zip(self.cycles, placed):
            first = len(self.rotation.rotate) + len(scratch_like)
            numbers = [*cycle, *range(first, first + len(own.scratch))]
            scratch_like += [cycle[like] for like in own.scratch]
            copies += [(numbers[a], numbers[b]) for a, b in own.copies]
            for launch in range(len(segments)):
                read, stored = own.states[launch], own.targets[launch]
                sources[launch] |= {cycle[role]: numbers[b] for role, b in read.items()}
                targets[launch] |= {cycle[role]: numbers[b] for role, b in stored.items()}
        launches: list[PlannedLaunch] = []
        time = 0
        for (steps, final), read, stored in zip(segments, sources, targets):
            for role, live in enumerate(self.rotation.live):
                if live and role not in read:
                    read[role] = self.rotation.own(role, time)
            launches.append(PlannedLaunch(steps, final, time, read, stored))
            time += steps
        if not repeats:
            return LaunchPlan(tuple(copies), tuple(launches), tuple(scratch_like))
        return LaunchPlan(
            tuple(copies),
            tuple(launches),
            tuple(scratch_like),
            known.first,
            known.period,
            repeats + 1,
        )


def plan(
    rotation: Rotation, depths: Sequence[int], steps: int, *, goes_on: bool = False
) -> LaunchPlan:
    """
    The launches that run `steps` steps with kernels of `depths` and the final kernel. Plans are
    compared by: launches of several steps, then fewest scratch buffers, then fewest copies of live
    data, then fewest launches of a single step. `goes_on`: another run follows, and buffers without
    live data may hold anything.
    """
    if steps == 0:
        return LaunchPlan((), (), ())
    return Search(rotation, depths, steps, goes_on=goes_on).plan()


def plan_period(rotation: Rotation, depths: Sequence[int]) -> tuple[int, int]:
    """
    `(first, period)`, in steps: from `first` steps on, a plan is the plan for `period` fewer steps
    with more repeats of the loop.
    """
    search = Search(rotation, depths, 0)
    first, period = 0, 1
    for fused in (search.fused, ()) if search.fused else ((),):
        deepest = max(fused, default=1)
        known = steady(search.parts, rotation.order, deepest, fused=bool(search.fused))
        period = lcm(period, deepest * known.period)
        first = max(first, search.steps_kept(known))
    return first + 2 * period, period


def deepest_launch(rotation: Rotation, steps: int) -> int:
    """
    The most steps of one launch in a run of `steps` steps. The last steps are done one at a time,
    as they write data without a later reader. 1 if all steps are.
    """
    search = Search(rotation, (max(steps, 2),), steps)
    for tail in range(min(steps - 1, search.longest + 4)):
        segments = (LaunchSegment(steps - tail, False), *(LaunchSegment(1, True),) * tail)
        courses = (Course(part, segments, fused=True) for part in search.parts)
        if all(placements(course) for course in courses):
            return steps - tail
    return 1
