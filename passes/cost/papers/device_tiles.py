"""EBISU's device tiles with the blocks of a tile in one row: shapes ranked by sections 5 and 6.

The paper's blocks span both in-plane axes of the domain, so that no cell is computed twice. Blocks
in one row span the first in-plane axis; tiles overlap along the second, and the valid share of
equation 8 counts again. The speed of a block shape and a depth is the practical attainable
performance (equations 1, 5, 7 and 11), for the turns of the device and the steps of a turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, prod

from timetile.passes.cost.papers.ebisu import BARRIER_SECONDS, component_seconds

MOST_PARTS = 4
"""The most parts tried of the first in-plane axis, and of the stream."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class DeviceSpeeds:
    """Blocks held by the device at once, and bytes a second of global and of shared memory."""

    resident: int
    global_speed: float
    shared_speed: float


@dataclass(frozen=True)
class DeviceTiles:
    """Tiles of a volume, whose planes arrive along the first axis."""

    domain: tuple[int, int, int]
    radius: int
    cell_bytes: int
    global_accesses: float
    shared_accesses: float
    device: DeviceSpeeds

    def with_blocks_across(self, across: int) -> DeviceTiles:
        """
        Tiles with a number of blocks along the second axis for each along the first: a row of these
        counts as one block with as many cells.
        """
        resident = max(1, self.device.resident // across)
        return replace(self, device=replace(self.device, resident=resident))

    def numbers_of_blocks(self, rows: int, depth: int) -> Iterator[int]:
        """Blocks of `rows` rows that span the domain and the overlap, whole or in equal parts."""
        for parts in range(1, MOST_PARTS + 1):
            spanned = ceil(self.domain[1] / parts) + 2 * depth * self.radius
            yield min(ceil(spanned / rows), self.device.resident)

    def steps(self, block: Pair, blocks: int, depth: int) -> float:
        """Stream steps of a launch, one turn of the device after the other; 0 without a cell."""
        overlap = 2 * depth * self.radius
        rows, row = block[0] * blocks - overlap, block[1] - overlap
        if rows <= 0 or row <= 0:
            return 0
        tiles = ceil(self.domain[1] / rows) * ceil(self.domain[2] / row)
        at_once = max(1, self.device.resident // blocks)
        return min(
            ceil(tiles * chunks / at_once) * (self.domain[0] / chunks + overlap)
            for chunks in range(1, MOST_PARTS + 1)
        )

    def step_seconds(self, block: Pair, blocks: int, depth: int) -> float:
        """A stream step of all resident tiles: the slower memory (5), and a barrier (11)."""
        resident = max(1, self.device.resident // blocks) * blocks
        held = resident * prod(block)
        edges = 2 * 2 * resident * block[1] * self.radius * depth
        moved = component_seconds(
            1, self.global_accesses * held + edges, self.cell_bytes, self.device.global_speed
        )
        shared = component_seconds(
            self.shared_accesses * depth, held, self.cell_bytes, self.device.shared_speed
        )
        return max(moved, shared) + BARRIER_SECONDS

    def speed(self, block: Pair, blocks: int, depth: int) -> float:
        """Valid cells a second; 0 if the overlap takes all cells of a tile."""
        steps = self.steps(block, blocks, depth)
        if not steps:
            return 0.0
        return prod(self.domain) * depth / (steps * self.step_seconds(block, blocks, depth))

    def best_blocks(self, block: Pair, depth: int) -> int:
        """Blocks of a tile for the most valid cells a second, the fewest of these."""
        tried = sorted(self.numbers_of_blocks(block[0], depth))
        return max(tried, key=lambda blocks: self.speed(block, blocks, depth))
