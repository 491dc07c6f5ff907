"""The pipelines, as plain tuples of passes: one readable list, with the reason for the order."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline

from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.division.expand_division import ExpandDivisionPass
from timetile.lowering.lower_tile_to_gpu import LowerTileToGpuPass
from timetile.lowering.threads.carry_cells import CarryCellsPass
from timetile.lowering.threads.order_threads import OrderThreadsPass
from timetile.lowering.threads.share_cells import ShareCellsPass
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.cells.contract_cells import FpContract
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.diagnostics import apply_verified
from timetile.passes.loops.temporal_fusion import TemporalFusionPass
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.target_arch import TargetArchPass
from timetile.passes.targets.target import DEFAULT_ARCH
from timetile.passes.tiling.carry_halos import CarryHalosPass
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.peel_boundaries import PeelBoundariesPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass
from timetile.passes.tiling.split_sums import SplitSumsPass
from timetile.passes.time_loops import temporal_passes


def tile_passes(
    depth: int | None = None, arch: str = DEFAULT_ARCH, multiprocessors: int | None = None
) -> tuple[ModulePass, ...]:
    """
    Passes from time loops to placed kernels, for the architecture's largest part, or a part with so
    many multiprocessors.
    """
    return (
        TemporalFusionPass(None if depth is None else (depth,)),
        # The schedule is chosen on the loop, and directs all passes below.
        ChooseSchedulePass(arch, multiprocessors=multiprocessors),
        DeviceTilingPass(),
        # Splitting sums changes the kept planes, and comes before placement.
        SplitSumsPass(),
        MultiQueueBufferingPass(),
        RegisterStreamingPass(),
        # Delays of exchanges decide which planes stay alive to carry halo cells.
        CarryHalosPass(),
        # Peeling is last: heights of chunks depend on lags and unrolling.
        PeelBoundariesPass(arch, multiprocessors=multiprocessors),
    )


def thread_passes() -> tuple[ModulePass, ...]:
    """Passes from placed kernels to the code of one thread, in running order."""
    return (
        LowerTileToGpuPass(),
        OrderThreadsPass(),
        ShareCellsPass(),
        CarryCellsPass(),
        # Division comes after ordering: operations that can share a branch are then adjacent.
        ExpandDivisionPass(),
    )


def pipeline(
    depth: int | None = None,
    arch: str = DEFAULT_ARCH,
    fp_contract: FpContract = "fast",
    fp_division: FpDivision = "exact",
    fp_reassoc: FpReassoc = "flags",
    *,
    common_halos: bool = False,
) -> tuple[ModulePass, ...]:
    """
    All passes from the stencil dialect to kernels printable by `-t ptx`. None needs a GPU or the
    command line; each is a plain ModulePass.
    """
    return (
        *temporal_passes(fp_contract, fp_division, fp_reassoc, common_halos=common_halos),
        *tile_passes(depth, arch),
        *code_passes(arch),
    )


def code_passes(arch: str = DEFAULT_ARCH) -> tuple[ModulePass, ...]:
    """Passes from placed kernels to code printable by `-t ptx`."""
    return (
        # Target limits come first: lowering and printing obey the limits.
        TargetArchPass(arch),
        *thread_passes(),
        ConvertGpuToNvvmPass(),
    )


@dataclass(frozen=True)
class TimetilePass(ModulePass):
    """
    The whole pipeline under one name: `-p 'timetile{depth=12 arch=sm_90}' -t ptx`.

    Before:
    ```
    scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
      %u = stencil.load %a : !field -> !temp
      %v = stencil.apply(%x = %u : !temp) -> (!temp) {...}
      stencil.store %v to %b(<[0, 0], [4096, 4096]>) : !temp to !field
      scf.yield %b, %a : !field, !field
    }
    ```
    After, beside kernels at the `hardware` level:
    ```
    temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [12, 8, 4, 2, 1]
        kernels [@heat_d12, @heat_d8, @heat_d4, @heat_d2, @heat_step] {...}
    ```
    """

    name = "timetile"

    depth: int | None = None
    arch: str = DEFAULT_ARCH
    fp_contract: FpContract = "fast"
    fp_division: FpDivision = "exact"
    fp_reassoc: FpReassoc = "flags"
    common_halos: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        temporal = temporal_passes(
            self.fp_contract, self.fp_division, self.fp_reassoc, common_halos=self.common_halos
        )
        apply_verified(temporal, op, ctx)
        apply_verified(tile_passes(self.depth, self.arch), op, ctx)
        # Verifying the long code of threads is left to the caller (xdsl-opt verifies the result).
        PassPipeline(code_passes(self.arch)).apply(ctx, op)
