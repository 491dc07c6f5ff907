"""DTB: tiles that stay on the device for all steps (section 3), and a depth for them.

The paper has no formulas for the depth. The depth here is by the equations of the authors' later
paper (`ebisu.py`), for a tile that is loaded and stored once a launch. Zhang et al., "Exploiting
Scratchpad Memory for Deep Temporal Blocking", GPGPU 2023, https://doi.org/10.1145/3589236.3589242.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, prod

from timetile.passes.cost.papers.ebisu import BARRIER_SECONDS, component_seconds

DEEPEST = 16
"""The deepest launch tried: the code of all levels is written out."""


@dataclass(frozen=True)
class Tiles:
    """Tiles of a domain of two axes, each of several blocks along the first axis."""

    domain: tuple[int, int]
    block: tuple[int, int]
    """Cells of a block."""
    resident: int
    """Blocks held by the device at once."""
    radius: int

    def turns(self, blocks: int, depth: int) -> float:
        """How often the device holds other tiles until all are done; infinite without a cell."""
        overlap = 2 * self.radius * depth
        rows, row = self.block[0] * blocks - overlap, self.block[1] - overlap
        if rows <= 0 or row <= 0:
            return inf
        tiles = ceil(self.domain[0] / rows) * ceil(self.domain[1] / row)
        return ceil(tiles / (self.resident // blocks))

    def blocks(self, depth: int) -> int:
        """Blocks of a tile for the fewest turns, the fewest of these."""
        return min(range(1, self.resident + 1), key=lambda blocks: self.turns(blocks, depth))


def best_depth(
    tiles: Tiles,
    cell_bytes: int,
    global_accesses: float,
    shared_accesses: float,
    speeds: tuple[float, float],
) -> int:
    """
    The depth with the most valid cells a second. `speeds`: bytes a second of global and of shared
    memory. A turn loads and stores the device's cells once, and has a barrier a step.
    """
    held = tiles.resident * prod(tiles.block)
    memory = component_seconds(global_accesses, held, cell_bytes, speeds[0])
    level = component_seconds(shared_accesses, held, cell_bytes, speeds[1]) + BARRIER_SECONDS

    def seconds_a_step(depth: int) -> float:
        return tiles.turns(tiles.blocks(depth), depth) * (memory + depth * level) / depth

    return min(range(1, DEEPEST + 1), key=seconds_a_step)
