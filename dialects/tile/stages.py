"""Parts shared by the stages of a kernel: queue values, homes in text, and the cells needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue
from xdsl.traits import (
    HasParent,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import (
    field_bounds,
)
from timetile.dialects.tile.queues import QueueType

if TYPE_CHECKING:
    from timetile.dialects.tile.kernel import KernelOp

NeededCells: TypeAlias = dict[SSAValue, CellBox]
"""For each queue, a box around the cells needed."""


def queue_type(value: SSAValue) -> QueueType:
    """The type of a queue value."""
    assert isinstance(value.type, QueueType)
    return value.type


def queue_lag(value: SSAValue) -> int:
    """The lag of a queue value, in stream steps."""
    return queue_type(value).lag.data


def verify_rank(kernel: KernelOp, field: SSAValue) -> None:
    """VerifyException for a field with other axes than the kernel's domain."""
    rank = len(field_bounds(field).lb)
    if rank != kernel.rank:
        raise VerifyException(f"field of rank {rank} in a kernel of rank {kernel.rank}")


def in_kernel() -> HasParent:
    """The trait of stages: the parent is a kernel."""
    from timetile.dialects.tile.kernel import KernelOp

    return HasParent(KernelOp)
