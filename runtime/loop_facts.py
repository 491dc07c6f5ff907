"""What runs need to know of a program's time loops: found in the IR once, as short runs are made again and again."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import SSAValue

from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.liveness import written_cells


@dataclass(frozen=True)
class LoopFacts:
    """
    Of one time loop: the fields that it captures and its scalars, `cells` that a step updates, and the roles that name
    after the last step what it wrote.
    """

    captures: tuple[SSAValue, ...]
    scalars: tuple[SSAValue, ...]
    cells: int
    latest: tuple[int, ...]


class KnownLoops:
    """The facts of a program's time loops."""

    def __init__(self):
        self.known: dict[LoopOp, LoopFacts] = {}

    def of(self, loop: LoopOp) -> LoopFacts:
        if loop not in self.known:
            args = loop.body.block.args
            written = {args.index(t) for update in loop.updates for t in update.targets}
            latest = tuple(k for k, source in enumerate(loop.rotation) if source in written)
            self.known[loop] = LoopFacts(
                tuple(loop.captures), tuple(loop.scalars), written_cells(loop), latest
            )
        return self.known[loop]


def is_trip_count(value: SSAValue) -> bool:
    """Everything that the value decides is how many steps time loops run."""
    if not isinstance(value.type, IndexType | IntegerType):
        return False
    for use in value.uses:
        op = use.operation
        if isinstance(op, LoopOp):
            if op.steps is not value:
                return False
        elif not op.name.startswith("arith.") or not all(map(is_trip_count, op.results)):
            return False
    return True
