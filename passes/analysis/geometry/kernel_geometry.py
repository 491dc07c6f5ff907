"""
The geometry of a kernel: the planes' geometry, the steps of the stream, and the chunks of columns.

All sizes are static: results are plain integers. Coordinates are the program's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox
from timetile.dialects.point_lists import WIDEST_SPOT
from timetile.dialects.tile import (
    ApplyOp,
    StoreOp,
    VariantAttr,
    queue_lag,
)
from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.plane_geometry import PlaneGeometry
from timetile.passes.analysis.placed import variants_of
from timetile.passes.analysis.point_stages import takes_spot

LONGEST_CUT = 1 << 30
"""Columns with more planes times chunks have no spot of points: 32 bits hold the product."""

SHARING_MULTIPROCESSORS = 2
"""Multiprocessors sharing an instruction cache, and run consecutive blocks (measured)."""


def whole_blocks(tiles: int, pack: int) -> int:
    """
    The number of tiles, rounded up to whole blocks on all multiprocessors sharing an instruction
    cache.
    """
    together = SHARING_MULTIPROCESSORS * pack
    return ceil_div(tiles, together) * together


class Geometry(PlaneGeometry):
    """The geometry of a kernel with a layout."""

    @property
    def stored_planes(self) -> range:
        """The planes of the kernel's bounds. Without a stream the tile is plane 0."""
        return self.outline.stored_planes

    @property
    def cut_planes(self) -> range:
        """
        The planes that are cut into chunks: those of the stores' boxes, or of the bounds where some
        store has no box.
        """
        return self.outline.cut_planes

    @cached_property
    def planes(self) -> int:
        """The number of planes cut into chunks."""
        return len(self.cut_planes)

    @cached_property
    def drain(self) -> int:
        """
        Steps between the arrival of a plane and the last store or note of the plane: the largest
        lag of a store, and of a stage whose cells are noted by points.
        """
        return self.outline.drain

    @cached_property
    def fill(self) -> int:
        """Steps run by a chunk before its first plane arrives."""
        return self.outline.fill

    def lead(self, queue: SSAValue) -> int:
        """
        Steps, before the arrival of a chunk's first plane, of the first plane needed of a queue.
        """
        return self.outline.lead(queue)

    @cached_property
    def largest_lag(self) -> int:
        """The largest lag of any queue."""
        return max((queue_lag(q) for stage in self.kernel.stages for q in stage.results), default=0)

    @cached_property
    def smallest_lag(self) -> int:
        """The smallest lag of any queue; negative for partial sums."""
        return min((queue_lag(q) for stage in self.kernel.stages for q in stage.results), default=0)

    @cached_property
    def box_edges(self) -> frozenset[int]:
        """The stream steps, by the arriving plane, in which the box of an update begins or ends."""
        stream, stages = self.kernel.stream_axis, self.kernel.stages
        boxes = [(s.box, s.lag) for s in stages if isinstance(s, ApplyOp) and s.box is not None]
        if stream is None:
            return frozenset()
        return frozenset(tuple(e)[stream] + lag for box, lag in boxes for e in (box.lb, box.ub))

    @property
    def ahead(self) -> int:
        """The most planes by which a load is fetched early."""
        return self.outline.ahead

    @cached_property
    def period(self) -> int:
        """Stream steps of one turn of the unrolled loop."""
        return self.outline.period

    def steps(self, planes: int) -> int:
        """Stream steps of a chunk."""
        return ceil_div(planes + self.fill + self.drain, self.period) * self.period

    def chunks(self, planes: int, joined: int = 0) -> int:
        """Chunks of one column of tiles, without planes joined with other columns."""
        return ceil_div(self.planes - joined, planes)

    def missing(self, planes: int, joined: int = 0) -> int:
        """
        Planes by which the chunks of a column exceed the column. Half of the number is taken from
        the first chunk and half from the last if tiles share a block or planes are joined; 0
        otherwise.
        """
        chunks = self.chunks(planes, joined)
        shares = chunks > 1 and (joined > 0 or self.layout.pack.data > 1)
        return joined + chunks * planes - self.planes if shares else 0

    @cached_property
    def begins_with_last_chunk(self) -> bool:
        """
        The last planes are stored a second time, to other devices. The chunks with these planes
        then start first, and their stores travel while later chunks compute.
        """
        stream = self.kernel.stream_axis
        if stream is None:
            return False
        stores = [stage for stage in self.kernel.stages if isinstance(stage, StoreOp)]
        known: set[SSAValue] = set()
        for store in stores:
            if store.queue in known and store.cells.upper[stream] == self.cut_planes.stop:
                return True
            known.add(store.queue)
        return False

    @property
    def restart(self) -> int:
        """
        Steps that a chunk takes longer if the chunk goes on in another column: the pipeline is
        filled again, and first planes are waited for.
        """
        return self.fill + self.drain + self.ahead

    def joined_chunks(self, columns: int, planes: int, joined: int) -> int:
        """
        Chunks of the joined planes of all columns. Each chunk takes as long as `planes` planes of
        one column; a restart between two columns counts as planes.
        """
        if not joined:
            return 0
        return ceil_div(columns * (joined + self.restart) - self.restart, planes)

    def column_tiles(self, columns: int, planes: int, joined: int) -> int:
        """How columns of tiles are cut: chunks in each column, and chunks of joined planes."""
        alone = columns * self.chunks(planes, joined)
        return alone + self.joined_chunks(columns, planes, joined)

    @property
    def edge_columns(self) -> int:
        """
        Columns of tiles on the rim of the plane, which may touch the bounds. All columns if the
        kernel has no code for inside tiles.
        """
        variants = self.kernel.variants
        if variants is not None and not any(variant.is_interior for variant in variants):
            return self.plane_tiles
        inner = 1
        for axis in self.axes:
            inner *= max(0, axis.count - 2)
        return self.plane_tiles - inner

    def columns_of_kind(self, *, interior: bool) -> int:
        """
        Columns of tiles inside the rim, or on the rim. All are on the rim if inside tiles have no
        code of their own.
        """
        edge = self.edge_columns
        return self.plane_tiles - edge if interior else edge

    def columns(self, variant: VariantAttr) -> int:
        """Columns of tiles served by a variant of the kernel."""
        if variant.columns.data:
            return variant.columns.data
        alike = (v for v in variants_of(self.kernel) if v.is_interior == variant.is_interior)
        kind = self.columns_of_kind(interior=variant.is_interior)
        return kind - sum(v.columns.data for v in alike)

    def variant_tiles(self, variant: VariantAttr) -> int:
        """Tiles of one launch served by a variant of the kernel."""
        return self.column_tiles(self.columns(variant), variant.planes.data, variant.joined.data)

    @property
    def joins_columns(self) -> bool:
        """Whether chunks of some columns go on in other columns."""
        return any(variant.joined.data for variant in self.used_variants)

    @property
    def used_variants(self) -> list[VariantAttr]:
        """The variants with tiles, in starting order."""
        return [variant for variant in variants_of(self.kernel) if self.columns(variant)]

    def cut_cells(self, start: int, width: int, stride: int, *, guarded: bool) -> list[int]:
        """
        Cells of a row's vectors that some lane stores alone, because the bounds or the end of a
        tile's stored cells lie within the vector. Vectors have `width` cells and begin at `start`
        in a lane's view; lanes are `stride` cells apart.
        """
        last = self.axes[-1]
        lanes, row = last.layout.lanes, last.layout.lanes * last.layout.cells
        places: list[tuple[int, bool]] = []
        if guarded:
            places.append((self.lower[last.axis] - last.origin, False))
            places.append((self.upper[last.axis] - last.last_origin, True))
        if last.count > 1:
            places += [(last.overlap_low, False), (last.overlap_low + last.useful, True)]
        cut: set[int] = set()
        for place, is_end in places:
            lane, cell = divmod(place % row - start, stride)
            if 0 <= lane < lanes and 0 < cell < width:
                cut |= set(range(cell) if is_end else range(cell, width))
        return sorted(cut)

    def cells_cut_by(self, box: CellBox, start: int, width: int) -> set[int]:
        """Cells of a row's vectors stored alone by some lane, as a box ends in the vector."""
        last = self.axes[-1]
        low, high = box.lower[last.axis], box.upper[last.axis]
        if (low, high) == (self.lower[last.axis], self.upper[last.axis]):
            return set()
        first, end = ((place - last.origin - start) % width for place in (low, high))
        return {*range(first, width if first else first), *range(end)}

    @property
    def has_both_kinds(self) -> bool:
        """Whether some tiles run code for inside tiles, and some run code for the rim."""
        return len({variant.is_interior for variant in self.used_variants}) > 1

    def numbered(self, tiles: Sequence[int], *, both_kinds: bool) -> list[int]:
        """
        Tile numbers taken by each part, in starting order. If the tiles of a block must be alike,
        the last numbers of a part stand for no tile: multiprocessors with one instruction cache run
        one copy of the code.
        """
        pack = self.layout.pack.data
        if pack == 1 or not both_kinds or self.kernel.stream_axis is None:
            return [*tiles]
        return [*(whole_blocks(count, pack) for count in tiles[:-1]), tiles[-1]]

    @property
    def variant_numbers(self) -> list[int]:
        """Tile numbers taken by each of the used variants."""
        tiles = [self.variant_tiles(variant) for variant in self.used_variants]
        return self.numbered(tiles, both_kinds=self.has_both_kinds)

    @cached_property
    def spot_tiles(self) -> int:
        """
        The tiles of the block for a spot of points, which come before all others: at least as many
        as columns that compute cells of one spot.
        """
        if not takes_spot(self.kernel) or self.joins_columns:
            return 0
        (axis,), pack = self.axes, self.layout.pack.data
        columns = ceil_div(axis.layout.extent + WIDEST_SPOT, axis.useful)
        counts = [self.chunks(variant.planes.data) for variant in self.used_variants]
        fits = min(counts) > 1 and max(counts) * self.planes < LONGEST_CUT
        return pack if fits and columns <= pack else 0

    @property
    def tiles(self) -> int:
        """Tile numbers of one launch."""
        return self.spot_tiles + sum(self.variant_numbers)

    @property
    def blocks(self) -> int:
        """Blocks of one launch."""
        tiles, turn = self.tiles, self.tiles_in_turn
        if turn > 1:
            planes = self.axes[0].count
            tiles = tiles // planes * ceil_div(planes, turn)
        return ceil_div(tiles, self.layout.pack.data) * self.layout.blocks
