"""Where the threads of a tile wait for each other: derived from what shared planes are read and when.

A plane that stage w writes in step i is read by stage r in step i + distance, and its slot is written
again by stage w' `slots - distance` steps after that. Each pair of cross-thread accesses needs a
barrier between. Barriers stand before a stage, in every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Order:
    """Stage `before` in some step must be separated from stage `after`, `distance` steps later."""

    before: int
    after: int
    distance: int

    def is_kept_by(self, barrier: int) -> bool:
        """A barrier before stage `barrier`, in every step, separates the two."""
        if self.distance == 0:
            return self.before < barrier <= self.after
        if self.distance == 1:
            return barrier > self.before or barrier <= self.after
        return True


def place_barriers(orders: Sequence[Order]) -> tuple[int, ...]:
    """
    The least number of barriers a step that keeps all orders: first those within a step, each as
    late as it may stand; what is left crosses steps, and one at the start of the step keeps it.
    """
    barriers: list[int] = []
    for order in sorted(orders, key=lambda o: o.after):
        if order.distance == 0 and not any(order.is_kept_by(b) for b in barriers):
            barriers.append(order.after)
    if any(not any(order.is_kept_by(b) for b in barriers) for order in orders) or (
        # Orders across several steps are kept by any barrier, but there must be one.
        orders and not barriers
    ):
        barriers.append(0)
    return tuple(sorted(barriers))
