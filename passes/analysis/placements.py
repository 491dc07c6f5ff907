"""
Which buffer holds which live version along a sequence of launches: a search, for each cycle of the rotation by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, permutations

from timetile.passes.analysis.rotation import Rotation

Placement = tuple[int, ...]
"""For each live role of a cycle, in order, the number of the buffer that holds its version."""

Segment = tuple[int, bool]
"""Steps of a launch, and whether it is final."""


class CycleSearch:
    """
    Finds placements for one cycle of roles along a sequence of launches. `scratch` has the role that each
    scratch buffer is like.
    """

    def __init__(
        self,
        rotation: Rotation,
        cycle: Sequence[int],
        scratch: dict[int, int],
        total: int,
        *,
        fused: bool,
    ):
        self.rotation, self.cycle, self.total = rotation, tuple(cycle), total
        self.roles = tuple(k for k in cycle if rotation.is_moved(k))
        self.has_home = any(rotation.has_home(k, single_steps=not fused) for k in self.roles)
        self.scratch = scratch
        self.pool = (*cycle, *scratch)

    def initial(self) -> Placement:
        return self.roles

    def last_write(self, buffer: int) -> int | None:
        """The last step of the run that writes a buffer of the program; None where none does."""
        for step in range(self.total - 1, max(-1, self.total - 1 - self.rotation.order), -1):
            for role in self.cycle:
                if self.rotation.written[role] and self.rotation.own(role, step) == buffer:
                    return step
        return None

    def successors(self, state: Placement, segment: Segment, time: int) -> Iterator[Placement]:
        """The placements after a launch, those in the program's buffers first."""
        steps, final = segment
        rotation = self.rotation
        held = dict(zip(self.roles, state))
        finished = {
            b for b in self.cycle if (last := self.last_write(b)) is not None and last < time
        }
        free = [b for b in self.pool if b not in state and b not in finished]
        if not final:
            for choice in permutations(free, len(self.roles)):
                if self.keeps_last_versions(choice, time + steps):
                    yield choice
            return
        fixed: dict[int, int] = {}
        moved: list[int] = []
        for role in self.cycle:
            before = rotation.rotate[role]
            if rotation.written[before]:
                own = rotation.own(before, time)
                if self.last_write(own) == time or role not in self.roles:
                    # The last version of a buffer, or one that nobody reads: into the buffer itself.
                    if own in state:
                        return
                    fixed[role] = own
                else:
                    moved.append(role)
            elif role in self.roles:
                fixed[role] = held[before]
        others = [b for b in free if b not in fixed.values()]
        for choice in permutations(others, len(moved)):
            placed = fixed | dict(zip(moved, choice))
            yield tuple(placed[role] for role in self.roles)

    def keeps_last_versions(self, state: Placement, time: int) -> bool:
        """A version that no later step overwrites is in the buffer that it must end in."""
        for role, held in zip(self.roles, state):
            own = self.rotation.own(role, time)
            last = self.last_write(own)
            if held != own and (last is None or last < time):
                return False
        return True

    def keeps_halos(self, state: Placement, time: int) -> bool:
        """Every version is in a buffer with the halo that the unfused program has around it, as all may have."""
        if self.rotation.common_halos:
            return True
        held = zip(self.roles, (self.scratch.get(buffer, buffer) for buffer in state))
        return not self.has_home or all(self.rotation.own(role, time) == b for role, b in held)

    def targets(self, after: Placement, segment: Segment, time: int) -> dict[int, int]:
        """The buffers that a launch writes, by role, given the placement after it."""
        placed = dict(zip(self.roles, after))
        if not segment[1]:
            return placed
        result: dict[int, int] = {}
        for role in self.cycle:
            before = self.rotation.rotate[role]
            if self.rotation.written[before]:
                result[role] = placed.get(role, self.rotation.own(before, time))
        return result

    def is_finished(self, state: Placement) -> bool:
        """Every live version is where the unfused program leaves it."""
        return all(
            self.rotation.own(role, self.total) == held for role, held in zip(self.roles, state)
        )

    def unwritten_finals(self, tail_start: int) -> bool:
        """Some buffer's last version is neither live at the tail's start nor written by the tail."""
        for buffer in self.cycle:
            last = self.last_write(buffer)
            if last is None or last >= tail_start:
                continue
            live = [k for k in self.roles if self.rotation.own(k, tail_start) == buffer]
            if not live:
                return True
        return False

    def path(
        self, segments: Sequence[Segment], start: Placement, time: int, goal: Placement | None
    ) -> list[Placement] | None:
        """Placements after each launch, ending in `goal` (or finished); None where there are none."""
        dead: set[tuple[int, Placement]] = set()

        def search(k: int, state: Placement, time: int) -> list[Placement] | None:
            if not self.keeps_halos(state, time):
                return None
            if k == len(segments):
                done = self.is_finished(state) if goal is None else state == goal
                return [] if done else None
            if (k, state) in dead:
                return None
            for after in self.successors(state, segments[k], time):
                rest = search(k + 1, after, time + segments[k][0])
                if rest is not None:
                    return [after, *rest]
            dead.add((k, state))
            return None

        return search(0, start, time)


@dataclass(frozen=True)
class Course:
    """
    Launches that advance `total` steps, for which placements are sought: where there are `fused` kernels
    beside the final one, and live versions may be `copied` to scratch buffers first.
    """

    rotation: Rotation
    segments: Sequence[Segment]
    total: int
    fused: bool
    copied: bool

    @property
    def tail_start(self) -> int:
        """The steps before the final ones."""
        return sum(steps for steps, final in self.segments if not final)

    def search(self, cycle: Sequence[int], scratch: dict[int, int]) -> CycleSearch:
        """The search of one cycle of roles."""
        return CycleSearch(self.rotation, cycle, scratch, self.total, fused=self.fused)


def start_cycle(
    course: Course, cycle: Sequence[int], number: int, scratch: int
) -> tuple[CycleSearch, Placement, list[Placement]] | None:
    """
    The search of a cycle with so many scratch buffers, from `number` on, the placement it starts from and
    those after each launch; None where there are none.
    """
    buffers = range(number, number + scratch)
    for likes in combinations_with_replacement(cycle, scratch):
        search = course.search(cycle, dict(zip(buffers, likes)))
        if search.unwritten_finals(course.tail_start):
            return None
        starts = [search.initial()]
        if course.copied:
            starts += copied_starts(search.initial(), buffers)
        for start in starts:
            path = search.path(course.segments, start, 0, None)
            if path is not None:
                return search, start, path
        if not search.has_home or course.rotation.common_halos:
            # What scratch buffers are like matters for halos only, where these differ.
            return None
    return None


def copied_starts(initial: Placement, scratch: Sequence[int]) -> Iterator[Placement]:
    """The placements after some live versions were copied to scratch buffers, the fewest first."""
    for count in range(1, min(len(initial), len(scratch)) + 1):
        for chosen in combinations(range(len(initial)), count):
            start = list(initial)
            for role, buffer in zip(chosen, scratch):
                start[role] = buffer
            yield tuple(start)
