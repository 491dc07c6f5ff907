"""The cells updated by an assignment: those with all reads inside the arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.operations import Access, Time
from timetile.frontend.steps import Step, walk
from timetile.frontend.symbols import Assignment, Held
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


def accesses_in(value: Value) -> list[Access]:
    """The reads of fields and temporaries behind a value."""
    return [v.operation for v in walk([value]) if isinstance(v.operation, Access)]


def farthest_reads(step: Step, value: Value, known: Mapping[str, Reads]) -> Reads:
    """
    The farthest reads of a value. A read of a temporary, with its own reads in `known`, counts as
    reads farther away.
    """
    kept = ((Kind.KEEP, Kind.KEEP),) * step.rank
    found: Reads = [[None, None] for _ in range(step.rank)]
    for read in accesses_in(value):
        inner = known[read.field] if read.time is Time.INSIDE else [[0, 0]] * step.rank
        edges = step.edges.get(read.field, kept)
        for axis, offset in enumerate(read.offsets):
            if offset is None:
                continue
            for side, (far, moved) in enumerate(zip(inner[axis], (-offset, offset))):
                if far is None or edges[axis][side] is not Kind.KEEP:
                    continue
                seen = found[axis][side]
                found[axis][side] = far + moved if seen is None else max(seen, far + moved)
    return found


def reads_of_temporaries(step: Step) -> dict[str, Reads]:
    """The farthest reads of each temporary."""
    known: dict[str, Reads] = {}
    for made in step.temporaries.values():
        known[made.name] = farthest_reads(step, made.value, known)
    return known


def margins(step: Step, made: Assignment) -> Margins:
    """
    The distances, before and behind a cell on each axis, of an assignment's reads of kept fields,
    or the distances declared by the step.
    """
    kept = ((Kind.KEEP, Kind.KEEP),) * step.rank
    own = step.edges.get(made.field, kept)
    found: list[tuple[int, int]] = []
    known = reads_of_temporaries(step)
    all_reads = farthest_reads(step, made.value, known)
    for axis, (sides, reads) in enumerate(zip(own, all_reads)):
        both = [0, 0]
        is_batch = step.in_batch and axis == 0
        declared = made.reach if made.region is None and not is_batch else None
        for side, far in enumerate(reads):
            if declared is not None and (far is not None or sides[side] is Kind.KEEP):
                both[side] = declared
            elif far is not None:
                both[side] = max(far, 0)
        found.append((both[0], both[1]))
    return tuple(found)


def box_of(step: Step, made: Assignment, shape: Sequence[int]) -> Box:
    """
    The cells of arrays of a shape updated by an assignment, in a sweep those of all its
    assignments. Raises ValueError if no cell is.
    """
    together = [item for item in step.assignments if item.sweep is made.sweep is not None]
    sides = [margins(step, item) for item in together or [made]]
    most = [(max(a for a, _ in axis), max(b for _, b in axis)) for axis in zip(*sides)]
    box: list[tuple[int, int]] = []
    for axis, (size, (before, behind)) in enumerate(zip(shape, most)):
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


def needed_boxes(
    step: Step, shape: Sequence[int], asked: Mapping[str, Box] | None = None
) -> dict[str, Box]:
    """
    The cells that readers need of each temporary, from the cells `asked` on; nothing for a
    temporary without readers.
    """
    needed: dict[str, Box] = dict(asked or {})
    for made in reversed(step.statements):
        box = needed.get(made.name) if isinstance(made, Held) else box_of(step, made, shape)
        for read in accesses_in(made.value) if box is not None else ():
            if read.time is Time.INSIDE and box is not None:
                moved = tuple((a + (k or 0), b + (k or 0)) for (a, b), k in zip(box, read.offsets))
                known = needed.get(read.field)
                needed[read.field] = moved if known is None else around([known, moved])
    return needed


def far_outside(box: Box, shape: Sequence[int]) -> Margins:
    """How far outside the arrays cells of a box lie, before and behind, along each axis."""
    return tuple((max(-low, 0), max(high - size, 0)) for (low, high), size in zip(box, shape))
