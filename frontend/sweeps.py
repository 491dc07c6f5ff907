"""`timetile.sweep`: assignments along an axis that read their own new values of places before."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.boundaries import FieldEdges
from timetile.frontend.errors import SourcePlace, StencilError, current_place, error
from timetile.frontend.indices import is_whole_number
from timetile.frontend.operations import Access, Offset, Time, Traced
from timetile.frontend.steps import Step, walk
from timetile.frontend.symbols import Assignment, Recorder, RepeatedBody, StepStatement, recording
from timetile.frontend.values import Value


@dataclass(frozen=True, eq=False)
class Sweep:
    """
    The order of the places of some assignments. `versions` are the numbers of the new values
    assigned by the sweep, by field.
    """

    axis: int
    descending: bool
    place: SourcePlace
    versions: dict[str, int] = field(default_factory=dict[str, int])

    def reads_before(self, offsets: Offset) -> bool:
        """Whether an offset leads to a place that comes before the cell's, on the cell's line."""
        others = [k for axis, k in enumerate(offsets) if axis != self.axis]
        along = offsets[self.axis] if self.axis < len(offsets) else None
        if along is None or any(others):
            return False
        return along > 0 if self.descending else along < 0

    def begin(self, name: str, version: int) -> None:
        """Note new values of a field, by number. Raises StencilError for a field assigned twice."""
        if name in self.versions:
            raise error(
                f"{name}.next is assigned twice in a sweep; assign the value once, or begin "
                "another sweep"
            )
        self.versions[name] = version

    def is_own(self, read: Access) -> bool:
        """Whether a read is of new values of the sweep itself, at a place before."""
        return read.time is Time.SWEPT and self.versions.get(read.field) == read.version

    def is_made_here(self, read: Access) -> bool:
        """Whether a read is of a new value of the cell, assigned by the sweep."""
        return read.time is Time.NEXT and self.versions.get(read.field) == read.version


def sweep(axis: int, *, descending: bool = False) -> AbstractContextManager[None]:
    """
    Assign along an axis, place after place: in the body `c.next[-1, 0]` is the new value of the
    place before, computed by the sweep itself.

    ```
    with timetile.sweep(axis=0):
        c.next = upper[0, 0] / (diagonal[0, 0] - lower[0, 0] * c.next[-1, 0])
    with timetile.sweep(axis=0, descending=True):
        x.next = d.next[0, 0] - c.next[0, 0] * x.next[1, 0]
    ```

    The sweep goes from the first place to the last, with `descending` from the last to the first.
    Cells with a read outside the arrays keep their values: they are the beginning of the
    recurrence, and may be assigned before, by regions. All assignments of the body are computed at
    a place before the next place, over the cells that all of them may compute; `c.next[0, 0]` is
    the value assigned above it in the body. `c[...]` stays the value at the beginning of the step.

    Raises StencilError for an axis that is no number known at tracing, for a body that assigns
    nothing, or a field twice, for new values read where the sweep has not been, and in a `repeat`.
    """
    if not is_whole_number(axis) or axis < 0:
        raise error(
            f"a sweep goes along an axis, counted from 0, got {axis!r}; write sweep(axis=0)"
        )
    recorder = recording("sweep")
    if recorder.sweep is not None:
        raise error("a sweep is begun in a sweep; end one before the other")
    if recorder.around:
        raise error(
            "a sweep is in a repeat; write the loop in Python, for _ in range(10), and the sweep "
            "is repeated"
        )
    return recorded(recorder, Sweep(int(axis), bool(descending), current_place()))


@contextmanager
def recorded(recorder: Recorder, begun: Sweep) -> Generator[None]:
    """The record of a sweep, from its beginning to its end."""
    body, first, recorder.sweep = recorder.body, len(recorder.body), begun
    try:
        yield
    finally:
        recorder.sweep = None
    if recorder.body is not body:
        raise StencilError(
            "a repeat is begun in a sweep, and not ended; end the repeat in the sweep", begun.place
        )
    body[first:] = closed(recorder, begun, body[first:])


def closed(
    recorder: Recorder, sweep: Sweep, made: Sequence[StepStatement | RepeatedBody]
) -> list[StepStatement | RepeatedBody]:
    """The statements of a sweep, with the reads of its own values. StencilError for wrong reads."""
    if not made:
        raise StencilError("the sweep assigns nothing; assign new values", sweep.place)
    found: list[StepStatement | RepeatedBody] = []
    done: dict[int, Value] = {}
    for item in made:
        if isinstance(item, RepeatedBody):
            raise StencilError(
                "a repeat is in a sweep, which computes a place once; repeat the sweep instead",
                item.place,
            )
        for value in walk([item.value]):
            if id(value) not in done:
                operands = [done[id(operand)] for operand in value.operands]
                operation = own_or_next(sweep, value.operation)
                check_new_value(recorder, sweep, operation, value.place)
                done[id(value)] = Value.at(value.place, operation, operands)
        found.append(replace(item, value=done[id(item.value)]))
    return found


def own_or_next(sweep: Sweep, operation: Traced) -> Traced:
    """A read of new values at a place before: of the sweep, or of an assignment before."""
    if not isinstance(operation, Access) or operation.time is not Time.SWEPT:
        return operation
    if operation.field in sweep.versions:
        return replace(operation, version=sweep.versions[operation.field])
    return replace(operation, time=Time.NEXT)


def check_new_value(recorder: Recorder, sweep: Sweep, read: Traced, place: SourcePlace) -> None:
    """StencilError for a read of new values that the sweep has not made."""
    if not isinstance(read, Access) or read.time is not Time.NEXT or sweep.is_made_here(read):
        if isinstance(read, Access) and read.time is Time.NEXT and any(read.offsets):
            raise StencilError(wrong_place(sweep, read), place)
        return
    name = read.field
    if name in sweep.versions and any(read.offsets):
        raise StencilError(wrong_place(sweep, read), place)
    before = any(
        made.field == name and made.sweep is not sweep and made.version <= read.version
        for made in recorder.assignments
    )
    if not before:
        raise StencilError(
            f"{name}.next is read before its assignment; assign first, or read the value at the "
            f"beginning of the step, {name}[...]",
            place,
        )


def wrong_place(sweep: Sweep, read: Access) -> str:
    """Why a sweep does not read a new value at an offset."""
    name, text = read.field, f"{read.field}.next[{', '.join(map(str, read.offsets))}]"
    if any(k for axis, k in enumerate(read.offsets) if axis != sweep.axis):
        return (
            f"{text} is beside the line of the cell along axis {sweep.axis}, and the lines of a "
            f"sweep run side by side; read the value at the beginning of the step, {name}[...]"
        )
    other = "descending=False" if sweep.descending else "descending=True"
    return (
        f"{text} lies ahead of the sweep; read the value at the beginning of the step, "
        f"{name}[...], or sweep the other way, with {other}"
    )


def check_sweeps(step: Step) -> None:
    """StencilError for sweeps, and uses of their values, that do not go together with a step."""
    present: dict[str, int] = {}
    for made in step.assignments:
        if made.sweep is not None:
            check_swept(step, made, made.sweep, present)
        present[made.field] = made.version
    for item in step.statements:
        own = item.sweep if isinstance(item, Assignment) else None
        for value in walk([item.value]):
            read = value.operation
            if not isinstance(read, Access) or read.time is not Time.SWEPT:
                continue
            if own is None or not own.is_own(read):
                raise StencilError(
                    f"a value of a sweep, with {read.field}.next of the place before, is used "
                    f"outside the sweep; read {read.field}.next again",
                    value.place,
                )


def check_swept(step: Step, made: Assignment, sweep: Sweep, present: dict[str, int]) -> None:
    """StencilError for an assignment of a sweep that the step does not allow."""
    if sweep.axis >= step.rank:
        raise StencilError(
            f"the sweep goes along axis {sweep.axis}, and the last axis of the step is "
            f"{step.rank - 1}; count from 0",
            sweep.place,
        )
    # Slices have no hash before Python 3.12.
    regions = [item.region for item in step.assignments if item.sweep is sweep]
    if any(region != regions[0] for region in regions):
        raise StencilError(
            "the assignments of a sweep have different regions; give all the same region, or "
            "begin another sweep",
            made.place,
        )
    for value in walk([made.value]):
        read = value.operation
        if not isinstance(read, Access):
            continue
        is_old = read.time is Time.NEXT and not sweep.is_made_here(read)
        known = step.known_version(read.field, read.version)
        if is_old and known != present.get(read.field, 0):
            raise StencilError(
                f"the value of {read.field}.next is kept from before a later assignment; keep the "
                f"value as timetile.temporary({read.field}.next[...]) before that",
                value.place,
            )
        if is_old and read.field in sweep.versions and any(read.offsets):
            raise StencilError(wrong_place(sweep, read), value.place)
        check_inside(step, read, value.place)


def check_inside(step: Step, read: Access, place: SourcePlace) -> None:
    """StencilError for a read beyond an array in a sweep."""
    edges: FieldEdges = step.edges.get(read.field, ())
    for axis, (sides, offset) in enumerate(zip(edges, read.offsets)):
        if not offset or sides[offset > 0] is Kind.KEEP:
            continue
        if read.time is Time.SWEPT:
            raise StencilError(
                f"{read.field} goes on beyond its array along axis {axis}, and a sweep begins at "
                f"cells of the array; leave out the boundary of {read.field} along axis {axis}, "
                "and assign the first cells before the sweep, by a region",
                place,
            )
        raise StencilError(
            f"{read.field} is read beyond its array in a sweep; read the value before the sweep, "
            f"by timetile.temporary({read.field}[...]), and the temporary in the sweep",
            place,
        )
