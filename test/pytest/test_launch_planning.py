"""
Plans of launches, run symbolically: a buffer holds the name of the last stored version, and has a
halo without writes. Every launch reads the versions read by the unfused program, with the right
halo if kernels need the halo, and writes no source; in the end every buffer of the program holds
the version left by the unfused program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timetile.passes.analysis.launches.launch_planning import LaunchPlan, PlannedLaunch, plan
from timetile.passes.analysis.launches.rotation import Rotation
from timetile.passes.loops.temporal_fusion import complete_depths
from timetile.runtime.host.pieces import WHOLE_TURNS

Version = int


class Versions:
    """Numbers versions: two versions are equal if one update computed both from equal versions."""

    def __init__(self):
        self.numbers: dict[tuple[str, int, tuple[Version, ...]], Version] = {}

    def number(self, what: str, time: int = 0, inputs: tuple[Version, ...] = ()) -> Version:
        return self.numbers.setdefault((what, time, inputs), len(self.numbers))


@dataclass(frozen=True)
class Step:
    """
    A step of a time loop by roles: read roles, written roles, and the rotation after the step.
    """

    rotate: tuple[int, ...]
    read: frozenset[int]
    written: frozenset[int]

    @property
    def roles(self) -> range:
        return range(len(self.rotate))

    @property
    def rotation(self) -> Rotation:
        """The planner's input: a role is live if the step or a later step reads the role's data."""
        successor = {source: role for role, source in enumerate(self.rotate)}
        live = set(self.read)
        while True:
            new = live | {k for k in self.roles if k not in self.written and successor[k] in live}
            if new == live:
                break
            live = new
        return Rotation(
            self.rotate,
            tuple(k in live for k in self.roles),
            tuple(k in self.written for k in self.roles),
        )

    def compute(
        self, held: dict[int, Version], time: int, versions: Versions
    ) -> dict[int, Version]:
        """The versions written by a step, by role; KeyError for a read of an empty role."""
        inputs = tuple(held[k] for k in sorted(self.read))
        return {k: versions.number(f"role {k}", time, inputs) for k in self.written}

    def rotated(self, held: dict[int, Version]) -> dict[int, Version]:
        """The versions by role after the rotation."""
        return {k: held[source] for k, source in enumerate(self.rotate) if source in held}


def unfused(step: Step, steps: int, versions: Versions) -> list[Version]:
    """The versions in the program's buffers at the end, without any launches."""
    buffers = [versions.number(f"buffer {k}") for k in step.roles]
    names = dict(enumerate(step.roles))
    for time in range(steps):
        held = {role: buffers[names[role]] for role in step.roles}
        for role, version in step.compute(held, time, versions).items():
            buffers[names[role]] = version
        names = step.rotated(names)
    return buffers


def written_buffers(step: Step, steps: int) -> set[int]:
    """The buffers written by the unfused program."""
    names, buffers = dict(enumerate(step.roles)), set[int]()
    for _ in range(steps):
        buffers |= {names[role] for role in step.written}
        names = step.rotated(names)
    return buffers


def launches_of(found: LaunchPlan) -> Iterator[PlannedLaunch]:
    """The launches in running order."""
    end = found.first + found.length
    repeated = found.launches[found.first : end] * found.repeats
    return chain(found.launches[: found.first], repeated, found.launches[end:])


def run_plan(
    step: Step,
    found: LaunchPlan,
    depths: tuple[int, ...],
    steps: int,
    versions: Versions,
    *,
    common: bool = False,
) -> list[Version]:
    """
    The versions in the program's buffers after the plan; AssertionError for a wrong launch. With
    `common` halos, any buffer of a cycle has the right halo.
    """
    rotation = replace(step.rotation, common_halos=common)
    memory = [versions.number(f"buffer {k}") for k in step.roles]
    memory += [versions.number("unset") for _ in found.scratch_like]
    halos: list[int | None] = [*step.roles, *(None for _ in found.scratch_like)]
    for source, target in found.copies:
        memory[target], halos[target] = memory[source], halos[source]
    at_home = [k for k in step.roles if rotation.has_home(k, single_steps=max(depths) == 1)]
    time = 0
    for launch in launches_of(found):
        # Kernels take halos from the buffers named by the unfused program at the launch's first
        # step.
        for role in step.roles:
            assert rotation.own(role, time) == rotation.own(role, launch.time)
        for role in at_home:
            if rotation.live[role]:
                right = rotation.cycle_of(role) if common else (rotation.own(role, time),)
                assert halos[launch.sources[role]] in right, "another halo"
        reading = {launch.sources[k] for k in step.roles if rotation.live[k]}
        writing = list(launch.targets.values())
        assert len(writing) == len(set(writing)), "a launch writes a buffer twice"
        assert not reading & set(writing), "a launch writes what it reads"
        held = {k: memory[launch.sources[k]] for k in step.roles if rotation.live[k]}
        for _ in range(launch.steps):
            held = step.rotated(held | step.compute(held, time, versions))
            time += 1
        for role, buffer in launch.targets.items():
            memory[buffer] = held[role]
    assert time == steps
    return memory[: len(step.rotate)]


def check(step: Step, deepest: tuple[int, ...], steps: int, *, common: bool = False) -> LaunchPlan:
    """The plan for given depths, with the depths added by `temporal-fusion`, is right."""
    rotation = replace(step.rotation, common_halos=common)
    depths = complete_depths(deepest, rotation.home_cycles)
    found = plan(rotation, depths, steps)
    allowed = {(d, False) for d in depths} | {(1, True)}
    assert {(launch.steps, launch.final) for launch in found.launches} <= allowed
    versions = Versions()
    left = run_plan(step, found, depths, steps, versions, common=common)
    assert left == unfused(step, steps, versions)
    stored = {buffer for launch in found.launches for buffer in launch.targets.values()}
    assert {b for b in stored if b in step.roles} <= written_buffers(step, steps)
    return found


def subsets(roles: range) -> Iterator[frozenset[int]]:
    return (frozenset(c) for n in range(len(roles) + 1) for c in combinations(roles, n))


def all_steps(count: int) -> list[Step]:
    """Every step of a time loop with `count` buffers and at least one read and one write."""
    roles = range(count)
    return [
        Step(rotate, read, written)
        for rotate in permutations(roles)
        for read in subsets(roles)
        for written in subsets(roles)
        if read and written
    ]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("depths", [(1,), (2,), (3,), (4,)], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_plans_of_every_step_of_up_to_three_buffers_are_right(count: int, depths: tuple[int, ...]):
    for step in all_steps(count):
        for steps in range(12):
            check(step, depths, steps)


@pytest.mark.parametrize("depths", [(2,), (3,)], ids=str)
@pytest.mark.parametrize("count", [2, 3])
def test_plans_of_every_step_are_right_where_halos_are_common(count: int, depths: tuple[int, ...]):
    for step in all_steps(count):
        for steps in (3, 4, 8, 11):
            check(step, depths, steps, common=True)


@st.composite
def any_step(draw: st.DrawFn) -> Step:
    """A step of up to nine buffers."""
    count = draw(st.integers(1, 9))
    rotate = tuple(draw(st.permutations(range(count))))
    written = frozenset(draw(st.sets(st.integers(0, count - 1), min_size=1)))
    read = frozenset(draw(st.sets(st.integers(0, count - 1))))
    return Step(rotate, read, written)


@given(
    step=any_step(),
    depths=st.sets(st.integers(1, 13), min_size=1, max_size=2),
    steps=st.integers(0, 150),
    common=st.booleans(),
)
def test_plans_of_drawn_steps_of_many_buffers_are_right(
    step: Step, depths: set[int], steps: int, common: bool
):
    check(step, tuple(depths), steps, common=common)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 7, 12])
def test_a_plan_uses_its_deepest_kernel(depth: int):
    """
    A long run is a loop of the deepest launches, in the program's two buffers; or in the first
    buffer and a copy, if an odd number of launches takes an even number of steps.
    """
    found = check(HEAT, (depth,), 1000)
    assert found.scratch_like == (() if depth % 2 else (0,))
    assert found.copies == (() if depth % 2 else ((0, 2),))
    assert len(found.launches) < 30
    advanced = sum(launch.steps for launch in launches_of(found) if launch.steps == depth)
    assert advanced >= 1000 - 3 * depth


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_with_halos_in_common_two_buffers_are_enough(depth: int):
    found = check(HEAT, (depth,), 1000, common=True)
    assert not found.scratch_like and not found.copies


@pytest.mark.parametrize(
    ("step", "turns"),
    [
        (Step((1, 0), frozenset({0}), frozenset({1})), ((0, 1),)),
        (Step((1, 2, 0), frozenset({0}), frozenset({1})), ((0, 1, 2),)),
        (Step((1, 2, 0), frozenset({0, 2}), frozenset({1})), ((0, 1, 2),)),
        # A buffer updated in place, and coefficients that only rotate.
        (Step((0,), frozenset({0}), frozenset({0})), ()),
        (Step((1, 2, 0), frozenset({0}), frozenset()), ()),
    ],
    ids=["pair", "three", "wave", "in-place", "coefficients"],
)
def test_a_rotation_names_the_buffers_that_take_turns(
    step: Step, turns: tuple[tuple[int, ...], ...]
):
    assert step.rotation.turns == turns


def test_no_steps_need_no_launch():
    assert plan(WAVE.rotation, (4, 2), 0) == LaunchPlan((), (), ())


def test_a_wave_of_three_buffers_needs_one_more():
    """A launch reads two versions and writes two: with three buffers, a fourth is scratch."""
    found = check(WAVE, (4,), 20)
    assert len(found.scratch_like) == 1 and not found.copies


@pytest.mark.parametrize("turn", WHOLE_TURNS)
def test_pieces_of_whole_turns_have_equal_launches(turn: int):
    for rotation, depth in product((HEAT.rotation, WAVE.rotation), (2, 3, 4, 6, 8)):
        for common in (False, True):
            alike = replace(rotation, common_halos=common)
            found = plan(alike, complete_depths([depth]), turn, goes_on=True)
            assert {launch.steps for launch in found.launches} == {depth}


def test_a_cycle_without_live_data_is_stored_before_another_run():
    found = plan(Rotation((0,), (False,), (True,)), (2, 1), 2, goes_on=True)
    assert all(launch.targets for launch in found.launches)


def test_an_update_in_place_needs_a_second_buffer():
    """A buffer read and written by a step, without rotation: the last version ends at home."""
    sums = Step((0,), frozenset({0}), frozenset({0}))
    for steps in range(1, 9):
        found = check(sums, (2,), steps)
        assert len(found.scratch_like) == 1


HEAT = Step((1, 0), frozenset({0}), frozenset({1}))
WAVE = Step((1, 2, 0), frozenset({0, 2}), frozenset({1}))


def beside(first: Step, second: Step) -> Step:
    """Both steps in one program."""
    moved = len(first.rotate)
    return Step(
        (*first.rotate, *(moved + k for k in second.rotate)),
        first.read | {moved + k for k in second.read},
        first.written | {moved + k for k in second.written},
    )


def test_a_cycle_takes_no_scratch_that_another_needs():
    """
    A wave needs one buffer more; a pair beside the wave, with data at home, is not copied for the
    wave.
    """
    step, depths = beside(HEAT, WAVE), (5, 3)
    found = plan(step.rotation, depths, 1000)
    versions = Versions()
    left = run_plan(step, found, depths, 1000, versions)
    assert left == unfused(step, 1000, versions)
    (like,) = found.scratch_like
    assert like in (2, 3, 4) and not found.copies


COEFFICIENTS = Step((1, 2, 0), frozenset({0}), frozenset())


@pytest.mark.parametrize(
    ("step", "cycles"),
    [
        (HEAT, (2,)),
        (beside(HEAT, HEAT), (2, 2)),
        # Buffers that only rotate lie in the program's places.
        (beside(HEAT, COEFFICIENTS), (2,)),
        # Two live versions, and a buffer updated in place.
        (WAVE, ()),
        (beside(HEAT, WAVE), ()),
        (Step((0,), frozenset({0}), frozenset({0})), ()),
    ],
    ids=["pair", "pairs", "pair-and-coefficients", "wave", "pair-and-wave", "in-place"],
)
def test_a_rotation_names_the_cycles_whose_data_is_at_home(step: Step, cycles: tuple[int, ...]):
    assert step.rotation.home_cycles == cycles


@pytest.mark.parametrize(
    ("deepest", "cycles", "depths"),
    [
        (11, (), (11, 8, 4, 2, 1)),
        (11, (2,), (11, 9, 5, 3, 1)),
        (12, (2,), (12, 8, 4, 2, 1)),
        (7, (3,), (7, 4, 2, 1)),
        (7, (2, 3), (7, 5, 1)),
        (1, (2,), (1,)),
    ],
)
def test_the_depths_of_kernels_leave_data_at_home(
    deepest: int, cycles: tuple[int, ...], depths: tuple[int, ...]
):
    assert complete_depths([deepest], cycles) == depths
