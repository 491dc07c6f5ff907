"""The borders of blocks whose tile continues in other blocks along several in-plane axes.

A block sends the cells of a border to the block beside in a direction: rows along the first axis,
columns along another, and corners if taps of a reader leave the block along two axes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from timetile.dialects.tile import ExchangeOp, KernelOp, taps_of
from timetile.passes.analysis.placed import layout_of

BlockDirection = tuple[int, ...]
"""Where a block beside lies: before (-1), after (1) or at the same place (0) along each axis."""


def direction_back(direction: BlockDirection) -> BlockDirection:
    """The opposite direction."""
    return tuple(-step for step in direction)


def along_first(side: int, axes: int) -> BlockDirection:
    """The direction of the block before (-1) or after (1) along the first of some axes."""
    return (side, *[0] * (axes - 1))


@dataclass(frozen=True)
class Border:
    """The cells of a block next to the block beside in a direction."""

    direction: BlockDirection
    extents: tuple[int, ...]
    """Cells of the block along each in-plane axis."""
    widths: tuple[int, ...]
    """Cells that neighbours read, along each in-plane axis."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of the border along each in-plane axis."""
        each = zip(self.direction, self.extents, self.widths)
        return tuple(width if step else extent for step, extent, width in each)

    @property
    def cells(self) -> int:
        """Cells of the border."""
        return prod(self.shape)

    @property
    def first(self) -> tuple[int, ...]:
        """The first cell of the border, from the block's first cell."""
        each = zip(self.direction, self.extents, self.widths)
        return tuple(extent - width if step > 0 else 0 for step, extent, width in each)

    @property
    def first_beyond(self) -> tuple[int, ...]:
        """The first cell received from the block beside, from the own block's first cell."""
        each = zip(self.direction, self.extents, self.widths)
        return tuple(extent if step > 0 else step * width for step, extent, width in each)


def directions(kernel: KernelOp, exchange: ExchangeOp) -> list[BlockDirection]:
    """
    The directions of the blocks beside with cells for the readers of an exchange. Where one of two
    opposite directions is needed, both are: a block hears that a message was taken.
    """
    axes = layout_of(kernel).axis_layouts
    steps = [
        (-1, 0, 1) if axis.blocks > 1 and edge else (0,) for axis, edge in zip(axes, exchange.edges)
    ]
    taps = [kernel.in_plane(tap.offset) for _, tap in taps_of(exchange.result)]
    every = (direction for direction in product(*steps) if any(direction))
    return [to for to in every if sum(map(abs, to)) == 1 or has_tap_towards(to, taps)]


def has_tap_towards(direction: BlockDirection, taps: Sequence[tuple[int, ...]]) -> bool:
    """Whether a tap leaves a block in a direction, or in the opposite direction."""
    return any(
        all(step * tap[k] > 0 for k, step in enumerate(to) if step)
        for to in (direction, direction_back(direction))
        for tap in taps
    )


def columns_of(kernel: KernelOp, exchange: ExchangeOp) -> list[Border]:
    """
    The borders of an exchange that are no rows along the first axis: columns and corners, sent by
    one warp each.
    """
    axes = layout_of(kernel).axis_layouts
    extents = tuple(axis.block_extent for axis in axes)
    return [
        Border(direction, extents, exchange.edges)
        for direction in directions(kernel, exchange)
        if any(direction[1:])
    ]
