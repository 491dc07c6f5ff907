"""
Loops that take turns on fields in parts.

Kernels of a loop read cells around its boxes from buffers of their own, whose ages tell nothing:
no launch of the loop changes such cells. Another loop, or a sweep, may have changed them.
"""

from __future__ import annotations

from collections.abc import Sequence

from timetile.dialects.decomposition import is_covered
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.ghosts import changing_boxes
from timetile.runtime.ranks.parted import PartedField


def stale_around(loop: LoopOp, buffers: Sequence[PartedField]) -> list[PartedField]:
    """
    Note that a loop begins to change fields. Returns the fields with aged ghosts around the loop's
    boxes, about to be exchanged.
    """
    stale: list[PartedField] = []
    for role, field in enumerate(buffers):
        boxes = changing_boxes(loop, role)
        if field.changed is not None and field.age and not is_covered(field.changed, boxes):
            stale.append(field)
        if not field.age or field in stale:
            field.changed = None
        for box in boxes:
            field.changed = box if field.changed is None else field.changed | box
    return [field for field in dict.fromkeys(stale) if field.cuts]
