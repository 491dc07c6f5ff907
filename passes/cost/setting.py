"""The parts of a schedule for the cost model: the layout, and the waits of warps and blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from timetile.dialects.tile import AxisLayout, ExchangeOp, KernelOp, LayoutAttr
from timetile.dialects.tile.kinds import Guards
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.synchronisation import (
    meets_at_barriers,
    splits,
    steps_between_barriers,
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A value for each part of a schedule."""

    layout: LayoutAttr
    occupancy: int
    """Blocks held at once by a multiprocessor."""
    guards: Guards
    """Which tiles run guarded code, if there are two copies of the code."""
    joins: bool
    """Whether planes of a column may be joined with planes of other columns."""
    splits: bool
    """Threads announce the end of a stream step, and wait later."""
    at_grid_barriers: bool
    """
    The blocks of a tile wait for each other at barriers of the grid, and not for each other's
    words.
    """
    every: int
    """Stream steps between two barriers of the grid."""
    period: int | None = None
    """Stream steps of a turn of the loop; None for as many as planes need to age by renaming."""

    @staticmethod
    def of(schedule: Schedule) -> Setting:
        """The setting of a schedule."""
        return Setting(
            layout=schedule.layout(),
            occupancy=schedule.occupancy,
            guards=schedule.guards,
            joins=not schedule.columns_alone,
            splits=schedule.splits,
            at_grid_barriers=schedule.meets_at_barriers,
            every=schedule.steps_between_barriers,
            period=schedule.period,
        )

    @staticmethod
    def of_kernel(kernel: KernelOp) -> Setting:
        """The setting of a placed kernel with variants."""
        exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
        variants = () if kernel.variants is None else kernel.variants
        has_interior = any(variant.is_interior for variant in variants)
        return Setting(
            layout=layout_of(kernel),
            occupancy=kernel.blocks_per_multiprocessor,
            guards=Guards.RIM if has_interior else Guards.ALL,
            joins=any(variant.joined.data for variant in variants),
            splits=splits(kernel),
            at_grid_barriers=meets_at_barriers(exchanges),
            every=steps_between_barriers(exchanges),
        )

    @property
    def arrives(self) -> bool:
        """Warps arrive at words in shared memory, and wait later."""
        return self.splits and not self.at_grid_barriers

    @cached_property
    def axes(self) -> tuple[AxisLayout, ...]:
        """The layout of every in-plane axis."""
        return self.layout.axis_layouts

    @cached_property
    def patch(self) -> tuple[int, ...]:
        """Cells of a plane held by one thread, along every in-plane axis."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def rows(self) -> int:
        """Rows of a plane held by one thread."""
        return prod(self.patch[:-1])

    @property
    def row_cells(self) -> int:
        """Cells of a row held by one thread."""
        return self.patch[-1]

    @cached_property
    def thread_cells(self) -> int:
        """Cells of a plane held by one thread."""
        return prod(self.patch)

    @cached_property
    def blocks(self) -> int:
        """Blocks of a tile."""
        return self.layout.blocks

    @cached_property
    def has_messages(self) -> bool:
        """Whether a tile has several blocks sending edges through global memory."""
        return self.layout.has_messages
