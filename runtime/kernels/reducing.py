"""Kernels of reductions, gathers and comparisons as PTX, each text made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

import timetile
from timetile.dialects.temporal import LoopOp, ReduceOp
from timetile.lowering.comparing_kernels import comparing_kernel, comparing_name
from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.gather_kernels import gather_kernel, gather_name
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.lowering.reduction_kernels import (
    WARPS,
    ComputedRound,
    Round,
    computed_round,
    reduction_kernel,
)
from timetile.passes.analysis.reduced_cells import reduced_cells, reductions_with_cells
from timetile.passes.targets.target import target_named
from timetile.runtime.cache.keys import installed_version, key_of, sources_key
from timetile.runtime.cache.store import Cache

THREADS = 32 * WARPS
"""Threads of a block."""

OLDEST_ARCH = "sm_80"
"""The instruction set of a text for all GPUs."""


@lru_cache
def round_code(made: Round) -> gpu.FuncOp:
    """The kernel of a round at the level of threads."""
    module = reduction_kernel(made)
    module.verify()
    return next(op for op in module.walk() if isinstance(op, gpu.FuncOp))


@lru_cache
def round_text(made: Round, arch: str) -> str:
    """The kernel of a round as PTX for an instruction set."""
    return kernel_text(reduction_kernel(made), arch)


def gather_text(cell_bytes: int, cache: Cache | None = None, *, scatter: bool = False) -> str:
    """The kernel reading, or with `scatter` writing, a field at computed places, as PTX."""
    name = gather_name(cell_bytes, scatter=scatter)
    return kept_text(name, cache, lambda: gather_kernel(cell_bytes, scatter=scatter))


def comparing_text(word_bytes: int, cache: Cache | None = None) -> str:
    """The kernel comparing halos as PTX: `answer` becomes 1 where some word differs."""
    return kept_text(comparing_name(word_bytes), cache, lambda: comparing_kernel(word_bytes))


TEXTS: dict[str, str] = {}
"""The texts of small kernels for all GPUs, by name."""


def kept_text(name: str, cache: Cache | None, make: Callable[[], ModuleOp]) -> str:
    """The text of a small kernel for all GPUs, made once in a process, and kept in the cache."""
    if name not in TEXTS:
        versions = (timetile.__version__, sources_key(), installed_version("xdsl"))
        key = "" if cache is None else key_of("small kernel", name, *versions)
        kept = None if cache is None else cache.decoded(key, lambda parts: parts["ptx"].decode())
        if kept is None:
            kept = kernel_text(make(), OLDEST_ARCH)
            if cache is not None:
                cache.write(key, {"ptx": kept.encode()})
        TEXTS[name] = kept
    return TEXTS[name]


def kernel_text(module: ModuleOp, arch: str) -> str:
    """A kernel at the level of threads as PTX."""
    module.verify()
    ConvertGpuToNvvmPass().apply(Context(), module)
    target = target_named(arch)
    return print_module(kernels_of(module), target.isa.ptx_version, target.name)


KnownRound = tuple[ReduceOp, ComputedRound, tuple[SSAValue, ...]]
"""A reduction, its first round, and the fields that the round reads."""


@dataclass
class ReducedFields:
    """The first rounds of reductions that compute their cells, with the fields of the last run."""

    made: dict[ReduceOp, tuple[ComputedRound, tuple[Any, ...]]] = field(
        default_factory=dict[ReduceOp, tuple[ComputedRound, tuple[Any, ...]]]
    )
    known: dict[LoopOp, list[KnownRound]] = field(default_factory=dict[LoopOp, list[KnownRound]])

    def take(self, loop: LoopOp, fields: Mapping[SSAValue, Any]) -> bool:
        """Whether a reduction computes the cells of a loop, from now on from these fields."""
        if loop not in self.known:
            self.known[loop] = list(known_rounds(loop))
        for op, made, sources in self.known[loop]:
            self.made[op] = made, tuple(fields[source] for source in sources)
        return bool(self.known[loop])


def known_rounds(loop: LoopOp) -> Iterator[KnownRound]:
    """The first rounds of the reductions that compute a loop's cells."""
    for op in reductions_with_cells(loop):
        cells = reduced_cells(op)
        assert cells is not None
        yield op, computed_round(op, cells), cells.sources
