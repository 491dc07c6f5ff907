"""
A batch of a step with three axes as one step: states lie in a row along axis 0.

    arrays of 5 x 7 x 6 x 9 cells  ->  arrays of 35 x 6 x 9 cells

An assignment that leaves rows at the ends of axis 0 keeps the same rows of every state: the value
is chosen by a field of truth values along axis 0, true in the assigned rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.arrays import (
    as_given,
    copy_of,
    in_memory_of,
    is_immutable,
    shape_of,
    type_of,
)
from timetile.frontend.batched_steps import Batching, batched_step, with_operations
from timetile.frontend.batches import begun_batch, numbers_of_batch
from timetile.frontend.boxes import box_of
from timetile.frontend.operations import Access, Argument, Choice, Coordinate, Extent, Time, Traced
from timetile.frontend.runs import ProgramMaker, RunArguments, StateRun, begun
from timetile.frontend.steps import Rows, StatesInARow, Step, walk
from timetile.frontend.symbols import MOST_AXES, Assignment, Held, StepStatement
from timetile.frontend.values import Value

A = TypeVar("A")


def as_one_step(step: Step, batching: Batching, state: Mapping[str, Any]) -> Batching | None:
    """
    The batching of all states by one step, of any count, and with the shape of one state if states
    lie in a row; None for states that are computed in turn.
    """
    if batching.is_a_step(step):
        return replace(batching, count=0)
    if not lies_in_a_row(step, batching, state):
        return None
    return replace(batching, count=0, shape=shape_of(state[step.written[0]])[1:])


def step_of_batch(step: Step, batching: Batching) -> Step:
    """The step of a batch. Raises ValueError for a state without cells to assign."""
    return step_in_a_row(step, batching) if batching.shape else batched_step(step, batching)


def lies_in_a_row(step: Step, batching: Batching, state: Mapping[str, Any]) -> bool:
    """
    Whether states can lie in a row: axis 0 has no edges and no places, and each field along axis 0
    has an array for each state.
    """
    kept = (Kind.KEEP, Kind.KEEP)
    read = [each.operation for each in walk([made.value for made in step.statements])]
    types = {type_of(state[name]) for name in step.fields}
    return (
        step.rank == MOST_AXES
        and not batching.series
        and all(isinstance(made, Assignment | Held) for made in step.body)
        and all(made.sweep is None for made in step.assignments)
        and all(edges[0] == kept for edges in step.edges.values())
        and not batching.has_number_beyond(step)
        and all((0 in axes) != (name in batching.shared) for name, axes in step.fields.items())
        and not any(isinstance(each, Coordinate | Extent) and each.axis == 0 for each in read)
        and (len(types) == 1 or all("float" in str(each) for each in types))
    )


def assigned_rows(step: Step, made: Assignment, shape: Sequence[int]) -> Rows | None:
    """The assigned rows of one state; None for all."""
    rows = box_of(step, made, shape)[0]
    return None if rows == (0, shape[0]) else rows


def name_of_rows(step: Step, rows: Rows) -> str:
    """The name of the field that is true in some rows of each state."""
    name = f"rows_{rows[0]}_{rows[1]}"
    while name in step.fields or name in step.scalars:
        name += "_"
    return name


def step_in_a_row(step: Step, batching: Batching) -> Step:
    """The step of states in a row. Raises ValueError for a state without cells to assign."""

    def operation_in_a_row(operation: Traced) -> Traced:
        if isinstance(operation, Argument) and operation.name in batching.numbers:
            return Access(operation.name, Time.NOW, (0, None, None))
        return operation

    done = with_operations(step, operation_in_a_row)
    masks: dict[str, Rows] = {}

    def in_a_row(made: StepStatement) -> StepStatement:
        value = done[id(made.value)]
        if not isinstance(made, Assignment):
            return replace(made, value=value)
        region = None if made.region is None else (slice(None), *made.region[1:])
        rows = assigned_rows(step, made, batching.shape)
        if rows is None:
            return replace(made, value=value, region=region)
        name = name_of_rows(step, rows)
        masks[name] = rows
        time = Time.NOW if made.version == 1 else Time.NEXT
        before = Access(made.field, time, (0, 0, 0), made.version - 1)
        mask = Access(name, Time.NOW, (0, None, None))
        operands = [Value.at(made.place, mask, ()), value, Value.at(made.place, before, ())]
        return replace(made, value=Value.at(made.place, Choice(), operands), region=region)

    body = tuple(in_a_row(made) for made in step.statements)
    along = [name for name in step.scalars if name in batching.numbers]
    return replace(
        step,
        fields={**step.fields, **dict.fromkeys([*along, *masks], (0,))},
        scalars=tuple(name for name in step.scalars if name not in batching.numbers),
        body=body,
        weak=batching.numbers,
        row=StatesInARow(step, masks),
    )


@dataclass(frozen=True)
class RowOfStates:
    """The arrays of a batch as those of states in a row."""

    batching: Batching
    given: RunArguments[Any]
    row: StatesInARow

    def state(self) -> dict[str, Any]:
        """The arrays: those with axis 0 in a row, numbers of each state, and assigned rows."""
        given, shape, count = self.given.state, self.batching.shape, self.batching.count
        found: dict[str, Any] = {}
        for name, array in given.items():
            if name.removesuffix(".prev") in self.batching.shared:
                found[name] = array
            else:
                whole = self.earlier(name) if name.endswith(".prev") else array
                found[name] = whole.reshape(count * shape[0], *shape_of(array)[2:])
        one = given[self.row.step.written[0]]
        for name, numbers in numbers_of_batch(self.batching, self.given).items():
            found[name] = in_memory_of(one, np.repeat(numbers, shape[0]))
        for name, rows in self.row.masks.items():
            mask = np.zeros(shape[0], bool)
            mask[slice(*rows)] = True
            found[name] = in_memory_of(one, np.tile(mask, count))
        return found

    def earlier(self, name: str) -> Any:
        """The field a step earlier, with the rim of the field itself."""
        own, array = name.removesuffix(".prev"), self.given.state[name]
        source = np.asarray(array) if is_immutable(array) else array
        whole = copy_of(self.given.state[own])
        for made in self.row.step.assignments:
            if made.field == own:
                ends = box_of(self.row.step, made, self.batching.shape)
                box = (slice(None), *(slice(*each) for each in ends))
                whole[box] = source[box]
        return whole


class RunInARow(StateRun):
    """A run of a batch whose states lie in a row."""

    def __init__(
        self, whole: Step, program: ProgramMaker, batching: Batching, given: RunArguments[Any]
    ):
        assert whole.row is not None
        states = RowOfStates(batching, given, whole.row)
        scalars = {k: v for k, v in given.scalars.items() if k not in batching.numbers}
        self.inner = begun(whole, program, replace(given, state=states.state(), scalars=scalars))
        self.step, self.first, self.done = whole.row.step, given.first, 0
        self.reported = tuple(self.step.fields)

    def go(self, steps: int) -> None:
        """Advance all states by some steps."""
        self.inner.go(steps)
        self.done = self.inner.done

    def array_of(self, name: str, time: Time, given: A) -> A:
        """The array of all states at a time level, with the axis of the batch."""
        return cast("A", as_given(self.inner.arrays[name, time].reshape(shape_of(given)), given))

    def spare(self) -> list[Any]:
        """Arrays of no state, perhaps written by kernels that still run."""
        return self.inner.spare()


def begun_as_one(
    whole: Step, program: ProgramMaker, batching: Batching, given: RunArguments[Any]
) -> StateRun:
    """A run of all states by one step, at its beginning."""
    run = RunInARow if batching.shape else begun_batch
    return run(whole, program, batching, given)
