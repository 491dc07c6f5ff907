"""Which launches run a time loop, and which buffers each reads and writes.

A launch never writes what it reads, so a live version moves from buffer to buffer. Kernels that read data
with the halo around it (`Rotation.has_home`) find it in the program's own buffer, or in a scratch buffer
that began as a copy of that one: launches write no halo. (Where buffers that take turns have their halos in common, any
of them does.) In the end every buffer holds what the unfused
program leaves in it: the versions that only the last steps write are written by launches of a single step,
straight into the program's buffers; the launches before may put other live data anywhere. The plan is a path
through the states "which buffer holds which live version"; it soon repeats itself, and long runs are a loop
over one period.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, lcm

from timetile.passes.analysis.placements import (
    Course,
    CycleSearch,
    Placement,
    Segment,
    start_cycle,
)
from timetile.passes.analysis.rotation import Rotation
from timetile.passes.diagnostics import CompileError


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
    repeated: list[Segment] = [(deepest, deepest == 1)] * period
    tails = range(short + 1 if not fused else min(short, rotation.order + 3) + 1)
    # First with launches of several steps, then with single ones only.
    for copied, singles in product((False, True), (tails[:short], tails[short:])):
        for scratch in range(len(moved) + 1):
            for tail in singles:
                for segments in sequences(short, tail, fused):
                    course = Course(rotation, segments, short, bool(fused), copied)
                    found = try_plan(course, scratch, repeated, repeats)
                    if found is not None:
                        return found
    raise CompileError(
        f"no order of launches runs {steps} steps over buffers that rotate as {list(rotation.rotate)}; "
        "give temporal-fusion depths=1"
    )


def try_plan(
    course: Course, scratch: int, repeated: Sequence[Segment], repeats: int
) -> Plan | None:
    """
    A plan along these launches with `scratch` buffers a cycle, if there is one. After the first launch the
    `repeated` ones run so many times.
    """
    rotation, segments = course.rotation, course.segments
    paths: list[tuple[CycleSearch, Placement, list[Placement]]] = []
    loops: list[list[Placement]] = []
    scratch_like: list[int] = []
    copies: list[tuple[int, int]] = []
    count = len(rotation.rotate)
    if repeats and (not segments or segments[0] != repeated[0]):
        return None
    # The loop comes after the first launch, far from the end: no write there is the last.
    end = course.total + 2 * sum(steps for steps, _ in repeated) + rotation.order
    far = replace(course, total=end)
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
            inside = far.search(cycle, search.scratch)
            loop = inside.path(repeated, path[0], segments[0][0], path[0]) if repeats else []
            if loop is not None:
                break
        else:
            return None
        loops.append(loop)
        paths.append((search, start, path))
        scratch_like += search.scratch.values()
        pairs = list(zip(search.initial(), start))
        if search.has_home:
            # A scratch buffer that begins with live data has the halo of that.
            blank = (entry for entry in search.scratch.items() if entry[0] not in start)
            pairs += [(like, buffer) for buffer, like in blank]
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
    return Plan(tuple(copies), together, tuple(scratch_like), 1, len(repeated), repeats)


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
