"""
Schedules by hand: the passes from time loops to placed kernels, with every choice spelled out; and
checks of runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

import timetile
from support.compare import assert_as_unfused
from support.description import Program, random_inputs
from support.programs import program_text
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import (
    Addressing,
    Form,
    KernelOp,
    ScheduleAttr,
    TileLevel,
    VariantAttr,
)
from timetile.dialects.tile.schedule import Schedule as LoopSchedule
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.loops.temporal_fusion import TemporalFusionPass
from timetile.passes.tiling.carry_halos import CarryHalosPass
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.peel_boundaries import PeelBoundariesPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass
from timetile.passes.tiling.split_sums import SplitSumsPass
from timetile.runtime.program.compiled_program import Executor


@dataclass(frozen=True)
class AddressExchangesPass(ModulePass):
    """
    Write the addressing of exchanges into the loops' schedules: no pass has an option for
    addressing.
    """

    name = "address-exchanges"

    addressing: Addressing

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            loop.schedule = ScheduleAttr(LoopSchedule(addressing=self.addressing))


@dataclass(frozen=True)
class JoinColumnsPass(ModulePass):
    """Cut the columns of every kind into chunks of some planes, and join other columns."""

    name = "join-columns"

    planes: int
    joined: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            assert kernel.variants is not None
            joined = min(self.joined, Geometry(kernel).planes)
            kernel.variants = ArrayAttr(
                VariantAttr([axis.data for axis in variant.axes], self.planes, joined=joined)
                for variant in kernel.variants
            )


@dataclass(frozen=True)
class Schedule:
    """
    One choice of everything. `streaming`: queues move to registers at the end; `shown` is the
    evidence of the choice in the placed kernels.
    """

    name: str
    tiling: DeviceTilingPass
    buffering: MultiQueueBufferingPass = field(default_factory=MultiQueueBufferingPass)
    streaming: RegisterStreamingPass | None = field(default_factory=RegisterStreamingPass)
    form: Form = Form.NONE
    planes: int | None = 17
    shown: str = "home #tile.registers"
    exchanged: Addressing | None = None

    def passes(self, *depths: int) -> tuple[ModulePass, ...]:
        """From a time loop to placed kernels."""
        return (
            TemporalFusionPass(depths),
            *(() if self.exchanged is None else (AddressExchangesPass(self.exchanged),)),
            self.tiling,
            SplitSumsPass(form=self.form),
            self.buffering,
            *(() if self.streaming is None else (self.streaming,)),
            CarryHalosPass(),
            PeelBoundariesPass(planes=self.planes),
        )


def warp_row(cells: int = 4, pack: int = 2) -> DeviceTilingPass:
    """One in-plane axis, a tile a warp, `pack` tiles a block."""
    return DeviceTilingPass(tile=TileLevel.WARP, cells=(cells,), lanes=(32,), warps=(1,), pack=pack)


def block_row(cells: int = 2, warps: int = 2) -> DeviceTilingPass:
    """One in-plane axis, a tile a block: neighbours' cells cross warps."""
    return DeviceTilingPass(
        tile=TileLevel.BLOCK, cells=(cells,), lanes=(32,), warps=(warps,), pack=1
    )


def block_plane(cells: tuple[int, int], warps: tuple[int, int]) -> DeviceTilingPass:
    """Two in-plane axes, a tile a block."""
    return DeviceTilingPass(tile=TileLevel.BLOCK, cells=cells, lanes=(1, 32), warps=warps, pack=1)


def cluster_plane(cells: tuple[int, int], warps: int, blocks: int) -> DeviceTilingPass:
    """Two in-plane axes, a tile a cluster of blocks along the first axis."""
    return DeviceTilingPass(
        tile=TileLevel.CLUSTER,
        cells=cells,
        lanes=(1, 32),
        warps=(warps, 1),
        blocks=(blocks, 1),
        pack=1,
    )


def device_plane(
    cells: tuple[int, int],
    warps: int,
    blocks: int,
    stream_axis: Literal["none"] | None = None,
    *,
    across: int = 1,
) -> DeviceTilingPass:
    """Two in-plane axes, a tile held by the device: blocks along the first axis, and `across`."""
    return DeviceTilingPass(
        tile=TileLevel.DEVICE,
        cells=cells,
        lanes=(1, 32),
        warps=(warps, 1),
        blocks=(blocks, across),
        pack=1,
        stream_axis=stream_axis,
    )


def solid(
    level: TileLevel,
    cells: tuple[int, int, int],
    warps: tuple[int, int, int],
    blocks: int = 1,
    *,
    across: tuple[int, int] = (1, 1),
) -> DeviceTilingPass:
    """
    Three in-plane axes: a resident tile of a volume, with blocks along the first axis, and
    `across`.
    """
    return DeviceTilingPass(
        tile=level,
        cells=cells,
        lanes=(1, 1, 32),
        warps=warps,
        blocks=(blocks, *across),
        pack=1,
        stream_axis="none",
    )


FLAGS, GRID = "space global, sync flags", "space global, sync grid"
"""The evidence in exchanges of tiles of the device: blocks send messages, or meet at barriers."""


def check(program: Program, schedule: Schedule, depth: int, executor: Executor) -> None:
    """
    Two launches of the deepest kernel and one of a single step end like the unfused program;
    interpreted threads, which take long, run one launch of every kernel.
    """
    launches = 1 if executor in ("simt", "ptx") else 2
    check_steps(program, schedule, (depth,), (launches * depth + 1,), executor)


def check_steps(
    program: Program,
    schedule: Schedule,
    depths: Sequence[int],
    runs: Sequence[int],
    executor: Executor,
) -> None:
    """
    Runs of given numbers of steps, with kernels of given depths, end like the unfused program.
    """
    compiled = timetile.compile(
        program_text(program),
        executor=executor,
        passes=schedule.passes(*depths),
        fp_contract="off",
        cache=False,
    )
    assert schedule.shown in str(compiled.kernels.tiled), "the schedule was not taken"
    made = {fact.steps for facts in compiled.kernels.facts for fact in facts}
    assert made.issuperset(depths), "tiles are too small for the depth"
    for steps in runs:
        assert_as_unfused(compiled, program, random_inputs(program, steps), steps, schedule.name)


def named(schedule: Schedule) -> str:
    """A schedule's name, for the test's."""
    return schedule.name
