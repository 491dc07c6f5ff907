"""
Cells outside the box of an update, at the temporal level: whether all updates of a loop keep such
cells.
"""

from __future__ import annotations

from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.edges import continues_in_kernels
from timetile.passes.diagnostics import refuse


def check_kept(loop: LoopOp, *, images: bool = False) -> None:
    """
    Refuse a loop with an update that writes cells outside its box, or reads fields beyond their
    cells. `images`: kernels may continue fields themselves.
    """
    continued = [update for update in loop.updates if update.beyond is not None]
    if continued and not (images and continues_in_kernels(loop)):
        refuse(
            continued[0],
            "it reads fields beyond their cells, and no update reads images of the cells yet; run "
            "split-edges{everywhere=true} before",
        )
    for update in loop.updates:
        if update.outside is not None and not update.outside.keeps_all:
            refuse(
                update,
                f"the cells outside the box are {update.outside}, and no updates write the "
                "outside cells yet; run expand-boundaries before",
            )
