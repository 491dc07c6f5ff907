"""A run of a step on the arrays of a state, in one piece or in several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from timetile.dialects.cell_types import CELL_TYPES
from timetile.dialects.temporal import PointKind
from timetile.frontend.arrays import (
    as_given,
    copy_of,
    in_memory,
    in_memory_of,
    is_immutable,
    readable,
    seen_by_program,
)
from timetile.frontend.boxes import box_of
from timetile.frontend.field_types import FieldTypes, computing_type
from timetile.frontend.functions import STEP
from timetile.frontend.module import buffers_of
from timetile.frontend.operations import Time
from timetile.frontend.point_runs import PointTables, Rooms, check_points, rooms_of, tables_of
from timetile.frontend.state_checks import (
    check_mapping,
    check_names,
    check_no_series,
    shape_and_types,
)
from timetile.frontend.statements import Buffer
from timetile.frontend.steps import Step
from timetile.runtime.host.arrays import checked_scalar
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.pieces import checked_steps

A = TypeVar("A")


class State(dict[str, A]):
    """
    The arrays of a state by name, after a run: a dict. `steps` are the steps done, and `stopped`
    tells whether `until` ended the run. `samples` are the sums that points have read, by name: an
    array of shape (steps, points).
    """

    def __init__(
        self,
        arrays: Mapping[str, A],
        steps: int,
        *,
        stopped: bool,
        samples: Mapping[str, np.ndarray[Any, Any]] | None = None,
    ):
        super().__init__(arrays)
        self.steps, self.stopped = steps, stopped
        self.samples = dict(samples or {})


def checked_series(
    given: Mapping[str, object], dtype: str, first: int, steps: int
) -> dict[str, np.ndarray[Any, Any]]:
    """
    The numbers of series for some steps. Raises TypeError for no array of numbers, ValueError for
    several axes, or too few numbers.
    """
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, series in given.items():
        numbers = np.asarray(series)
        if numbers.dtype.kind not in "fiu":
            raise TypeError(f"{name} has a number for each step, got {series!r}; pass an array")
        if numbers.ndim != 1 or len(numbers) < first + steps:
            raise ValueError(
                f"{name} has a number for each step, {first + steps} for this run, and its shape "
                f"is {numbers.shape}; pass a longer array of one axis"
            )
        found[name] = np.ascontiguousarray(numbers[first : first + steps], dtype)
    return found


class StateRun:
    """
    A run of a step: the arrays given to the program by buffer, and the steps done. `series` have a
    number for each step of the run, and the first step is number `first`.
    """

    def __init__(
        self,
        step: Step,
        program: CompiledProgram,
        state: Mapping[str, Any],
        shape: tuple[int, ...],
        scalars: Mapping[str, Any],
        series: Mapping[str, np.ndarray[Any, Any]],
        first: int,
        stream: Any,
        points: Sequence[PointTables] = (),
    ):
        self.step, self.program, self.shape = step, program, shape
        self.scalars, self.series = scalars, series
        self.first, self.stream, self.done = first, stream, 0
        self.arrays = arrays_of(step, state, shape)
        self.points = points
        one = self.arrays[step.written[0], Time.NOW]
        self.lists = {
            made.use.name: (in_memory_of(one, made.places), in_memory_of(one, made.weights))
            for made in points
        }
        self.reported = tuple(step.fields)
        """The fields of the state after the run."""

    points: Sequence[PointTables] = ()
    """The lists and tables of the step's points."""

    @property
    def assigned(self) -> tuple[str, ...]:
        """The fields with new values, by the names of the state."""
        return self.step.written

    @property
    def of_parts(self) -> StateRun:
        """The run on real arrays."""
        return self

    def go(self, steps: int) -> None:
        """Advance by some steps, with points by no more steps at a time than their tables have."""
        most = min((made.room.rows for made in self.points), default=max(steps, 1))
        for done in range(0, max(steps, 1), most):
            self.go_on(min(most, steps - done))

    def samples(self) -> dict[str, np.ndarray[Any, Any]]:
        """What the points of the step have read so far, of shape (steps, points), by name."""
        read = [made for made in self.points if made.use.kind is PointKind.SAMPLE]
        return {made.use.name: made.sampled() for made in read}

    def tables(self, steps: int) -> list[Any]:
        """The tables of all points, for some steps."""
        one, found = self.arrays[self.step.written[0], Time.NOW], list[Any]()
        for made in self.points:
            made.begin(self.done, steps)
            found.append(seen_by_program(in_memory_of(one, made.table)))
        return found

    def go_on(self, steps: int) -> None:
        """Advance by some steps, by one call of the program."""
        values = [seen_by_program(array) for array in self.arrays.values()]
        owners = dict(zip(map(id, values), self.arrays.values()))
        begin, end = self.done, self.done + steps
        numbers = [self.scalars[name] for name in self.step.scalars]
        numbers += [
            np.arange(self.first + begin, self.first + end)
            if name == STEP
            else self.series[name][begin:end]
            for name in self.step.series
        ]
        tables = self.tables(steps)
        if self.points:
            numbers.append(np.arange(steps))
        for made, table in zip(self.points, tables):
            numbers += [*map(seen_by_program, self.lists[made.use.name]), table]
        result = self.program(*values, *numbers, steps, stream=self.stream)
        for made, table in zip(self.points, tables):
            if made.use.kind is PointKind.SAMPLE:
                made.end(in_memory(table), steps)
        ended = (owners[id(value)] for value in result.buffers[: len(values)])
        self.arrays, self.done = dict(zip(self.arrays, ended)), end

    def state(self, given: Mapping[str, A]) -> dict[str, A]:
        """The state after the steps done, with the arrays of `given` for fields only read."""
        found: dict[str, A] = {}
        for name in self.reported:
            written = name in self.step.written
            found[name] = self.array_of(name, Time.NOW, given[name]) if written else given[name]
            if name in self.step.second:
                found[f"{name}.prev"] = self.array_of(name, Time.PREV, given[name])
        return found

    def array_of(self, name: str, time: Time, given: A) -> A:
        """A field's array at a time level, in the library of the array `given`."""
        return as_given(self.arrays[name, time], given)

    def spare(self) -> list[Any]:
        """Arrays of no state, perhaps written by kernels that still run."""
        return [self.arrays[name, Time.NEXT] for name in self.step.written]

    def before(self, name: str, time: Time) -> Any:
        """The array of a field at a time level of the latest step."""
        if name not in self.step.written:
            return self.arrays[name, Time.NOW]
        second = name in self.step.second
        older = {Time.NOW: Time.PREV if second else Time.NEXT, Time.PREV: Time.NEXT}
        return self.arrays[name, older.get(time, Time.NOW)]


class ProgramMaker(Protocol):
    """Makes a step's program for shape, types, and the sizes of lists of points."""

    def __call__(
        self, shape: tuple[int, ...], types: FieldTypes, rooms: Rooms = (), /
    ) -> CompiledProgram: ...


@dataclass(frozen=True)
class RunArguments(Generic[A]):
    """The arguments of a run."""

    state: Mapping[str, A]
    steps: object
    """The most steps."""
    stream: Any
    scalars: Mapping[str, Any]
    first: int
    """The number of the first step."""


def begun(step: Step, program: ProgramMaker, given: RunArguments[Any]) -> StateRun:
    """
    A run at its beginning. Raises TypeError or ValueError for a wrong state, or wrong scalars.
    """
    state, scalars, first = given.state, given.scalars, given.first
    check_mapping(step, state)
    check_names(step, state, scalars)
    shape, types = shape_and_types(step, state)
    kind = computing_type(types.values())
    check_no_series(step, scalars)
    numbers = {name: checked_scalar(name, scalars[name], kind) for name in step.scalars}
    own = {name: scalars[name] for name in step.series if name != STEP}
    series = checked_series(own, CELL_TYPES[kind].dtype, first, checked_steps(given.steps))
    count = checked_steps(given.steps)
    check_points(step, scalars, first, count)
    rooms = rooms_of(step, scalars, count)
    tables = tables_of(step, scalars, rooms, shape, types, first)
    made = program(shape, types, rooms) if rooms else program(shape, types)
    return StateRun(step, made, state, shape, numbers, series, first, given.stream, tables)


def arrays_of(step: Step, state: Mapping[str, Any], shape: tuple[int, ...]) -> dict[Buffer, Any]:
    """The arrays given to the program of a step, with copies of written arrays."""
    arrays: dict[Buffer, Any] = {}
    for name, level in buffers_of(step):
        if name not in step.written:
            arrays[name, level] = readable(state[name], list(arrays.values()))
            continue
        arrays[name, level] = copy_of(state[name])
        earlier = state.get(f"{name}.prev")
        if earlier is not None and is_immutable(earlier):
            earlier = np.asarray(earlier)
        if level is not Time.PREV or earlier is None:
            continue
        for made in step.assignments:
            if made.field == name:
                box = tuple(slice(*ends) for ends in box_of(step, made, shape))
                arrays[name, level][box] = earlier[box]
    return arrays
