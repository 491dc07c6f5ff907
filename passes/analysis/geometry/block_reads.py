"""Bytes loaded by blocks of kernels that read memory, and the blocks' tiles.

Blocks take tiles along the first axis in turn where turns save many bytes: planes around a tile
were read for the tile before, and lie in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import product
from math import prod

from xdsl.ir import SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import KernelOp, StoreOp
from timetile.passes.analysis.cells.places import Place
from timetile.passes.analysis.geometry.memory_taps import loads_of_kernel
from timetile.passes.targets.hardware import SECTOR_BYTES

TILES_IN_TURN = 4
"""Tiles along the first axis taken by a block in turn."""

LEAST_SAVED = 1 / 4
"""
The least part of the bytes moved between the caches to be saved by turns: with less, layered steps
lose two percent by the loop over tiles.
"""

LEAST_BLOCKS = 2048
"""
Blocks of a launch below which blocks take fewer tiles in turn: eight times as many as an H200 holds
at once.
"""


def places_read(kernel: KernelOp) -> dict[SSAValue, set[Place]]:
    """The places around a cell loaded by a kernel, of each field of all axes."""
    places: dict[SSAValue, set[Place]] = {}
    for load in loads_of_kernel(kernel):
        if load.axes is None:
            places.setdefault(load.field, set()).add(load.offset or (0,) * kernel.rank)
    return places


def rows_read(offsets: Iterable[Place], extents: Sequence[int]) -> int:
    """
    The number of rows read by a block with such extents along all axes but the last: a bit for each
    row, and the bits of the block's own rows moved by all offsets.
    """
    moves = {offset[:-1] for offset in offsets}
    lows = [min(move[axis] for move in moves) for axis in range(len(extents))]
    spans = [
        max(move[axis] for move in moves) - low + extent
        for axis, (low, extent) in enumerate(zip(lows, extents))
    ]

    def bit(place: Iterable[int]) -> int:
        number = 0
        for at, span in zip(place, spans):
            number = number * span + at
        return number

    block, rows = sum(1 << bit(own) for own in product(*map(range, extents))), 0
    for move in moves:
        rows |= block << bit(at - low for at, low in zip(move, lows))
    return rows.bit_count()


def block_bytes(extents: Sequence[int], offsets: Collection[Place], size: int) -> int:
    """
    Bytes of a field, with cells of `size` bytes, loaded by a block through the second-level cache,
    each cell once: whole sectors of rows, and a sector beyond each end of the rows reached by a
    tap.
    """
    ends = {offset[-1] for offset in offsets}
    beyond = SECTOR_BYTES * ((min(ends) < 0) + (max(ends) > 0))
    return rows_read(offsets, extents[:-1]) * (extents[-1] * size + beyond)


def loaded_bytes(extents: Sequence[int], places: Mapping[SSAValue, Set[Place]]) -> float:
    """Bytes loaded by a block through the second-level cache for each of its cells."""
    loaded = sum(
        block_bytes(extents, offsets, CELL_BYTES[element_type(field)])
        for field, offsets in places.items()
    )
    return loaded / prod(extents)


def tiles_in_turn(kernel: KernelOp, extents: Sequence[int], count: int, tiles: int) -> int:
    """
    The tiles along the first axis taken by a block in turn, of `count` along the axis and `tiles`
    of a launch, where tiles have such extents.
    """
    turn = min(TILES_IN_TURN, count, tiles // LEAST_BLOCKS)
    if turn < 2:
        return 1
    places, (first, *others) = places_read(kernel), extents
    apart, together = (loaded_bytes((n * first, *others), places) for n in (1, turn))
    stored = sum(CELL_BYTES[element_type(s.field)] for s in kernel.stages if isinstance(s, StoreOp))
    return turn if apart - together >= LEAST_SAVED * (apart + stored) else 1
