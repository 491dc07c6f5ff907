"""The cells updated by an assignment: those with all reads inside the arrays."""

from __future__ import annotations

from collections.abc import Sequence

from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.operations import Access
from timetile.frontend.symbols import Assignment
from timetile.frontend.tracing import Step, walk

Box = tuple[tuple[int, int], ...]
"""First cell and end along each axis."""

Margins = tuple[tuple[int, int], ...]
"""How many cells an assignment leaves at the beginning and at the end of each axis."""


def margins(step: Step, made: Assignment) -> Margins:
    """
    The distances, before and behind a cell on each axis, of an assignment's reads of kept fields,
    or the distances declared by the step.
    """
    kept = ((Kind.KEEP, Kind.KEEP),) * step.rank
    declared = step.reach if made.region is None else None
    own = step.edges.get(made.field, kept)
    before = [(declared or 0) if below is Kind.KEEP else 0 for below, _ in own]
    behind = [(declared or 0) if above is Kind.KEEP else 0 for _, above in own]
    for value in walk([made.value]):
        if not isinstance(value.operation, Access):
            continue
        edges = step.edges.get(value.operation.field, kept)
        for axis, offset in enumerate(value.operation.offsets):
            if offset is None:
                continue
            below, above = edges[axis]
            if below is Kind.KEEP:
                before[axis] = max(before[axis], -offset if declared is None else declared)
            if above is Kind.KEEP:
                behind[axis] = max(behind[axis], offset if declared is None else declared)
    return tuple(zip(before, behind))


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
