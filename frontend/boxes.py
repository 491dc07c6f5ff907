"""The cells updated by an assignment: those with all reads inside the arrays."""

from __future__ import annotations

from collections.abc import Sequence

from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.operations import Access, Time
from timetile.frontend.steps import Step, walk
from timetile.frontend.symbols import Assignment, Held, StepStatement
from timetile.frontend.values import Value

Box = tuple[tuple[int, int], ...]
"""First cell and end along each axis."""

Margins = tuple[tuple[int, int], ...]
"""How many cells an assignment leaves at the beginning and at the end of each axis."""

Reads = list[list[int | None]]
"""
The farthest read of kept fields before and behind a cell on each axis, negative on the other side
of the cell; None without a read.
"""


def farthest_reads(step: Step, value: Value) -> Reads:
    """The farthest reads of a value. A read of a temporary counts as the temporary's own reads."""
    kept = ((Kind.KEEP, Kind.KEEP),) * step.rank
    found: Reads = [[None, None] for _ in range(step.rank)]
    for read in (v.operation for v in walk([value]) if isinstance(v.operation, Access)):
        inner: Reads = [[0, 0] for _ in range(step.rank)]
        if read.time is Time.INSIDE:
            inner = farthest_reads(step, step.temporaries[read.field].value)
        edges = step.edges.get(read.field, kept)
        for axis, offset in enumerate(read.offsets):
            if offset is None:
                continue
            for side, (far, moved) in enumerate(zip(inner[axis], (-offset, offset))):
                if far is None or edges[axis][side] is not Kind.KEEP:
                    continue
                known = found[axis][side]
                found[axis][side] = far + moved if known is None else max(known, far + moved)
    return found


def margins(step: Step, made: Assignment) -> Margins:
    """
    The distances, before and behind a cell on each axis, of an assignment's reads of kept fields,
    or the distances declared by the step.
    """
    kept = ((Kind.KEEP, Kind.KEEP),) * step.rank
    declared = step.reach if made.region is None else None
    own = step.edges.get(made.field, kept)
    found: list[tuple[int, int]] = []
    for sides, reads in zip(own, farthest_reads(step, made.value)):
        both = [0, 0]
        for side, far in enumerate(reads):
            if declared is not None and (far is not None or sides[side] is Kind.KEEP):
                both[side] = declared
            elif far is not None:
                both[side] = max(far, 0)
        found.append((both[0], both[1]))
    return tuple(found)


def box_of(step: Step, made: Assignment, shape: Sequence[int]) -> Box:
    """The cells of arrays of a shape updated by an assignment. Raises ValueError if no cell is."""
    box: list[tuple[int, int]] = []
    for axis, (size, (before, behind)) in enumerate(zip(shape, margins(step, made))):
        region = slice(None) if made.region is None else made.region[axis]
        first, end, _ = region.indices(size)
        low, high = max(first, before), min(end, size - behind)
        if low >= high:
            raise ValueError(
                f"{made.field}.next in line {made.place.line} of {step.label} gets no new value "
                f"along axis {axis} of size {size}, as the step reads {before} before and "
                f"{behind} behind each; pass larger arrays or another region"
            )
        box.append((low, high))
    return tuple(box)


def is_inside(box: Box, other: Box) -> bool:
    """Whether all cells of a box lie in another box."""
    return all(low <= a and b <= high for (a, b), (low, high) in zip(box, other))


def around(boxes: Sequence[Box]) -> Box:
    """The smallest box around some boxes."""
    return tuple((min(a for a, _ in axis), max(b for _, b in axis)) for axis in zip(*boxes))


def carried_over(step: Step, name: str, shape: Sequence[int]) -> Box | None:
    """
    The cells of a field that a step copies to the new values before all assignments; None for no
    cells. A read of new values between two assignments may take a cell that only later assignments
    write: such a cell still has the value at the beginning of the step.
    """
    made = [item for item in step.assignments if item.field == name]
    boxes = [box_of(step, item, shape) for item in made]
    first = step.first_read(name)
    if first is None:
        return None
    later = [
        box for box in boxes[first:] if not any(is_inside(box, known) for known in boxes[:first])
    ]
    return around(later) if later else None


def computed_outside(step: Step, made: Sequence[StepStatement]) -> Margins:
    """How far outside the arrays, at most, statements are computed, for readers at a distance."""
    farthest = [[0, 0] for _ in range(step.rank)]
    names = {item.name for item in made if isinstance(item, Held)}
    for reader in step.statements if names else ():
        reads = [v.operation for v in walk([reader.value]) if isinstance(v.operation, Access)]
        reads = [read for read in reads if read.time is Time.INSIDE and read.field in names]
        around_reader = computed_outside(step, [reader]) if reads else ()
        for axis, sides in enumerate(around_reader):
            for offset in (read.offsets[axis] or 0 for read in reads):
                for side, moved in enumerate((-offset, offset)):
                    farthest[axis][side] = max(farthest[axis][side], sides[side] + moved)
    return tuple((low, high) for low, high in farthest)
