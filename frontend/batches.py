"""Runs of a batch: every index of the first axis of the arrays is a state of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from timetile.dialects.cell_types import CELL_TYPES
from timetile.frontend.arrays import (
    as_given,
    check_array,
    copy_of,
    in_memory_of,
    is_immutable,
    shape_of,
    type_of,
)
from timetile.frontend.batched_steps import Batching
from timetile.frontend.field_types import computing_type
from timetile.frontend.functions import STEP
from timetile.frontend.operations import Time
from timetile.frontend.runs import ProgramMaker, RunArguments, StateRun, begun
from timetile.frontend.state_checks import check_mapping, check_names
from timetile.frontend.steps import Step

A = TypeVar("A")


def batching_of(step: Step, state: Mapping[str, Any], scalars: Mapping[str, Any]) -> Batching:
    """
    The batch of a call, by the axes of its arrays. Raises TypeError or ValueError for arrays and
    numbers that make no batch.
    """
    check_mapping(step, state)
    check_names(step, state, scalars)
    shared: set[str] = set()
    for name, array in state.items():
        check_array(name, array)
        own = name.removesuffix(".prev")
        axes, found = len(step.fields[own]), len(shape_of(array))
        if found == axes and own not in step.written:
            shared.add(own)
        elif found != axes + 1:
            raise ValueError(
                f"{name} has shape {shape_of(array)}, and {step.label} indexes it along {axes} "
                f"axes; pass {axes + 1} axes for a batch, the index of the batch first"
            )
    first = step.written[0]
    count = shape_of(state[first])[0]
    for name, array in state.items():
        if name.removesuffix(".prev") not in shared and shape_of(array)[0] != count:
            raise ValueError(
                f"{name} has {shape_of(array)[0]} indices along its first axis, and {first} has "
                f"{count}; pass arrays of one batch"
            )
    if count < 1:
        raise ValueError(f"{first} has no index along its first axis; pass a batch of some")
    numbers = per_index(step.scalars, 1, "a number", count, scalars)
    own_series = [name for name in step.series if name != STEP]
    series = per_index(own_series, 2, "a series", count, scalars)
    return Batching(count, frozenset(shared), numbers, series)


def per_index(
    names: Sequence[str], axes: int, kind: str, count: int, scalars: Mapping[str, Any]
) -> frozenset[str]:
    """
    The arguments with an array of a further axis. Raises ValueError for an axis of a wrong size.
    """
    found = [name for name in names if np.ndim(scalars[name]) == axes]
    for name in found:
        if len(scalars[name]) != count:
            raise ValueError(
                f"{name} has {len(scalars[name])} indices along its first axis, and the batch has "
                f"{count}; pass {kind} for each, or one for all"
            )
    return frozenset(found)


def begun_batch(
    whole: Step, program: ProgramMaker, batching: Batching, given: RunArguments[Any]
) -> StateRun:
    """A run of the step of a batch, at its beginning."""
    state, scalars = dict(given.state), given.scalars
    one = state[whole.written[0]]
    for name, numbers in numbers_of_batch(batching, given).items():
        state[name] = in_memory_of(one, numbers)
    shared = {name: value for name, value in scalars.items() if name not in batching.numbers}
    run = begun(whole, program, replace(given, state=state, scalars=shared))
    run.reported = tuple(name for name in whole.fields if name not in batching.numbers)
    return run


def numbers_of_batch(
    batching: Batching, given: RunArguments[Any]
) -> dict[str, np.ndarray[Any, Any]]:
    """Scalars with a number for each index, as arrays of the type of floats in a step."""
    fields = {name.removesuffix(".prev") for name in given.state}
    dtype = CELL_TYPES[computing_type(type_of(given.state[name]) for name in fields)].dtype
    return {name: numbers_of_indices(name, given.scalars[name], dtype) for name in batching.numbers}


def numbers_of_indices(name: str, given: Any, dtype: str) -> np.ndarray[Any, Any]:
    """The numbers of a scalar for each index. TypeError for other objects than numbers."""
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "fiu":
        raise TypeError(f"{name} has a number for each index, got {given!r}; pass an array")
    return np.ascontiguousarray(numbers, dtype)


class RunInTurn(StateRun):
    """The runs of a batch whose indices are computed one after the other."""

    def __init__(
        self, step: Step, program: ProgramMaker, batching: Batching, given: RunArguments[Any]
    ):
        self.step, self.first, self.done = step, given.first, 0
        self.reported = tuple(step.fields)
        each = batching.numbers | batching.series
        arrays = {
            name: np.asarray(array) if is_immutable(array) else array
            for name, array in given.state.items()
        }
        self.runs: list[StateRun] = []
        for k in range(batching.count):
            own = {
                name: array if name.removesuffix(".prev") in batching.shared else array[k]
                for name, array in arrays.items()
            }
            numbers = {name: v[k] if name in each else v for name, v in given.scalars.items()}
            self.runs.append(begun(step, program, replace(given, state=own, scalars=numbers)))

    def go(self, steps: int) -> None:
        """Advance each index by some steps."""
        for run in self.runs:
            run.go(steps)
        self.done += steps

    def array_of(self, name: str, time: Time, given: A) -> A:
        """The arrays of all indices at a time level, as one array."""
        whole = copy_of(given)
        for k, run in enumerate(self.runs):
            whole[k] = run.arrays[name, time]
        return cast("A", as_given(whole, given))

    def spare(self) -> list[Any]:
        """Arrays of no state, perhaps written by kernels that still run."""
        return [array for run in self.runs for array in run.arrays.values()]


def checked_batch(batch: object) -> bool:
    """Whether a call is of a batch. Raises TypeError for other objects than truth values."""
    if not isinstance(batch, bool):
        raise TypeError(
            f"batch is True or False, got {batch!r}; write batch=True for arrays with a batch "
            "along their first axis"
        )
    return batch


def check_no_points(step: Step) -> None:
    """Raise ValueError for a batch of a step with points, whose lists are of one state."""
    if step.points:
        raise ValueError(
            f"{step.label} has points, whose lists are of one state; advance each index by itself"
        )


def check_no_batch(batch: object) -> None:
    """Raise ValueError for a condition on a batch, whose states end at different steps."""
    if batch:
        raise ValueError(
            "until ends the run of one state, and the states of a batch would end at different "
            "steps; leave out until, or advance each index by itself"
        )
