"""Random steps end like single cells: Python runs equal statements, cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import timetile
from timetile import Field, Model, coordinate, where
from timetile.runtime.program.compiled_program import Executor

NAMES = ("u", "v", "w")
STEPS = 5
SIZES = {1: (17,), 2: (9, 11)}

Read = tuple[str, str, tuple[int, ...], float]
"""A field, a time level, an offset and a factor."""


@dataclass(frozen=True)
class Statement:
    """
    `target.next[region] = sum of reads`, other reads where a coordinate is less than a number.
    """

    target: str
    region: tuple[slice, ...] | None
    reads: tuple[Read, ...]
    other: tuple[Read, ...]
    below: int

    def value(self, fields: dict[str, Any], place: Any, choose: Callable[..., Any]) -> Any:
        """The new value, of symbols or of numbers."""

        def total(reads: tuple[Read, ...]) -> Any:
            found: Any = 0.0
            for name, level, offset, factor in reads:
                field = fields[name] if level == "now" else getattr(fields[name], level)
                found = found + factor * field[offset]
            return found

        first = total(self.reads)
        return choose(place < self.below, first, total(self.other)) if self.other else first


def read_of(source: tuple[str, str], offset: tuple[int, ...], factor: float) -> Read:
    """A read of a field at one of the field's time levels."""
    name, level = source
    return name, level, offset, factor


@st.composite
def steps(draw: st.DrawFn, rank: int) -> list[Statement]:
    """
    Statements that make a step: a field's new values are read after all assignments to the field.
    """
    targets = draw(st.lists(st.sampled_from(NAMES[:2]), min_size=1, max_size=2, unique=True))
    made: list[Statement] = []
    slices = st.builds(slice, st.integers(-4, 3), st.one_of(st.none(), st.integers(5, 8)))
    for done, target in enumerate(targets):
        regions = draw(st.lists(st.tuples(*[slices] * rank), max_size=2))
        parts: list[tuple[slice, ...] | None] = [None, *regions]
        if regions and draw(st.booleans()):
            parts = parts[1:]
        known = [(name, "now") for name in NAMES] + [(name, "next") for name in targets[:done]]
        known += [(name, "prev") for name in targets]
        offsets = st.tuples(*[st.integers(-1, 1)] * rank)
        factors = st.sampled_from((0.25, -0.5, 0.3))
        read = st.builds(read_of, st.sampled_from(known), offsets, factors)
        for region in parts:
            reads = tuple(draw(st.lists(read, min_size=1, max_size=4)))
            other = tuple(draw(st.lists(read, max_size=2)))
            made.append(Statement(target, region, reads, other, draw(st.integers(0, 9))))
    return made


def model_of(statements: list[Statement]) -> Model:
    """The statements as a step; all fields are used."""

    def step(u: Field, v: Field, w: Field):
        fields = {"u": u, "v": v, "w": w}
        unused = 0.0
        for name in NAMES:
            unused = unused + 0.0 * fields[name][(0,) * len(statements[0].reads[0][2])]
        for made in statements:
            value = made.value(fields, coordinate(0), where) + unused
            if made.region is None:
                fields[made.target].next = value
            else:
                fields[made.target].next[made.region] = value

    return timetile.stencil(step)


def of_two(chosen: bool, first: float, second: float) -> float:
    """`timetile.where` of numbers."""
    return first if chosen else second


class Outside(Exception):
    """A read outside the array."""


class Near:
    """An array as seen by one cell."""

    def __init__(self, cell: tuple[int, ...], arrays: dict[str, Any]):
        self.cell, self.arrays = cell, arrays

    def __getitem__(self, offset: tuple[int, ...]) -> float:
        return self.read("now", offset)

    def read(self, level: str, offset: tuple[int, ...]) -> float:
        array, place = self.arrays[level], tuple(map(sum, zip(self.cell, offset)))
        if any(not 0 <= k < size for k, size in zip(place, array.shape)):
            raise Outside
        return float(array[place])

    def __getattr__(self, level: str) -> Any:
        near = Near(self.cell, self.arrays)
        near.__dict__["arrays"] = {"now": self.arrays[level]}
        return near


def stepped(statements: list[Statement], levels: dict[str, dict[str, Any]]) -> None:
    """One step, cell by cell, in place."""
    for name in NAMES:
        levels[name]["next"] = levels[name]["now"].copy()
    for made in statements:
        shape, target = levels["u"]["now"].shape, levels[made.target]["next"]
        region = made.region or (slice(None),) * len(shape)
        found: dict[tuple[int, ...], float] = {}
        for cell in product(*(range(*k.indices(size)) for k, size in zip(region, shape))):
            near = {name: Near(cell, levels[name]) for name in NAMES}
            try:
                unused = sum(0.0 * near[name][(0,) * len(shape)] for name in NAMES)
                value = made.value(near, cell[0], of_two)
            except Outside:
                continue
            found[cell] = value + unused
        for cell, value in found.items():
            target[cell] = value
    for name in {made.target for made in statements}:
        levels[name]["prev"], levels[name]["now"] = levels[name]["now"], levels[name]["next"]


def check(statements: list[Statement], executor: Executor, depth: int | None) -> None:
    """A run ends like single cells; a step without cells is a ValueError."""
    shape = SIZES[len(statements[0].reads[0][2])]
    random = np.random.default_rng(4)
    state = {name: random.random(shape) for name in NAMES}
    levels = {name: {"now": a.copy(), "prev": a.copy()} for name, a in state.items()}
    model = model_of(statements).on(executor=executor, depth=depth, fp_contract="off", cache=False)
    try:
        found = model.advance(state, steps=STEPS)
    except ValueError as error:
        assert "gets no new value" in str(error)
        return
    for _ in range(STEPS):
        stepped(statements, levels)
    for name in NAMES:
        assert np.array_equal(found[name], levels[name]["now"]), name


@given(steps(1))
def test_drawn_steps_of_one_axis_equal_single_cells(statements: list[Statement]):
    check(statements, "cpu", None)


@given(steps(2))
def test_drawn_steps_of_two_axes_are_what_each_cell_computes(statements: list[Statement]):
    check(statements, "cpu", None)


@given(steps(2))
def test_drawn_steps_of_two_axes_may_run_in_kernels(statements: list[Statement]):
    check(statements, "planes", 2)


@given(steps(1))
def test_drawn_steps_of_one_axis_may_run_in_kernels(statements: list[Statement]):
    check(statements, "planes", 3)
