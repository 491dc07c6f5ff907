"""Which launches run a time loop, and which buffers each reads and writes.

A launch never writes what it reads, so a live version moves from buffer to buffer. Kernels that read data
with the halo around it (`Rotation.has_home`) find it in the program's own buffer, or in a scratch buffer
that began as a copy of that one: launches write no halo. In the end every buffer holds what the unfused
program leaves in it: the versions that only the last steps write are written by launches of a single step,
straight into the program's buffers; the launches before may put other live data anywhere. The plan is a path
through the states "which buffer holds which live version"; it soon repeats itself, and long runs are a loop
over one period.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, combinations_with_replacement, permutations, product
from math import gcd, lcm

from timetile.passes.diagnostics import CompileError

Placement = tuple[int, ...]
"""For each live role of a cycle, in order, the number of the buffer that holds its version."""


@dataclass(frozen=True)
class Rotation:
    """The time loop's buffers: how roles rotate, which hold live data, which a step writes."""

    rotate: tuple[int, ...]
    live: tuple[bool, ...]
    written: tuple[bool, ...]

    @cached_property
    def cycles(self) -> tuple[tuple[int, ...], ...]:
        """The roles, grouped by the cycles of the rotation."""
        seen: set[int] = set()
        cycles: list[tuple[int, ...]] = []
        for start in range(len(self.rotate)):
            cycle: list[int] = []
            role = start
            while role not in seen:
                seen.add(role)
                cycle.append(role)
                role = self.rotate[role]
            if cycle:
                cycles.append(tuple(sorted(cycle)))
        return tuple(cycles)

    @cached_property
    def order(self) -> int:
        """Steps after which every role names its first buffer again."""
        return lcm(*(len(cycle) for cycle in self.cycles)) if self.cycles else 1

    def is_moved(self, role: int) -> bool:
        """The role's live data moves between buffers: a step writes some buffer of its cycle."""
        cycle = next(c for c in self.cycles if role in c)
        return self.live[role] and any(self.written[k] for k in cycle)

    def stays_home(self, role: int) -> bool:
        """
        A launch of a single step can read and write the buffers of the role's cycle that the unfused program
        does: no step writes one that is read.
        """
        cycle = next(c for c in self.cycles if role in c)
        return not any(self.written[k] and self.live[k] for k in cycle)

    def has_home(self, role: int, *, single_steps: bool) -> bool:
        """
        The role's data can be kept in buffers that have the right halo around it: the program's own, and
        scratch buffers with a copy of their halo. With several live versions in a cycle that would take a
        buffer more for each, where a launch advances several steps.
        """
        cycle = next(c for c in self.cycles if role in c)
        alone = single_steps or not self.is_moved(role) or sum(self.live[k] for k in cycle) == 1
        return alone and self.stays_home(role)

    @property
    def home_cycles(self) -> tuple[int, ...]:
        """
        The lengths of the cycles in which data moves, where kernels of several steps find all of it with its halo
        around it; none where they do not. A launch that advances no multiple of them leaves all data in the
        program's own buffers.
        """
        moved = [role for role in range(len(self.rotate)) if self.is_moved(role)]
        if not all(self.has_home(role, single_steps=False) for role in moved):
            return ()
        return tuple(len(cycle) for cycle in self.cycles if not set(cycle).isdisjoint(moved))

    def own(self, role: int, step: int) -> int:
        """The program's buffer that a role names before a step of the unfused program."""
        for _ in range(step % self.order):
            role = self.rotate[role]
        return role


@dataclass(frozen=True)
class Launch:
    """
    One launch: a kernel that advances `steps` steps from `time` on (`final`: the kernel that stores
    all that its single step writes), with the buffers by role. Numbers from the count of roles on are
    scratch buffers.
    """

    steps: int
    final: bool
    time: int
    sources: dict[int, int]
    targets: dict[int, int]


@dataclass(frozen=True)
class Plan:
    """Copies `(from, to)`, launches, the repeated ones `[first, first + length)` run `repeats` times."""

    copies: tuple[tuple[int, int], ...]
    launches: tuple[Launch, ...]
    scratch_like: tuple[int, ...]
    """For each scratch buffer, a role whose buffer it is like."""
    first: int = 0
    length: int = 0
    repeats: int = 1


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
                if self.keeps_last_versions(choice, time + steps) and self.keeps_halos(
                    choice, time + steps
                ):
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
            after = tuple(placed[role] for role in self.roles)
            if self.keeps_halos(after, time + steps):
                yield after

    def keeps_last_versions(self, state: Placement, time: int) -> bool:
        """A version that no later step overwrites is in the buffer that it must end in."""
        for role, held in zip(self.roles, state):
            own = self.rotation.own(role, time)
            last = self.last_write(own)
            if held != own and (last is None or last < time):
                return False
        return True

    def keeps_halos(self, state: Placement, time: int) -> bool:
        """Every version is in a buffer with the halo that the unfused program has around it."""
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


def splits(depth: int, depths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The ways to replace one launch by two of known depths, as even as possible first."""
    pairs = [(a, depth - a) for a in depths if depth - a in depths and a >= depth - a]
    yield from sorted(pairs, key=lambda pair: pair[0] - pair[1])


def sequences(total: int, tail: int, depths: Sequence[int]) -> Iterator[list[Segment]]:
    """Launches that advance `total` steps, the last `tail` of them one at a time."""
    rest = total - tail
    if rest < 0:
        return
    fused: list[int] = []
    for depth in sorted(depths, reverse=True):
        fused += [depth] * (rest // depth)
        rest %= depth
    if rest:
        return
    final: list[Segment] = [(1, True)] * tail
    yield [(d, False) for d in fused] + final
    for k in range(len(fused) - 1, -1, -1):
        if k + 1 < len(fused) and fused[k] == fused[k + 1]:
            continue
        for pair in splits(fused[k], depths):
            changed = [*fused[:k], *fused[k + 1 :], *pair]
            yield [(d, False) for d in sorted(changed, reverse=True)] + final


def plan(rotation: Rotation, depths: Sequence[int], steps: int) -> Plan:
    """
    The launches that run `steps` steps with kernels of these depths (and the final one): without copies of
    live data where that can be, then with launches of several steps, then with the fewest scratch buffers, then
    with the fewest launches.
    """
    if steps == 0:
        return Plan((), (), ())
    fused = sorted({d for d in depths if d > 1}, reverse=True)
    deepest = fused[0] if fused else 1
    period = lcm(2, rotation.order // gcd(rotation.order, deepest))
    # Leave out whole periods of the deepest launches: they are put back as a loop.
    keep = (rotation.order + 2) + deepest * (period + 3)
    repeats = max(0, (steps - keep) // (deepest * period)) if fused else 0
    if not fused:
        period = lcm(2, rotation.order)
        repeats = max(0, (steps - rotation.order - 3 * period) // period)
    short = steps - repeats * period * deepest
    moved = [k for k in range(len(rotation.rotate)) if rotation.is_moved(k)]
    tails = range(short + 1 if not fused else min(short, rotation.order + 3) + 1)
    for copied, longest in product((False, True), (short - 1, short) if fused else (short,)):
        for scratch in range(len(moved) + 1):
            for tail in (tail for tail in tails if tail <= longest):
                for segments in sequences(short, tail, fused):
                    found = try_plan(
                        rotation, segments, short, scratch, repeats, period, deepest, copied
                    )
                    if found is not None:
                        return found
    raise CompileError(
        f"no order of launches runs {steps} steps over buffers that rotate as {list(rotation.rotate)}; "
        "give temporal-fusion depths=1"
    )


def try_plan(
    rotation: Rotation,
    segments: list[Segment],
    total: int,
    scratch: int,
    repeats: int,
    period: int,
    deepest: int,
    copied: bool,
) -> Plan | None:
    """A plan along these launches with `scratch` buffers a cycle, if there is one."""
    paths: list[tuple[CycleSearch, Placement, list[Placement]]] = []
    loops: list[list[Placement]] = []
    scratch_like: list[int] = []
    copies: list[tuple[int, int]] = []
    count = len(rotation.rotate)
    course = Course(rotation, segments, total, deepest > 1, copied)
    repeated: list[Segment] = [(deepest, deepest == 1)] * period
    if repeats and (not segments or segments[0] != repeated[0]):
        return None
    for cycle in rotation.cycles:
        if not any(rotation.written[k] for k in cycle):
            continue
        live = sum(rotation.is_moved(k) for k in cycle)
        number = count + len(scratch_like)
        # A cycle takes no more than it needs.
        for few in range(min(scratch, live) + 1):
            found = start_cycle(course, cycle, number, few)
            if found is None:
                continue
            search, start, path = found
            # The loop comes after the first launch, far from the end: no write there is the last.
            end = total + 2 * period * deepest + rotation.order
            far = CycleSearch(rotation, cycle, search.scratch, end, fused=deepest > 1)
            loop = far.path(repeated, path[0], segments[0][0], path[0]) if repeats else []
            if loop is not None:
                break
        else:
            return None
        loops.append(loop)
        paths.append((search, start, path))
        scratch_like += search.scratch.values()
        pairs = list(zip(search.initial(), start))
        if search.has_home:
            pairs += [(like, buffer) for buffer, like in search.scratch.items()]
        copies += [(a, b) for a, b in dict.fromkeys(pairs) if a != b]
    launches = build_launches(rotation, segments, paths, 0)
    if not repeats:
        return Plan(tuple(copies), launches, tuple(scratch_like))
    time = segments[0][0]
    inner = build_launches(
        rotation,
        repeated,
        [(search, path[0], loop) for (search, _, path), loop in zip(paths, loops)],
        time,
    )
    together = (launches[0], *inner, *launches[1:])
    return Plan(tuple(copies), together, tuple(scratch_like), 1, period, repeats)


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
        for start in filter(lambda start: search.keeps_halos(start, 0), starts):
            path = search.path(course.segments, start, 0, None)
            if path is not None:
                return search, start, path
        if not search.has_home:
            # What scratch buffers are like matters for halos only.
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


def build_launches(
    rotation: Rotation,
    segments: Sequence[Segment],
    paths: Sequence[tuple[CycleSearch, Placement, list[Placement]]],
    time: int,
) -> tuple[Launch, ...]:
    """The launches along the paths of all cycles."""
    launches: list[Launch] = []
    states = [start for _, start, _ in paths]
    for k, segment in enumerate(segments):
        sources: dict[int, int] = {}
        targets: dict[int, int] = {}
        for number, (search, _, path) in enumerate(paths):
            sources |= dict(zip(search.roles, states[number]))
            targets |= search.targets(path[k], segment, time)
            states[number] = path[k]
        for role, live in enumerate(rotation.live):
            if live and role not in sources:
                sources[role] = rotation.own(role, time)
        launches.append(Launch(segment[0], segment[1], time, sources, targets))
        time += segment[0]
    return tuple(launches)
