"""A traced step: its fields, scalars and statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, Self, TypeVar

from timetile.frontend.boundaries import FieldEdges
from timetile.frontend.errors import SourcePlace
from timetile.frontend.operations import Access, Time
from timetile.frontend.points import PointUse
from timetile.frontend.symbols import Assignment, Held, RepeatedBody, StepStatement, flat

Rows = tuple[int, int]
"""The first row along axis 0 of an assignment, and the end."""


@dataclass(frozen=True)
class StatesInARow:
    """The step of one state, and the assigned rows, by the name of a field true in the rows."""

    step: Step
    masks: dict[str, Rows]


@dataclass(frozen=True)
class Step:
    """
    One time step. `fields` has the axes of each field in the order of the arguments; `second` are
    the fields read one step earlier.
    """

    name: str
    place: SourcePlace
    rank: int
    fields: dict[str, tuple[int, ...]]
    scalars: tuple[str, ...]
    body: tuple[StepStatement | RepeatedBody, ...]
    second: frozenset[str]
    reach: int | None
    edges: dict[str, FieldEdges] = field(default_factory=dict[str, FieldEdges])
    """The sides of fields that go on beyond the arrays."""
    series: tuple[str, ...] = ()
    """The arguments with a number for each step; the number of the step itself, if read, last."""

    aliases: Mapping[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """Numbers of equal new values, by field and number."""
    weak: frozenset[str] = frozenset()
    """Fields whose numbers take the type of the other operand, as scalars' numbers do."""
    in_batch: bool = False
    """Whether axis 0 is the index of a batch of independent states."""
    members: tuple[tuple[str, frozenset[str]], ...] = ()
    """The label and the fields of each model of a sequence."""
    points: tuple[PointUse, ...] = ()
    """The uses of points, after all assignments."""
    pairs: tuple[str, ...] = ()
    """The complex fields, each a pair of fields."""
    row: StatesInARow | None = None
    """The states of a batch, one behind the other along axis 0."""

    @property
    def statements(self) -> list[StepStatement]:
        """All statements, in order, those of a repeated body once."""
        return flat(self.body)

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """The assignments, in order."""
        return tuple(made for made in self.statements if isinstance(made, Assignment))

    @property
    def temporaries(self) -> dict[str, Held]:
        """The temporaries by name, in order."""
        return {made.name: made for made in self.statements if isinstance(made, Held)}

    @property
    def written(self) -> tuple[str, ...]:
        """The fields with new values, in the order of the arguments."""
        names = {made.field for made in self.assignments}
        return tuple(name for name in self.fields if name in names)

    def known_version(self, name: str, version: int) -> int:
        """The least number of the new values of a field that a number stands for."""
        while (name, version) in self.aliases:
            version = self.aliases[name, version]
        return version

    def first_read(self, name: str) -> int | None:
        """The number of assignments to a field before the first read of new values."""
        read = [
            value.operation.version
            for value in walk([made.value for made in self.statements])
            if isinstance(value.operation, Access)
            and value.operation.time in (Time.NEXT, Time.SWEPT)
            and value.operation.field == name
        ]
        if not read:
            return None
        made = [item.version for item in self.assignments if item.field == name]
        return sum(version <= min(read) for version in made)

    def __reduce__(self) -> tuple[Callable[..., Step], tuple[object, ...]]:
        """
        Values lie in a pickle with operands first: pickles and copies of long expressions then
        need no deep recursion.
        """
        values = tuple(walk([made.value for made in self.statements]))
        return step_again, (values, *(getattr(self, part.name) for part in fields(self)))

    @property
    def label(self) -> str:
        """`heat (heat.py:5)`."""
        return f"{self.name} ({self.place.file}:{self.place.line})"


def step_again(values: Sequence[object], *parts: Any) -> Step:
    """The step of a pickle, whose values come first."""
    return Step(*parts)


class HasOperands(Protocol):
    """A value of a cell, traced or with a type."""

    @property
    def operands(self) -> Sequence[Self]:
        """The values from which the value is computed."""
        ...


V = TypeVar("V", bound=HasOperands)


def walk(values: Sequence[V]) -> Iterator[V]:
    """The values and all their operands: operands first."""
    seen: set[int] = set()
    stack: list[tuple[V, bool]] = [(value, False) for value in reversed(values)]
    while stack:
        value, ready = stack.pop()
        if ready:
            yield value
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack.extend((operand, False) for operand in reversed(value.operands))
