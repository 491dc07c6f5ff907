"""Fields of fewer axes that kernels and executors read in place.

`temporal.broadcast` spreads a field along more axes. Nothing is spread where no operation writes
the source and only updates of time loops read the result: every cell of the spread field is then a
cell of the source at any time.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from timetile.dialects.temporal import BroadcastOp, UpdateOp
from timetile.passes.raising.memory import is_never_written


@dataclass(frozen=True)
class ReadField:
    """
    The memory behind a time loop's field. A field of fewer axes names the domain's axes it has;
    None means all.
    """

    field: SSAValue
    axes: tuple[int, ...] | None


def is_read_in_place(op: BroadcastOp) -> bool:
    """Whether updates read the source of a broadcast instead of the spread field."""
    readers = (use.operation for use in op.field.uses)
    return all(isinstance(reader, UpdateOp) for reader in readers) and is_never_written(op.source)


def read_field(field: SSAValue) -> ReadField:
    """The field in memory behind a field that a time loop reads."""
    owner = field.owner
    if isinstance(owner, BroadcastOp) and is_read_in_place(owner):
        return ReadField(owner.source, owner.axis_list)
    return ReadField(field, None)
