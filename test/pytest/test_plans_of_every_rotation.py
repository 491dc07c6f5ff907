"""
The first law, of launch plans alone: for every rotation of up to five buffers, all reads and writes
of up to three updates, and boxes of the updates that are equal, nested, overlapping or disjoint,
all buffers end like after the unfused program, cell by cell, and buffers without writes are never
written. No kernel is compiled: a cell holds a number for the way its value was computed, and a
launch treats the numbers by the rules of kernels in `passes/tiling/device_tiling.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, permutations, product
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from support.sizes import is_nightly, spread
from timetile.passes.analysis.launches.launch_planning import LaunchPlan, PlannedLaunch, plan
from timetile.passes.analysis.launches.liveness import RoleAccess, live_roles
from timetile.passes.analysis.launches.rotation import Rotation

Cells = NDArray[np.uint64]

CELLS = 5
BOXES = ((1, 4), (1, 3), (2, 4), (1, 2), (3, 4))
"""The first cell and the cell after the last: no box holds the first and the last of all cells."""

CAPTURED = -1
"""In place of a role: a field without writes."""

UNSET = np.uint64(0)
"""An unset cell, and every result of an unset cell."""

DEPTHS = ((1,), (2, 1), (4, 2, 1), (3, 1))
PIECES = (4, 2, 1)
"""The depths of runs that another run follows."""

MOST_STEPS = 12


@dataclass(frozen=True)
class Update:
    """
    The written role of an update, the roles read at a cell and at the cell's two neighbours, and
    the box.
    """

    target: int
    source: int
    box: tuple[int, int]


Step = tuple[Update, ...]


def updates_of(count: int) -> list[Update]:
    """Every update over a number of buffers."""
    return [Update(*each) for each in product(range(count), range(CAPTURED, count), BOXES)]


def rotations_of(count: int) -> list[tuple[int, ...]]:
    """A rotation of a number of buffers for each partition into cycles."""

    def parts(rest: int, most: int) -> Iterator[tuple[int, ...]]:
        if rest == 0:
            yield ()
        for length in range(min(rest, most), 0, -1):
            yield from ((length, *others) for others in parts(rest - length, length))

    rotations: list[tuple[int, ...]] = []
    for lengths in parts(count, count):
        rotation: list[int] = []
        for length in lengths:
            first = len(rotation)
            rotation += [first + (k + 1) % length for k in range(length)]
        rotations.append(tuple(rotation))
    return rotations


def rotation_of(rotate: tuple[int, ...], step: Step, *, common: bool = False) -> Rotation:
    """The planner's input for a step."""
    hull = (min(u.box[0] for u in step), max(u.box[1] for u in step))
    accesses = [
        RoleAccess(() if u.source == CAPTURED else (u.source,), (u.target,), u.box == hull)
        for u in step
    ]
    written = tuple(any(u.target == role for u in step) for role in range(len(rotate)))
    return Rotation(rotate, live_roles(rotate, accesses), written, common)


@dataclass(frozen=True)
class Alike:
    """Steps with equal inputs of the planner."""

    rotation: Rotation
    steps: tuple[Step, ...]

    @cached_property
    def hull(self) -> NDArray[np.bool_]:
        """For each step, the cells of the box around all writes."""
        low = np.array([[min(u.box[0] for u in step)] for step in self.steps])
        high = np.array([[max(u.box[1] for u in step)] for step in self.steps])
        at = np.arange(CELLS)
        return (at >= low) & (at < high)

    @cached_property
    def updates(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]]:
        """The targets, sources and boxes of the updates with one number, by step."""
        found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]] = []
        at = np.arange(CELLS)
        for number in range(max(len(step) for step in self.steps)):
            # Shorter steps do the last update over no cells.
            chosen = [step[min(number, len(step) - 1)] for step in self.steps]
            boxes = [(u.box if number < len(s) else (0, 0)) for u, s in zip(chosen, self.steps)]
            low, high = (np.array([[box[k]] for box in boxes]) for k in (0, 1))
            targets = np.array([u.target for u in chosen])
            found.append((targets, np.array([u.source for u in chosen]), (at >= low) & (at < high)))
        return found

    @cached_property
    def first(self) -> Cells:
        """
        The buffers before the first step: a different number in every cell, but for common halos,
        shared by the buffers of a cycle.
        """
        count = len(self.rotation.rotate)
        cells = odd_numbers(count * CELLS).reshape(1, count, CELLS)
        cells = np.repeat(cells, len(self.steps), axis=0)
        if self.rotation.common_halos:
            for one, *others in self.rotation.cycles:
                for other in others:
                    cells[:, other] = np.where(self.hull, cells[:, other], cells[:, one])
        return cells

    def update(self, held: Cells, names: NDArray[np.int64]) -> None:
        """Do one step: `held[:, names[role]]` are the cells of a role."""
        each = np.arange(len(self.steps))
        for number, (targets, sources, box) in enumerate(self.updates):
            read = held[each, names[sources]]
            read[sources == CAPTURED] = odd_numbers(1)
            computed = combined(number, read)
            where = names[targets]
            held[each, where] = np.where(box, computed, held[each, where])


def odd_numbers(count: int) -> Cells:
    """Different numbers, never UNSET."""
    return np.random.default_rng(7).integers(1, 1 << 63, count, dtype=np.uint64) | np.uint64(1)


KINDS = odd_numbers(3 * CELLS + 1)[1:].reshape(3, CELLS)


def combined(number: int, read: Cells) -> Cells:
    """
    The result of an update in every cell, from the cell and its neighbours: UNSET if an input is
    UNSET.
    """
    result = np.zeros_like(read)
    low, own, high = read[:, :-2], read[:, 1:-1], read[:, 2:]
    made = low * (own * own * own) * (high * high) * high * (high * high) * KINDS[number, 1:-1]
    result[:, 1:-1] = made ^ ((made >> np.uint64(31)) << np.uint64(1))
    return result


def unfused(alike: Alike) -> list[Cells]:
    """The buffers of the unfused program after 0, 1, ... steps."""
    memory, names = alike.first.copy(), np.arange(len(alike.rotation.rotate))
    left = [memory.copy()]
    for _ in range(MOST_STEPS):
        alike.update(memory, names)
        names = names[list(alike.rotation.rotate)]
        left.append(memory.copy())
    return left


def launches_of(found: LaunchPlan) -> Iterator[PlannedLaunch]:
    """The launches in running order."""
    end = found.first + found.length
    repeated = found.launches[found.first : end] * found.repeats
    return chain(found.launches[: found.first], repeated, found.launches[end:])


def halo_of(rotation: Rotation, role: int, launch: PlannedLaunch, *, single_steps: bool) -> int:
    """The buffer from which a kernel takes the cells around a role's data."""
    alike = rotation.cycle_of(role) if rotation.common_halos else ()
    for other in (role, *alike):
        if rotation.has_home(other, single_steps=single_steps) and other in launch.sources:
            return launch.sources[other]
    return rotation.own(role, launch.time)


def run_plan(alike: Alike, found: LaunchPlan, *, single_steps: bool) -> Cells:
    """The program's buffers after the plan; AssertionError for a wrong launch."""
    rotation, hull = alike.rotation, alike.hull
    count = len(rotation.rotate)
    unset = np.full((len(alike.steps), len(found.scratch_like), CELLS), UNSET)
    memory = np.concatenate([alike.first, unset], axis=1)
    for source, target in found.copies:
        memory[:, target] = memory[:, source]
    for launch in launches_of(found):
        read, stored = set(launch.sources.values()), list(launch.targets.values())
        assert len(stored) == len(set(stored)), "a launch writes a buffer twice"
        assert not read & set(stored), "a launch writes what it reads"
        held = np.empty_like(alike.first)
        for role, live in enumerate(rotation.live):
            data = memory[:, launch.sources[role]] if live else UNSET
            halo = halo_of(rotation, role, launch, single_steps=single_steps)
            held[:, role] = np.where(hull, data, memory[:, halo])
        names = np.arange(count)
        for _ in range(launch.steps):
            alike.update(held, names)
            names = names[list(rotation.rotate)]
        for role, buffer in launch.targets.items():
            cells = held[:, names[role]]
            assert (cells[hull] != UNSET).all(), "a launch stores what was never set"
            memory[:, buffer] = np.where(hull, cells, memory[:, buffer])
    return memory[:, :count]


def written_buffers(rotation: Rotation, steps: int) -> set[int]:
    """The buffers written by the unfused program."""
    written = [role for role, is_written in enumerate(rotation.written) if is_written]
    return {rotation.own(role, time) for role in written for time in range(steps)}


def check(
    alike: Alike, depths: tuple[int, ...], steps: int, expected: Cells, *, goes_on: bool = False
) -> None:
    """
    The plan for some steps is right for all given programs. If another run follows, it finds live
    data and halos.
    """
    found = plan(alike.rotation, depths, steps, goes_on=goes_on)
    stored = {buffer for launch in found.launches for buffer in launch.targets.values()}
    own = {buffer for buffer in stored if buffer < len(alike.rotation.rotate)}
    assert own <= written_buffers(alike.rotation, steps), "a buffer that the program leaves alone"
    assert sum(launch.steps for launch in launches_of(found)) == steps
    left = run_plan(alike, found, single_steps=max(depths) == 1)
    if goes_on:
        for role in (role for role, live in enumerate(alike.rotation.live) if not live):
            buffer = alike.rotation.own(role, steps)
            left[:, buffer] = np.where(alike.hull, expected[:, buffer], left[:, buffer])
    wrong = np.argwhere((left != expected).any(axis=(1, 2)))
    assert not wrong.size, f"{alike.rotation}, {alike.steps[wrong[0, 0]]}: {found}"


def is_first_of_its_kind(rotation: Rotation) -> bool:
    """Of rotations equal but for the numbers of roles, the rotation with the first marks."""
    rotate = rotation.rotate
    roles = range(len(rotate))
    for moved in permutations(roles):
        if any(rotate[moved[k]] != moved[rotate[k]] for k in roles):
            continue
        live = tuple(rotation.live[moved[k]] for k in roles)
        written = tuple(rotation.written[moved[k]] for k in roles)
        if (live, written) < (rotation.live, rotation.written):
            return False
    return True


def steps_over(count: int, most: int) -> Iterator[Step]:
    """
    Every step of one update, of two and of three: all steps of a length if at most `most`,
    otherwise `most` random steps.
    """
    updates = updates_of(count)
    random = Random(count)
    for length in (1, 2, 3):
        if len(updates) ** length <= most:
            yield from product(updates, repeat=length)
        else:
            yield from (tuple(random.choices(updates, k=length)) for _ in range(most))


def kinds_of_steps(count: int, most: int, *, common: bool) -> list[Alike]:
    """The steps over a number of buffers, by the planner's input."""
    kinds: list[Alike] = []
    for rotate in rotations_of(count):
        groups: dict[Rotation, list[Step]] = {}
        for step in steps_over(count, most):
            groups.setdefault(rotation_of(rotate, step, common=common), []).append(step)
        for rotation, steps in groups.items():
            # Halos in common matter where buffers take turns.
            matters = bool(rotation.turns) or not common
            if matters and is_first_of_its_kind(rotation):
                kinds.append(Alike(rotation, tuple(steps)))
    return kinds


CASES = [
    # Of programs with up to two buffers all numbers of steps, of others some of each remainder.
    (1, 4000, range(MOST_STEPS + 1)),
    (2, 4000, range(MOST_STEPS + 1)),
    (3, 3600, (0, 1, 2, 3, 4, 6, 9, 12)),
    (4, 1000, (1, 2, 3, 5, 8)),
    (5, 1000, (1, 2, 6, 9)),
]
NIGHTLY = [
    # All programs of up to three buffers.
    *((count, 300_000, range(MOST_STEPS + 1)) for count in (1, 2, 3)),
    *((count, 40_000, range(MOST_STEPS + 1)) for count in (4, 5)),
]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("common", [False, True], ids=["apart", "common"])
@pytest.mark.parametrize(("count", "most", "steps"), NIGHTLY if is_nightly() else CASES)
def test_every_buffer_ends_as_the_unfused_program_leaves_it(
    count: int, most: int, steps: range | tuple[int, ...], common: bool
):
    kinds = kinds_of_steps(count, most, common=common)
    # Steps over more than three buffers have hundreds of kinds.
    for alike in kinds if count < 4 else spread(kinds):
        expected = unfused(alike)
        for depths in DEPTHS:
            for number in steps:
                check(alike, depths, number, expected[number])
                if depths == PIECES and count < 4:
                    check(alike, depths, number, expected[number], goes_on=True)
