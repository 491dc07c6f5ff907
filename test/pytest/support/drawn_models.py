"""
Steps in Python as data, for timetile and for NumPy. Steps are drawn in `drawn_steps.py`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

import timetile
from support.drawn_around import Cells, Symbols
from support.drawn_fields import Array, DrawnFields, Region, computing
from support.drawn_values import (
    NEXT,
    PREV,
    SCALARS,
    SERIES,
    Node,
    evaluated,
    field_of,
    operations_of,
    taps_of,
    without,
)
from timetile import Field, Model, Points, Scalar, Series
from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import Boundary
from timetile.passes.diagnostics import CompileError
from timetile.runtime.program.compiled_program import Executor

Arrays = dict[str, Array]

NO_CELLS = "gets no new value"
"""Part of the error for a statement without cells in arrays of a shape."""


@dataclass(frozen=True)
class How:
    """How a drawn program runs."""

    executor: Executor
    depth: int
    steps: int
    contract: Literal["off", "fast"] = "off"
    places: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options for several processes or GPUs."""


class Drawn(Protocol):
    """A drawn program with an evaluation of its own. The seed of arrays is the number of steps."""

    def text(self) -> str:
        """The program as text."""
        ...

    def found(self, how: How) -> Mapping[str, Array]:
        """The results by timetile."""
        ...

    def expected(self, how: How) -> Mapping[str, Array]:
        """The results by NumPy."""
        ...


@dataclass(frozen=True)
class Assignment:
    """`target.next[region] = value`; None for all cells."""

    target: str
    region: Region | None
    value: Node
    turns: int = 1
    """How often the assignment is repeated in a step."""

    def __str__(self) -> str:
        return f"{self.turns} times {self.target}.next[{self.region}] = {self.value}"


@dataclass(frozen=True)
class SweptAssignments:
    """Assignments made together at each place along an axis, place after place."""

    axis: int
    descending: bool
    assignments: tuple[Assignment, ...]

    def __str__(self) -> str:
        lines = "\n".join(f"  {made}" for made in self.assignments)
        return f"sweep along {self.axis}, {self.descending=}\n{lines}"


Statement = Assignment | SweptAssignments


@dataclass(frozen=True)
class Levels:
    """The arrays of a state, and of the state a step earlier."""

    now: Arrays
    before: Arrays


@dataclass(frozen=True)
class DrawnModel:
    """A step as data, of drawn fields."""

    fields: DrawnFields
    statements: tuple[Statement, ...]
    temporaries: dict[str, Node] = field(default_factory=dict[str, Node])
    """Values of a step that other cells read, by name; each may read those before."""
    has_series: bool = False

    @property
    def assignments(self) -> Iterator[Assignment]:
        """All assignments in order."""
        for made in self.statements:
            yield from made.assignments if isinstance(made, SweptAssignments) else (made,)

    def value(self, made: Assignment) -> Node:
        """The assigned value without temporaries."""
        value = made.value
        for name in reversed(self.temporaries):
            value = without({name: self.temporaries[name]}, value)
        return value

    @property
    def reads(self) -> list[str]:
        """All reads by name."""
        return [name for made in self.assignments for name, _ in taps_of(self.value(made))]

    @property
    def operations(self) -> int:
        """The number of operations of a step's cells, with temporaries at each read."""
        return sum(operations_of(self.value(made)) for made in self.assignments)

    @property
    def most_parts(self) -> int:
        """
        The most parts of an assignment's box with cells beyond edges of their own: a part for each
        distance from an edge that continues a field, along each axis.
        """
        return max(self.parts(made) for made in self.assignments)

    def parts(self, made: Assignment) -> int:
        """The parts of the box of an assignment."""
        taps = [tap for tap in taps_of(self.value(made)) if field_of(tap[0]) in self.fields.sides]
        found = 1
        for axis in range(len(self.fields.shape)):
            low = high = 0
            for name, offset in taps:
                below, above = self.fields.sides[field_of(name)][axis]
                low = max(low, -(offset[axis] or 0) * (below is not Kind.KEEP))
                high = max(high, (offset[axis] or 0) * (above is not Kind.KEEP))
            found *= 1 + low + high
        return found

    @property
    def written(self) -> list[str]:
        """The assigned fields, in order."""
        return list(dict.fromkeys(made.target for made in self.assignments))

    @property
    def used(self) -> list[str]:
        """The fields of the step, in order."""
        names = {*self.written, *map(field_of, self.reads)}
        return [name for name in self.fields.types if name in names]

    def numbers(self, steps: int) -> dict[str, Any]:
        """The numbers of a run: each is a number of float32."""
        if not self.has_series:
            return dict(SCALARS)
        rng = np.random.default_rng(steps)
        return {**SCALARS, SERIES: rng.integers(-16, 17, max(steps, 1)) / 8}

    def arrays(self, seed: int) -> Arrays:
        """Random arrays."""
        return self.fields.arrays(self.used, seed)

    def model(
        self, points: Sequence[str] = (), after: Callable[[dict[str, Any]], None] | None = None
    ) -> Model:
        """The step, for timetile, with arguments `points`, and with what comes `after`."""

        def assign(made: Assignment, given: dict[str, Any]) -> None:
            value = evaluated(made.value, Symbols(given))
            if made.region is None:
                given[made.target].next = value
            else:
                given[made.target].next[made.region] = value

        def step(**given: Any) -> None:
            for name, value in self.temporaries.items():
                given[name] = timetile.temporary(evaluated(value, Symbols(given)))
            for made in self.statements:
                if isinstance(made, SweptAssignments):
                    with timetile.sweep(made.axis, descending=made.descending):
                        for each in made.assignments:
                            assign(each, given)
                elif made.turns == 1:
                    assign(made, given)
                else:
                    for _ in timetile.repeat(made.turns):
                        assign(made, given)
            if after is not None:
                after(given)

        series = [SERIES] if self.has_series else []
        boundary = self.fields.boundary(self.used)
        return model_with(step, self.used, list(SCALARS), boundary, series, points)

    def text(self) -> str:
        """The step as text."""
        lines = [f"{name} = {value}" for name, value in self.temporaries.items()]
        lines += map(str, self.statements)
        return "\n".join([self.fields.text(), *lines])

    def found(self, how: How) -> Arrays:
        """The arrays after some steps, by timetile."""
        with cells_get_values():
            return dict(
                on(self.model(), how).advance(
                    self.arrays(how.steps), how.steps, **self.numbers(how.steps)
                )
            )

    def expected(self, how: How) -> Arrays:
        """The arrays after some steps, by NumPy."""
        return self.after(self.arrays(how.steps), how.steps, self.numbers(how.steps))

    def with_needed_temporaries(self) -> DrawnModel:
        """The step without temporaries that nothing reads."""
        needed, left = dict[str, Node](), [made.value for made in self.assignments]
        for name in reversed(self.temporaries):
            if any(read == name for value in left for read, _ in taps_of(value)):
                needed = {name: self.temporaries[name], **needed}
                left.append(self.temporaries[name])
        return replace(self, temporaries=needed)

    def begun(self, arrays: Arrays) -> Levels:
        """The state before the first step."""
        names = sorted({name for name in self.reads if name.endswith(PREV)})
        return Levels(dict(arrays), {name: arrays[field_of(name)] for name in names})

    def stepped(self, levels: Levels, numbers: Mapping[str, Any], step: int) -> Levels:
        """The state after one more step, by NumPy."""
        now, before = levels.now, levels.before
        new = {name: array.copy() for name, array in now.items()}
        for made in self.statements:
            turns = 1 if isinstance(made, SweptAssignments) else made.turns
            each_of = made.assignments if isinstance(made, SweptAssignments) else (made,)
            values = [(each.target, self.value(each)) for each in each_of]
            for box in self.boxes(made) * turns:
                for target, value in values:
                    known = now | before | {name + NEXT: array for name, array in new.items()}
                    around = Cells(self.fields, self.used, known, box, dict(numbers), step)
                    # A number of 16 bits is rounded to float32 first.
                    wide = np.dtype(computing(self.fields.types[target]))
                    with np.errstate(all="ignore"):
                        new[target][box] = np.asarray(evaluated(value, around)).astype(wide)
        return Levels(new, {name: now[field_of(name)] for name in before})

    def after(self, arrays: Arrays, steps: int, numbers: Mapping[str, Any]) -> Arrays:
        """The arrays after some steps, by NumPy."""
        levels = self.begun(arrays)
        for step in range(steps):
            levels = self.stepped(levels, numbers, step)
        return levels.now | levels.before

    def boxes(self, made: Statement) -> list[Region]:
        """The boxes of cells of a statement, one computed after the other."""
        if isinstance(made, Assignment):
            return [self.box(made)]
        boxes = [self.box(each) for each in made.assignments]
        whole = [
            slice(max(low.start for low in along), min(high.stop for high in along))
            for along in zip(*boxes, strict=True)
        ]
        if any(each.start >= each.stop for each in whole):
            return []
        places = list(range(whole[made.axis].start, whole[made.axis].stop))
        return [
            tuple(slice(k, k + 1) if axis == made.axis else each for axis, each in enumerate(whole))
            for k in (reversed(places) if made.descending else places)
        ]

    def box(self, made: Assignment) -> Region:
        """The cells with a new value: all their reads lie in arrays, or in a boundary."""
        found: list[slice] = []
        for axis, size in enumerate(self.fields.shape):
            region = slice(None) if made.region is None else made.region[axis]
            low, high, _ = region.indices(size)
            for name, offset in taps_of(self.value(made)):
                keeps = ((Kind.KEEP, Kind.KEEP),) * len(self.fields.shape)
                below, above = self.fields.sides.get(field_of(name), keeps)[axis]
                distance = offset[axis]
                if distance is not None and below is Kind.KEEP:
                    low = max(low, -distance)
                if distance is not None and above is Kind.KEEP:
                    high = min(high, size - distance)
            found.append(slice(low, max(low, high)))
        return tuple(found)


@contextmanager
def cells_get_values() -> Generator[None]:
    """A step without cells in arrays of a shape is a refusal."""
    try:
        yield
    except ValueError as error:
        if NO_CELLS not in str(error):
            raise
        raise CompileError(re.sub(r"^.* gets", "a statement gets", str(error))) from error


def on(model: Model, how: How) -> Model:
    """The model as it runs."""
    return model.on(
        executor=how.executor, depth=how.depth, fp_contract=how.contract, cache=False, **how.places
    )


def signature_of(
    fields: Sequence[str],
    scalars: Sequence[str] = (),
    series: Sequence[str] = (),
    points: Sequence[str] = (),
) -> inspect.Signature:
    """The signature of a function of fields, scalars, series and points by name."""
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, plain, annotation=Field) for name in fields]
    parameters += [inspect.Parameter(name, plain, annotation=Scalar) for name in scalars]
    parameters += [inspect.Parameter(name, plain, annotation=Series) for name in series]
    parameters += [inspect.Parameter(name, plain, annotation=Points) for name in points]
    return inspect.Signature(parameters)


def model_with(
    step: Callable[..., None],
    fields: Sequence[str],
    scalars: Sequence[str] = (),
    boundary: Boundary = "keep",
    series: Sequence[str] = (),
    points: Sequence[str] = (),
) -> Model:
    """A model of a function that takes any fields, scalars, series and points by name."""
    step.__dict__["__signature__"] = signature_of(fields, scalars, series, points)
    return timetile.stencil(boundary=boundary)(step)
