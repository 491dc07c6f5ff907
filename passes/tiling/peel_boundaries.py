"""
peel-boundaries: make copies of a kernel's code for the rim and the inside, and choose the planes of
a chunk for each.

Before:
```
tile.kernel @run_d2(...) steps 2 stream 0 bounds <[0, 0], [4096, 4096]>
    layout #tile.layout<warp, [4 cells x 32 lanes], pack 4> {...}
```
After:
```
tile.kernel @run_d2(...) steps 2 stream 0 bounds <[0, 0], [4096, 4096]>
    layout #tile.layout<warp, [4 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [1], planes 62>, #tile.variant<axes [], planes 142>]
    occupancy 2 {...}
```

A variant is a copy of the code. Tiles inside the bounds run without a test for the in-plane bounds;
tiles on the rim run a copy with guards. (Along the stream, the head and the tail of every chunk
have guards.) There is one copy, with guards, if no cell is replaced outside the bounds, or if the
schedule's `guards` are `all`: all tiles then advance together, and find their neighbours' loads in
L2.

A column of tiles is cut into chunks of planes, so that the launch ends early. Chunks on the rim
take longest: they start first, and have fewer planes. A step of a rim chunk costs `edge-weight`
steps inside. Each chunk fills the pipeline once. Four ways to cut columns are compared:

- chunks of one height, in whole waves of tiles;
- as many whole columns as the device holds, and chunks of the remaining columns:
  `#tile.variant<axes [1, 2], columns 132, planes 512>, #tile.variant<axes [1, 2], planes 74>`;
- where steps on the rim are long, columns on the rim in a few chunks, and columns inside of up to
  three heights (`columns 44, planes 512`, `columns 29, planes 171`, `planes 74`);
- for warp tiles, exactly as many chunks as the device holds tiles. Every column is cut into as many
  chunks as fit, and the remaining planes of all columns are `joined`: a chunk of these goes on in
  the next column (`planes 624, joined 260`), at a cost in registers. Columns are cut one by one if
  the schedule has `columns_alone`, and if joining saves less than 1% in FP64.

If chunks of one height exceed the column, the first and the last chunk share the difference if
tiles share a block or planes are joined; otherwise the last chunk takes all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp

from timetile.dialects.tile import KernelOp, VariantAttr
from timetile.dialects.tile.kinds import Guards
from timetile.passes.analysis.geometry.chunks import choose_chunks, ends_of_cut
from timetile.passes.analysis.geometry.columns import Columns
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.limits import checked_geometry
from timetile.passes.analysis.geometry.residency import Residency
from timetile.passes.analysis.placed import layout_of
from timetile.passes.analysis.point_stages import stages_with_points, takes_spot
from timetile.passes.analysis.queues.lags import keeps_sums
from timetile.passes.analysis.queues.storage import natural_period
from timetile.passes.cost.rim import edge_weight, weight_of_chunks, why_guards_are_fixed
from timetile.passes.diagnostics import CompileError, check_options, refuse, remark
from timetile.passes.enum_options import EnumOptionsPass
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.targets.target import DEFAULT_ARCH, Target, target_named


def variants_of(
    kernel: KernelOp, columns: Sequence[Columns], *, guards_all: bool
) -> list[VariantAttr]:
    """
    The variants, in starting order. The last variant of each kind (rim, inside) takes the remaining
    columns.
    """
    last = {part.on_rim: part for part in columns}
    variants: list[VariantAttr] = []
    for part in columns:
        axes = kernel.plane_axes if part.on_rim or guards_all else ()
        count = 0 if part is last[part.on_rim] else part.count
        variants.append(VariantAttr(axes, part.planes, count, joined=part.joined))
    return variants


def check_residency(kernel: KernelOp, target: Target) -> None:
    """Refuse a tile of blocks waiting for each other if the device does not hold all of them."""
    layout = layout_of(kernel)
    most = target.resident_blocks(kernel.blocks_per_multiprocessor)
    if layout.has_messages and layout.blocks > most:
        refuse(
            kernel,
            f"the tile has {layout.blocks} blocks that wait for each other, and "
            f"{target.title} holds {most} at once; give device-tiling at most {most} blocks",
        )


OF_CHUNKS = ("planes", "edge_weight", "columns")
"""Options about chunks; without effect on kernels without a streaming axis."""


@dataclass(frozen=True)
class PeelBoundariesPass(EnumOptionsPass):
    """Write the variants; see the module's documentation."""

    name = "peel-boundaries"

    arch: str = DEFAULT_ARCH
    guards: Guards | None = None
    edge_weight: float | None = None
    planes: int | None = None
    columns: Literal["alone"] | None = None
    multiprocessors: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, planes=1, multiprocessors=1)
        if self.edge_weight is not None and self.edge_weight <= 0:
            raise CompileError(f"{self.name}: edge-weight is above 0, got {self.edge_weight}")
        target = target_named(self.arch, self.multiprocessors)
        kernels = [k for k in op.ops if isinstance(k, KernelOp)]
        if not kernels:
            remark_without_loops(self, op, "raise-time-loop,device-tiling")
        for kernel in kernels:
            check_residency(kernel, target)
            geometry = checked_geometry(kernel)
            schedule = kernel.decisions
            self.remark_on_options(kernel, geometry)
            guards = self.guards or schedule.guards
            joins = self.columns is None and not schedule.columns_alone
            # A loop over columns takes registers that code of points has not left.
            joins &= not stages_with_points(kernel)
            sums, planes = keeps_sums(kernel), natural_period(kernel)
            rim = target.parameters.rim
            weight = edge_weight(geometry, guards, rim, sums=sums, planes=planes)
            if self.planes is not None:
                columns: tuple[Columns, ...] = (Columns(0, self.planes),)
                if weight is not None:
                    columns = (Columns(0, self.planes, on_rim=True), *columns)
            else:
                given = weight and (
                    self.edge_weight or weight_of_chunks(geometry, op, weight, rim, sums=sums)
                )
                residency = beside_spot(kernel, Residency.of(kernel, target))
                ends = ends_of_cut(geometry, residency, sums=sums)
                chunks = choose_chunks(
                    geometry, residency, given, sums=sums, joins=joins, ends=ends
                )
                columns = chunks.columns
            kernel.variants = ArrayAttr(variants_of(kernel, columns, guards_all=weight is None))

    def remark_on_options(self, kernel: KernelOp, geometry: Geometry) -> None:
        """Remark on each option that has no effect on a kernel."""
        why = why_guards_are_fixed(geometry)
        if self.guards is not None and why is not None:
            remark(kernel, f"guards={self.guards} is ignored: {why}; leave it out")
        if kernel.stream_axis is None:
            for name in [n for n in OF_CHUNKS if getattr(self, n) is not None]:
                remark(
                    kernel,
                    f"{name.replace('_', '-')}={getattr(self, name)} is ignored: nothing is "
                    "streamed, and tiles are not cut into chunks; leave out the option, or give "
                    "device-tiling a stream-axis",
                )
        elif self.planes is not None and (self.edge_weight or self.columns):
            name = "edge-weight" if self.edge_weight else "columns"
            remark(
                kernel,
                f"{name} is ignored: planes={self.planes} is the height of all chunks; leave out "
                "one of the two",
            )


def beside_spot(kernel: KernelOp, residency: Residency) -> Residency:
    """The residency without the multiprocessor of a block for a spot of points."""
    if not takes_spot(kernel) or residency.multiprocessors == 1:
        return residency
    return replace(residency, multiprocessors=residency.multiprocessors - 1)
