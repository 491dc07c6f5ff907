"""Practical attainable performance: the gains of depth and of tiles (EBISU, sections 5 and 6).

The model is the coarse model of the paper, from the bandwidths of global and shared memory and the
accesses of a cell. `passes/cost` decides, and also counts pipes, issue slots, registers, waves of
tiles and their fill. `timetile explain --all` prints the formulas beside our prediction. Bandwidths
are bytes (or any one unit) per second, latencies seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf, prod

COLUMN = 4
"""Cells of a column computed by a thread in the paper, for instruction-level parallelism (6.1)."""

Offset = tuple[int, ...]


def shared_reads(taps: Collection[Offset], stream: int | None, *, in_registers: bool) -> float:
    """
    Reads of shared memory for a cell and step, with every level of a field in shared memory (`a_sm`
    of table 2 without the result's write): all taps. With planes in registers too (redundant
    register streaming, 4.3.3) a plane's neighbours are read once for all steps with taps, the own
    cell once, and neighbours inside a column of cells not at all.
    """
    if not in_registers:
        return len(set(taps))
    planes = {tuple(d for axis, d in enumerate(tap) if axis != stream) for tap in taps}
    column = COLUMN if any(len(at) == 2 for at in planes) else 1
    read = {(at[0] + cell, *at[1:]) for at in planes for cell in range(column) if len(at) == 2}
    read |= {at for at in planes if len(at) == 1}
    own = {(cell, 0) for cell in range(column)} | {(0,)}
    return len(read - own) / column + 1


def depth_that_shifts(
    global_accesses: float, shared_accesses: float, global_speed: float, shared_speed: float
) -> float:
    """
    Steps of a launch from which shared memory takes longer than global memory, for overlapping
    tiles (equation 17).
    """
    return global_accesses / global_speed * shared_speed / shared_accesses


def depth_that_shifts_device_tile(
    global_accesses: float,
    shared_accesses: float,
    global_speed: float,
    shared_speed: float,
    tile: tuple[int, int],
    radius: int,
) -> float:
    """
    Steps of a launch from which shared memory takes longer than global memory, where the halos of
    every step go through global memory (equations 18 and 19); infinite where the halos alone take
    longer.
    """
    area, ring = prod(tile), 2 * sum(tile) * radius
    level = shared_accesses * area / shared_speed - global_accesses * ring / global_speed
    return global_accesses * area / global_speed / level if level > 0 else inf


def least_width(
    global_accesses: float,
    shared_accesses: float,
    global_speed: float,
    shared_speed: float,
    radius: int,
) -> float:
    """The side of a square device tile with halos taking no longer than cells (equation 23)."""
    return 4 * global_accesses * shared_speed * radius / (shared_accesses * global_speed)


def valid_share(tile: Collection[int], depth: int, radius: int) -> float:
    """
    The share of a tile's cells right after all steps, for overlapping tiles (equations 8 and 9,
    with the factor of 2 for both sides of section 6.3).
    """
    return prod(max(0, side - 2 * depth * radius) / side for side in tile)


def valid_share_of_time(seconds: float, synchronisation: float, count: int = 1) -> float:
    """The share of a device tile's time without synchronisation (equation 11)."""
    return seconds / (seconds + synchronisation * count)


def attainable(
    global_accesses: float, cell_bytes: int, global_speed: float, depth: int, share: float = 1.0
) -> float:
    """
    Cells per second for a program bound by global memory, with a share of right cells (1, 2, 7).
    """
    return share * global_speed * depth / (global_accesses * cell_bytes)
