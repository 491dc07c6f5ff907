"""AN5D: configurations, and the model that ranks configurations (sections 4 to 6).

A thread has one cell of a plane. A configuration has the steps of a launch (`bT` of the paper), the
threads of a block along the in-plane axes (`bS`) and the planes of a chunk of the stream (`hSN`).
The paper describes its counts of threads in words; `threads_at` is the count from these words, and
gives table 5. Matsumura et al., "AN5D", CGO 2020, https://doi.org/10.1145/3368826.3377904.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from timetile.passes.targets.target import Target

Offset = tuple[int, ...]

THREADS_OF_A_MULTIPROCESSOR = 2048
"""Threads held at once by a multiprocessor."""

DEPTHS = {2: 16, 3: 8}
"""The deepest configuration tried, by the axes of the domain (section 6.3)."""

BLOCKS: dict[int, tuple[tuple[int, ...], ...]] = {
    2: ((128,), (256,), (512,)),
    3: ((16, 32), (32, 32), (16, 64)),
}
"""
Threads of a block along the in-plane axes, the fastest axis last, by the axes of the domain
(section 6.3). Blocks of 16 x 16 are left out: a warp has 32 threads along the fastest axis.
"""

HEIGHTS = {2: (256, 512, 1024), 3: (128, 256)}
"""Planes of a chunk, by the axes of the domain (section 6.3)."""


@dataclass(frozen=True)
class Peaks:
    """Peaks of a machine: operations and bytes a second, and multiprocessors (table 4)."""

    flops: float
    global_speed: float
    shared_speed: float
    multiprocessors: int


@dataclass(frozen=True)
class Workload:
    """A program for the model: the domain's sides, the stream first, and the work of a cell."""

    domain: tuple[int, ...]
    radius: int
    cell_bytes: int
    shared_reads: float
    """Reads of shared memory a cell and step (table 2)."""
    flops: int
    """Floating-point operations a cell and step."""
    alu: float
    """The utilisation of arithmetic units by these."""


@dataclass(frozen=True)
class Configuration:
    """Steps of a launch, threads of a block along the in-plane axes, planes of a chunk."""

    depth: int
    block: tuple[int, ...]
    height: int


def alu_utilisation(fused: int, others: int) -> float:
    """
    Floating-point operations of a cell over the most possible for its instructions: fused
    multiply-adds do two, others one.
    """
    return (2 * fused + others) / (2 * (fused + others)) if fused + others else 1.0


def multiprocessor_utilisation(blocks: int, resident: int) -> float:
    """
    The share of a launch with blocks on multiprocessors, for `resident` blocks at once: waves of
    blocks over whole waves. (The paper prints floor over ceiling, 0 for less than a wave.)
    """
    if not resident:
        return 0.0
    waves = blocks / resident
    return waves / ceil(waves)


def thread_reads(taps: Collection[Offset], stream: int, *, cached: bool) -> int:
    """
    Reads of shared memory by a thread of one cell (table 2): all taps except in the own column
    along the stream, kept in registers. With `cached`, one read for every column of a box, as the
    assembler keeps values.
    """
    taps = set(taps)

    def column(tap: Offset) -> Offset:
        return tuple(d for axis, d in enumerate(tap) if axis != stream)

    if cached:
        return len({column(tap) for tap in taps if any(column(tap))})
    return sum(any(column(tap)) for tap in taps)


def double_buffer_bytes(threads: int, cell_bytes: int) -> int:
    """
    Bytes of shared memory of a block: two planes, for any depth (table 1; stencils without
    diagonals, and sums).
    """
    return 2 * threads * cell_bytes


def registers(depth: int, radius: int, cell_bytes: int) -> int:
    """
    Registers of a thread with one cell (section 6.3): the planes of every level, and a fixed
    number.
    """
    return registers_of_cells(depth, radius, cell_bytes, 1)


def registers_of_cells(depth: int, radius: int, cell_bytes: int, cells: int) -> int:
    """Registers of a thread of some cells, counted as the paper counts for one."""
    words = cell_bytes // 4
    return words * depth * (2 * radius + 1) * cells + depth + 10 * (words + 1)


def fits(depth: int, radius: int, cell_bytes: int, threads: int, target: Target) -> bool:
    """Whether the configuration is kept: a block of threads has enough registers."""
    return registers(depth, radius, cell_bytes) <= target.isa.registers_for(threads)


def covered(side: int, useful: int, reach: int, halo: int) -> int:
    """
    Count the cells that all tiles cover along an axis with `side` cells. A tile has `useful` cells
    and `reach` more on either side, clipped to the axis and a halo of `halo` cells.
    """
    starts = range(0, side, useful)
    return sum(
        min(start + useful + reach, side + halo) - max(start - reach, -halo) for start in starts
    )


def threads_at(program: Workload, chosen: Configuration, level: int) -> int:
    """
    Valid and redundant threads of a time level, over all planes and chunks. Level 0 loads cells,
    halo included; further levels compute.
    """
    reach = (chosen.depth - level) * program.radius
    halo = program.radius if level == 0 else 0
    sides = (chosen.height, *useful_sides(program, chosen))
    return prod(covered(n, own, reach, halo) for n, own in zip(program.domain, sides))


def useful_sides(program: Workload, chosen: Configuration) -> tuple[int, ...]:
    """The compute region of a block along the in-plane axes, in cells (section 4.1)."""
    return tuple(side - 2 * chosen.depth * program.radius for side in chosen.block)


def blocks_of(program: Workload, chosen: Configuration) -> int:
    """Blocks of a launch, with the chunks of the stream (section 4.2.3)."""
    sides = (chosen.height, *useful_sides(program, chosen))
    return prod(ceil(n / own) for n, own in zip(program.domain, sides))


def seconds(program: Workload, chosen: Configuration, peaks: Peaks) -> float:
    """The predicted time of a launch: the slowest of three components (section 5)."""
    levels = [threads_at(program, chosen, level) for level in range(chosen.depth + 1)]
    computing = sum(levels[1:])
    moved = (levels[0] + prod(program.domain)) * program.cell_bytes
    shared = computing * (program.shared_reads + 1) * program.cell_bytes
    slowest = max(
        computing * program.flops / (peaks.flops * program.alu),
        moved / peaks.global_speed,
        shared / peaks.shared_speed,
    )
    resident = peaks.multiprocessors * (THREADS_OF_A_MULTIPROCESSOR // prod(chosen.block))
    return slowest / multiprocessor_utilisation(blocks_of(program, chosen), resident)


def gflops(program: Workload, chosen: Configuration, peaks: Peaks) -> float:
    """The predicted speed in 10^9 valid operations a second, as printed in table 5."""
    work = prod(program.domain) * chosen.depth * program.flops
    return work / seconds(program, chosen, peaks) / 1e9


def configurations(
    program: Workload,
    target: Target,
    depths: Sequence[int] | None = None,
    blocks: Sequence[tuple[int, ...]] | None = None,
) -> Iterator[Configuration]:
    """The configurations of section 6.3 with a compute region and enough registers."""
    rank = len(program.domain)
    tried = range(1, DEPTHS[rank] + 1) if depths is None else depths
    for depth, block, height in product(tried, blocks or BLOCKS[rank], HEIGHTS[rank]):
        chosen = Configuration(depth, block, height)
        leaves = min(useful_sides(program, chosen)) > 0
        if leaves and fits(depth, program.radius, program.cell_bytes, prod(block), target):
            yield chosen


def peaks_of(target: Target, cell_bytes: int) -> Peaks:
    """The peaks of a target, for cells of `cell_bytes` bytes."""
    part, isa = target.part, target.isa
    return Peaks(
        2e9 * isa.fma_per_cycle[cell_bytes] * part.multiprocessors * part.clock_ghz,
        part.copy_tb_per_s * 1e12,
        target.shared_tb_per_s * 1e12,
        part.multiprocessors,
    )


def ranked(
    program: Workload,
    target: Target,
    depths: Sequence[int] | None = None,
    blocks: Sequence[tuple[int, ...]] | None = None,
) -> list[Configuration]:
    """
    The configurations, of given depths or blocks if any, from the highest predicted speed: of
    configurations with equal depths and blocks the best alone. Empty if no configuration has a
    compute region and enough registers.
    """
    peaks = peaks_of(target, program.cell_bytes)
    found = configurations(program, target, depths, blocks)
    ordered = sorted(found, key=lambda chosen: -gflops(program, chosen, peaks))
    firsts: dict[tuple[int, tuple[int, ...]], Configuration] = {}
    for chosen in ordered:
        firsts.setdefault((chosen.depth, chosen.block), chosen)
    return list(firsts.values())
