"""`timetile.repeat`: statements of a step, repeated a constant number of times."""

from __future__ import annotations

from collections.abc import Iterator

from timetile.frontend.errors import StencilError, current_place, error
from timetile.frontend.indices import is_whole_number
from timetile.frontend.operations import Access, Time
from timetile.frontend.steps import walk
from timetile.frontend.symbols import (
    Assignment,
    Recorder,
    RepeatedBody,
    StepStatement,
    flat,
    recording,
)


def repeat(count: int) -> Iterator[None]:
    """
    Repeat the statements of a body `count` times in each step.

    ```
    for _ in timetile.repeat(50):
        p.next = 0.25 * (p.next[-1] + p.next[1] - b[0])
    ```

    The body is called once, and becomes an inner loop of sweeps. In the body `p.next[...]` is the
    value of the latest assignment, in the first turn perhaps one before the body: the value at the
    beginning of the step, if nothing was assigned. `p[...]` stays the value at the beginning of the
    step.

    Raises StencilError for a count that is no positive number known at tracing, for a body that
    assigns nothing or is left by `break`, for new values kept from before the body that the body
    overwrites, and for Gauss-Seidel order.
    """
    place = current_place()
    if not is_whole_number(count) or count < 1:
        raise error(
            f"repeat takes a number of turns of 1 or more, known at tracing, got {count!r}; write "
            "repeat(10)"
        )
    recorder = recording("repeat")
    opened = RepeatedBody(int(count), [], {}, place)
    begin_body(recorder, opened)
    yield
    end_body(recorder, opened)


def begin_body(recorder: Recorder, opened: RepeatedBody) -> None:
    """Begin a body: all new values get new numbers."""
    recorder.body.append(opened)
    recorder.around.append(recorder.body)
    recorder.body = opened.body
    for name in recorder.names:
        recorder.versions[name] += 1
    opened.versions.update(recorder.versions)


def end_body(recorder: Recorder, opened: RepeatedBody) -> None:
    """End a body. Numbers of new values that the body leaves alone are equal."""
    check_closed(recorder, opened)
    recorder.body = recorder.around.pop()
    made = [item for item in flat(opened.body) if isinstance(item, Assignment)]
    if not made:
        raise StencilError("the repeated body assigns nothing; assign new values", opened.place)
    assigned = {item.field for item in made}
    for item in flat(opened.body):
        check_reads(recorder, opened, item)
    for name in recorder.names:
        recorder.versions[name] += 1
        if name not in assigned:
            entry = opened.versions[name]
            recorder.aliases[name, entry] = entry - 1
            recorder.aliases[name, recorder.versions[name]] = entry


def check_closed(recorder: Recorder, opened: RepeatedBody | None = None) -> None:
    """Raise StencilError for a body left before its end. `opened` is the innermost body, if any."""
    if recorder.around and (opened is None or recorder.body is not opened.body):
        left = recorder.around[-1][-1]
        raise StencilError(
            "the repeated body is left before its end; repeat a constant number of turns, without "
            "break or return",
            left.place,
        )


def check_reads(recorder: Recorder, opened: RepeatedBody, item: StepStatement) -> None:
    """Raise StencilError for reads of new values that a repeated body cannot make."""
    assigned = {made.field for made in flat(opened.body) if isinstance(made, Assignment)}
    for value in walk([item.value]):
        read = value.operation
        if not isinstance(read, Access) or read.time is not Time.NEXT:
            continue
        name = read.field
        if name in assigned and read.version < opened.versions[name]:
            raise StencilError(
                f"the value of {name}.next is kept from before the repeat, which assigns "
                f"{name}.next; keep the value as timetile.temporary({name}.next[...])",
                value.place,
            )
        known = (made for made in recorder.assignments if made.field == name)
        if name not in assigned and not any(made.version <= read.version for made in known):
            raise StencilError(
                f"{name}.next is read, and assigned neither before nor in the repeat; read the "
                f"value at the beginning of the step, {name}[...]",
                value.place,
            )
    if isinstance(item, Assignment):
        check_sides(item)


def check_sides(made: Assignment) -> None:
    """Raise StencilError for Gauss-Seidel order: new values on one side, old on the other."""
    zero, sides = (0,), dict[Time, set[bool]]()
    for value in walk([made.value]):
        read = value.operation
        if isinstance(read, Access) and read.field == made.field and any(read.offsets):
            after = tuple(k or 0 for k in read.offsets) > zero * len(read.offsets)
            sides.setdefault(read.time, set()).add(after)
    if [len(sides.get(time, ())) for time in (Time.NOW, Time.NEXT)] != [1, 1]:
        return
    if sides[Time.NOW] != sides[Time.NEXT]:
        name = made.field
        raise StencilError(
            f"{name}.next on one side of the cell and {name} on the other are Gauss-Seidel order, "
            "and a step computes all cells at once; assign red cells, then black cells, by the "
            f"parity of their coordinates, or read {name}.next on all sides",
            made.place,
        )
