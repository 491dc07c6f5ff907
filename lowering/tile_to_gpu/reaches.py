"""How far the readers of a plane look, and whether its cells outside the bounds must be right as soon as it is made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from timetile.dialects.tile import ApplyOp, ExchangeOp, LoadOp, taps_of
from timetile.lowering.tile_to_gpu.planes import Position, Queue, Reach
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import moved_by


def widest(a: Reach, b: Reach) -> Reach:
    """The reach that holds both."""
    return [(max(p, r), max(q, s)) for (p, q), (r, s) in zip(a, b)]


class Reaches:
    """How far from a cell inside the bounds the readers of each queue of a kernel look, below and above."""

    def __init__(self, geometry: Geometry, queues: Sequence[Queue]):
        self.geometry, self.kernel, self.queues = geometry, geometry.kernel, queues
        self.known: dict[SSAValue, Reach] = {}
        # Who reads a queue, or takes its cells, comes after it.
        for queue in reversed(queues):
            self.known[queue.value] = self.reach_of(queue.value)

    def of(self, queue: Queue) -> Reach:
        """The reach of a queue's readers."""
        return self.known[queue.value]

    @property
    def own_cell(self) -> Reach:
        """The reach of who looks at its own cell alone."""
        return [(0, 0) for _ in self.geometry.axes]

    def of_tap(self, stage: ApplyOp, moved: Position) -> Reach:
        """The reach of a tap: a stage without `else` computes cells outside the bounds, too, as far as its readers look."""
        around = self.own_cell
        if not stage.otherwise:
            around = reduce(widest, (self.known[result] for result in stage.res))
        return [(low - d, high + d) for (low, high), d in zip(around, moved, strict=True)]

    def reach_of(self, queue: SSAValue) -> Reach:
        """That of the readers of a queue, of its exchanges, and of what takes its cells outside the bounds."""
        reaches: list[Reach] = []
        for use in queue.uses:
            stage = use.operation
            if isinstance(stage, ExchangeOp) and not stage.publishes_copies:
                reaches.append(self.known[stage.result])
        reaches += [self.known[heir.value] for heir in self.heirs_of(queue)]
        for stage, tap in taps_of(queue):
            reaches.append(self.of_tap(stage, self.kernel.in_plane(tap.offset)))
        return reduce(widest, reaches) if reaches else self.own_cell

    def heirs_of(self, queue: SSAValue) -> list[Queue]:
        """The queues that take their cells outside the bounds from a queue's registers."""
        return [q for q in self.queues if q.older is not None and q.older.value is queue]

    def asks_for_legal(self, queue: Queue) -> bool:
        """
        Cells outside the bounds must be right when a plane is made: neighbours read them in the same
        step, or another queue takes them then.
        """
        if queue.guard is None or not isinstance(queue.value.owner, LoadOp | ApplyOp):
            return False
        if any(heir.behind == 0 for heir in self.heirs_of(queue.value)):
            return True
        if queue.older is None:
            # In planes of several axes every neighbour that is read at once would be replaced by itself.
            many = self.neighbours_now(queue.value) > len(self.geometry.thread_positions)
            return many and len(self.geometry.axes) > 1 and queue.shared is None
        published = any(isinstance(use.operation, ExchangeOp) for use in queue.value.uses)
        return published or any(
            reader.age(tap) == 0
            and any(map(any, self.of_tap(reader, self.kernel.in_plane(tap.offset))))
            for reader, tap in taps_of(queue.value)
        )

    def neighbours_now(self, queue: SSAValue) -> int:
        """Neighbours in the plane that a thread reads in the step in which the plane is made."""
        own = self.geometry.thread_positions
        seen: set[Position] = set()
        values = [queue]
        values += [
            use.operation.results[0] for use in queue.uses if isinstance(use.operation, ExchangeOp)
        ]
        for value in values:
            for reader, tap in taps_of(value):
                moved = self.kernel.in_plane(tap.offset)
                if reader.age(tap) == 0 and any(moved):
                    seen |= {moved_by(at, moved) for at in own}
        return len(seen.difference(own))
