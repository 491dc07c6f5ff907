"""
Compares the cells of rotating buffers outside the bounds: kernels of several steps are faster for
equal cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.dialects.boxes import CellBox
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import LoopOp
from timetile.dialects.temporal.boundary import Kind
from timetile.lowering.comparing_kernels import SEGMENT_WORDS, WARPS_OF_A_BLOCK
from timetile.passes.analysis.edges import loop_boundary
from timetile.passes.analysis.launches.liveness import (
    cycle_bounds,
    cycles_in_turn,
    loop_rotation,
)

WORD_BYTES = 4
"""The most bytes of a compared word, but of very long rows."""

MOST_WORDS = 1 << 31
"""The most words of a row: 32 bits number them, and those of a segment beyond."""


def written_box(loop: LoopOp, role: int) -> CellBox:
    """The cells that a step of a loop writes to the buffers that take turns with a role's."""
    return CellBox.of(cycle_bounds(loop, loop_rotation(loop).cycle_of(role)))


def continued_axes(loop: LoopOp, rank: int) -> frozenset[int]:
    """The axes along which kernels of a loop continue the fields."""
    boundary = loop_boundary(loop)
    if boundary is None:
        return frozenset()
    return frozenset(a for a in range(rank) if Kind.KEEP not in boundary.of_axis(a))


@dataclass(frozen=True)
class HaloFrame:
    """
    The cells of a buffer around a box: sizes of the buffer, and the box's ends in the buffer, by
    axis.
    """

    sizes: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    cell_bytes: int

    @staticmethod
    def of(loop: LoopOp, role: int) -> HaloFrame:
        """
        The frame of a role's buffer around the cells that the loop writes to the buffers that take
        turns.
        """
        buffer, box = loop.buffers[role], written_box(loop, role)
        field = CellBox.of(field_bounds(buffer))
        # A field may be smaller than the box that the loop writes. No edge cell is a halo.
        axes = continued_axes(loop, len(box.lower))
        inside = box & field
        ends = enumerate(zip(inside.lower, inside.upper, field.lower, field.upper, strict=True))
        inside = CellBox(*zip(*(end[2:] if axis in axes else end[:2] for axis, end in ends)))
        return HaloFrame(
            tuple(b - a for a, b in zip(field.lower, field.upper)),
            tuple(b - a for a, b in zip(field.lower, inside.lower)),
            tuple(max(b, c) - a for a, b, c in zip(field.lower, inside.upper, inside.lower)),
            CELL_BYTES[element_type(buffer)],
        )

    @cached_property
    def segments(self) -> int:
        """Segments of a row: a warp compares a segment."""
        return -(-self.words()[-1][0] // SEGMENT_WORDS)

    @cached_property
    def blocks(self) -> int:
        """Blocks of the launch comparing two buffers."""
        (planes, *_), (rows, *_), _ = self.words()
        return -(-planes * rows * self.segments // WARPS_OF_A_BLOCK)

    @property
    def word_bytes(self) -> int:
        """
        The bytes of a compared word: four, or a smaller cell; a whole cell where a row has too many
        words for 32 bits otherwise.
        """
        words = self.cell_bytes // WORD_BYTES * self.sizes[-1]
        return self.cell_bytes if words > MOST_WORDS else min(WORD_BYTES, self.cell_bytes)

    def words(self) -> tuple[tuple[int, int, int], ...]:
        """
        (size, low, high) of three axes, the last axis in words. Missing leading axes have a single
        row.
        """
        axes = list(zip(self.sizes, self.low, self.high))
        each = self.cell_bytes // self.word_bytes
        size, low, high = axes.pop()
        axes.append((size * each, low * each, high * each))
        return ((1, 0, 1),) * (3 - len(axes)) + tuple(axes)


def compared_in_turn(loop: LoopOp) -> list[tuple[HaloFrame, int, int]]:
    """
    The roles with buffers to compare, and the frames: of each cycle, the first role with every
    other.
    """
    return [
        (HaloFrame.of(loop, first), first, other)
        for first, *others in cycles_in_turn(loop)
        for other in others
    ]


def halos_differ(frame: HaloFrame, first: NDArray[Any], other: NDArray[Any]) -> bool:
    """Some cell around the box has other bits in one buffer than in the other."""
    bits = np.dtype(f"u{frame.cell_bytes}")
    a, b = (array.view(bits).reshape(frame.sizes) for array in (first, other))
    inside: list[slice] = []
    for low, high in zip(frame.low, frame.high):
        for beyond in (slice(0, low), slice(high, None)):
            if not np.array_equal(a[*inside, beyond], b[*inside, beyond]):
                return True
        inside.append(slice(low, high))
    return False
