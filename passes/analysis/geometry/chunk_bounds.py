"""Lower bounds of the duration of launches in chunks of one height, by plain arithmetic.

A launch has columns on the rim and inside, and each kind has chunks of one height. The work of all
chunks shared by all slots, and the longest chunk, are bounds. With the least bound first, a few
launches of a hundred are made, and their tiles placed.
"""

from __future__ import annotations

from collections.abc import Sequence

from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.residency import Residency

MAKESPAN_ERROR = 1e-6
"""A bound of the relative rounding error of a computed makespan."""


class ChunkBounds:
    """
    Bounds for `rim` columns on the rim, whose steps cost `weight` interior steps, and the other
    columns of a plane inside.
    """

    def __init__(self, geometry: Geometry, residency: Residency, rim: int, weight: float):
        self.planes, self.period = geometry.planes, geometry.period
        self.restart = geometry.fill + geometry.drain
        self.rim, self.inner, self.weight = rim, geometry.plane_tiles - rim, weight
        self.residency, self.slots = residency, residency.tiles
        self.full = residency.crowding(self.slots)
        self.known: dict[int, tuple[int, int]] = {}

    def column(self, planes: int) -> tuple[int, int]:
        """How many chunks a column has for a given height, and how many steps each takes."""
        if planes not in self.known:
            steps = ceil_div(planes + self.restart, self.period) * self.period
            self.known[planes] = ceil_div(self.planes, planes), steps
        return self.known[planes]

    def crowding(self, tiles: int) -> float:
        """`Residency.crowding` of a launch; more tiles than slots crowd no multiprocessor more."""
        return self.full if tiles >= self.slots else self.residency.crowding(tiles)

    def least(self, edge: int, planes: int) -> float:
        """
        The least duration, in interior steps, of a launch whose chunks have `edge` planes on the
        rim and `planes` planes inside.
        """
        if self.restart < 0:
            return 0.0
        (edge_chunks, edge_steps), (chunks, steps) = self.column(edge), self.column(planes)
        outer, inner = self.rim * edge_chunks, self.inner * chunks
        cost = self.weight * edge_steps
        bound = (outer * cost + inner * steps) / self.slots
        if outer and cost > bound:
            bound = cost
        if inner and steps > bound:
            bound = steps
        return bound * (1 - MAKESPAN_ERROR) * self.crowding(outer + inner)

    def ordered(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, int]]:
        """Each pair of heights on the rim and inside: bound and place, the least bound first."""
        return sorted((self.least(*pair), place) for place, pair in enumerate(pairs))
