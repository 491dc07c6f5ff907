"""peel-boundaries: the lowered copies of a kernel, and how many planes a chunk of each advances.

After: `variants [#tile.variant<axes [1], planes 499>, #tile.variant<axes [], planes 648>]`

Tiles that lie inside the bounds along the in-plane axes run without a test for them; the others run a
guarded copy. (Along the stream every copy has a guarded head and tail around its steady loop.) Chunks
of the guarded copy start first: they take longest, and what starts first is not the launch's tail. They get
fewer planes by `edge-weight`, what one of its steps costs more. Where no cell is replaced the guarded copy
costs no more, and is the only one; so it is where the schedule's `guards` are those of `all` tiles, which then
advance together, and find in the second-level cache what their neighbours have loaded. Heights are the ones that
finish first: whole waves of co-resident tiles, each paying the pipeline's fill once. As many columns as the device
holds may advance from end to end, and only those that are left in chunks, which fill it once more:
`variants [#tile.variant<axes [1, 2], columns 132, planes 512>, #tile.variant<axes [1, 2], planes 74>]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile_attributes import VariantAttr
from timetile.passes.analysis.geometry import Geometry, ceil_div, is_word
from timetile.passes.analysis.lags import keeps_sums
from timetile.passes.analysis.makespan import makespan
from timetile.passes.analysis.residency import Residency
from timetile.passes.arch import Arch, arch_named
from timetile.passes.diagnostics import refuse
from timetile.passes.schedule import Guards, Schedule

HALO_WEIGHTS = {1: 2.25, 2: 1.5}
"""
What a step of the guarded copy costs more where it reads other buffers' halos, by the axes of a plane (measured for
stars of radius 1): it works little more than the others, but waits for them.
"""

GUARD_WEIGHTS = {1: 1.4, 2: 1.2}
"""The same where cells outside the bounds come from registers (measured: 1.3 to 1.75, and 1.0 to 1.2, are as fast)."""


SUMS_WEIGHT = 1.1
"""
The same in planes of two axes where planes enter sums of FP64 as they arrive (measured: 17 and 19 points at three levels
run 5% faster than 1.2 says).
"""


def has_copies(geometry: Geometry, guards: Guards) -> bool:
    """Tiles inside the bounds have a copy of their own."""
    if geometry.kernel.stream_axis is None or geometry.reads_halos:
        return True
    return geometry.replaces_cells and guards == "rim"


def edge_weight(geometry: Geometry, guards: Guards, *, sums: bool) -> float | None:
    """
    What a step of the guarded copy costs more than one of the tiles inside the bounds, for a kernel that keeps `sums` or
    none; None where it is the only one.
    """
    if not has_copies(geometry, guards):
        return None
    if geometry.kernel.stream_axis is None:
        return 1.0
    axes = len(geometry.axes)
    if geometry.reads_halos:
        return HALO_WEIGHTS[axes]
    doubles = axes == 2 and not is_word(geometry.stored_fields[0])
    return SUMS_WEIGHT if sums and doubles else GUARD_WEIGHTS[axes]


def edge_height(geometry: Geometry, interior: int, weight: float) -> int:
    """The planes of an edge chunk that takes as long as an interior one."""
    fill = geometry.fill + geometry.drain
    return max(1, round((interior + fill) / weight - fill))


@dataclass(frozen=True)
class Columns:
    """
    Columns of tiles, the planes of their chunks, what a step costs, in steps of an interior tile, and whether they lie
    on the rim and have a copy of their own.
    """

    count: int
    planes: int
    weight: float = 1.0
    on_rim: bool = False


@dataclass(frozen=True)
class Chunks:
    """The columns of a launch in the order in which they start, its tiles, and when the last is done in interior steps."""

    columns: tuple[Columns, ...]
    tiles: int
    steps: float


def launch(geometry: Geometry, residency: Residency, *parts: Columns) -> Chunks:
    """
    A launch of columns, one part after the other, if its blocks take the next tiles as soon as they are done with one.
    Tiles that share a block are done together.
    """
    pack = residency.block_tiles
    tiles = [columns.count * geometry.chunks(columns.planes) for columns in parts]
    kinds = [
        (ceil_div(count, pack), columns.weight * geometry.steps(columns.planes))
        for count, columns in zip(tiles, parts)
    ]
    return Chunks(parts, sum(tiles), makespan(kinds, residency.tiles // pack))


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


def choose_chunks(geometry: Geometry, residency: Residency, weight: float | None) -> Chunks:
    """
    The heights at which a launch ends first, where a step takes as long as its multiprocessor is crowded. A step on
    the rim costs `weight` interior ones; None where all columns are alike.
    (The cost model knows more of a step; heights need only compare launches of one kernel.)
    """
    most = ceil_div(6 * residency.tiles, max(1, geometry.plane_tiles)) + 1
    rim = 0 if weight is None else geometry.edge_columns

    def candidates() -> Iterator[Chunks]:
        counts = range(1, min(geometry.planes, most) + 1)
        heights = list(dict.fromkeys(ceil_div(geometry.planes, count) for count in counts))
        for planes in heights:
            others = Columns(geometry.plane_tiles - rim, planes)
            if weight is None:
                yield launch(geometry, residency, others)
                continue
            for height in {edge_height(geometry, planes, weight), planes}:
                edge = Columns(rim, height, weight, on_rim=True)
                yield launch(geometry, residency, edge, others)
        edges = [] if weight is None else [Columns(rim, n, weight, on_rim=True) for n in heights]
        yield from whole_columns(geometry, residency, edges)

    return min(candidates(), key=lambda chunks: chunks.steps * residency.crowding(chunks.tiles))


def variants_of(
    kernel: KernelOp, columns: Sequence[Columns], *, guards_all: bool
) -> list[VariantAttr]:
    """The variants of columns in their order: the last ones inside, and on the rim, take what is left of their kind."""
    last = {part.on_rim: part for part in columns}
    variants: list[VariantAttr] = []
    for part in columns:
        axes = kernel.plane_axes if part.on_rim or guards_all else ()
        count = 0 if part is last[part.on_rim] else part.count
        variants.append(VariantAttr(axes, part.planes, count))
    return variants


def check_residency(kernel: KernelOp, arch: Arch) -> None:
    """Refuse a tile whose blocks wait for each other where the device does not hold all of them."""
    assert kernel.layout is not None
    most = arch.resident_blocks(kernel.blocks_per_multiprocessor)
    if kernel.layout.has_messages and kernel.layout.blocks > most:
        refuse(
            kernel,
            f"its tile has {kernel.layout.blocks} blocks, which wait for each other, and {arch.name} holds "
            f"{most} at once; give device-tiling at most {most} blocks, or more cells and warps a block",
        )


@dataclass(frozen=True)
class PeelBoundariesPass(ModulePass):
    """Write the variants; see the module's documentation."""

    name = "peel-boundaries"

    arch: str = "sm_90"
    guards: Guards | None = None
    edge_weight: float | None = None
    planes: int | None = None
    multiprocessors: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        arch = arch_named(self.arch, self.multiprocessors)
        schedules = {
            name: Schedule.from_attribute(loop.schedule)
            for loop in op.walk()
            if isinstance(loop, LoopOp)
            for name in loop.kernel_names
        }
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            check_residency(kernel, arch)
            geometry = Geometry(kernel)
            guards = self.guards or schedules.get(kernel.sym_name.data, Schedule()).guards
            weight = edge_weight(geometry, guards, sums=keeps_sums(kernel))
            if self.planes is not None:
                columns: tuple[Columns, ...] = (Columns(0, self.planes),)
                if weight is not None:
                    columns = (Columns(0, self.planes, on_rim=True), *columns)
            else:
                given = None if weight is None else self.edge_weight or weight
                columns = choose_chunks(geometry, Residency.of(kernel, arch), given).columns
            kernel.variants = ArrayAttr(variants_of(kernel, columns, guards_all=weight is None))
