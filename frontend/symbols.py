"""The arguments of a step function: fields, read near the cell, and scalars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from timetile.frontend.errors import SourcePlace, current_place, error
from timetile.frontend.indices import check_offset, is_plain, shown
from timetile.frontend.operations import Access, Argument, Offset, Time
from timetile.frontend.values import Value, lifted
from timetile.frontend.whole_fields import WholeField

if TYPE_CHECKING:
    from timetile.frontend.points import PointUse
    from timetile.frontend.sweeps import Sweep

Index = int | None | tuple[int | None, ...]
Region = tuple["slice[Any, Any, Any]", ...]

MOST_AXES = 3


@dataclass(frozen=True)
class Assignment:
    """
    `field.next = value`, or `field.next[region] = value`. `version` counts the assignments to the
    field, from 1 on.
    """

    field: str
    region: Region | None
    value: Value
    place: SourcePlace
    version: int = 1
    reach: int | None = None
    """The declared reach of the step."""
    sweep: Sweep | None = None
    """The sweep around the assignment."""


@dataclass(frozen=True)
class Held:
    """`timetile.temporary(value)`, under a name that no argument has."""

    name: str
    value: Value
    place: SourcePlace


StepStatement = Assignment | Held


@dataclass(frozen=True)
class RepeatedBody:
    """
    `for _ in timetile.repeat(count)`, with the statements of the body. `versions` are the numbers
    of the fields' new values at the body's beginning.
    """

    count: int
    body: list[StepStatement | RepeatedBody]
    versions: dict[str, int]
    place: SourcePlace


@dataclass
class Recorder:
    """The record of a step, in the order of the program. `rank` is the rank of the first index."""

    rank: int | None = None
    first: str = ""
    reach: int | None = None
    names: list[str] = field(default_factory=list[str])
    """The fields among the arguments."""
    ended: bool = False
    """The step has ended: all new values can be read."""
    body: list[StepStatement | RepeatedBody] = field(
        default_factory=list[StepStatement | RepeatedBody]
    )
    around: list[list[StepStatement | RepeatedBody]] = field(
        default_factory=list[list[StepStatement | RepeatedBody]]
    )
    """The bodies around the body of the innermost `repeat`, outermost first."""
    versions: Counter[str] = field(default_factory=Counter[str])
    """For each field, the number of the present new values: 0 before the first assignment."""
    aliases: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """Numbers of equal new values: around the body of a `repeat` without an assignment."""
    holders: dict[str, list[StepStatement | RepeatedBody]] = field(
        default_factory=dict[str, list[StepStatement | RepeatedBody]]
    )
    """The body with each temporary."""
    sweep: Sweep | None = None
    """The sweep being recorded."""
    axes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """The axes of each field read or written."""
    previous: set[str] = field(default_factory=set[str])
    points: list[PointUse] = field(default_factory=list["PointUse"])
    """The uses of points, which follow all assignments."""
    read_next: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """The fields with a read of new values, and the version read."""

    @property
    def statements(self) -> list[StepStatement]:
        """All statements, in order, those of bodies once."""
        return flat(self.around[0] if self.around else self.body)

    @property
    def assignments(self) -> list[Assignment]:
        """The assignments, in order."""
        return [made for made in self.statements if isinstance(made, Assignment)]

    def is_assigned(self, name: str) -> bool:
        """Whether a field has new values."""
        return any(made.field == name for made in self.assignments)

    def check_rank(self, text: str, count: int) -> None:
        """Raise StencilError for an index with another number of axes than the first index."""
        if self.rank is None:
            if not 1 <= count <= MOST_AXES:
                raise error(f"{text} has {count} offsets; a field has 1 to {MOST_AXES} axes")
            self.rank, self.first = count, text
        if count != self.rank:
            plural = "offset" if count == 1 else "offsets"
            raise error(
                f"{text} has {count} {plural}, and {self.first} has {self.rank}; write an offset "
                "for each axis, None along a missing axis of a field"
            )

    def read(self, name: str, time: Time, index: Index) -> Value:
        """The value of a field at an offset."""
        offsets = index if isinstance(index, tuple) else (index,)
        called = "the temporary" if time is Time.INSIDE else name
        text = f"{called}[{', '.join(map(shown, offsets))}]"
        for k in offsets:
            check_offset(name, k)
        self.check_rank(text, len(offsets))
        plain = tuple(None if k is None else int(k) for k in offsets)
        far = max((abs(k) for k in plain if k is not None), default=0)
        if self.reach is not None and far > self.reach:
            raise error(
                f"{text} reads {far} cells away, and the step declares reach={self.reach}; declare "
                f"reach={far}"
            )
        self.check_axes(name, text, plain)
        if time is Time.PREV:
            self.previous.add(name)
        if time is Time.INSIDE and None in plain:
            raise error(f"{text} has None, and a temporary has all axes; write a number for each")
        if time is Time.INSIDE and all(
            self.holders[name] is not body for body in (self.body, *self.around)
        ):
            raise error(
                "the temporary is made in a repeat, and read outside; make a field of the value, "
                "or the temporary after the repeat"
            )
        version = 0
        if time is Time.NEXT:
            version = self.versions[name]
            if self.sweep is None:
                self.check_next(name, any(plain))
            elif self.sweep.reads_before(plain):
                time = Time.SWEPT
            self.read_next.add((name, version))
        return Value(Access(name, time, plain, version))

    def check_axes(self, name: str, text: str, offsets: Offset) -> None:
        """
        Raise StencilError for a field with other axes than at its first index, or without axes.
        """
        axes = tuple(axis for axis, k in enumerate(offsets) if k is not None)
        if not axes:
            raise error(f"{text} has no offset; write a number along each axis of the field")
        if self.axes.setdefault(name, axes) != axes:
            raise error(
                f"{text} has other axes than {name} had before; write None along the same axes "
                "everywhere"
            )

    def check_next(self, name: str, beside: bool) -> None:
        """Raise StencilError if the new values of a field are read before their assignment."""
        if self.is_assigned(name) or self.around or self.ended:
            return
        if beside:
            raise error(
                f"{name}.next is read beside the cell before its assignment, which is Gauss-Seidel "
                "order, and a step computes all cells at once; assign in a sweep along an axis, "
                "with timetile.sweep(axis=0), or red cells, then black cells, by the parity of "
                f"their coordinates, or read the old value, {name}[...]"
            )
        raise error(
            f"{name}.next is read before its assignment; assign first, or read the value at "
            f"the beginning of the step, {name}[...]"
        )

    def assign(self, name: str, region: Region | None, value: object) -> None:
        """Note a new value for the cells of a field."""
        if self.ended:
            raise error(
                f"{name}.next is assigned in a condition, which reads the state alone; assign in "
                "the step"
            )
        if self.points:
            raise error(
                f"{name}.next is assigned after {self.points[-1].name} is used; use points after "
                "all assignments of the step"
            )
        given, version = lifted(value), self.versions[name]
        if self.sweep is not None:
            self.sweep.begin(name, version + 1)
        known = self.is_assigned(name) and not self.around
        if region is None and known and (name, version) not in self.read_next:
            before = next(made for made in reversed(self.assignments) if made.field == name)
            raise error(
                f"{name}.next is assigned twice, first in line {before.place.line}, and the first "
                f"value is not read; assign once, read {name}.next[...] in between, or assign "
                f"parts by regions, {name}.next[2:5] = ..."
            )
        self.versions[name] += 1
        self.body.append(
            Assignment(name, region, given, current_place(), version + 1, self.reach, self.sweep)
        )

    def hold(self, value: object) -> str:
        """A value of the step for every cell, under a new name."""
        if self.sweep is not None:
            raise error(
                "a temporary is made in a sweep, which computes place after place; make the "
                "temporary before the sweep, or give the value a name, without timetile.temporary"
            )
        number = sum(isinstance(made, Held) for made in self.statements)
        name = f"temporary {number}"
        self.body.append(Held(name, lifted(value), current_place()))
        self.holders[name] = self.body
        return name

    def assign_region(self, name: str, region: object, value: object) -> None:
        """New values for the cells of a region of the array."""
        slices = cast("tuple[object, ...]", region if isinstance(region, tuple) else (region,))
        if not all(map(is_plain, slices)):
            raise error(
                f"a region of {name}.next has a slice without a step for each axis; write "
                f"{name}.next[0:1, :] for the first row, and {name}.next = ... for all cells"
            )
        self.check_rank(f"the region of {name}.next", len(slices))
        self.check_axes(name, f"the region of {name}.next", tuple(0 for _ in slices))
        self.assign(name, cast("Region", slices), value)


def flat(body: Sequence[StepStatement | RepeatedBody]) -> list[StepStatement]:
    """The statements of a body and of the bodies inside, in order."""
    found: list[StepStatement] = []
    for made in body:
        found += flat(made.body) if isinstance(made, RepeatedBody) else [made]
    return found


def rebuilt(
    body: Sequence[StepStatement | RepeatedBody], made: Callable[[StepStatement], StepStatement]
) -> tuple[StepStatement | RepeatedBody, ...]:
    """A body with other statements, those of repeated bodies too."""
    return tuple(
        replace(item, body=[*rebuilt(item.body, made)])
        if isinstance(item, RepeatedBody)
        else made(item)
        for item in body
    )


RECORDING: ContextVar[Recorder] = ContextVar("RECORDING")
"""The record of the step function being called."""


def recording(call: str) -> Recorder:
    """The record of the step. Raises StencilError outside of a step function."""
    found = RECORDING.get(None)
    if found is None:
        raise error(f"{call} is called outside of a step; call it in a function of a step")
    return found


class Level(WholeField):
    """A field at another time level: `u.prev[0, 0]`."""

    __slots__ = ("_name", "_recorder", "_time")

    def __init__(self, recorder: Recorder, name: str, time: Time):
        self._recorder, self._name, self._time = recorder, name, time

    def __repr__(self) -> str:
        return f"<timetile field {self._name}.{self._time}>"

    def __getitem__(self, offsets: Index) -> Value:
        """The value `offsets` cells away along each axis. Raises StencilError for a wrong index."""
        return self._recorder.read(self._name, self._time, offsets)


class Next(Level):
    """
    The new values of a field: `u.next[0, 0]` after their assignment, and `u.next[2:5, :] = value`
    for a region.
    """

    __slots__ = ()

    def __setitem__(self, region: slice | tuple[slice, ...], value: Value | float) -> None:
        """
        New values for the cells of a region of the array, given by slices as NumPy counts them,
        from the array's own beginning and end. StencilError where the region is no slice for each
        axis.
        """
        self._recorder.assign_region(self._name, region, value)


class Field(WholeField):
    """
    A field of a step function, with a number for each cell of an array.

    `u[-1, 0]` is the value one cell before along axis 0, at the beginning of the step; `u.prev[-1,
    0]` the value one step earlier. `u.next = value` gives each cell its new value, and `u.next[-1,
    0]` reads the new value of the latest assignment. `w[0, None]` reads a field with axis 0 alone.
    """

    __slots__ = ("_name", "_recorder")

    def __init__(self, recorder: Recorder, name: str):
        self._recorder, self._name = recorder, name

    def __repr__(self) -> str:
        return f"<timetile field {self._name}>"

    def name_of_field(self) -> str:
        """The name of the argument."""
        return self._name

    def __getitem__(self, offsets: Index) -> Value:
        """The value at the beginning of the step, `offsets` cells away along each axis."""
        return self._recorder.read(self._name, Time.NOW, offsets)

    def __setitem__(self, offsets: object, value: object) -> None:
        raise error(f"a step assigns new values only; write {self._name}.next = ...")

    @property
    def prev(self) -> Level:
        """The field one step earlier, for equations of second order in time."""
        return Level(self._recorder, self._name, Time.PREV)

    @property
    def next(self) -> Next:
        """The new values, after their assignment."""
        return Next(self._recorder, self._name, Time.NEXT)

    @next.setter
    def next(self, value: Value | float) -> None:
        """Assign the new value of each cell."""
        self._recorder.assign(self._name, None, value)


class Series(WholeField):
    """
    An argument of a step function with a number for each step of a run: `f[0]` is the number of the
    present step.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"<timetile series {self._name}>"

    def __getitem__(self, step: object) -> Value:
        """The number of the present step, `f[0]`. Raises StencilError for another index."""
        if step != 0 or isinstance(step, bool):
            raise error(
                f"{self._name}[{step!r}] is the number of another step; write {self._name}[0], the "
                "present step's, and shift the series"
            )
        return Value(Argument(self._name))


class Scalar(Value):
    """
    A scalar argument of a step function: one number, the same for all cells and steps of a run.
    """

    __slots__ = ()

    def __init__(self, name: str):
        super().__init__(Argument(name))
