"""
Which buffer holds which version along a sequence of launches, for one cycle of the rotation.

A launch never writes a buffer that it reads, so a live version moves from buffer to buffer. Three
rules place it:

1. The launch that stores the last version of a program's buffer stores it there (`last_stores`).
2. Until then the buffer may hold any other version, which must be read for the last time by an
   earlier launch. A buffer that no step writes is never written.
3. Where kernels read a version with its halo around it, it is in the program's own buffer, or in a
   scratch buffer that began as a copy of that one.

A version for which no buffer is free gets a new scratch buffer, so that nothing has to be searched.
Launches of single steps can always be placed: rule 1 can fail only where a launch reads a buffer of
the program before any launch has moved its first version, and that version can be copied to a
scratch buffer first (`conflicts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from timetile.passes.analysis.launches.rotation import Rotation

Placement = dict[int, int]
"""
For each live role the buffer that holds its version. Numbers from the count of roles on are scratch
buffers.
"""


class Segment(NamedTuple):
    """A launch: the steps that it advances; a final one stores all that its single step writes."""

    steps: int
    final: bool


@dataclass(frozen=True)
class Course:
    """
    Launches over the buffers of one cycle. Where they are `endless` no write is the last of its
    buffer; `fused` says that there are kernels of several steps. With `paired` a version is in its
    own buffer of the program or in a scratch buffer for that one, even where it need not be:
    placements soon repeat then, with more scratch buffers.
    """

    cycle: Rotation
    segments: tuple[Segment, ...]
    fused: bool
    endless: bool = False
    paired: bool = False

    @cached_property
    def times(self) -> tuple[int, ...]:
        """The steps done before each launch, and after the last one."""
        times = [0]
        for segment in self.segments:
            times.append(times[-1] + segment.steps)
        return tuple(times)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The roles that hold live versions before a step."""
        return tuple(role for role, live in enumerate(self.cycle.live) if live)

    @cached_property
    def successors(self) -> dict[int, int]:
        """For each role, the role that names the same buffer after a step."""
        return {before: role for role, before in enumerate(self.cycle.rotate)}

    @cached_property
    def at_home(self) -> bool:
        """Kernels read the live versions with their halos around them."""
        return any(self.cycle.has_home(role, single_steps=not self.fused) for role in self.live)

    @property
    def is_tied(self) -> bool:
        """
        A version must be in its own buffer of the program or in a copy of that: other buffers have
        other halos.
        """
        return self.paired or (self.at_home and not self.cycle.common_halos)

    def last_write(self, buffer: int) -> int | None:
        """The last step that writes a buffer of the program; None where none does."""
        total, cycle = self.times[-1], self.cycle
        for step in range(total - 1, max(-1, total - 1 - len(cycle.rotate)), -1):
            for role, written in enumerate(cycle.written):
                if written and cycle.own(role, step) == buffer:
                    return step
        return None

    def role_of(self, buffer: int, time: int) -> int:
        """The role that names a buffer of the program before a step."""
        return next(r for r in range(len(self.cycle.rotate)) if self.cycle.own(r, time) == buffer)

    @cached_property
    def last_stores(self) -> dict[int, int] | None:
        """
        The launch that stores the last version of each buffer that a step writes: a launch of
        several steps stores all live versions, and so the next one may store it once more. None
        where some launch does not store what it must, or would store to a buffer that no step
        writes.
        """
        if self.endless:
            return dict.fromkeys(range(len(self.cycle.rotate)), len(self.segments) + 1)
        found: dict[int, int] = {}
        for buffer in range(len(self.cycle.rotate)):
            step = self.last_write(buffer)
            if step is None:
                if not self.segments[0].final and self.cycle.live[buffer]:
                    return None
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
        The launch advances several steps, and the role that names the buffer after them is live.
        """
        if launch == len(self.segments) or self.segments[launch].final:
            return False
        return self.cycle.live[self.role_of(buffer, self.times[launch + 1])]

    def last_read(self, launch: int, role: int) -> int:
        """
        The last launch that reads a live version where it lies before a launch: launches of several
        steps move it, a final one leaves what it does not write. The number of launches where it
        stays until the end.
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
        The roles whose first versions are read by a launch that must write their buffers, or by a
        later one.
        """
        last = self.last_stores or {}
        return frozenset(k for k in self.live if k in last and last[k] <= self.last_read(0, k))


@dataclass
class Placed:
    """
    The placements before each launch and after the last one, what each launch writes by role, the
    role that each scratch buffer is like, and the copies `(from, to)` before the first launch, of
    which those of live versions are `copied`.
    """

    states: list[Placement]
    targets: list[Placement] = field(default_factory=list[Placement])
    scratch: list[int] = field(default_factory=list[int])
    copies: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    copied: int = 0

    @property
    def cost(self) -> tuple[int, int]:
        """Scratch buffers, then live versions that are copied."""
        return len(self.scratch), self.copied


def choose_buffers(wanted: Sequence[Sequence[int]]) -> list[int | None]:
    """
    A different buffer for each entry, from its list, the first ones where that can be: a matching
    by augmenting paths. None where all of an entry's buffers are taken by others that have no
    other.
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


class Placer:
    """Places the versions of a course, launch by launch."""

    def __init__(self, course: Course, copied: frozenset[int]):
        self.course, self.cycle = course, course.cycle
        self.count = len(self.cycle.rotate)
        self.placed = Placed([], copied=len(copied))
        start: Placement = {}
        for role in course.live:
            start[role] = self.add_scratch(role) if role in copied else role
        self.placed.states.append(start)
        self.placed.copies = [(role, start[role]) for role in sorted(copied)]

    def add_scratch(self, like: int) -> int:
        """The number of a new scratch buffer."""
        self.placed.scratch.append(like)
        return self.count + len(self.placed.scratch) - 1

    def advance(self, launch: int) -> None:
        """Place what a launch stores."""
        state = self.placed.states[-1]
        stored, after = self.stored(launch, state)
        time, taken = self.course.times[launch + 1], set(state.values())
        wanted = [self.allowed(launch, role, taken) for role in stored]
        targets: Placement = {}
        for role, buffer in zip(stored, choose_buffers(wanted)):
            own = self.cycle.own(role, time)
            targets[role] = self.add_scratch(own) if buffer is None else buffer
        after |= {role: buffer for role, buffer in targets.items() if self.cycle.live[role]}
        self.placed.targets.append(targets)
        self.placed.states.append(after)

    def stored(self, launch: int, state: Placement) -> tuple[list[int], Placement]:
        """The roles whose versions a launch stores, and where those lie that a final one leaves."""
        if not self.course.segments[launch].final:
            return list(self.course.live), {}
        stored: list[int] = []
        kept: Placement = {}
        for role, before in enumerate(self.cycle.rotate):
            if self.cycle.written[before]:
                stored.append(role)
            elif self.cycle.live[role]:
                kept[role] = state[before]
        return stored, kept

    def allowed(self, launch: int, role: int, taken: set[int]) -> list[int]:
        """
        The buffers to which a launch may store the version of a role, the best first; `taken` are
        those it reads.
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
        What was placed. A scratch buffer of which the halo is read begins as a copy of its
        program's buffer.
        """
        if self.course.at_home:
            filled = {target for _, target in self.placed.copies}
            for number, like in enumerate(self.placed.scratch, self.count):
                if number not in filled:
                    self.placed.copies.append((like, number))
        return self.placed


@lru_cache(maxsize=1024)
def place(course: Course, copied: frozenset[int]) -> Placed | None:
    """
    The placements along a course where the first versions of some roles are `copied` to scratch
    buffers; None where there are none.
    """
    if course.last_stores is None or not course.conflicts <= copied:
        return None
    placer = Placer(course, copied)
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
    found = [placed for copied in choices if (placed := place(course, copied)) is not None]
    return sorted(found, key=lambda placed: placed.cost)


def least_scratch(course: Course) -> int:
    """Scratch buffers that no course with launches of these kinds does without."""
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
