"""The options of a compilation, and the passes that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline

from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.pipelines import temporal_passes, thread_passes, tile_passes
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.cells.contract_cells import FpContract
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.diagnostics import apply_verified
from timetile.passes.loops.common_halos import CommonHalosPass
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.systems.system import SystemPass
from timetile.passes.targets.target import DEFAULT_ARCH, Target, target_named
from timetile.runtime.kernels.levels import Levels, levels_of
from timetile.runtime.loading.modules import make_context
from timetile.runtime.loading.plugins import is_foreign

Halos = Literal["compared", "common", "apart"]
"""
Knowledge about the cells of rotating buffers outside the bounds: a run compares the cells, the
caller promises equal cells, or nothing is known.
"""


@dataclass(frozen=True)
class Options:
    """The options of a compilation, besides the program."""

    depth: int | None = None
    arch: str = DEFAULT_ARCH
    fp_contract: FpContract = "fast"
    passes: tuple[ModulePass, ...] | None = None
    """Passes in place of the default passes, for each level with given passes."""
    function: str | None = None
    fp_division: FpDivision = "exact"
    bound_waits: bool = False
    """
    Whether waits for other blocks, and for arriving warps, end with a report if nothing comes.
    """
    halos: Halos = "compared"
    part: str | None = None
    """The part of the GPU, unless the default part of the architecture."""
    multiprocessors: int | None = None
    """Multiprocessors of the GPU, unless equal to the part's number."""
    fp_reassoc: FpReassoc = "flags"
    points: bool = False
    """Whether the host's work at points becomes lists of kernels."""
    layers: bool = False
    """Whether layers with short rows are stored in fields of their own."""

    @property
    def target(self) -> Target:
        """The facts of the GPU."""
        return target_named(self.part or self.arch, self.multiprocessors)

    @cached_property
    def given(self) -> Levels:
        """The given passes, by level."""
        return levels_of(self.passes or ())

    def temporal_passes(self) -> tuple[ModulePass, ...]:
        """Passes from the stencil dialect to time loops."""
        common = self.halos == "common"
        if self.given.temporal:
            return (*self.given.temporal, *((CommonHalosPass(),) if common else ()))
        return temporal_passes(
            self.fp_contract, self.fp_division, self.fp_reassoc, common_halos=common,
            points=self.points, layers=self.layers,
        )  # fmt: skip

    def tile_passes(self) -> tuple[ModulePass, ...]:
        """Passes from time loops to placed kernels."""
        arch = self.part or self.arch
        given = tuple(
            item.for_target(arch, self.multiprocessors) if isinstance(item, SystemPass) else item
            for item in self.given.tile
        )
        return given or tile_passes(self.depth, arch, self.multiprocessors)

    def halves_of_tile_passes(self) -> tuple[tuple[ModulePass, ...], tuple[ModulePass, ...]]:
        """
        The passes that choose schedules, and those that follow the choice; given passes all follow.
        """
        passes = self.tile_passes()
        if self.given.tile:
            return (), passes
        names = [item.name for item in passes]
        behind = names.index(ChooseSchedulePass.name) + 1
        return passes[:behind], passes[behind:]

    def thread_passes(self) -> tuple[ModulePass, ...]:
        """Passes from placed kernels to the code of threads."""
        return self.given.threads or thread_passes()

    def hardware_passes(self) -> tuple[ModulePass, ...]:
        """Passes from the code of threads to the hardware level."""
        return self.given.hardware or (ConvertGpuToNvvmPass(),)

    def key(self) -> str:
        """The options as text."""
        below = (*self.tile_passes(), *self.thread_passes(), *self.hardware_passes())
        passes = ",".join(str(p) for p in below)
        arithmetic = f"{self.fp_contract};{self.fp_division};{self.fp_reassoc}"
        return f"{self.arch};{arithmetic};{self.function};{self.bound_waits};{passes}"


def run_passes(passes: tuple[ModulePass, ...], module: ModuleOp, *, verify: bool = True) -> None:
    """Run passes and verify the result. A failure is a bug, and names the pass."""
    context = Context()
    if any(map(is_foreign, passes)):
        # Passes of other packages may load their dialects by name.
        context = make_context()
        context.add_others()
    if verify:
        apply_verified(passes, module, context)
    else:
        PassPipeline(passes).apply(context, module)
