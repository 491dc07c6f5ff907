"""
How many tiles the device holds at once, and how tiles of one multiprocessor slow each other down.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from timetile.dialects.tile import KernelOp, LayoutAttr
from timetile.passes.analysis.placed import layout_of
from timetile.passes.targets.hardware import LANES, SCHEDULERS
from timetile.passes.targets.target import Target

SATURATING_WARPS = 1.4 * SCHEDULERS
"""
Warps of a multiprocessor keeping the pipes busy. One warp a scheduler does not (measured: FP64).
"""


@dataclass(frozen=True)
class Residency:
    """
    The tiles of a kernel held by a device. `block_tiles`, `block_warps`: tiles and warps of a
    block. `fitting`: blocks held by a multiprocessor at once. `multiprocessors`: their number.
    `tile_blocks`: blocks of a tile. `teams`: tiles of several blocks running at once.
    """

    block_tiles: int
    block_warps: int
    fitting: int
    multiprocessors: int
    tile_blocks: int = 1
    teams: int = 0

    @staticmethod
    def of(kernel: KernelOp, target: Target) -> Residency:
        """The residency of a kernel with the present layout and occupancy."""
        return Residency.of_layout(layout_of(kernel), kernel.blocks_per_multiprocessor, target)

    @staticmethod
    def of_layout(layout: LayoutAttr, occupancy: int, target: Target) -> Residency:
        """The residency of a layout, of whose blocks a multiprocessor holds `occupancy`."""
        blocks = layout.blocks
        teams = target.clusters(blocks) * occupancy
        if layout.has_messages:
            teams = target.resident_blocks(occupancy) // blocks
        return Residency(
            layout.pack.data,
            layout.threads // LANES,
            occupancy,
            target.multiprocessors,
            blocks,
            max(1, teams),
        )

    @property
    def warps(self) -> int:
        """Warps of a full multiprocessor."""
        return self.block_warps * self.fitting

    @property
    def tiles(self) -> int:
        """Tiles held by the device at once."""
        if self.tile_blocks > 1:
            return self.teams
        return self.multiprocessors * self.fitting * self.block_tiles

    def blocks(self, tiles: int) -> int:
        """Blocks of the fullest multiprocessor in a launch of `tiles` tiles."""
        blocks = ceil(tiles / self.block_tiles) * self.tile_blocks
        return min(self.fitting, ceil(blocks / self.multiprocessors))

    def busy_warps(self, tiles: int) -> float:
        """
        Warps of the fullest multiprocessor in a launch of `tiles` tiles, at least the number
        keeping pipes busy.
        """
        return max(SATURATING_WARPS, self.block_warps * self.blocks(tiles))

    def crowding(self, tiles: int) -> float:
        """
        The duration of a step in a launch of `tiles` tiles, relative to a step on a full
        multiprocessor.
        """
        return self.busy_warps(tiles) / max(SATURATING_WARPS, self.warps)
