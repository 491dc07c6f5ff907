"""Decides which buffer holds which version along a sequence of launches, for one cycle of the
rotation.

A launch never writes a buffer read by the launch: live versions move from buffer to buffer. Three
rules place a version:

1. The launch storing the last version of a program's buffer stores the version there
   (`last_stores`).
2. Until then the buffer may hold any other version last read by an earlier launch. A buffer not
   written by any step is never written.
3. If kernels read a version with the halo around, the version lies in the program's own buffer, or
   in a scratch buffer begun as a copy of the own buffer.

A version without a free buffer gets a new scratch buffer: nothing has to be searched. Launches of
single steps can always be placed: rule 1 can fail only if a launch reads a buffer of the program
before any launch has moved the buffer's first version, and the first version can be copied to a
scratch buffer before (`conflicts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from timetile.passes.analysis.launches.rotation import Rotation

VersionPlaces = dict[int, int]
"""
For each live role, the buffer of its version. Numbers from the count of roles on are scratch
buffers.
"""


class LaunchSegment(NamedTuple):
    """A launch as its number of steps. A final launch stores all results of its single step."""

    steps: int
    final: bool


@dataclass(frozen=True)
class Course:
    """
    Launches over the buffers of one cycle. `endless`: no write is the last write of its buffer.
    `fused`: kernels of several steps exist. `paired`: each version lies in its own buffer of the
    program or in a scratch buffer for the own buffer, even if rule 3 does not ask for it;
    placements then repeat soon, with more scratch buffers. `goes_on`: another run follows, and
    reads live versions alone: no write is the last write of a buffer without a live version.
    """

    cycle: Rotation
    segments: tuple[LaunchSegment, ...]
    fused: bool
    endless: bool = False
    paired: bool = False
    goes_on: bool = False

    @cached_property
    def times(self) -> tuple[int, ...]:
        """The steps done before each launch, and after the last launch."""
        times = [0]
        for segment in self.segments:
            times.append(times[-1] + segment.steps)
        return tuple(times)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The roles holding live versions before a step."""
        return tuple(role for role, live in enumerate(self.cycle.live) if live)

    @cached_property
    def successors(self) -> dict[int, int]:
        """For each role, the role naming the buffer after a step."""
        return {before: role for role, before in enumerate(self.cycle.rotate)}

    @cached_property
    def at_home(self) -> bool:
        """Whether kernels read live versions with the halo around."""
        return any(self.cycle.has_home(role, single_steps=not self.fused) for role in self.live)

    @property
    def is_tied(self) -> bool:
        """
        Whether a version must lie in its own buffer of the program or in a copy of the own buffer,
        because other buffers have other halos.
        """
        return self.paired or (self.at_home and not self.cycle.common_halos)

    def last_write(self, buffer: int) -> int | None:
        """The last step writing a buffer of the program; None if no step does."""
        total, cycle = self.times[-1], self.cycle
        for step in range(total - 1, max(-1, total - 1 - len(cycle.rotate)), -1):
            for role, written in enumerate(cycle.written):
                if written and cycle.own(role, step) == buffer:
                    return step
        return None

    def role_of(self, buffer: int, time: int) -> int:
        """The role naming a buffer of the program before a step."""
        return next(r for r in range(len(self.cycle.rotate)) if self.cycle.own(r, time) == buffer)

    @cached_property
    def last_stores(self) -> dict[int, int] | None:
        """
        For each buffer written by a step, the launch storing the last version. A launch of several
        steps stores all live versions, and so the next launch may store a version once more. None
        if some launch does not store a due version, or would store to a buffer not written by any
        step.
        """
        never = len(self.segments) + 1
        if self.endless:
            return dict.fromkeys(range(len(self.cycle.rotate)), never)
        # A cycle without live versions has nothing else to store.
        goes_on = self.goes_on and any(self.cycle.live)
        found: dict[int, int] = {}
        for buffer in range(len(self.cycle.rotate)):
            step = self.last_write(buffer)
            if step is None:
                if not self.segments[0].final and self.cycle.live[buffer]:
                    return None
                continue
            if goes_on and not self.cycle.live[self.role_of(buffer, self.times[-1])]:
                found[buffer] = never
                continue
            launch = max(k for k in range(len(self.segments)) if self.times[k] <= step)
            if not self.segments[launch].final:
                if not self.stores_live(launch, buffer):
                    return None
                while self.stores_live(launch + 1, buffer):
                    launch += 1
            found[buffer] = launch
        return found

    def stores_live(self, launch: int, buffer: int) -> bool:
        """
        Whether the launch advances several steps, and the role naming the buffer afterwards is
        live.
        """
        if launch == len(self.segments) or self.segments[launch].final:
            return False
        return self.cycle.live[self.role_of(buffer, self.times[launch + 1])]

    def last_read(self, launch: int, role: int) -> int:
        """
        The last launch reading a live version at the version's place before `launch`: launches of
        several steps move all versions, a final launch moves only written versions. The number of
        launches if the version stays until the end.
        """
        while launch < len(self.segments):
            if not self.segments[launch].final or self.cycle.written[role]:
                return launch
            role, launch = self.successors[role], launch + 1
            if not self.cycle.live[role]:
                return launch - 1
        return launch

    @cached_property
    def conflicts(self) -> frozenset[int]:
        """
        The roles with a first version read by the launch that must write the version's buffer, or
        by a later launch.
        """
        last = self.last_stores or {}
        return frozenset(k for k in self.live if k in last and last[k] <= self.last_read(0, k))


@dataclass
class Placed:
    """
    The placements along a course. `states`: before each launch, and after the last. `targets`:
    writes of each launch, by role. `scratch`: for each scratch buffer, the role with an equal type.
    `copies`: pairs `(from, to)` before the first launch, of which `copied` are of live versions.
    """

    states: list[VersionPlaces]
    targets: list[VersionPlaces] = field(default_factory=list[VersionPlaces])
    scratch: list[int] = field(default_factory=list[int])
    copies: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    copied: int = 0

    @property
    def cost(self) -> tuple[int, int]:
        """The number of scratch buffers, then the number of copied live versions."""
        return len(self.scratch), self.copied


def choose_buffers(wanted: Sequence[Sequence[int]]) -> list[int | None]:
    """
    A different buffer for each entry, from the entry's list, early list items first: a matching by
    augmenting paths. None for an entry whose buffers are all needed by other entries.
    """
    holders: dict[int, int] = {}

    def seat(entry: int, seen: set[int]) -> bool:
        free = [b for b in wanted[entry] if b not in holders]
        for buffer in (*free[:1], *(b for b in wanted[entry] if b in holders)):
            if buffer in seen:
                continue
            seen.add(buffer)
            if buffer not in holders or seat(holders[buffer], seen):
                holders[buffer] = entry
                return True
        return False

    for entry in range(len(wanted)):
        seat(entry, set())
    chosen = {entry: buffer for buffer, entry in holders.items()}
    return [chosen.get(entry) for entry in range(len(wanted))]


class VersionPlacer:
    """Places the versions of a course, launch by launch."""

    def __init__(self, course: Course, copied: frozenset[int]):
        self.course, self.cycle = course, course.cycle
        self.count = len(self.cycle.rotate)
        self.placed = Placed([], copied=len(copied))
        start: VersionPlaces = {}
        for role in course.live:
            start[role] = self.add_scratch(role) if role in copied else role
        self.placed.states.append(start)
        self.placed.copies = [(role, start[role]) for role in sorted(copied)]

    def add_scratch(self, like: int) -> int:
        """The number of a new scratch buffer."""
        self.placed.scratch.append(like)
        return self.count + len(self.placed.scratch) - 1

    def advance(self, launch: int) -> None:
        """Place the versions stored by a launch."""
        state = self.placed.states[-1]
        stored, after = self.stored(launch, state)
        time, taken = self.course.times[launch + 1], set(state.values())
        wanted = [self.allowed(launch, role, taken) for role in stored]
        targets: VersionPlaces = {}
        for role, buffer in zip(stored, choose_buffers(wanted)):
            own = self.cycle.own(role, time)
            targets[role] = self.add_scratch(own) if buffer is None else buffer
        after |= {role: buffer for role, buffer in targets.items() if self.cycle.live[role]}
        self.placed.targets.append(targets)
        self.placed.states.append(after)

    def stored(self, launch: int, state: VersionPlaces) -> tuple[list[int], VersionPlaces]:
        """
        The roles with versions stored by a launch, and the places of the versions left by a final
        launch.
        """
        if not self.course.segments[launch].final:
            return list(self.course.live), {}
        stored: list[int] = []
        kept: VersionPlaces = {}
        for role, before in enumerate(self.cycle.rotate):
            if self.cycle.written[before]:
                stored.append(role)
            elif self.cycle.live[role]:
                kept[role] = state[before]
        return stored, kept

    def allowed(self, launch: int, role: int, taken: set[int]) -> list[int]:
        """
        The buffers to which a launch may store the version of a role, the best first. `taken` are
        the buffers read by the launch.
        """
        last = self.course.last_stores or {}
        own = self.cycle.own(role, self.course.times[launch + 1])
        if last.get(own) == launch:
            return [own]
        until = launch
        if self.cycle.live[role]:
            until = self.course.last_read(launch + 1, role)
        scratch = range(self.count, self.count + len(self.placed.scratch))
        if self.course.is_tied:
            buffers = [own, *(s for s in scratch if self.placed.scratch[s - self.count] == own)]
        else:
            buffers = [own, *(b for b in range(self.count) if b != own), *scratch]
        return [
            buffer
            for buffer in buffers
            if buffer not in taken
            and (buffer >= self.count or (buffer in last and last[buffer] > until))
        ]

    def finish(self) -> Placed:
        """
        The finished placements. A scratch buffer with a halo to read begins as a copy of the
        program's buffer.
        """
        if self.course.at_home:
            filled = {target for _, target in self.placed.copies}
            for number, like in enumerate(self.placed.scratch, self.count):
                if number not in filled:
                    self.placed.copies.append((like, number))
        return self.placed


@lru_cache(maxsize=1024)
def place_versions(course: Course, copied: frozenset[int]) -> Placed | None:
    """
    The placements along a course in which the first versions of the roles `copied` are copied to
    scratch buffers; None if no placement exists.
    """
    if course.last_stores is None or not course.conflicts <= copied:
        return None
    placer = VersionPlacer(course, copied)
    for launch in range(len(course.segments)):
        placer.advance(launch)
    return placer.finish()


def placements(course: Course) -> list[Placed]:
    """
    The placements along a course, with fewest scratch buffers first, then with fewest live versions
    copied.
    """
    live = frozenset(course.live)
    choices = dict.fromkeys((course.conflicts, live))
    found = [placed for copied in choices if (placed := place_versions(course, copied)) is not None]
    return sorted(found, key=lambda placed: placed.cost)


def least_scratch(course: Course) -> int:
    """The number of scratch buffers needed by every course with such launches."""
    count, live, written = len(course.cycle.rotate), len(course.live), sum(course.cycle.written)
    least = 0
    for steps, final in set(course.segments):
        if final:
            least = max(least, live + written - count)
        elif course.is_tied:
            least = max(least, 1 if steps % count == 0 and live else 0)
        else:
            least = max(least, 2 * live - count)
    return least
