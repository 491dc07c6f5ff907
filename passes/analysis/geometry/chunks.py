"""Cuts columns of tiles into chunks of planes: a launch ends early.

Each chunk pays once for filling the pipeline. There are four kinds of candidates: chunks of one
height; as many whole columns as the device holds, with the remaining columns in chunks; columns of
several heights (`mixed_columns.py`); and exactly
as many chunks as the device holds tiles, all of equal duration. For the third kind each column has
as many equal chunks as fit, and the remaining planes of all columns either lie end to end or stay
in their column. If tiles share a block, the first and the last chunk of a column share the planes
by which chunks of one height exceed the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import inf

from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.chunk_bounds import ChunkBounds
from timetile.passes.analysis.geometry.columns import Chunks, Columns, corner_steps, launch
from timetile.passes.analysis.geometry.kernel_geometry import Geometry, whole_blocks
from timetile.passes.analysis.geometry.mixed_columns import mixed_columns
from timetile.passes.analysis.geometry.plane_geometry import is_word
from timetile.passes.analysis.geometry.residency import Residency
from timetile.passes.analysis.point_stages import stages_with_points


def edge_height(geometry: Geometry, interior: int, weight: float, corner: int) -> int:
    """
    Planes of an edge chunk taking as long as an interior chunk, if a corner takes `corner` interior
    steps longer.
    """
    fill = geometry.fill + geometry.drain
    return max(1, round((interior + fill - corner) / weight - fill))


def end_planes(geometry: Geometry, residency: Residency, *, sums: bool) -> tuple[int, int]:
    """
    Planes that the first and the last chunk of a column should have less, on the rim and inside, if
    the kernel keeps `sums`, or has lists of points, and tiles share a block. These chunks fill the
    pipeline with guards along the stream, and no other chunk runs the guarded code (timed, warp by
    warp, for 9 and 25 points: 1.4 to 3 times the fill in corners, 0.1 to 1.4 times inside; with
    lists of points 1.5 to 3 times on the rim, 3 times inside).
    """
    if residency.block_tiles == 1:
        return 0, 0
    if has_points(geometry):
        return 3 * geometry.fill, 3 * geometry.fill
    if not sums:
        return 0, 0
    return 3 * geometry.fill, geometry.fill // 2


def ends_of_cut(geometry: Geometry, residency: Residency, *, sums: bool) -> tuple[int, int]:
    """
    Planes that the first and the last chunk of a column have less. Other strips of words than those
    of `end_planes` need shorter ends, too (timed, warp by warp, for stars of 5 to 13 points: 2 to
    3.4 times the fill on the rim, 1 to 1.4 times inside). These have no part in the choice of a
    schedule.
    """
    ends = end_planes(geometry, residency, sums=sums)
    is_strip = residency.block_tiles > 1 and len(geometry.axes) == 1
    if any(ends) or not is_strip or not is_word(geometry.stored_fields[0]):
        return ends
    return 3 * geometry.fill, geometry.fill


def has_points(geometry: Geometry) -> bool:
    """Strips of a plate have lists of points."""
    return len(geometry.axes) == 1 and bool(stages_with_points(geometry.kernel))


def edge_heights(
    geometry: Geometry, planes: int, weight: float | None, corner: int
) -> Iterable[int]:
    """Heights tried for chunks on the rim while chunks inside have `planes`."""
    if weight is None:
        return (planes,)
    return {edge_height(geometry, planes, weight, corner), planes}


MOST_ROUNDS = 3
"""Most rounds of the device with whole columns, advancing from end to end."""


MOST_REFILLS = 6
"""Most times for chunks of the remaining columns to fill the device."""


def whole_columns(
    geometry: Geometry, residency: Residency, rim: Sequence[Columns]
) -> Iterator[Chunks]:
    """
    Launches in which as many columns as the device holds, once or a few times, advance from end to
    end, with the remaining columns cut into chunks. Columns on the rim with code of their own start
    between the two, or first if they advance from end to end.
    """
    slots = residency.tiles
    if residency.block_tiles > 1 or residency.tile_blocks > 1:
        return
    for edge in rim or (None,):
        inside = geometry.plane_tiles - (0 if edge is None else edge.count)
        # Columns on the rim take slots of the device, too, if the columns advance from end to end.
        beside = edge.count if edge is not None and edge.planes == geometry.planes else 0
        for rounds in range(1, MOST_ROUNDS + 1):
            count = rounds * slots - beside
            if not 0 < count < inside:
                continue
            left, whole = inside - count, Columns(count, geometry.planes)
            started = (whole,) if edge is None else (edge, whole) if beside else (whole, edge)
            # Chunks that fill the device a whole number of times, and one chunk more.
            filling = [refills * slots // left for refills in range(1, MOST_REFILLS + 1)]
            for chunks in sorted({max(1, n + more) for n in filling for more in (0, 1)}):
                rest = Columns(left, ceil_div(geometry.planes, chunks))
                yield launch(geometry, residency, *started, rest)


JOINING_SPEED = 1.01
"""
The least gain, as a factor, for joining planes in an FP64 launch. A chunk that goes on in another
column takes registers (measured: the radius-4 star loses 8% if joining saves half a percent).
"""

LONGEST_LINE = 1 << 30
"""More planes than this never lie end to end: 32 bits number the planes."""


def even_columns(geometry: Geometry, part: Columns, tiles: int) -> Columns | None:
    """
    Columns cut into `tiles` chunks of equal duration: each column has as many chunks as fit, and
    the remaining planes are joined. None if there are fewer tiles than columns, or if hardly any
    planes remain. (The first and the last chunk of a column fill the pipeline with guards along the
    stream, and get as many planes less. In a column of one chunk, the joined planes come first.)
    """
    count, ends = part.count, 2 * geometry.fill
    whole = tiles // count
    if not whole:
        return None
    planes = ceil_div(count * (geometry.planes + geometry.restart + ends), tiles)
    joined = geometry.planes + ends - whole * planes
    # Joining is worthless if the joined planes are at most the steps of a restart.
    if joined <= geometry.restart or planes <= ends:
        return None
    if count * (joined + geometry.restart) > LONGEST_LINE:
        return None
    return replace(part, planes=planes, joined=joined)


def level_columns(geometry: Geometry, part: Columns, tiles: int) -> Columns | None:
    """
    Columns cut into as many chunks of one height as fit, with fewer planes in the first and the
    last chunk, as far as rounding allows. None for fewer tiles than columns, or a chunk without
    planes.
    """
    if tiles < part.count:
        return None
    planes = ceil_div(geometry.planes + 2 * part.ends, tiles // part.count)
    return replace(part, planes=planes) if planes > part.ends else None


def one_round(
    geometry: Geometry,
    residency: Residency,
    weight: float | None,
    *,
    sums: bool,
    joins: bool,
    ends: tuple[int, int],
) -> Iterator[Chunks]:
    """
    Launches with exactly one chunk for each tile that the device holds, all of equal duration.
    `joins`: planes of several columns may be joined. `sums`: launches without joined planes are
    tried, too, as they are with lists of points. A block has tiles of the rim or inside tiles,
    never both: two copies of the code would contend for the instruction cache of the
    multiprocessor.
    """
    layout = geometry.layout
    slots, pack = residency.tiles, residency.block_tiles
    if layout.warps * layout.blocks > 1 or geometry.kernel.stream_axis is None:
        return
    rim = 0 if weight is None else geometry.edge_columns
    on_rim, inside = ends
    edge = Columns(rim, geometry.planes, weight or 1.0, on_rim=True, ends=on_rim)
    inner = Columns(geometry.plane_tiles - rim, geometry.planes, ends=inside)
    # Two cuts each: of columns on the rim, and of columns inside (also for columns of a single
    # kind).
    joined, level = (level_columns, even_columns), (level_columns, level_columns)
    apart = sums or has_points(geometry)
    ways = [way for way, wanted in ((joined, joins), (level, apart)) if wanted]
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
        left = slots - teams * together
        others = cut_inner(geometry, inner, left)
        if others is None and inside:
            # Hardly any planes would be joined.
            others = level_columns(geometry, inner, left)
        if outer is not None and others is not None:
            yield launch(geometry, residency, outer, others)


MOST_WAVES, MANY_COUNTS = 6, 1000
"""
Most waves of chunks considered; and the number of chunks above which only whole waves are
considered.
"""


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


WORTH_MIXING = 1.03
"""The end of a launch, as a factor of the work of whole columns, from which columns are mixed."""


class Shortest:
    """Keeps the shortest offered launch; of equally long launches, the first in place."""

    def __init__(self, geometry: Geometry, residency: Residency):
        self.residency = residency
        self.doubles = not is_word(geometry.stored_fields[0])
        self.rank: tuple[float, int, float, int] = (inf, 0, 0.0, 0)
        self.found: Chunks | None = None

    @property
    def best(self) -> Chunks:
        """The shortest launch."""
        assert self.found is not None
        return self.found

    def duration(self, chunks: Chunks, steps: float) -> float:
        """Duration of a launch in interior steps, with crowding and the cost of joined planes."""
        joined = any(columns.joined for columns in chunks.columns)
        least = JOINING_SPEED if joined and self.doubles else 1.0
        return steps * self.residency.crowding(chunks.tiles) * least

    def offer(self, chunks: Chunks, place: int) -> None:
        """
        Compare a launch with the best one: by duration, tiles, the steps of the longest chunks, and
        the place among the launches; less is better. Most launches are too long by their work.
        """
        if self.rules_out(self.duration(chunks, chunks.least_steps)):
            return
        # The cost of a step on the rim is an estimate: of launches with equal ends, the launch with
        # time to spare is safer.
        rank = self.duration(chunks, chunks.steps), chunks.tiles, chunks.longest, place
        if rank < self.rank:
            self.found, self.rank = chunks, rank

    def rules_out(self, duration: float) -> bool:
        """Whether every launch of at least this duration is longer than the best."""
        return duration > self.rank[0]


def choose_chunks(
    geometry: Geometry,
    residency: Residency,
    weight: float | None,
    *,
    sums: bool,
    joins: bool = True,
    ends: tuple[int, int] | None = None,
) -> Chunks:
    """
    The chunks with which a launch ends first. The duration of a step depends on how crowded its
    multiprocessor is. A step on the rim costs `weight` interior steps; `weight` is None if all
    columns are alike. `sums`: the kernel keeps sums of planes. `joins`: planes of several columns
    may be joined. `ends`: planes that the first and the last chunk of a column have less, on the
    rim and inside; `end_planes` if None.

    The durations order launches of one kernel only; `passes/cost` predicts seconds.
    """
    rim = 0 if weight is None else geometry.edge_columns
    inner = geometry.plane_tiles - rim
    ends = end_planes(geometry, residency, sums=sums) if ends is None else ends
    on_rim, inside = ends
    corner = corner_steps(geometry, residency)
    counts = chunk_counts(geometry, residency)
    heights = list(dict.fromkeys(ceil_div(geometry.planes, count) for count in counts))

    pairs = [
        (edge, planes)
        for planes in heights
        for edge in edge_heights(geometry, planes, weight, corner)
    ]

    def made(edge: int, planes: int) -> Chunks:
        others = Columns(inner, planes, ends=inside)
        if weight is None:
            return launch(geometry, residency, others)
        on_edge = Columns(rim, edge, weight, on_rim=True, ends=on_rim)
        return launch(geometry, residency, on_edge, others)

    shortest = Shortest(geometry, residency)
    for bound, place in ChunkBounds(geometry, residency, rim, weight or 1.0).ordered(pairs):
        if shortest.rules_out(bound):
            break
        shortest.offer(made(*pairs[place]), place)
    edges = [] if weight is None else [Columns(rim, n, weight, on_rim=True) for n in heights]
    for chunks in whole_columns(geometry, residency, edges):
        shortest.offer(chunks, len(pairs))
    for chunks in one_round(geometry, residency, weight, sums=sums, joins=joins, ends=ends):
        shortest.offer(chunks, len(pairs))
    if weight is not None and geometry.continues_in_plane:
        # Measured for mirrors and values only: other weights include waits for other tiles.
        work = (rim * weight + inner) * geometry.steps(geometry.planes) / residency.tiles
        if shortest.best.steps > WORTH_MIXING * work:
            for chunks in mixed_columns(geometry, residency, rim, weight):
                shortest.offer(chunks, len(pairs))
    return shortest.best
