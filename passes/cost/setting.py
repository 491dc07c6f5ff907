"""
What a schedule decides of a kernel, as far as the cost model asks: the layout, and how warps and
blocks wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from timetile.dialects.tile import AxisLayout, ExchangeOp, KernelOp, LayoutAttr, Sync
from timetile.passes.analysis.queues.synchronisation import (
    meets_at_barriers,
    steps_between_barriers,
)
from timetile.passes.schedule import Guards, Schedule


@dataclass(frozen=True)
class Setting:
    """One choice of what a schedule decides of a kernel."""

    layout: LayoutAttr
    occupancy: int
    """Blocks that a multiprocessor holds at once."""
    guards: Guards
    """Which tiles run the copy with guards, where there are two copies."""
    joins: bool
    """Planes of a column may be joined with those of other columns."""
    splits: bool
    """Warps arrive at a barrier and wait later."""
    meets: bool
    """
    The blocks of a tile wait for each other at barriers of the grid, and not for each other's
    words.
    """
    every: int
    """Stream steps from one of those barriers to the next."""

    @staticmethod
    def of(schedule: Schedule) -> Setting:
        """The setting of a schedule."""
        return Setting(
            schedule.layout(),
            schedule.occupancy,
            schedule.guards,
            schedule.columns is None,
            schedule.sync != "barrier" and not schedule.stays,
            schedule.sync == "grid",
            schedule.every,
        )

    @staticmethod
    def of_kernel(kernel: KernelOp) -> Setting:
        """The setting of a kernel whose queues have homes, and whose tiles have variants."""
        assert kernel.layout is not None
        exchanges = [stage for stage in kernel.stages if isinstance(stage, ExchangeOp)]
        homes = [exchange.home for exchange in exchanges if exchange.home is not None]
        variants = () if kernel.variants is None else kernel.variants
        return Setting(
            kernel.layout,
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
        """Cells of a plane that one thread holds, along every in-plane axis."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def rows(self) -> int:
        """Rows of a plane that one thread holds."""
        return prod(self.patch[:-1])

    @property
    def row_cells(self) -> int:
        """Cells of a row that one thread holds."""
        return self.patch[-1]

    @cached_property
    def thread_cells(self) -> int:
        """Cells of a plane that one thread holds."""
        return prod(self.patch)

    @property
    def has_messages(self) -> bool:
        """A tile has several blocks that send each other edges through global memory."""
        return self.layout.has_messages
