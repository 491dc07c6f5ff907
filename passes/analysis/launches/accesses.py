"""The cells that launches of kernels read and write, and the order of launches.

Two launches may run side by side if neither writes cells read or written by the other. A kernel's
stores depend on the cells in `CellAccess.reads` alone, and no cell outside `CellAccess.writes` is
written: a thread beyond the bounds loads cells, and stores none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import PointKind
from timetile.dialects.tile import ApplyOp, KernelOp, LoadOp, StoreOp


@dataclass(frozen=True)
class CellAccess:
    """Boxes around the cells of a field read and written by a launch; None for no cell."""

    reads: CellBox | None = None
    writes: CellBox | None = None


def kernel_accesses(kernel: KernelOp) -> tuple[CellAccess, ...]:
    """
    The access to each argument of a kernel, numbers included. Kernels with kept planes may read
    whole fields, and kernels of several steps may write whole fields.
    """
    bounds = CellBox.of(kernel.bounds)
    reads: dict[SSAValue, CellBox] = {}
    writes: dict[SSAValue, CellBox] = {}
    for stage in kernel.stages:
        if isinstance(stage, LoadOp):
            whole = CellBox.of(field_bounds(stage.field))
            cells = stage.cells_read(bounds) & whole if kernel.reads_memory else whole
            known = reads.get(stage.field)
            reads[stage.field] = cells if known is None else known | cells
        elif isinstance(stage, StoreOp):
            whole = CellBox.of(field_bounds(stage.field))
            cells = stage.cells if kernel.steps.data == 1 else whole
            known = writes.get(stage.field)
            writes[stage.field] = cells if known is None else known | cells
        elif isinstance(stage, ApplyOp):
            for made in stage.point_sets:
                if made.kind is PointKind.SAMPLE and made.layout.lines:
                    # A kernel may keep traces in the list.
                    writes[made.places] = CellBox.of(field_bounds(made.places))
    return tuple(CellAccess(reads.get(a), writes.get(a)) for a in kernel.body.block.args)


def have_common_cells(one: CellBox | None, other: CellBox | None) -> bool:
    """Whether two boxes of one field have a cell in common."""
    return one is not None and other is not None and not (one & other).is_empty


def collide(one: CellAccess, other: CellAccess) -> bool:
    """Whether one of two launches writes cells of a field read or written by the other."""
    return (
        have_common_cells(one.writes, other.writes)
        or have_common_cells(one.writes, other.reads)
        or have_common_cells(one.reads, other.writes)
    )


def predecessors(count: int, must_wait: Callable[[int, int], bool]) -> list[list[int]]:
    """
    For each of `count` launches in order, the fewest earlier launches to wait for: the last ones,
    after the end of all others. `must_wait(later, earlier)`: two launches may not run side by side.
    """
    before: list[set[int]] = []
    found: list[list[int]] = []
    for later in range(count):
        waited: set[int] = set()
        direct: list[int] = []
        for earlier in reversed(range(later)):
            if earlier not in waited and must_wait(later, earlier):
                direct.append(earlier)
                waited |= before[earlier] | {earlier}
        before.append(waited)
        found.append(direct[::-1])
    return found


def longest_chain(waits: Sequence[Sequence[int]]) -> int:
    """The length of the longest chain of launches, each with a wait for the launch before."""
    length: list[int] = []
    for others in waits:
        length.append(1 + max((length[other] for other in others), default=0))
    return max(length, default=0)
