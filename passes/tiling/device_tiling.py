"""device-tiling: a time loop becomes one kernel for each depth, as stages over queues of planes.

Before:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [2, 1] {
  temporal.update %b = @cell(%a[-1, 0], %a[0, 0], %a[1, 0]) in <[0, 0], [64, 64]>
}
```
After, beside the loop, which now names its kernels:
```
tile.kernel @heat_d2(%src, %dst, %A, %B) roles [...] steps 2 stream 0 bounds ... layout ... {
  %u0 = tile.load %src                                                 : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %B                                              : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0], %u0[0, 0], %u0[1, 0]) else %h1     : !tile.queue<f64, lag 1>
  %u2 = tile.apply @cell(%u1[-1, 0], %u1[0, 0], %u1[1, 0])              : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst
}
```
1. The steps are unrolled over buffers: an update makes a queue and renames its target.
2. Outside the update's box, a result has the cells of the previous version of the target buffer. If
   the box has all cells of the buffer written by the kernel, these cells are the buffer's own halo,
   read from memory. Launches find data and halo in one buffer (`%src`) if the rotation's cycle has
   one live version, or if all kernels advance single steps, or if halos are common
   (`Rotation.has_home`): then any buffer of the cycle has the right halo. Otherwise data and halo
   may be in two buffers: `tile.load %src halo %A`.
3. A kernel of depth 2 or more stores the versions read by later steps. One more kernel, `_step`,
   advances a single step and stores all results: the last steps run through `_step`, so that every
   buffer ends as the unfused program leaves the buffer.
4. A field of fewer axes is an argument with the field's own axes, read in place: `tile.load %w
   along [1]`. Updates of one step that read one coefficient share the load.
5. A tap across warps reads an exchange of the whole plane, published in the step of the tap.

With `reads=memory` there are only kernels of single steps. Such kernels keep no plane and read
every tap from memory: any reach is possible. A step that reads its own results beside the cell runs
in parts (`passes/tiling/step_parts.py`), cut at `cuts`, or into as few parts as possible without
results computed twice.

Options override the loop's schedule. A depth whose overlap leaves no cell of the tile is left out,
with a remark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.syntax import encode_integers
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.kinds import Storage, TileLevel
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.limits import check_loop
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.analysis.queues.lags import assign_lags
from timetile.passes.diagnostics import check_options, check_verified, refuse, remark
from timetile.passes.enum_options import EnumOptionsPass
from timetile.passes.loops.split_regions import split_step
from timetile.passes.not_raised import remark_without_loops
from timetile.passes.rewriting import unique_symbol
from timetile.passes.tiling.build_kernel import KernelBuilder
from timetile.passes.tiling.exchanges import add_exchanges, publish
from timetile.passes.tiling.inside_kernel import inside_kernel
from timetile.passes.tiling.part_kernels import part_kernels
from timetile.passes.tiling.step_parts import memory_schedule


@dataclass(frozen=True)
class DeviceTilingPass(EnumOptionsPass):
    """Make the kernels of every time loop; see the module's documentation."""

    name = "device-tiling"

    tile: TileLevel | None = None
    cells: tuple[int, ...] | None = None
    lanes: tuple[int, ...] | None = None
    warps: tuple[int, ...] | None = None
    blocks: tuple[int, ...] | None = None
    pack: int | None = None
    occupancy: int | None = None
    stream_axis: int | Literal["none"] | None = None
    reads: Literal["tile", "memory"] | None = None
    cuts: tuple[int, ...] | None = None

    def schedule(self, loop: LoopOp) -> Schedule:
        """The loop's schedule, overridden by the options of the pass."""
        given = loop.decisions
        if self.reads == "memory" and not given.reads_memory:
            given = memory_schedule(loop)
        elif self.reads == "tile":
            given = replace(given, reads_memory=False, regions=False, cuts=(), occupancies=())
        own = {
            name: value
            for name in ("tile", "cells", "lanes", "warps", "blocks", "pack", "occupancy", "cuts")
            if (value := getattr(self, name)) is not None
        }
        if {"occupancy", "cuts"} & own.keys():
            given = replace(given, occupancies=())
        return replace(given, **own)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_options(self, cells=1, lanes=1, warps=1, blocks=1, pack=1, occupancy=1, stream_axis=0)
        remark_without_loops(self, op, "raise-time-loop")
        for function in [f for f in op.ops if isinstance(f, FuncOp)]:
            loops = [inner for inner in function.walk() if isinstance(inner, LoopOp)]
            for number, loop in enumerate(loops):
                prefix = function.sym_name.data + (f"_{number}" if len(loops) > 1 else "")
                if not loop.updates:
                    continue
                kernels = self.make_kernels(loop, prefix)
                for kernel in kernels:
                    kernel.sym_name = StringAttr(unique_symbol(op, kernel.sym_name.data))
                    op.body.block.insert_op_before(kernel, function)
                loop.kernels = ArrayAttr(SymbolRefAttr(k.sym_name.data) for k in kernels)

    def stream(self, rank: int, schedule: Schedule) -> int | None:
        """The streaming axis of tiles; None for tiles in one place for all steps."""
        if isinstance(self.stream_axis, int):
            return self.stream_axis
        return None if self.stream_axis == "none" else schedule.stream_axis(rank)

    def make_kernels(self, loop: LoopOp, prefix: str) -> list[KernelOp]:
        """The kernels of one loop, the final kernels last."""
        check_verified(loop)
        if loop.kernel_names:
            refuse(
                loop,
                "the loop has kernels already; start from the program as before device-tiling",
            )
        check_loop(loop)
        schedule = self.schedule(loop)
        streams = isinstance(self.stream_axis, int)
        if schedule.reads_memory and (
            streams or schedule.tile not in (TileLevel.WARP, TileLevel.BLOCK)
        ):
            refuse(
                loop,
                "kernels with reads=memory keep no planes to stream, and their blocks wait for no "
                "others; leave out stream-axis and tile=cluster or tile=device, or reads=memory",
            )
        stream = self.checked_stream(loop, schedule)
        if schedule.reads_memory and loop.has_points:
            refuse(
                loop,
                "kernels with reads=memory compute cells again where points would add again; leave "
                "out reads=memory",
            )
        if schedule.regions:
            split_step(loop)
        if schedule.reads_memory:
            return self.memory_kernels(loop, schedule, prefix)
        if schedule.cuts:
            refuse(
                loop,
                f"cuts={list(schedule.cuts)} was asked for, and only kernels that read memory run "
                "a step in parts; leave it out, or use reads=memory without tile and stream-axis",
            )
        kernels: list[KernelOp] = []
        wanted = [d for d in loop.depth_list if d > 1]
        for depth in (*wanted, 1):
            name = f"{prefix}_d{depth}" if depth > 1 else f"{prefix}_step"
            kernel = KernelBuilder(loop, depth, store_all=depth == 1).build(name, stream)
            if not kernel.stages:
                remark(loop, f"depth {depth} is left out: no later step reads its cells")
                continue
            kernel.layout = schedule.layout()
            self.remark_on_pack(kernel)
            kernel.occupancy = IntAttr(schedule.occupancy)
            kernel.schedule = loop.schedule
            add_exchanges(kernel)
            assign_lags(kernel)
            if not self.leaves_cells(kernel, schedule, chosen=loop.schedule is not None):
                if depth == 1:
                    refuse(
                        loop,
                        "taps reach further than the tile is wide; give device-tiling more "
                        "cells, or reads=memory, for any reach",
                    )
                remark(loop, f"depth {depth} is left out: the overlap leaves no cell of the tile")
                continue
            kernels.append(kernel)
        return kernels

    def checked_stream(self, loop: LoopOp, schedule: Schedule) -> int | None:
        """The streaming axis of a loop's tiles. Refuses a layout with a wrong number of axes."""
        rank = len(written_bounds(loop).lb)
        stream = self.stream(rank, schedule)
        if stream is not None and rank == 1:
            refuse(loop, "a domain of one axis has no planes to stream; leave out stream-axis")
        if stream is not None and stream >= rank:
            refuse(
                loop,
                f"the domain has axes 0 to {rank - 1}, got stream-axis {stream}; give "
                "device-tiling one of these axes",
            )
        axes = rank - (stream is not None)
        for counts in (schedule.cells, schedule.lanes, schedule.warps, schedule.blocks):
            if counts and len(counts) != axes:
                refuse(
                    loop,
                    f"the layout has {len(counts)} in-plane axes and the domain {axes}; give "
                    "device-tiling cells, lanes and warps for each",
                )
        try:
            schedule.layout()
        except VerifyException as error:
            refuse(loop, f"{error}; give device-tiling another layout")
        return stream

    def remark_on_pack(self, kernel: KernelOp) -> None:
        """Remark that `pack` has no effect if tiles are not of one warp."""
        if self.pack is None or kernel.layout is None or kernel.layout.level.data is TileLevel.WARP:
            return
        remark(
            kernel,
            f"pack={self.pack} is ignored: a block holds one tile; leave out the option, or give "
            "tile=warp",
        )

    @staticmethod
    def leaves_cells(kernel: KernelOp, schedule: Schedule, *, chosen: bool) -> bool:
        """
        Whether the overlap, rounded to whole vectors, is smaller than the tile along every in-plane
        axis. Cells around a tile brought by asynchronous copies count for a `chosen` schedule, and
        for the kernel of one step, which must exist.
        """
        counts_on_copies = chosen or kernel.steps.data == 1
        trial = kernel.clone()
        if counts_on_copies and schedule.storage is Storage.REGISTERS:
            publish(trial, None, schedule.ahead)
        try:
            Geometry(trial)
        except ValueError:
            return False
        return True

    @staticmethod
    def memory_kernels(loop: LoopOp, schedule: Schedule, prefix: str) -> list[KernelOp]:
        """
        The kernels of a step with all taps read from memory. Several steps never share a kernel.
        """
        deeper = [depth for depth in loop.depth_list if depth > 1]
        if deeper:
            remark(
                loop,
                f"depths {deeper} are left out: kernels that read memory advance a single step",
            )
            loop.depths = encode_integers((1,))
        kernels = part_kernels(loop, schedule, f"{prefix}_step")
        if loop.inside is not None and schedule.cuts:
            first = kernels[0].sym_name.data
            kept = inside_kernel(loop, schedule.cuts[0], loop.inside.data, first)
            kernels[0] = kept or kernels[0]
        return kernels
