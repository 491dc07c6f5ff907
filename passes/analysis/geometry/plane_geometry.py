"""The geometry of a plane: the places of tiles along the axes, the cells stored by tiles, and the
width of accesses.

All sizes are static: results are plain integers. Coordinates are the program's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import gcd, prod

from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal.boundary import Kind
from timetile.dialects.tile import (
    AxisLayout,
    ExchangeOp,
    KernelOp,
    LayoutAttr,
)
from timetile.passes.analysis.geometry.axis_tiling import (
    LEAST_WHOLE,
    MANY_STORED,
    TILES_FOR_ONE,
    AxisTiling,
    ceil_div,
    tiles_beyond_first,
)
from timetile.passes.analysis.geometry.block_reads import tiles_in_turn
from timetile.passes.analysis.geometry.field_shapes import FieldShape
from timetile.passes.analysis.geometry.memory_taps import (
    readable_cells,
    slab_of,
    taps_stay_inside,
    untested_cells,
)
from timetile.passes.analysis.geometry.outline import Outline, widest_access
from timetile.passes.analysis.placed import layout_of
from timetile.passes.targets.hardware import LEAST_COPY, SECTOR_BYTES

Row = tuple[int, ...]
"""
A row of cells along the last axis, named by the offset along the other in-plane axes from a
thread's first cell.
"""


def moved_by(at: tuple[int, ...], moved: Sequence[int]) -> tuple[int, ...]:
    """A place moved by a number of cells along each axis."""
    return tuple(place + more for place, more in zip(at, moved, strict=True))


def vector_cells(cells: int, element: Attribute) -> int:
    """Cells in the widest access that divides a thread's `cells` consecutive ones."""
    return gcd(cells, widest_access(element))


def is_word(stored: SSAValue) -> bool:
    """Whether a cell of a field is one 32-bit register: a select takes one instruction."""
    return CELL_BYTES[element_type(stored)] == 4


class PlaneGeometry:
    """The geometry of the planes of a kernel with a layout."""

    def __init__(
        self, kernel: KernelOp, known: Outline | None = None, layout: LayoutAttr | None = None
    ):
        """
        Compute the geometry. `known`: the kernel's outline, if made before, as the outline does not
        depend on the layout. `layout`: a layout in place of the kernel's own. Raises ValueError if
        the overlap leaves no cell of a tile, and CompileError without a layout.
        """
        chosen = layout or layout_of(kernel)
        self.kernel, self.layout = kernel, chosen
        self.layouts = chosen.axis_layouts
        self.bounds: StencilBoundsAttr = kernel.bounds
        self.outline = outline = Outline(kernel) if known is None else known
        self.lower, self.upper = outline.lower, outline.upper
        needs = outline.needs
        self.extents, self.overlap, self.outside = needs.around, needs.overlap, needs.outside
        self.axes = tuple(
            self.tile_axis(axis, layout, pad)
            for axis, layout, pad in zip(outline.plane_axes, self.layouts, self.margins)
        )

    @cached_property
    def thread_rows(self) -> list[Row]:
        """The rows of a plane held by one thread, as offsets from the first row."""
        return list(product(*(range(axis.layout.cells) for axis in self.axes[:-1])))

    @cached_property
    def thread_positions(self) -> list[tuple[int, ...]]:
        """The cells of a plane held by one thread, row by row, as offsets from the first cell."""
        cells = range(self.axes[-1].layout.cells)
        return [(*row, cell) for row in self.thread_rows for cell in cells]

    @property
    def reads_halos(self) -> bool:
        """Cells outside the bounds are read from other buffers than the data inside."""
        return self.outline.reads_halos

    @property
    def has_guards(self) -> bool:
        """
        Whether cells are replaced outside the bounds, or keep their old values beside the box of an
        update.
        """
        return self.outline.has_guards

    @property
    def continues_in_plane(self) -> bool:
        """Whether fields go on outside the bounds along an in-plane axis."""
        return self.outline.continues_in_plane

    def cuts_threads(self, number: int) -> bool:
        """
        Whether a bound, or its image, may run between a thread's cells along an in-plane axis.
        """
        tiling = self.axes[number]
        low, high = self.lower[tiling.axis], self.upper[tiling.axis]
        cells = tiling.layout.cells
        places = {tiling.useful * tile for tile in range(tiling.count)} | {high - low}
        return any((low - tiling.origin - place) % cells for place in places)

    @property
    def copies(self) -> list[ExchangeOp]:
        """The exchanges served by a load's asynchronous copies."""
        return self.outline.copies

    @property
    def pads(self) -> tuple[int, ...]:
        """
        Cells around the tile brought by asynchronous copies, on both sides of each in-plane axis.
        """
        return self.outline.pads

    @cached_property
    def margins(self) -> tuple[int, ...]:
        """
        Cells around a block that the block's threads read, on both sides of each in-plane axis:
        cells of asynchronous copies, and in tiles of several blocks the edges of neighbouring
        blocks.
        """
        sides = zip(self.layouts, self.pads, self.outline.edges)
        return tuple(max(pad, edge) if axis.blocks > 1 else pad for axis, pad, edge in sides)

    @property
    def stored_fields(self) -> list[SSAValue]:
        """The fields stored by the kernel."""
        return self.outline.stored_fields

    @cached_property
    def vector(self) -> int:
        """
        Cells of one access along the last axis: 16 bytes if every row of the stored field starts at
        a multiple of 16 bytes, as a single row does. 1 if rows start elsewhere, or if the stream
        runs along the rows.
        """
        if self.outline.plane_axes[-1] != len(self.lower) - 1:
            return 1
        width = vector_cells(self.layouts[-1].cells, self.outline.stored_type)
        rows = self.outline.stored_shape.sizes
        return width if len(rows) == 1 else gcd(width, rows[-1])

    @property
    def has_narrow_accesses(self) -> bool:
        """
        Whether accesses are narrower than 16 bytes, because rows of the stored field start
        unaligned, or a lane has too few cells.
        """
        return self.vector < widest_access(self.outline.stored_type)

    @cached_property
    def sector(self) -> int:
        """Cells of the stored field in one sector of memory."""
        return SECTOR_BYTES // CELL_BYTES[self.outline.stored_type]

    @cached_property
    def has_many_rows(self) -> bool:
        """Whether rows of tiles are stored to many fields, streamed through a volume."""
        streams = self.kernel.stream_axis is not None and len(self.layouts) == 2
        return streams and len(self.stored_fields) >= MANY_STORED

    @cached_property
    def stores_whole_sectors(self) -> bool:
        """Whether the stored rows of tiles begin and end with sectors of memory."""
        last = self.axes[-1]
        return last.count == 1 or (last.useful % self.sector == 0 and self.begins_with_sector(last))

    def tile_axis(self, axis: int, layout: AxisLayout, pad: int) -> AxisTiling:
        """
        Place the tiles along one axis, with vectors along the last axis aligned in memory. The
        stored cells of a tile begin and end between vectors, or in the middle of a vector of two
        cells to save a tile; for 8-byte cells, 1 tile in `TILES_FOR_ONE` at least, as a cell then
        takes an access alone. Rows of many fields begin and end between sectors. Threads read `pad`
        cells around a tile.
        """
        inner = axis == len(self.lower) - 1
        unit = self.vector if inner else 1
        start = self.outline.stored_shape.lower[axis]
        low, high = ceil_div(self.overlap.low[axis], unit) * unit, self.overlap.high[axis]
        useful = (layout.extent - low - high) // unit * unit
        sectors = useful // self.sector * self.sector if inner and self.has_many_rows else 0
        if sectors and sectors >= LEAST_WHOLE * useful:
            useful = sectors
        first = self.lower[axis] - self.outside.low[axis]
        origin = first - (first - start) % unit
        span = self.upper[axis] + self.outside.high[axis] - origin
        if unit == 2 and useful > 0 and not self.has_many_rows:
            within = (layout.extent - self.overlap.low[axis] - high) // unit * unit
            fewer, many = (tiles_beyond_first(span, layout.extent, n) + 1 for n in (within, useful))
            least = 1 if is_word(self.stored_fields[0]) else ceil_div(many, TILES_FOR_ONE)
            if many - fewer >= least:
                low, useful = self.overlap.low[axis], within
        if useful < 1:
            raise ValueError(
                f"kernel @{self.kernel.sym_name.data} overlaps by {low} and {high} cells along "
                f"axis {axis}, and leaves no cell of the tile's {layout.extent}; use a smaller "
                "depth or a larger tile"
            )
        more = tiles_beyond_first(span, layout.extent, useful)
        tiling = AxisTiling(axis, layout, origin, useful, low, more + 1, span)
        if not more:
            return tiling
        centred = self.centred(tiling, unit, pad)
        if useful == sectors and not self.begins_with_sector(centred):
            wider = self.centred(replace(tiling, count=more + 2), unit, pad)
            centred = wider if self.begins_with_sector(wider) else centred
        return centred

    def centred(self, tiling: AxisTiling, unit: int, pad: int) -> AxisTiling:
        """
        The tiles with the cells that they hold in excess on both sides: only the outermost tiles
        then touch the bounds. Stored cells begin with a sector of memory if the excess allows.
        """
        moved = tiling.excess // 2 // unit * unit
        inner = tiling.axis == len(self.lower) - 1
        over = (self.first_in_row(tiling) - moved) % self.sector if inner else 0
        whole = moved - (self.sector - over) % self.sector
        last = tiling.useful - pad - self.outside.high[tiling.axis]
        if over % unit == 0 and whole >= 0 and tiling.excess - whole <= last:
            moved = whole
        return replace(tiling, origin=tiling.origin - moved)

    def begins_with_sector(self, tiling: AxisTiling) -> bool:
        """Whether the stored cells of tiles along the rows begin with a sector of memory."""
        return self.first_in_row(tiling) % self.sector == 0

    def first_in_row(self, tiling: AxisTiling) -> int:
        """The place of the first stored cell of the tiles in a row of memory."""
        return tiling.first_stored - self.outline.stored_shape.lower[tiling.axis]

    def access_width(self, field: SSAValue, *, inside: bool = False) -> int:
        """
        Cells of one access to a field, at positions that are multiples of `vector`. If every row
        begins with a vector, a field of one row need not end with a whole vector for tiles `inside`
        the field. Accesses of a word or more are divided where a field goes on inside a vector
        (`lowering/tile_to_gpu/images.py`); narrower accesses never have cells on both sides.
        """
        shape, last = FieldShape.of(field), self.axes[-1]
        width = min(self.vector, widest_access(element_type(field)))
        width = gcd(width, last.origin - shape.lower[-1])
        if last.axis in self.kernel.continued_axes and CELL_BYTES[element_type(field)] < LEAST_COPY:
            ends = self.lower[last.axis], self.upper[last.axis]
            width = gcd(width, *(last.origin - end for end in ends))
        cells = self.interior_cells(len(self.axes) - 1)
        ends_beyond = len(shape.sizes) == 1 and cells.stop <= shape.upper[-1]
        return width if inside and ends_beyond else gcd(width, shape.sizes[-1])

    def interior_cells(self, number: int) -> range:
        """
        The cells along an in-plane axis, given by number, touched by tiles inside the rim: no cell
        outside the bounds, and no cell of the overlap stored by the outermost tiles. Empty if no
        tile lies inside.
        """
        tiling, pad = self.axes[number], self.margins[number]
        if self.outline.reads_memory:
            if self.always_guarded(number):
                return range(tiling.origin, tiling.last_origin + tiling.layout.extent)
            if self.touches_row_ends(number):
                return range(self.lower[tiling.axis], self.upper[tiling.axis])
            low, high = untested_cells(self.kernel, tiling.axis)
            return range(low, high if high - low >= tiling.layout.block_extent else low)
        inner = tiling.inner_cells
        low = max(self.lower[tiling.axis], inner.start - pad)
        high = min(self.upper[tiling.axis], inner.stop + pad)
        fits = high - low >= tiling.layout.block_extent + 2 * pad
        return range(low, high) if fits else range(low, low)

    def touches_row_ends(self, number: int) -> bool:
        """
        Whether tiles inside the rim may touch both ends of the rows, along an in-plane axis given
        by number: the last one of kernels that read memory, as long tiles touch both ends.
        """
        is_last = number == len(self.axes) - 1
        return self.outline.reads_memory and is_last and not self.continues_in_plane

    @cached_property
    def rows_end_between_threads(self) -> bool:
        """
        Whether each thread of a kernel that reads memory has all of its columns in the bounds, or
        none, and taps of the bounds' cells stay in the fields along the rows: a single test of a
        thread then replaces tests of accesses.
        """
        number, axis = len(self.axes) - 1, self.axes[-1].axis
        if not self.touches_row_ends(number) or self.cuts_threads(number):
            return False
        return readable_cells(self.kernel, axis) == (self.lower[axis], self.upper[axis])

    def always_guarded(self, number: int) -> bool:
        """
        Whether all tiles have guards along an in-plane axis, given by number: where rows end inside
        threads. Guards along one axis are few.
        """
        return self.touches_row_ends(number) and not self.rows_end_between_threads

    @cached_property
    def slab(self) -> int | None:
        """Tiles along the second axis taken together by a kernel that reads memory, in a slab."""
        if not self.outline.reads_memory or len(self.axes) < 3:
            return None
        return slab_of(self.kernel, self.axes[1])

    @cached_property
    def tiles_in_turn(self) -> int:
        """Tiles along the first axis taken in turn by a block of one tile that reads memory."""
        if not self.outline.reads_memory or len(self.axes) < 3 or self.layout.pack.data > 1:
            return 1
        extents = [axis.layout.block_extent for axis in self.axes]
        return tiles_in_turn(self.kernel, extents, self.axes[0].count, self.plane_tiles)

    @cached_property
    def taps_stay_inside(self) -> bool:
        """Whether the taps of all cells of the bounds lie in the fields."""
        return taps_stay_inside(self.kernel)

    def deals_rows(self, field: SSAValue) -> bool:
        """
        Whether rows of a field are dealt to the lanes vector by vector, because one access is
        narrower than a thread's row. A warp then reads and writes consecutive vectors, in rows of
        any length.
        """
        narrow = self.access_width(field) < self.axes[-1].layout.cells
        return narrow and self.kernel.stream_axis is not None

    @property
    def cuts_pairs(self) -> bool:
        """Whether tiles store up to the middle of a vector of two cells, to save a tile."""
        last = self.axes[-1]
        return self.vector == 2 and last.count > 1 and last.overlap_low % 2 == 1

    def may_cross(self, number: int, position: int, moved: int) -> bool:
        """
        Whether some cell inside the bounds taps `moved` cells along an in-plane axis, and lands
        outside the bounds at place `position` of a thread. Sizes are static: positions which the
        bounds never separate are known.
        """
        if moved == 0:
            return False
        side = self.kernel.sides(self.axes[number].axis)[moved > 0]
        if isinstance(side, Kind) and side is not Kind.KEEP:
            # An image has right cells, and nobody reads a cell behind a mirror.
            return False
        tiling, pad = self.axes[number], self.margins[number]
        low, high = self.lower[tiling.axis], self.upper[tiling.axis]
        extent = tiling.layout.block_extent
        for tile, block in product(range(tiling.count), range(tiling.layout.blocks)):
            origin = tiling.origin + tile * tiling.useful + block * extent
            if origin - pad >= low and origin + extent + pad <= high:
                continue
            for distance in range(1, abs(moved) + 1):
                outside = low - distance if moved < 0 else high + distance - 1
                first = outside - origin - position
                # A thread's first own cell is a multiple of `cells` from the block's origin.
                if first % tiling.layout.cells == 0 and 0 <= first < extent:
                    return True
        return False

    def may_be_at(self, number: int, position: int, place: int) -> bool:
        """Whether position `position` of some thread lies at a place along an in-plane axis."""
        tiling = self.axes[number]
        extent = tiling.layout.block_extent
        for tile, block in product(range(tiling.count), range(tiling.layout.blocks)):
            first = place - tiling.origin - tile * tiling.useful - block * extent - position
            if first % tiling.layout.cells == 0 and 0 <= first < extent:
                return True
        return False

    @cached_property
    def plane_tiles(self) -> int:
        """The number of tiles covering a plane."""
        return prod(axis.count for axis in self.axes)
