"""The schedules compared by `choose-schedule`: layouts by number of axes, and depths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import cell_type, element_type
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import LANES
from timetile.dialects.tile.kinds import Form, Sync, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.analysis.launches.liveness import (
    loop_rotation,
    written_bounds,
    written_cells,
)
from timetile.passes.loops.split_regions import StepInRegions
from timetile.passes.scheduling.memory_schedules import memory_schedules
from timetile.passes.targets.hardware import LEAST_COPY, VECTOR_BYTES
from timetile.passes.targets.target import Target

DEEPEST = {
    TileShape.LINE: 32,
    TileShape.STRIP: 16,
    TileShape.PENCIL: 16,
    TileShape.PLATE: 12,
    TileShape.VOLUME: 4,
}
"""
The deepest kernel considered for each shape of a tile. A level of a line costs no register and
little overlap. All levels of a plate are written out, and code run once is fetched at each run.
Messages between the blocks of a volume, and waits for messages, grow with every level.
"""

FEW_CELLS = 1 << 24
"""Cells of a plate from which tiles always fill blocks of all warps."""

MOST_AHEAD = 7
"""Most planes fetched ahead of their use in two dimensions."""

DEEPEST_BOX = 6
"""Most levels of a box in pencils: four levels are the most ever found fastest."""

CLUSTER_ROWS = (4, 6)
"""Rows of a thread for tiles of two blocks: edges weigh little, and registers suffice."""

DEVICE_ROWS = (3, 4, 5)
"""Rows of a thread for streamed tiles of the device."""

DEVICE_SYNCS = (Sync.FLAGS, Sync.GRID)
"""
How the blocks of a tile wait for each other: by words of messages, or at a barrier of the grid.
"""

DEVICE_MEETINGS = ((Sync.FLAGS, 1), (Sync.GRID, 1), (Sync.GRID, 2))
"""
How the blocks of a streamed tile wait for each other, and how many steps a barrier serves (EBISU's
lazy streaming, section 4.3.2).
"""

HALVED_RADIUS = 3
"""Planes on each side from which sums of stars are considered in halves (the semi-stencil)."""

RESIDENT_ROWS = (4, 6, 8, 10, 12, 16)
"""Rows of a thread for resident plates of a block."""

DEVICE_PLATES = (((6, 4), 16), ((4, 4), 16), ((8, 4), 8), ((6, 8), 8))
"""
Cells of a thread, and warps of a block, for resident plates of the device: as many cells as fit, in
rows wide enough for their overlap.
"""

DEVICE_VOLUMES = (((4, 2, 2), 16), ((4, 4, 2), 8), ((4, 4, 2), 16))
"""
Cells of a thread, and warps of a block, with which volumes stay in the registers of the device.
Warps lie along the second axis, and the blocks along the first.
"""

DEVICE_SHARES = (1, 2, 3)
"""
Resident tiles held by the device at once: more tiles overlap more, and leave fewer blocks idle.
"""

LANE_BYTES = (16, 32, 64)
"""
Bytes of a lane's cells in one dimension. More bytes overlap less; fewer bytes move in fewer pieces.
"""

MANY_FIELDS, FEWEST_CELLS = 3, 2
"""
Fields stored by a step from which strips have few cells a lane, too: each field keeps planes of its
own, and a step more takes their registers once more. (Shallow water in FP64: two steps with two
cells a lane run 1.8 times faster than one step with four.)
"""

SHARED_CELLS = (1, 2)
"""
Cells of a lane in strips of all warps of a block: a step of many fields overlaps once for the
block, and lanes need few cells.
"""

SUM_ROWS = (2, 3, 4, 5, 6, 8)
"""Rows of a thread for boxes with planes entering sums on arrival."""

WHOLE_ROWS = (2, 3, 4, 5, 6, 8, 10)
"""Rows of a thread for other tiles of volumes."""

FAR_WHOLE_ROWS = (1, *WHOLE_ROWS)
"""
Rows of a thread for whole sums over diagonals that reach `HALVED_RADIUS` planes or more. Tilted
media of 13 arrays in FP32, one H200: 35 GPts/s with a row of two cells, 33 with two rows of one.
"""

FAR_SUM_ROWS = (1, *SUM_ROWS)
"""Rows of a thread where such sums reach `HALVED_RADIUS` planes or more: many planes are kept."""

SUM_CELLS = {8: (4, 6), 4: (4, 6, 8, 12)}
"""
Cells of a lane for boxes with rows entering sums on arrival, in planes of one axis, by bytes of the
element.
"""


LANE_CELLS = (4, 6)
"""
Cells of a lane where partial sums travel through lanes: six have fewer shuffles for each cell. One
H200, filters in FP64 by columns, GCells/s with four and with six: 13 x 13 70 and 74, 9 x 9 132 and
140.
"""


def radii_of_step(loop: LoopOp) -> tuple[int, ...]:
    """The largest distance of one step's reads along each axis, in cells."""
    rank = len(written_bounds(loop).lb)
    far = [0] * rank
    for update in loop.updates:
        for tap in update.tap_list:
            far = [max(a, abs(b)) for a, b in zip(far, tap.offset)]
    return tuple(far)


def shuffles_several_planes(loop: LoopOp) -> bool:
    """
    Neighbours in a plane are read from other planes than the cell's own: each is shuffled, or
    summed.
    """
    return any(
        tap.offset[0] and any(tap.offset[1:]) for update in loop.updates for tap in update.tap_list
    )


def strip_widths(far: tuple[int, ...], size: int) -> tuple[int, ...]:
    """
    Cells of a lane in strips, for cells of `size` bytes. Wider strips overlap less, but their loops
    outgrow the instruction cache, unless only sums are kept.
    """
    return (4, 8) if far[-1] >= LANES // 4 else (4,) if size == 8 else (4, 6)


def star_widths(far: tuple[int, ...], size: int) -> tuple[int, ...]:
    """
    Cells of a lane in strips that keep planes: eight words a lane as well for neighbours one cell
    away. Farther neighbours take too many registers (measured in FP32: radius 1 gains 5%; radius 2,
    3 and 4 lose 6, 18 and 8%).
    """
    widths = strip_widths(far, size)
    return (*widths, 8) if size == 4 and far[-1] <= 1 else widths


def schedules(
    loop: LoopOp, target: Target, step: StepInRegions | None = None
) -> Iterator[Schedule]:
    """The considered layouts, by number of axes; `step`: the loop's step, if known in regions."""
    size = max(CELL_BYTES[cell_type(b)] for b in loop.buffers)
    match len(radii_of_step(loop)):
        case 1:
            yield from line_schedules(size)
        case 2:
            yield from plate_schedules(loop, size, target)
        case _:
            yield from volume_schedules(loop, size, target)
    yield from memory_schedules(step or StepInRegions(loop))


def line_schedules(size: int) -> Iterator[Schedule]:
    """Schedules for a domain with one axis, and cells of `size` bytes."""
    for row in LANE_BYTES:
        yield Schedule(cells=(row // size,), occupancy=4, ahead=0)


def plate_schedules(loop: LoopOp, size: int, target: Target) -> Iterator[Schedule]:
    """Layouts of two axes: strips, and resident plates."""
    few = written_cells(loop) < FEW_CELLS
    for (form, cells), warps in product(strips(loop, size), (8, 12, 16)):
        # One block of all warps shares time evenly. Smaller blocks are tried if tiles may be few.
        for pack in (warps, 4) if few else (warps,):
            yield Schedule(
                cells=(cells,), pack=pack, occupancy=warps // pack, form=form, ahead=MOST_AHEAD
            )
    yield from shared_strips(loop)
    if few:
        yield from resident_schedules(size)
    yield from device_schedules(DEVICE_PLATES, target)


def stored_fields(loop: LoopOp) -> int:
    """The number of fields that a step leaves for the next."""
    return sum(loop_rotation(loop).live)


def strips(loop: LoopOp, size: int) -> Iterator[tuple[Form, int]]:
    """Streamed strips of a plate: how sums are formed, and the cells a lane has."""
    far = radii_of_step(loop)
    widths = strip_widths(far, size)
    narrow = (FEWEST_CELLS,) if stored_fields(loop) >= MANY_FIELDS else ()
    yield from ((Form.NONE, cells) for cells in (*narrow, *star_widths(far, size)))
    if shuffles_several_planes(loop):
        yield from ((Form.ROWS, cells) for cells in sorted({*SUM_CELLS[size], *widths}))
        yield from ((Form.LANES, cells) for cells in sorted({*LANE_CELLS, *widths}))


def shared_strips(loop: LoopOp) -> Iterator[Schedule]:
    """
    Strips of all warps of a block, which exchange edges, for steps of many fields: strips of a warp
    have few cells there, and overlap by half (elastic waves of order 4: four levels keep 40 of 64
    cells).
    """
    if stored_fields(loop) < MANY_FIELDS:
        return
    for cells, warps, sync in product(SHARED_CELLS, (8, 12, 16), (Sync.BARRIER, Sync.MBARRIER)):
        yield Schedule(
            tile=TileLevel.BLOCK, cells=(cells,), warps=(warps,), pack=1, occupancy=1,
            ahead=MOST_AHEAD, sync=sync,
        )  # fmt: skip


def volume_schedules(loop: LoopOp, size: int, target: Target) -> Iterator[Schedule]:
    """Layouts of three axes: streamed tiles of a block, and resident volumes."""
    sync = Sync.MBARRIER if target.isa.splits_barriers else Sync.BARRIER
    widths = (1, 2, 4) if size == 4 else (1, 2)
    forms = volume_forms(loop)
    # A split barrier costs one plane of registers at every level of a box, and one slot of the
    # copies that rows are read from.
    costly = len(forms) > 1 or radii_of_step(loop)[-1] * size >= VECTOR_BYTES
    # Planes of narrow fields have as many copies in half the bytes.
    ahead = 2 * max(1, LEAST_COPY // min(CELL_BYTES[element_type(b)] for b in loop.buffers))
    far = radii_of_step(loop)[0] >= HALVED_RADIUS
    sum_rows = FAR_SUM_ROWS if far else SUM_ROWS
    whole_rows = FAR_WHOLE_ROWS if far and Form.ROWS in forms else WHOLE_ROWS
    for form, rows, cells, warps in product(forms, (1, 2, 3, 4, 5, 6, 8, 10), widths, (8, 12)):
        considered = sum_rows if form is Form.ROWS else whole_rows
        if rows not in considered or (considered is whole_rows and rows * cells == 1):
            continue
        block = Schedule(
            tile=TileLevel.BLOCK, cells=(rows, cells), lanes=(1, LANES), warps=(warps, 1),
            pack=1, form=form, occupancy=1, ahead=ahead, sync=sync,
        )  # fmt: skip
        yield block
        if sync is not Sync.BARRIER and costly:
            yield replace(block, sync=Sync.BARRIER)
        if rows in CLUSTER_ROWS and target.isa.has_clusters:
            yield replace(block, tile=TileLevel.CLUSTER, blocks=(2, 1))
        if rows in DEVICE_ROWS and warps == 8 and target.fit.is_measured:
            yield from spanning_schedules(block, target)
    yield from device_schedules(DEVICE_VOLUMES, target)


def volume_forms(loop: LoopOp) -> tuple[Form, ...]:
    """The forms of sums for tiles of volumes."""
    if shuffles_several_planes(loop):
        return Form.NONE, Form.ROWS
    if radii_of_step(loop)[0] >= HALVED_RADIUS:
        return Form.NONE, Form.HALVES
    return (Form.NONE,)


def spanning_schedules(block: Schedule, target: Target) -> Iterator[Schedule]:
    """
    Streamed tiles of the device, with the blocks of a block tile. The depth decides how many blocks
    span the axis: see `spanning_blocks`.
    """
    for sync, every in DEVICE_MEETINGS:
        yield replace(
            block,
            tile=TileLevel.DEVICE,
            blocks=(target.multiprocessors, 1),
            sync=sync,
            every=every,
        )


def resident_schedules(size: int) -> Iterator[Schedule]:
    """
    Plates resident in the registers of a block for all steps of a launch, for cells of `size`
    bytes. A lane holds at most 16 bytes of a row: wider accesses take turns (fitted: 0.2 us a row).
    """
    for rows, cells in product(RESIDENT_ROWS, (2, 4)):
        if cells * size > VECTOR_BYTES:
            continue
        yield Schedule(
            tile=TileLevel.BLOCK, cells=(rows, cells), lanes=(1, LANES), warps=(8, 1),
            pack=1, occupancy=1, ahead=0, resident=True,
        )  # fmt: skip


def device_schedules(
    shapes: Sequence[tuple[tuple[int, ...], int]], target: Target
) -> Iterator[Schedule]:
    """
    Tiles resident in the registers of as many blocks as the device holds, or of a half or a third
    of them (DTB). Waits of blocks are known for measured architectures only.
    """
    if not target.fit.is_measured:
        return
    for (cells, warps), share, sync in product(shapes, DEVICE_SHARES, DEVICE_SYNCS):
        if target.multiprocessors < 2 * share:
            # A tile of a single block has no other block to exchange edges with.
            continue
        beside = (1,) * (len(cells) - 2)
        # Lanes lie along rows, and warps along the axis before: edges of a plate are then rows.
        yield Schedule(
            tile=TileLevel.DEVICE, cells=cells, lanes=(*beside, 1, LANES),
            warps=(*beside, warps, 1), blocks=(target.multiprocessors // share, *beside, 1), pack=1,
            occupancy=1, ahead=0, sync=sync, resident=True,
        )  # fmt: skip


def lean_schedules(loop: LoopOp) -> Iterator[Schedule]:
    """Layouts of few warps, for kernels with too many fields for the shared memory otherwise."""
    far = radii_of_step(loop)
    for warps in (4, 2, 1):
        if len(far) == 2:
            yield Schedule(cells=(strip_widths(far, 8)[0],), pack=warps, occupancy=1, ahead=1)
        elif len(far) == 3:
            yield Schedule(
                tile=TileLevel.BLOCK, cells=(max(2, far[-2]), 1), lanes=(1, LANES),
                warps=(warps, 1), pack=1, occupancy=1, ahead=1,
            )  # fmt: skip


def depths(
    schedule: Schedule, shape: TileShape, given: int | None, *, several_planes: bool
) -> range:
    """
    The considered depths, or the given depth: from two on if blocks exchange or plates are
    resident, of resident plates every other depth, and one step if memory is read.
    `several_planes`: neighbours in a plane are read from several planes.
    """
    if schedule.reads_memory:
        return range(1, 2) if given in (None, 1) else range(0)
    least = 2 if schedule.resident or schedule.tile is TileLevel.DEVICE else 1
    is_box = several_planes and shape is TileShape.PENCIL
    most = DEEPEST_BOX if is_box else DEEPEST[shape]
    if given is None:
        return range(least, most + 1, 2 if shape is TileShape.PLATE else 1)
    # A streamed kernel accepts any depth that is asked for.
    if given < least or (schedule.resident and given > most):
        return range(0)
    return range(given, given + 1)
