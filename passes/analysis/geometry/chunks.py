"""
How columns of tiles are cut into chunks of planes, so that a launch ends first.

Each chunk pays the pipeline's fill once. Candidates are chunks of one height, as many whole columns as the device holds
with chunks of those that are left, and as many chunks as it holds tiles, which take equally long: of every column
as many as fit, while what is left of all columns lies end to end, or every column by itself. Where tiles share a block,
the first and the last chunk of a column share the planes that chunks of one height have too many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from timetile.passes.analysis.geometry.kernel_geometry import Geometry, whole_blocks
from timetile.passes.analysis.geometry.makespan import makespan
from timetile.passes.analysis.geometry.plane_geometry import ceil_div, is_word
from timetile.passes.analysis.geometry.residency import Residency


def edge_height(geometry: Geometry, interior: int, weight: float, corner: int) -> int:
    """The planes of an edge chunk that takes as long as an interior one, in a corner so many interior steps longer."""
    fill = geometry.fill + geometry.drain
    return max(1, round((interior + fill - corner) / weight - fill))


def corner_steps(geometry: Geometry, residency: Residency) -> int:
    """
    What a chunk in a corner of the bounds costs more, in interior steps: it fills the pipeline with guards on both sides
    (timed, warp by warp). Where tiles share a block a launch is one round, and its slowest chunk counts.
    """
    return geometry.fill // 2 if residency.block_tiles > 1 else 0


def end_planes(geometry: Geometry, residency: Residency, *, sums: bool) -> tuple[int, int]:
    """
    The planes that the first and the last chunk of a column should have less, on the rim and inside it, where the kernel
    keeps `sums` and tiles share a block: they fill the pipeline with guards along the stream, and are the only ones to run
    that code (timed, warp by warp, for 9 and 25 points: 1.4 to 3 times the fill in the corners, 0.1 to 1.4 times inside).
    """
    if not sums or residency.block_tiles == 1:
        return 0, 0
    return 3 * geometry.fill, geometry.fill // 2


@dataclass(frozen=True)
class Columns:
    """
    Columns of tiles, the planes of their chunks, what a step costs, in steps of an interior tile, whether they lie
    on the rim and have a copy of their own, and how many planes of each are joined with those of the others.
    """

    count: int
    planes: int
    weight: float = 1.0
    on_rim: bool = False
    joined: int = 0
    ends: int = 0
    """Planes that the first and the last chunk of a column should have less, so that they take no longer than others."""

    def tiles(self, geometry: Geometry) -> int:
        """Chunks of all of them."""
        return geometry.column_tiles(self.count, self.planes, self.joined)

    def steps(self, geometry: Geometry, residency: Residency) -> float:
        """Steps of the chunk that takes longest, in those of an interior tile: at an end of a column, or in a corner."""
        steps = self.weight * geometry.steps(self.planes)
        if self.ends:
            less = geometry.missing(self.planes, self.joined) // 2
            return steps + self.weight * max(0, self.ends - less)
        return steps + (corner_steps(geometry, residency) if self.on_rim else 0)


@dataclass(frozen=True)
class Chunks:
    """The columns of a launch in the order in which they start, its tiles, and when the last is done in interior steps."""

    columns: tuple[Columns, ...]
    tiles: int
    steps: float
    longest: float
    """Steps of the longest chunks of each kind of columns, together."""


def launch(geometry: Geometry, residency: Residency, *parts: Columns) -> Chunks:
    """
    A launch of columns, one part after the other, if its blocks take the next tiles as soon as they are done with one.
    Tiles that share a block are done together.
    """
    pack = residency.block_tiles
    both_kinds = len({columns.on_rim for columns in parts if columns.count}) > 1
    tiles = geometry.numbered([part.tiles(geometry) for part in parts], both_kinds=both_kinds)
    kinds = [
        (ceil_div(count, pack), columns.steps(geometry, residency))
        for count, columns in zip(tiles, parts)
    ]
    longest = sum(steps for _, steps in kinds)
    return Chunks(parts, sum(tiles), makespan(kinds, residency.tiles // pack), longest)


MOST_ROUNDS = 3
"""Rounds of the device that columns take from end to end, with which whole ones are considered."""


MOST_REFILLS = 6
"""How often chunks of the columns that are left may fill the device."""


def whole_columns(
    geometry: Geometry, residency: Residency, rim: Sequence[Columns]
) -> Iterator[Chunks]:
    """
    Launches in which as many columns as the device holds, once or a few times, advance from end to end, and those
    that are left in chunks. Columns on the rim that have a copy of their own start between the two, or first where they
    advance from end to end themselves.
    """
    slots = residency.tiles
    if residency.block_tiles > 1 or residency.tile_blocks > 1:
        return
    for edge in rim or (None,):
        inside = geometry.plane_tiles - (0 if edge is None else edge.count)
        # Those on the rim take slots of the device, too, if they advance from end to end.
        beside = edge.count if edge is not None and edge.planes == geometry.planes else 0
        for rounds in range(1, MOST_ROUNDS + 1):
            count = rounds * slots - beside
            if not 0 < count < inside:
                continue
            left, whole = inside - count, Columns(count, geometry.planes)
            started = (whole,) if edge is None else (edge, whole) if beside else (whole, edge)
            # As many chunks as fill the device so often, or just do not.
            filling = [refills * slots // left for refills in range(1, MOST_REFILLS + 1)]
            for chunks in sorted({max(1, n + more) for n in filling for more in (0, 1)}):
                rest = Columns(left, ceil_div(geometry.planes, chunks))
                yield launch(geometry, residency, *started, rest)


JOINING_SPEED = 1.01
"""
What joined planes must save at least (a factor) in FP64: a chunk that goes on elsewhere takes registers (measured: the
radius-4 star loses 8% where half a percent is saved).
"""

LONGEST_LINE = 1 << 30
"""Planes that lie end to end from which 32 bits may not number them."""


def even_columns(geometry: Geometry, part: Columns, tiles: int) -> Columns | None:
    """
    Columns cut into so many chunks that take equally long: of every column as many as fit, and the planes that are left
    are joined. None where there are fewer tiles than columns, or hardly any are left. (The first and the last chunk of a
    column have guards along the stream where they fill the pipeline, and get as many planes less. Where a column has one
    chunk alone, the joined planes come first.)
    """
    count, ends = part.count, 2 * geometry.fill
    whole = tiles // count
    if not whole:
        return None
    planes = ceil_div(count * (geometry.planes + geometry.restart + ends), tiles)
    joined = geometry.planes + ends - whole * planes
    # Fewer planes than a restart takes steps are not worth it.
    if joined <= geometry.restart or planes <= ends:
        return None
    if count * (joined + geometry.restart) > LONGEST_LINE:
        return None
    return replace(part, planes=planes, joined=joined)


def level_columns(geometry: Geometry, part: Columns, tiles: int) -> Columns | None:
    """
    Columns cut into as many chunks each as fit, of one height but for what the first and the last are to have less, as far
    as rounding lets them; None where there are fewer tiles than columns, or such chunks have no planes.
    """
    if tiles < part.count:
        return None
    planes = ceil_div(geometry.planes + 2 * part.ends, tiles // part.count)
    return replace(part, planes=planes) if planes > part.ends else None


def one_round(
    geometry: Geometry, residency: Residency, weight: float | None, *, sums: bool, joins: bool
) -> Iterator[Chunks]:
    """
    Launches of as many chunks as the device holds tiles, which take equally long: with joined planes where a kernel `joins`
    any, and without where it keeps `sums`. Blocks have tiles on the rim, or inside it: two copies of the code in one
    multiprocessor would contend for its instruction cache.
    """
    layout = geometry.kernel.layout
    assert layout is not None
    slots, pack = residency.tiles, residency.block_tiles
    if layout.warps * layout.blocks > 1 or geometry.kernel.stream_axis is None:
        return
    rim = 0 if weight is None else geometry.edge_columns
    on_rim, inside = end_planes(geometry, residency, sums=sums)
    edge = Columns(rim, geometry.planes, weight or 1.0, on_rim=True, ends=on_rim)
    inner = Columns(geometry.plane_tiles - rim, geometry.planes, ends=inside)
    # How columns on the rim are cut, and those inside it, or all where there is one kind.
    joined, level = (level_columns, even_columns), (level_columns, level_columns)
    ways = [way for way, wanted in ((joined, joins), (level, sums)) if wanted]
    if not edge.count or not inner.count:
        alone = edge if edge.count else inner
        for _, cut in ways:
            columns = cut(geometry, alone, slots)
            if columns is not None:
                yield launch(geometry, residency, columns)
        return
    together = whole_blocks(1, pack)
    share = int(slots / together * rim * edge.weight / (rim * edge.weight + inner.count))
    for (cut_edge, cut_inner), teams in product(ways, (share, share + 1)):
        outer = cut_edge(geometry, edge, teams * together)
        others = cut_inner(geometry, inner, slots - teams * together)
        if outer is not None and others is not None:
            yield launch(geometry, residency, outer, others)


MOST_WAVES, MANY_COUNTS = 6, 1000
"""Waves of chunks that are considered, and numbers of chunks from which those alone are that fill waves just so."""


def chunk_counts(geometry: Geometry, residency: Residency) -> list[int]:
    """Into how many chunks a column may be cut."""
    columns = max(1, geometry.plane_tiles)
    most = min(geometry.planes, ceil_div(MOST_WAVES * residency.tiles, columns) + 1)
    if most <= MANY_COUNTS:
        return list(range(1, most + 1))
    filling = {
        waves * residency.tiles // columns + more
        for waves in range(MOST_WAVES + 1)
        for more in (-1, 0, 1)
    }
    return sorted(count for count in filling if 1 <= count <= most)


def choose_chunks(
    geometry: Geometry,
    residency: Residency,
    weight: float | None,
    *,
    sums: bool,
    joins: bool = True,
) -> Chunks:
    """
    The heights at which a launch ends first, where a step takes as long as its multiprocessor is crowded. A step on
    the rim costs `weight` interior ones; None where all columns are alike. `sums`: the kernel keeps those of planes;
    `joins`: planes of columns may be joined.
    (The cost model knows more of a step; heights need only compare launches of one kernel.)
    """
    rim = 0 if weight is None else geometry.edge_columns
    on_rim, inside = end_planes(geometry, residency, sums=sums)

    def candidates() -> Iterator[Chunks]:
        counts = chunk_counts(geometry, residency)
        heights = list(dict.fromkeys(ceil_div(geometry.planes, count) for count in counts))
        for planes in heights:
            others = Columns(geometry.plane_tiles - rim, planes, ends=inside)
            if weight is None:
                yield launch(geometry, residency, others)
                continue
            corner = corner_steps(geometry, residency)
            for height in {edge_height(geometry, planes, weight, corner), planes}:
                edge = Columns(rim, height, weight, on_rim=True, ends=on_rim)
                yield launch(geometry, residency, edge, others)
        edges = [] if weight is None else [Columns(rim, n, weight, on_rim=True) for n in heights]
        yield from whole_columns(geometry, residency, edges)
        yield from one_round(geometry, residency, weight, sums=sums, joins=joins)

    def order(chunks: Chunks) -> tuple[float, int, float]:
        joined = any(columns.joined for columns in chunks.columns)
        doubles = not is_word(geometry.stored_fields[0])
        least = JOINING_SPEED if joined and doubles else 1.0
        time = chunks.steps * residency.crowding(chunks.tiles) * least
        # What a step on the rim costs is estimated: of launches that end alike one with time to spare is safer.
        return time, chunks.tiles, chunks.longest

    return min(candidates(), key=order)
