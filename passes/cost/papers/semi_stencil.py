"""Semi-stencil: shared memory and partial sums of a star in two halves (section III, table V).

Sai et al., "Using the Semi-Stencil Algorithm to Accelerate High-Order Stencils on GPUs", PMBS 2022.
"""

from __future__ import annotations

from collections.abc import Sequence

BLOCK = (16, 32)
"""Threads of a block along the in-plane axes, the fastest axis last: the fastest block (table III).
"""


def planes(radius: int, *, buffered: bool = False, folded: int = 1) -> int:
    """
    Planes in shared memory: from the cell's own to the last (section III A), one more for the next
    plane with `buffered` (III B), `folded` + R + 1 for several planes a step (III C).
    """
    more = folded if folded > 1 else int(buffered)
    return radius + 1 + more


def whole_planes(radius: int) -> int:
    """Planes in shared memory of a star in one piece (section III A)."""
    return 2 * radius + 1


def partial_sums(radius: int) -> int:
    """Partial sums of a thread in registers: one for each plane between the halves."""
    return radius


def bytes_of_planes(
    block: Sequence[int], radius: int, planes: int, cell_bytes: int, fields: int
) -> int:
    """
    Bytes of shared memory of a block for fields in `planes` planes, with the cells around (section
    III A; table V has two fields of FP32).
    """
    cells = fields * planes
    for side in block:
        cells *= side + 2 * radius
    return cells * cell_bytes
