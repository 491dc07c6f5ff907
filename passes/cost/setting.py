"""The parts of a schedule for the cost model: the layout, and the waits of warps and blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from timetile.dialects.tile import AxisLayout, ExchangeOp, KernelOp, LayoutAttr, Sync
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.queues.synchronisation import (
    meets_at_barriers,
    steps_between_barriers,
)
from timetile.passes.schedule import Guards, Schedule


@dataclass(frozen=True)
class Setting:
    """One choice of the parts of a schedule."""

    layout: LayoutAttr
    occupancy: int
    """Blocks held at once by a multiprocessor."""
    guards: Guards
    """The tiles with guarded code, if there are two copies of the code."""
    joins: bool
    """Whether planes of a column may be joined with planes of other columns."""
    splits: bool
    """Warps arrive at a barrier and wait later."""
    meets: bool
    """
    The blocks of a tile wait for each other at barriers of the grid, and not for each other's
    words.
    """
    every: int
    """Stream steps between two barriers of the grid."""

    @staticmethod
    def of(schedule: Schedule) -> Setting:
        """The setting of a schedule."""
        return Setting(
            schedule.layout(),
            schedule.occupancy,
            schedule.guards,
            schedule.columns is None,
            schedule.sync != "barrier" and not schedule.is_resident,
            schedule.sync == "grid",
            schedule.every,
        )

    @staticmethod
    def of_kernel(kernel: KernelOp) -> Setting:
        """The setting of a placed kernel with variants."""
        exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
        homes = [exchange.home for exchange in exchanges if exchange.home is not None]
        variants = () if kernel.variants is None else kernel.variants
        return Setting(
            layout_of(kernel),
            kernel.blocks_per_multiprocessor,
            "rim" if any(variant.is_interior for variant in variants) else "all",
            any(variant.joined.data for variant in variants),
            any(home.sync.data is not Sync.BARRIER for home in homes),
            meets_at_barriers(exchanges),
            steps_between_barriers(exchanges),
        )

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
