"""The launch of a kernel that reads a field at computed places, or writes there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import GatherOp
from timetile.lowering.gather_kernels import MOST_AXES, THREADS


@dataclass(frozen=True)
class GatherFrame:
    """
    What a gather has to know: how many cells the target has, how many bytes a cell, and for each of
    three axes of the source (present axes first) the first and the last coordinate, and how many
    cells neighbours lie apart.
    """

    cells: int
    axes: tuple[tuple[int, int, int], ...]
    cell_bytes: int

    @staticmethod
    def of(op: GatherOp) -> GatherFrame:
        """The frame of a gather operation."""
        target, source = field_bounds(op.target), field_bounds(op.source)
        cells, step = 1, 1
        for low, high in zip(target.lb, target.ub):
            cells *= high - low
        axes: list[tuple[int, int, int]] = []
        for low, high in reversed(list(zip(source.lb, source.ub))):
            axes.insert(0, (low, high - 1, step))
            step *= high - low
        # An axis beyond the axes of the source has a step of 0: places along the axis move nothing.
        none = [(0, 0, 0)] * (MOST_AXES - len(axes))
        return GatherFrame(cells, (*axes, *none), CELL_BYTES[element_type(op.target)])

    @staticmethod
    def flat(cells: int, size: int, cell_bytes: int) -> GatherFrame:
        """The frame of a gather of cells of a field, at places counted in row-major order."""
        last = size // cell_bytes - 1
        return GatherFrame(cells, ((0, last, 1), *[(0, 0, 0)] * (MOST_AXES - 1)), cell_bytes)

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        return -(-self.cells // THREADS)

    def places(self, given: Sequence[Any]) -> list[Any]:
        """The place fields of a launch: the first again along axes missing in the source."""
        return [*given, *[given[0]] * (MOST_AXES - len(given))]

    def numbers(self) -> list[int]:
        """The other parameters of the kernel."""
        return [self.cells, *(number for axis in self.axes for number in axis)]
