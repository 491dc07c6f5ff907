"""peel-boundaries: the lowered copies of a kernel, and how many planes a chunk of each advances.

After: `variants [#tile.variant<axes [], planes 648>, #tile.variant<axes [1], planes 499>]`

Tiles that lie inside the bounds along the in-plane axes run without a test for them; the others run a
guarded copy. (Along the stream every copy has a guarded head and tail around its steady loop.) Chunks
of the guarded copy get fewer planes by `edge-weight`, what one of its steps costs more, so that they
are not the launch's tail. Where no halo is apart from its data the guarded copy costs no more, and is
the only one. Heights are the ones that finish first: whole waves of co-resident tiles,
each paying the pipeline's fill once.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.tile import KernelOp
from timetile.dialects.tile_attributes import VariantAttr
from timetile.passes.analysis.geometry import Geometry, ceil_div
from timetile.passes.analysis.makespan import makespan
from timetile.passes.arch import Arch, arch_named


def edge_weight(geometry: Geometry) -> float:
    """
    What a step of the guarded copy costs more, measured for stars of radius 1: it works little more than
    the others, but waits for the halos of the first two levels. Where no halo is apart from its data,
    guards are few.
    """
    if geometry.kernel.stream_axis is None or not geometry.reads_halos:
        return 1.0
    return 2.25 if len(geometry.axes) == 1 else 1.5


def resident_tiles(kernel: KernelOp, arch: Arch) -> int:
    """Tiles that the device holds at once."""
    assert kernel.layout is not None
    blocks = kernel.blocks_per_multiprocessor
    return arch.multiprocessors * blocks * kernel.layout.pack.data


def edge_height(geometry: Geometry, interior: int, weight: float) -> int:
    """The planes of an edge chunk that takes as long as an interior one."""
    fill = geometry.fill + geometry.drain
    return max(1, round((interior + fill) / weight - fill))


@dataclass(frozen=True)
class Chunks:
    """Planes of an edge and of an interior chunk, and the time of a launch in interior steps."""

    edge: int
    interior: int
    time: float


def launch_time(geometry: Geometry, edge: int, interior: int, slots: int, weight: float) -> float:
    """
    The time of a launch whose blocks take the next tiles when they are done, in steps of an interior
    tile. Tiles that share a block are done together.
    """
    assert geometry.kernel.layout is not None
    pack = geometry.kernel.layout.pack.data
    rim = geometry.edge_columns * geometry.chunks(edge)
    inner = (geometry.plane_tiles - geometry.edge_columns) * geometry.chunks(interior)
    return makespan(
        (ceil_div(rim, pack), weight * geometry.steps(edge)),
        (ceil_div(inner, pack), float(geometry.steps(interior))),
        max(1, slots // pack),
    )


def choose_chunks(geometry: Geometry, resident: int, weight: float) -> Chunks:
    """The heights at which a launch ends first."""
    best: Chunks | None = None
    most = ceil_div(6 * resident, max(1, geometry.plane_tiles)) + 1
    for chunks in range(1, min(geometry.planes, most) + 1):
        interior = ceil_div(geometry.planes, chunks)
        for edge in {edge_height(geometry, interior, weight), interior}:
            time = launch_time(geometry, edge, interior, resident, weight)
            if best is None or time < best.time:
                best = Chunks(edge, interior, time)
    assert best is not None
    return best


@dataclass(frozen=True)
class PeelBoundariesPass(ModulePass):
    """Write the variants; see the module's documentation."""

    name = "peel-boundaries"

    arch: str = "sm_90"
    edge_weight: float | None = None
    planes: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        arch = arch_named(self.arch)
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            geometry = Geometry(kernel)
            if self.planes is not None:
                edge = interior = self.planes
            else:
                resident = resident_tiles(kernel, arch)
                weight = self.edge_weight or edge_weight(geometry)
                chosen = choose_chunks(geometry, resident, weight)
                edge, interior = chosen.edge, chosen.interior
            variants = [VariantAttr(kernel.plane_axes, edge)]
            if geometry.reads_halos or kernel.stream_axis is None:
                variants.insert(0, VariantAttr((), interior))
            kernel.variants = ArrayAttr(variants)
