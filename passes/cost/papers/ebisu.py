"""EBISU: practical attainable performance, and sizes from it (sections 4 to 6, equations 1 to 23).

The model is the coarse model of the paper, from the bandwidths of global and shared memory and the
accesses of a cell. The system `ebisu` takes its depth and its tiles from here, and `timetile
explain --all` prints the formulas beside our prediction. `passes/cost` also counts pipes, issue
slots, registers, waves of tiles and their fill. Bandwidths are bytes (or any one unit) per second,
latencies seconds. Zhang et al., "Revisiting Temporal Blocking Stencil Optimizations", ICS 2023,
https://doi.org/10.1145/3577193.3593716.
"""

from __future__ import annotations

from collections.abc import Collection
from math import ceil, floor, inf, prod

COLUMN = 4
"""Cells of a column computed by a thread in the paper, for instruction-level parallelism (6.1)."""

THREADS = 256
"""Threads of a multiprocessor: an occupancy of 12.5% (section 6.1)."""

SIDE = 32
"""Cells along either side of a block's part of a plane of two axes (section 6.4.2)."""

BARRIER_SECONDS = 1.2e-6
"""The time of a barrier of the whole grid on an A100 (section 5.2.2)."""

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


def component_seconds(accesses: float, cells: float, size: float, speed: float) -> float:
    """
    Seconds of a component for `accesses` of a cell, `cells` cells and `size` bytes an access
    (equations 2 to 4; computing has operations for accesses, and a size of 1).
    """
    return accesses * cells * size / speed


def bottleneck(seconds: dict[str, float]) -> str:
    """The component taking longest, which takes the time of the launch (equations 5 and 6)."""
    return max(seconds, key=lambda component: seconds[component])


def speed(cells: float, depth: int, seconds: dict[str, float]) -> float:
    """Cells per second of a launch of `depth` steps, by its slowest component (5 and 7)."""
    return cells * depth / max(seconds.values())


def practical(attained: float, valid: float) -> float:
    """
    Cells per second for a share of valid cells or of valid time (equations 1, 10 and 12): what
    equations 20 and 21 compare for overlapping tiles and for tiles of the device.
    """
    return attained * valid


def concurrency(latency: float, throughput: float) -> float:
    """Work in flight that saturates a unit (Little's law, equations 13 to 16)."""
    return latency * throughput


def least_depth(
    global_accesses: float, shared_accesses: float, global_speed: float, shared_speed: float
) -> int:
    """
    The depth for a plane with one axis: as many steps as shift the bottleneck (6.2.1, equation 17).
    """
    steps = depth_that_shifts(global_accesses, shared_accesses, global_speed, shared_speed)
    return max(1, ceil(steps))


def level_bytes(side: int, radius: int, cell_bytes: int) -> int:
    """
    Bytes of shared memory of a level of a device tile (6.2.2): one plane and one more for each cell
    of the radius, with the cells around.
    """
    return (1 + radius) * (side + 2 * radius) ** 2 * cell_bytes


def deepest(room: int, side: int, radius: int, cell_bytes: int) -> int:
    """The depth of a device tile: as deep as `room` bytes of shared memory hold (6.4.2)."""
    return max(1, floor(room / level_bytes(side, radius, cell_bytes)))
