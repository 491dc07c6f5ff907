"""
Cells outside the box of an update, at the temporal level: whether all updates of a loop keep such
cells.
"""

from __future__ import annotations

from timetile.dialects.temporal import LoopOp
from timetile.passes.diagnostics import refuse


def check_kept(loop: LoopOp) -> None:
    """Refuse a loop with an update that writes cells outside its box."""
    for update in loop.updates:
        if update.outside is not None and not update.outside.keeps_all:
            refuse(
                update,
                f"the cells outside the box are {update.outside}, and no updates write the "
                "outside cells yet; run expand-boundaries before",
            )
