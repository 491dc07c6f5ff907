"""The memory traffic of a stream step: bytes moved by a multiprocessor, and seconds."""

from __future__ import annotations

from math import ceil, gcd, log2, prod

from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.outline import widest_access
from timetile.passes.analysis.geometry.residency import Residency
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.cost.facts import KernelFacts, field_bytes
from timetile.passes.cost.papers.ebisu import concurrency
from timetile.passes.cost.rim import has_copies
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.shared_memory import cache_beside
from timetile.passes.targets.hardware import LEAST_COPY, VECTOR_BYTES
from timetile.passes.targets.target import Target

MANY_STORED = 3
"""So many stored fields slow a streamed volume down."""

ROOMY_SHARE = 0.8
"""The share of the first-level cache that a step's planes fill without harm."""


def moved_bytes(
    facts: KernelFacts, setting: Setting, geometry: Geometry, target: Target
) -> tuple[float, float]:
    """
    Bytes loaded and stored by a multiprocessor. A part of the loads common to tiles is found in L2.
    """
    moving = target.parameters.moving
    tiles = setting.layout.pack.data * setting.occupancy
    held, around, useful = 1.0, 1.0, 1.0
    for axis, pad in zip(geometry.axes, geometry.pads):
        held *= axis.layout.block_extent
        around *= axis.layout.block_extent + 2 * pad
        useful *= axis.useful / axis.layout.blocks
    if has_copies(geometry, setting.guards):
        found = moving.found_in_l2
    else:
        found = moving.found_together if facts.replaced_levels else moving.found_beside
    # A field that is loaded again, or beside the cell, is in a cache.
    cells_of = dict.fromkeys((load.field for load in facts.loads), held)
    cells_of |= {load.field: around for load in facts.loads if load.result in facts.published}
    loaded = sum(
        (cells - found * (cells - useful)) * field_bytes(field) for field, cells in cells_of.items()
    )
    stored = sum(useful * field_bytes(field) for field in facts.stored)
    return loaded * tiles, float(stored * tiles)


def bytes_in_memory(facts: KernelFacts) -> int:
    """Bytes in memory of the widest cell of the stored fields."""
    return max(map(field_bytes, facts.stored))


def narrowness(facts: KernelFacts) -> int:
    """How many cells of the stored fields fit into a word of 32 bits; 1 for wider cells."""
    return max(1, LEAST_COPY // bytes_in_memory(facts))


def loses_by_short_rows(facts: KernelFacts) -> float:
    """
    The share of the loss by short rows that a kernel has. Rows of fields read beside the cell begin
    and end within sectors: a single step whose loads and stores are mostly of other fields loses
    nothing (one H200, rows of 256 bytes: stars of radius 4 lose a tenth, and waves of order 8, with
    three other fields, nothing). Steps that store many fields were fitted with the whole loss.
    """
    single = facts.shape is TileShape.PENCIL and facts.steps == 1 and bool(facts.published)
    if not single or stores_many_fields(facts):
        return 1.0
    fields = {load.field for load in facts.loads}
    beside = {load.field for load in facts.loads if load.result in facts.published}
    moved = sum(map(field_bytes, fields)) + sum(map(field_bytes, facts.stored))
    share = sum(map(field_bytes, beside)) / moved
    return min(1.0, max(0.0, 4 * share - 1))


def memory_share(facts: KernelFacts, setting: Setting, target: Target) -> float:
    """
    Bytes a second moved by a multiprocessor if all multiprocessors move bytes: less for short rows
    of a tile.
    """
    moving = target.parameters.moving
    row, halvings = setting.axes[-1].extent * bytes_in_memory(facts), 0
    while row < moving.short_row_bytes:
        row, halvings = 2 * row, halvings + 1
    speed = moving.short_row ** (halvings * loses_by_short_rows(facts))
    return speed * target.part.copy_tb_per_s * 1e12 / target.multiprocessors


def comes_late(
    facts: KernelFacts, setting: Setting, geometry: Geometry, target: Target, ahead: int
) -> bool:
    """
    Whether a plane of two axes fetched one step ahead is too small to keep the memory busy: fewer
    bytes are on their way than arrive in the latency.
    """
    if ahead != 1 or facts.shape is not TileShape.PENCIL:
        return False
    loaded, _ = moved_bytes(facts, setting, geometry, target)
    share = target.part.copy_tb_per_s * 1e12 / target.multiprocessors
    return loaded < target.parameters.waiting.latency * share


def is_in_l2(facts: KernelFacts, setting: Setting, geometry: Geometry, target: Target) -> bool:
    """
    Whether a launch's fields stay in L2 from the launch before. (False for blocks exchanging
    messages: their costs were fitted without.)
    """
    sizes = [field_bytes(load.field) for load in facts.loads]
    sizes += [field_bytes(field) for field in facts.stored]
    fields = sum(sizes) * prod(high - low for low, high in zip(geometry.lower, geometry.upper))
    room = target.parameters.moving.l2_share * target.part.l2_bytes
    return fields <= room and not setting.has_messages


def passing_speed(
    facts: KernelFacts, setting: Setting, target: Target, ahead: int, shared: int
) -> float:
    """
    The factor on the speed for planes that a step's loads bring through the first-level cache: data
    on their way take their place there, beside `shared` bytes of shared memory of a block. It falls
    from 1, as the planes fill more than `ROOMY_SHARE` of the cache.
    """
    shape = facts.shape
    if not (ahead and shape.streams and shape.has_rows):
        return 1.0
    cells = setting.occupancy * prod(axis.block_extent for axis in setting.axes)
    planes = cells * sum(field_bytes(load.field) for load in facts.loads)
    filled = planes / cache_beside(shared, setting.occupancy, target)
    beyond = min(1.0, max(0.0, filled - ROOMY_SHARE) / (1 - ROOMY_SHARE))
    return 1 - beyond * (1 - target.parameters.moving.crowded[4 * facts.words])


def stores_many_fields(facts: KernelFacts) -> bool:
    """Whether rows of tiles are stored to many fields, streamed through a volume."""
    return len(facts.stored) >= MANY_STORED and facts.shape.streams and facts.shape.has_rows


def speed_of_many_fields(facts: KernelFacts, geometry: Geometry, target: Target) -> float:
    """The factor on the speed for rows of many fields, stored by tiles of volumes."""
    if not stores_many_fields(facts):
        return 1.0
    moving = target.parameters.moving
    broken = geometry.has_many_rows and not geometry.stores_whole_sectors
    return moving.many_fields * (moving.broken_sectors if broken else 1)


def parts_vectors(geometry: Geometry) -> bool:
    """
    Whether a lane's cells are no whole vectors of the width that rows of the stored field allow,
    and rows begin within sectors of memory.
    """
    row, cell = geometry.outline.stored_shape.sizes[-1], geometry.outline.stored_type
    return geometry.vector < gcd(row, widest_access(cell)) and row % geometry.sector != 0


def moving_seconds(
    facts: KernelFacts,
    setting: Setting,
    geometry: Geometry,
    target: Target,
    *,
    tiles: int,
    ahead: int,
    shared: int,
) -> float:
    """
    Seconds of the loads and stores of one stream step of a launch's tiles; planes are fetched
    `ahead` steps early, and a block has `shared` bytes of shared memory.
    """
    moving = target.parameters.moving
    residency = Residency.of_layout(setting.layout, setting.occupancy, target)
    active = min(1.0, tiles / residency.tiles)
    is_pencil = facts.shape is TileShape.PENCIL
    slow = is_pencil and any(
        geometry.deals_rows(load.data) for load in facts.loads if load.data is not None
    )
    speed = moving.dealt if slow else 1.0
    if facts.is_strip_of_words:
        parted = facts.steps == 1 and parts_vectors(geometry)
        speed = moving.word_strips * (moving.parted_vectors if parted else 1)
    elif facts.shape is TileShape.STRIP and facts.words == 2 and facts.steps == 1:
        speed = moving.double_strips
    if facts.shape is TileShape.LINE:
        vectors = setting.row_cells * bytes_in_memory(facts) / VECTOR_BYTES
        speed *= moving.two_vectors ** log2(vectors)
    if comes_late(facts, setting, geometry, target, ahead):
        speed *= moving.one_ahead
    if is_in_l2(facts, setting, geometry, target):
        speed *= moving.l2
    speed *= passing_speed(facts, setting, target, ahead, shared)
    speed *= speed_of_many_fields(facts, geometry, target)
    moved = sum(moved_bytes(facts, setting, geometry, target))
    return moved * active / (speed * memory_share(facts, setting, target))


def saturating_ahead(
    facts: KernelFacts, setting: Setting, geometry: Geometry, target: Target
) -> int:
    """
    Stream steps by which planes are fetched early to saturate the memory: latency times bandwidth,
    by Little's law (EBISU, section 6.1).
    """
    loaded, stored = moved_bytes(facts, setting, geometry, target)
    if not loaded:
        return 1
    on_their_way = concurrency(
        target.parameters.waiting.latency, memory_share(facts, setting, target)
    )
    # Planes of tiles with two axes are large: stores keep the memory busy as well (measured for a
    # box in 3D: 162 GCells/s with 1 plane ahead, 153 with 2 planes).
    step = loaded + stored if facts.shape.has_rows else loaded
    # Copies of a thread's row have fewer bytes in narrow fields, and more must be on their way.
    return max(1, ceil(on_their_way / step)) * narrowness(facts)
