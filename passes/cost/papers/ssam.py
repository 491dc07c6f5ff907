"""SSAM: cells of the register cache, latencies and halos (sections 4 and 5, equations 3 to 5).

M and N are the columns and rows of a filter, P the outputs of a thread, latencies are cycles of a
warp. Chen et al., "A Versatile Software Systolic Execution Model for GPU Memory-Bound Kernels",
SC 2019, https://doi.org/10.1145/3295500.3356162.
"""

from __future__ import annotations

from dataclasses import dataclass

OUTPUTS = 4
"""P, the outputs of a thread (section 6.2)."""

WARPS_OF_A_BLOCK = 4
"""Warps in a block of 128 threads (section 6.2)."""

WARP = 32
"""S, the threads of a warp."""


@dataclass(frozen=True)
class Latencies:
    """Cycles of a multiply-add, a shuffle, and a read of shared memory or of a register."""

    multiply_add: float
    shuffle: float
    shared_read: float
    register: float = 0.0


V100 = Latencies(multiply_add=4, shuffle=22, shared_read=33)
"""The cycles of a V100 (table 2)."""


def cached_cells(rows: int, outputs: int = OUTPUTS) -> int:
    """C, the cells of a column kept by a thread for `outputs` outputs (equation 3)."""
    return rows + outputs - 1


def valid_outputs(columns: int) -> int:
    """Outputs of a warp for one step of the sliding window (section 4.4)."""
    return WARP - columns + 1


def shuffles_of_sum(columns: int) -> int:
    """Shuffles of a sum for an output: one less than columns (section 5.2)."""
    return columns - 1


def latency_in_shared(columns: int, rows: int, cycles: Latencies) -> float:
    """Cycles of an output with cells in shared memory (section 5.2)."""
    a_term = cycles.multiply_add + 2 * cycles.shared_read + 2 * cycles.register
    return columns * rows * a_term


def latency_in_registers(columns: int, rows: int, cycles: Latencies) -> float:
    """Cycles of an output with cells in registers and sums that travel (equation 4)."""
    a_term = cycles.multiply_add + cycles.shared_read + 2 * cycles.register
    return columns * rows * a_term + shuffles_of_sum(columns) * cycles.shuffle


def halo_share(columns: int, rows: int, outputs: int = OUTPUTS) -> float:
    """The share of a warp's cached cells that are a halo (section 5.3)."""
    cached = cached_cells(rows, outputs)
    return 1 - (WARP - columns) * (cached - rows) / (WARP * cached)


def gain(columns: int, rows: int, cycles: Latencies) -> float:
    """Cycles saved by an output in registers (equation 5)."""
    in_shared = latency_in_shared(columns, rows, cycles)
    return in_shared - latency_in_registers(columns, rows, cycles)
