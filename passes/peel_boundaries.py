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
Where a tile is held by a warp, there are as many chunks as the device holds tiles, and they take equally long: of every
column as many as fit, and the planes that are left, in the middle of all columns, are `joined`: their chunks go on in the
next column, `variants [#tile.variant<axes [1], planes 522>, #tile.variant<axes [], planes 624, joined 260>]`. That takes
registers: where the schedule's `columns` are `alone`, or it saves less than a hundredth in FP64, every column is cut by itself.
Kernels that keep sums may be cut so, too, if that is done sooner. Where tiles share a block or planes are joined, the first
and the last chunk of a column share the planes that chunks of one height have too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile_attributes import VariantAttr
from timetile.passes.analysis.geometry.chunks import Columns, choose_chunks
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.limits import checked_geometry
from timetile.passes.analysis.geometry.plane_geometry import is_word
from timetile.passes.analysis.geometry.residency import Residency
from timetile.passes.analysis.queues.lags import keeps_sums
from timetile.passes.analysis.queues.storage import natural_period
from timetile.passes.arch import Arch, arch_named
from timetile.passes.diagnostics import CompileError, check_options, refuse
from timetile.passes.schedule import ColumnsAlone, Guards, Schedule

HALO_WEIGHTS = {1: 2.25, 2: 1.5}
"""
What a step of the guarded copy costs more where it reads other buffers' halos, by the axes of a plane (measured for
stars of radius 1): it works little more than the others, but waits for them.
"""

GUARD_WEIGHTS = {1: 1.15, 2: 1.2}
"""
The same where cells outside the bounds come from registers (with one axis timed, warp by warp: 1.0 to 1.2; with two, 1.0
to 1.2 are as fast).
"""

WORD_SUMS_WEIGHT = 1.1
"""The same in planes of one axis where planes enter sums of 4-byte cells, in wide accesses (timed, warp by warp: 25 points)."""

SUMS_WEIGHT = 1.1
"""
The same in planes of two axes where planes enter sums of FP64 as they arrive (measured: 17 and 19 points at three levels
run 5% faster than 1.2 says).
"""

WIDE_WEIGHT = 1.35
"""The same in planes of one axis where levels keep more than two planes of FP64: registers are spilled (timed: 1.25, 1.4)."""


def has_copies(geometry: Geometry, guards: Guards) -> bool:
    """Tiles inside the bounds have a copy of their own."""
    if geometry.kernel.reads_memory:
        # Threads of cells that are not stored read for others: no copy is without guards.
        return False
    if geometry.kernel.stream_axis is None or geometry.reads_halos:
        return True
    return geometry.replaces_cells and guards == "rim"


def weighs_spills(geometry: Geometry, planes: int) -> bool:
    """
    The weight of the rim's steps counts that registers are spilled there, as levels keep so many planes of FP64. (The
    weight of other buffers' halos does, too: j2d9pt is fastest at six levels, with half a kilobyte of spills.)
    """
    return len(geometry.axes) == 1 and planes > 2 and not is_word(geometry.stored_fields[0])


def edge_weight(geometry: Geometry, guards: Guards, *, sums: bool, planes: int) -> float | None:
    """
    What a step of the guarded copy costs more than one of the tiles inside the bounds, for a kernel that keeps `sums` or
    none, and so many `planes` of a level; None where it is the only one.
    """
    if not has_copies(geometry, guards):
        return None
    if geometry.kernel.stream_axis is None:
        return 1.0
    axes = len(geometry.axes)
    if geometry.reads_halos:
        return HALO_WEIGHTS[axes]
    if weighs_spills(geometry, planes):
        return WIDE_WEIGHT
    words = is_word(geometry.stored_fields[0])
    if sums and axes == 1 and words and not geometry.has_narrow_accesses:
        return WORD_SUMS_WEIGHT
    return SUMS_WEIGHT if sums and axes == 2 and not words else GUARD_WEIGHTS[axes]


def variants_of(
    kernel: KernelOp, columns: Sequence[Columns], *, guards_all: bool
) -> list[VariantAttr]:
    """The variants of columns in their order: the last ones inside, and on the rim, take what is left of their kind."""
    last = {part.on_rim: part for part in columns}
    variants: list[VariantAttr] = []
    for part in columns:
        axes = kernel.plane_axes if part.on_rim or guards_all else ()
        count = 0 if part is last[part.on_rim] else part.count
        variants.append(VariantAttr(axes, part.planes, count, joined=part.joined))
    return variants


def check_residency(kernel: KernelOp, arch: Arch) -> None:
    """Refuse a tile whose blocks wait for each other where the device does not hold all of them."""
    assert kernel.layout is not None
    most = arch.resident_blocks(kernel.blocks_per_multiprocessor)
    if kernel.layout.has_messages and kernel.layout.blocks > most:
        refuse(
            kernel,
            f"its tile has {kernel.layout.blocks} blocks, which wait for each other, and {arch.part} holds "
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
    columns: ColumnsAlone | None = None
    multiprocessors: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, planes=1, multiprocessors=1)
        if self.edge_weight is not None and self.edge_weight <= 0:
            raise CompileError(f"{self.name}: edge-weight is above 0, got {self.edge_weight}")
        arch = arch_named(self.arch, self.multiprocessors)
        schedules = {
            name: Schedule.from_attribute(loop.schedule)
            for loop in op.walk()
            if isinstance(loop, LoopOp)
            for name in loop.kernel_names
        }
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            check_residency(kernel, arch)
            geometry = checked_geometry(kernel)
            schedule = schedules.get(kernel.sym_name.data, Schedule())
            guards = self.guards or schedule.guards
            joins = (self.columns or schedule.columns) is None
            sums, planes = keeps_sums(kernel), natural_period(kernel)
            weight = edge_weight(geometry, guards, sums=sums, planes=planes)
            if self.planes is not None:
                columns: tuple[Columns, ...] = (Columns(0, self.planes),)
                if weight is not None:
                    columns = (Columns(0, self.planes, on_rim=True), *columns)
            else:
                given = None if weight is None else self.edge_weight or weight
                residency = Residency.of(kernel, arch)
                chunks = choose_chunks(geometry, residency, given, sums=sums, joins=joins)
                columns = chunks.columns
            kernel.variants = ArrayAttr(variants_of(kernel, columns, guards_all=weight is None))
