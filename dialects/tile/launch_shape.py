"""The shape of a launch: blocks, threads, and what blocks share, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class LaunchShape:
    """
    The shape of a kernel's launches: `grid` blocks of `block` threads and `shared_bytes` of dynamic
    shared memory each. Kernels ready to be launched, and their entries in bundles, are shapes with
    a name and code; `#tile.launch` has the shape of a lowered kernel.
    """

    grid: int
    """Blocks of a launch over the whole domain."""
    block: int
    """Threads of a block."""
    cluster: int = 1
    """Blocks launched together, with access to each other's shared memory."""
    shared_bytes: int = 0
    """Bytes of dynamic shared memory of a block."""
    blocks_per_tile: int = 1
    """Blocks of a tile waiting for each other, and so resident together; 1 without waits."""
    message_words: int = 0
    """
    64-bit words of device memory for exchanges between the blocks of one tile, 0 before a launch.
    """

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the shape, by name."""
        return {each.name: getattr(self, each.name) for each in fields(LaunchShape)}

    @property
    def has_messages(self) -> bool:
        """Blocks of a tile exchange through global memory."""
        return self.blocks_per_tile > 1

    @property
    def tiles(self) -> int:
        """The tiles of a launch, of `blocks_per_tile` blocks each."""
        return self.grid // self.blocks_per_tile
