"""A step for a batch: all arrays have a further axis in front, along which nothing is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import names_scalar
from timetile.frontend.operations import Access, Argument, Coordinate, Extent, Time, Traced
from timetile.frontend.steps import Step, walk
from timetile.frontend.symbols import MOST_AXES, Assignment, StepStatement, rebuilt
from timetile.frontend.values import Value


@dataclass(frozen=True)
class Batching:
    """The parts of a state that are one for all indices of a batch, or one for each index."""

    count: int
    """The indices of the batch."""
    shared: frozenset[str]
    """Fields with one array for all indices."""
    numbers: frozenset[str]
    """Scalars with a number for each index."""
    series: frozenset[str] = frozenset()
    """Series with numbers for each index."""
    shape: tuple[int, ...] = ()
    """The shape of one state, where states lie in a row."""

    def is_a_step(self, step: Step) -> bool:
        """
        Whether a step with a further axis computes the batch: a program has three axes at most, and
        cells beyond a side, or series, have no numbers for each index.
        """
        return step.rank < MOST_AXES and not self.series and not self.has_number_beyond(step)

    def has_number_beyond(self, step: Step) -> bool:
        """Whether cells beyond a side take a number of each index."""
        sides = [side for edges in step.edges.values() for axis in edges for side in axis]
        return not self.numbers.isdisjoint(side for side in sides if names_scalar(side))


def with_operations(step: Step, change: Callable[[Traced], Traced]) -> dict[int, Value]:
    """The values of a step with changed operations, by the `id` of the value before."""
    done: dict[int, Value] = {}
    for value in walk([made.value for made in step.statements]):
        operands = [done[id(operand)] for operand in value.operands]
        done[id(value)] = Value.at(value.place, change(value.operation), operands)
    return done


def batched_step(step: Step, batching: Batching) -> Step:
    """
    The step of a batch. A scalar with a number for each index is a field along the first axis,
    whose numbers take the type of the other operand, as the scalar's number does.
    """
    done = with_operations(step, lambda each: batched_operation(each, step.rank, batching))
    sweeps = {
        made.sweep: replace(made.sweep, axis=made.sweep.axis + 1)
        for made in step.assignments
        if made.sweep is not None
    }

    def batched(made: StepStatement) -> StepStatement:
        made = replace(made, value=done[id(made.value)])
        if isinstance(made, Assignment) and made.sweep is not None:
            made = replace(made, sweep=sweeps[made.sweep])
        if not isinstance(made, Assignment) or made.region is None:
            return made
        return replace(made, region=(slice(None), *made.region))

    fields = {
        name: (*(() if name in batching.shared else (0,)), *(axis + 1 for axis in axes))
        for name, axes in step.fields.items()
    }
    kept = (Kind.KEEP, Kind.KEEP)
    return replace(
        step,
        rank=step.rank + 1,
        fields={**fields, **{name: (0,) for name in step.scalars if name in batching.numbers}},
        scalars=tuple(name for name in step.scalars if name not in batching.numbers),
        body=rebuilt(step.body, batched),
        edges={name: (kept, *sides) for name, sides in step.edges.items()},
        weak=batching.numbers,
        in_batch=True,
    )


def batched_operation(operation: Traced, rank: int, batching: Batching) -> Traced:
    """An operation on the arrays of a batch."""
    match operation:
        case Argument(name=name) if name in batching.numbers:
            return Access(name, Time.NOW, (0, *(None for _ in range(rank))))
        case Access(field=name, offsets=offsets):
            first = None if name in batching.shared else 0
            return replace(operation, offsets=(first, *offsets))
        case Coordinate(axis=axis) | Extent(axis=axis):
            return replace(operation, axis=axis + 1)
        case _:
            return operation
