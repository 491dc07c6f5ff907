"""Fields of a time loop whose kernels write numbers in place of cells."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr

from timetile.dialects.temporal import LoopOp
from timetile.dialects.temporal.reduce import ReductionAttr
from timetile.passes.analysis.launches.liveness import overwrites, written_bounds

NUMBERS = "temporal.numbers"
"""
The attribute of an update whose cells no step reads, with the kind of the number of each target:
kernels of several steps leave the greatest, or the least, of the cells of their last step.
"""


def kernel_numbers(loop: LoopOp) -> dict[int, ReductionAttr]:
    """
    The kinds of numbers, by the loop's arguments that have them after a step; of updates of all
    cells that a kernel writes.
    """
    own, found = loop.body.block.args, dict[int, ReductionAttr]()
    for update in loop.updates:
        if NUMBERS not in update.attributes or not overwrites(update, written_bounds(loop)):
            continue
        kinds = cast("ArrayAttr[ReductionAttr]", update.attributes[NUMBERS])
        by_target = dict(zip(map(own.index, update.targets), kinds, strict=True))
        for k, source in enumerate(loop.rotation):
            if source in by_target:
                found[k] = by_target[source]
    return found
