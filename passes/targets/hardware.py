"""Facts of the hardware equal for all targets.

`LANES`, the threads of a warp, is the number of the tile dialect, whose verifiers need it.
"""

from __future__ import annotations

from timetile.dialects.tile import LANES

__all__ = [
    "CACHED_INSTRUCTIONS",
    "LANES",
    "LEAST_COPY",
    "SCHEDULERS",
    "SECTOR_BYTES",
    "SHARED_BYTES",
    "SHARED_BYTES_PER_CYCLE",
    "SLICE_ALIGNMENT",
    "VECTOR_BYTES",
]

SCHEDULERS = 4
"""Warp schedulers of a multiprocessor."""

CACHED_INSTRUCTIONS = 2048
"""
Instructions of 16 bytes in the first instruction cache of a multiprocessor: loops of a kernel with
more are slower (measured on an H100: 1333 instructions run at full speed, and 2644 at 0.81).
"""

VECTOR_BYTES = 16
"""Bytes of the widest access of a thread."""

LEAST_COPY = 4
"""Bytes of the smallest asynchronous copy."""

SECTOR_BYTES = 32
"""
Least bytes read or written by memory. A store of a part costs as much as a store of the whole.
"""

SHARED_BYTES_PER_CYCLE = 128
"""Bytes a cycle of the shared memory of one multiprocessor: 32 banks of 4 bytes."""

SHARED_BYTES = tuple(size * 1024 for size in (0, 8, 16, 32, 64, 100, 132, 164, 196, 228))
"""
The sizes of a multiprocessor's shared memory: the driver takes the smallest with room for its
blocks, and leaves the rest of the first-level cache to other data (CUDA's tuning guides).
"""

SLICE_ALIGNMENT = SHARED_BYTES_PER_CYCLE
"""Alignment, in bytes, of slices of shared memory: each slice begins in the first bank."""
