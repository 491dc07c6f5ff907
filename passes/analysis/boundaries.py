"""Cells outside the box of an update, at the temporal level: whether the updates of a loop all keep
them.
"""

from __future__ import annotations

from timetile.dialects.temporal import LoopOp
from timetile.passes.diagnostics import refuse


def check_kept(loop: LoopOp) -> None:
    """Refuse a loop some of whose updates write cells outside their boxes."""
    for update in loop.updates:
        if update.outside is not None and not update.outside.keeps_all:
            refuse(
                update,
                f"its cells outside the box are {update.outside}, which are not yet updates of "
                "their own; run "
                "expand-boundaries before",
            )
