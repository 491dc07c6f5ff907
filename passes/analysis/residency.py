"""How many tiles the device holds at once, and how those of one multiprocessor slow each other down."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from timetile.dialects.tile import KernelOp
from timetile.dialects.tile_attributes import LANES
from timetile.passes.arch import Arch

SCHEDULERS = 4
"""Warp schedulers of a multiprocessor."""

SATURATING_WARPS = 1.4 * SCHEDULERS
"""Warps that keep the pipes busy: one a scheduler does not (measured: FP64)."""


@dataclass(frozen=True)
class Residency:
    """A kernel's tiles on a device."""

    kernel: KernelOp
    arch: Arch

    @property
    def block_tiles(self) -> int:
        """Tiles of a block."""
        assert self.kernel.layout is not None
        return self.kernel.layout.pack.data

    @property
    def block_warps(self) -> int:
        """Warps of a block."""
        assert self.kernel.layout is not None
        return self.kernel.layout.threads // LANES

    @property
    def warps(self) -> int:
        """Warps of a multiprocessor that is full."""
        return self.block_warps * self.kernel.blocks_per_multiprocessor

    @property
    def tiles(self) -> int:
        """Tiles that the device holds at once."""
        blocks = self.arch.multiprocessors * self.kernel.blocks_per_multiprocessor
        return blocks * self.block_tiles

    def blocks(self, tiles: int) -> int:
        """Blocks of the multiprocessor that has most of a launch of so many tiles."""
        spread = ceil(ceil(tiles / self.block_tiles) / self.arch.multiprocessors)
        return min(self.kernel.blocks_per_multiprocessor, spread)

    def busy_warps(self, tiles: int) -> float:
        """The warps of that multiprocessor, at least as many as its pipes can be kept busy by."""
        return max(SATURATING_WARPS, self.block_warps * self.blocks(tiles))

    def crowding(self, tiles: int) -> float:
        """A step's time in a launch of so many tiles, by the time of one on a full multiprocessor."""
        return self.busy_warps(tiles) / max(SATURATING_WARPS, self.warps)
