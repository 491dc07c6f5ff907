"""Launches with columns inside of several heights: whole, beside chunks on the rim, and the rest.

Steps on the rim take long. A slot that advances a whole column on the rim ends last, and slots
with whole columns inside wait. Here columns on the rim are cut into a few chunks, a slot goes on
from a chunk on the rim to a chunk inside, and other slots advance whole columns inside. The few
columns left are cut into small chunks.
"""

from __future__ import annotations

from collections.abc import Iterator

from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.columns import Chunks, Columns, launch
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.residency import Residency

MOST_CUTS = 4
"""Most chunks of a column on the rim."""

MOST_BESIDE = 6
"""Most chunks of a column inside that follow a chunk on the rim."""

MOST_LEFT = 0.25
"""Most columns left for small chunks, as a share of the slots: more would be whole."""

FEWEST_PLANES = 4
"""Least planes of a small chunk."""


def mixed_columns(
    geometry: Geometry, residency: Residency, rim: int, weight: float
) -> Iterator[Chunks]:
    """
    Launches of `rim` columns on the rim, whose steps cost `weight` interior steps, cut into chunks,
    and of columns inside in up to three heights.
    """
    slots, inner, planes = residency.tiles, geometry.plane_tiles - rim, geometry.planes
    if residency.block_tiles > 1 or residency.tile_blocks > 1 or not rim or inner < 2:
        return
    for cuts in range(2, MOST_CUTS + 1):
        edge = Columns(rim, ceil_div(planes, cuts), weight, on_rim=True)
        whole = slots - rim * cuts
        if not 0 <= whole < inner:
            continue
        for chunks in range(1, MOST_BESIDE + 1):
            for beside in columns_beside(geometry, residency, edge, chunks, inner - whole):
                parts = [Columns(whole, planes), beside]
                yield from with_rest(geometry, residency, edge, parts, inner)


def columns_beside(
    geometry: Geometry, residency: Residency, edge: Columns, chunks: int, most: int
) -> Iterator[Columns]:
    """
    Columns in a number of chunks for the slots of chunks on the rim, as many as end near the end
    of whole columns.
    """
    height = ceil_div(geometry.planes, chunks)
    tiles = edge.tiles(geometry)
    left = geometry.steps(geometry.planes) - edge.steps(geometry, residency)
    fitting = int(left // geometry.steps(height))
    for each in (fitting, fitting + 1):
        count = min(most, tiles * each // chunks)
        if count > 0:
            yield Columns(count, height)


def with_rest(
    geometry: Geometry, residency: Residency, edge: Columns, parts: list[Columns], inner: int
) -> Iterator[Chunks]:
    """Launches with the columns left in small chunks."""
    slots = residency.tiles
    used = [part for part in parts if part.count]
    left = inner - sum(part.count for part in used)
    if not left:
        yield launch(geometry, residency, edge, *used)
        return
    if left > MOST_LEFT * slots:
        return
    for refills in range(1, 4):
        chunks = max(1, refills * slots // left)
        height = ceil_div(geometry.planes, chunks)
        if height >= FEWEST_PLANES:
            yield launch(geometry, residency, edge, *used, Columns(left, height))
