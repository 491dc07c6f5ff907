"""The passes for each level: given passes replace the defaults there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.passes import ModulePass

from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.pipelines import thread_passes, tile_passes
from timetile.passes.raising.raise_time_loop import RaiseTimeLoopPass
from timetile.passes.systems.an5d import An5dPass
from timetile.passes.systems.dtb import DtbPass
from timetile.passes.systems.ebisu import EbisuPass
from timetile.passes.systems.semi_stencil import SemiStencilPass
from timetile.passes.systems.ssam import SsamPass
from timetile.passes.systems.stencilgen import StencilgenPass
from timetile.passes.systems.system import SystemPass

SYSTEMS: tuple[type[SystemPass], ...] = (
    EbisuPass,
    An5dPass,
    SsamPass,
    DtbPass,
    SemiStencilPass,
    StencilgenPass,
)
"""The passes named after published systems: each makes placed kernels of time loops."""

TILE = frozenset(item.name for item in (*tile_passes(), *SYSTEMS))

THREADS = frozenset(item.name for item in thread_passes())

Passes = tuple[ModulePass, ...]


@dataclass(frozen=True)
class Levels:
    """
    Given passes: from the stencil dialect to time loops, to placed kernels, to the code of threads,
    and from `convert-gpu-to-nvvm` on. An empty level has no given passes.
    """

    temporal: Passes
    tile: Passes
    threads: Passes
    hardware: Passes


def first(passes: Sequence[ModulePass], names: frozenset[str]) -> int:
    """The place of the first pass with one of the names; the end if absent."""
    return next((k for k, item in enumerate(passes) if item.name in names), len(passes))


def levels_of(passes: Passes) -> Levels:
    """
    Passes, in order, by level. The first pass of a level begins the level; passes of other packages
    belong to the level around. Passes before tile passes replace the passes that find time loops if
    raise-time-loop is among them.
    """
    lowered = passes[first(passes, frozenset({ConvertGpuToNvvmPass.name})) :]
    passes = passes[: len(passes) - len(lowered)]
    threads = passes[first(passes, THREADS) :]
    passes = passes[: len(passes) - len(threads)]
    raised = passes[: first(passes, TILE)]
    if not any(item.name == RaiseTimeLoopPass.name for item in raised):
        raised = ()
    return Levels(raised, passes[len(raised) :], threads, lowered)
