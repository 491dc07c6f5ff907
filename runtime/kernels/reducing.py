"""Kernels of reductions as PTX, each text made once."""

from __future__ import annotations

from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects import gpu

from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.lowering.reduction_kernels import WARPS, Round, reduction_kernel
from timetile.passes.targets.target import target_named

THREADS = 32 * WARPS
"""Of a block."""


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
    module = reduction_kernel(made)
    ConvertGpuToNvvmPass().apply(Context(), module)
    target = target_named(arch)
    return print_module(kernels_of(module), target.isa.ptx_version, target.name)
