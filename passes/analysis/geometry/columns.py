"""Columns of tiles cut into chunks of planes, in the order of a launch, and the launch's end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.chunk_bounds import MAKESPAN_ERROR
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.makespan import makespan
from timetile.passes.analysis.geometry.residency import Residency


def corner_steps(geometry: Geometry, residency: Residency) -> int:
    """
    Interior steps by which a chunk in a corner of the bounds takes longer: filling the pipeline
    with guards on both sides (timed, warp by warp). Not 0 only if tiles share a block: a launch is
    one round then, and the slowest chunk counts.
    """
    return geometry.fill // 2 if residency.block_tiles > 1 else 0


@dataclass(frozen=True)
class Columns:
    """
    Columns of tiles of one kind. `count`: columns. `planes`: planes of a chunk. `weight`: cost of a
    step, in steps of an interior tile. `on_rim`: whether the columns lie on the rim and have code
    of their own. `joined`: planes of each column that are put end to end with planes of other
    columns.
    """

    count: int
    planes: int
    weight: float = 1.0
    on_rim: bool = False
    joined: int = 0
    ends: int = 0
    """
    Planes by which the first and the last chunk of a column should be shorter, to take no longer
    than other chunks.
    """

    def tiles(self, geometry: Geometry) -> int:
        """How many chunks the columns of this kind have together."""
        return geometry.column_tiles(self.count, self.planes, self.joined)

    def steps(self, geometry: Geometry, residency: Residency) -> float:
        """
        Duration of the slowest chunk, in steps of an interior tile: a chunk at an end of a column,
        or in a corner.
        """
        steps = self.weight * geometry.steps(self.planes)
        if self.ends:
            less = geometry.missing(self.planes, self.joined) // 2
            return steps + self.weight * max(0, self.ends - less)
        return steps + (corner_steps(geometry, residency) if self.on_rim else 0)


@dataclass(frozen=True)
class Chunks:
    """
    The columns of a launch in starting order, and the number of tiles. `kinds`: for each part of
    the columns, the rounds of slots and the steps of a chunk. `slots`: blocks that run at once.
    """

    columns: tuple[Columns, ...]
    tiles: int
    kinds: tuple[tuple[int, float], ...]
    slots: int

    @cached_property
    def steps(self) -> float:
        """The time of the end of the launch, in interior steps."""
        return makespan(self.kinds, self.slots)

    @property
    def least_steps(self) -> float:
        """
        A lower bound of `steps`, found without placing any tile: the work of a slot if all slots
        had equal work, or the longest chunk.
        """
        work = sum(count * steps for count, steps in self.kinds) / self.slots
        longest = max(steps if count else 0.0 for count, steps in self.kinds)
        return max(work, longest) * (1 - MAKESPAN_ERROR)

    @property
    def longest(self) -> float:
        """The sum of the steps of each kind's longest chunk."""
        return sum(steps for _, steps in self.kinds)


def launch(geometry: Geometry, residency: Residency, *parts: Columns) -> Chunks:
    """
    A launch of columns, one part after the other. A block takes the next tiles when its own are
    done; tiles sharing a block are done together.
    """
    pack = residency.block_tiles
    both_kinds = len({columns.on_rim for columns in parts if columns.count}) > 1
    tiles = geometry.numbered([part.tiles(geometry) for part in parts], both_kinds=both_kinds)
    kinds = tuple(
        (ceil_div(count, pack), columns.steps(geometry, residency))
        for count, columns in zip(tiles, parts)
    )
    return Chunks(parts, sum(tiles), kinds, residency.tiles // pack)
