"""Which kernels a GPU runs: those of its own architecture, or of the newest that is not newer."""

from __future__ import annotations

from timetile.passes.arch import ARCHS, version_of
from timetile.passes.diagnostics import CompileError
from timetile.runtime.gpu import device


def arch_for(gpu: str) -> str:
    """
    The architecture whose kernels run on a GPU of another one: the newest that is not newer. CompileError where there
    is none.
    """
    fitting = [name for name in ARCHS if version_of(name) <= version_of(gpu)]
    if not fitting:
        oldest = min(ARCHS, key=version_of)
        raise CompileError(
            f"the GPU is of architecture {gpu}, and kernels need {oldest} or newer; run on the CPU with executor cpu"
        )
    return max(fitting, key=version_of)


def target_of(arch: str | None, gpu: int) -> tuple[str, int | None]:
    """
    The architecture to compile for a GPU, and the multiprocessors of the GPU where it has not as many as the largest part of
    it. CompileError where kernels would not run on the GPU.
    """
    there = device(gpu)
    newest = arch_for(there.arch)
    if arch is not None and version_of(arch) > version_of(newest):
        raise CompileError(
            f"kernels for {arch} do not run on GPU {gpu}, which is of architecture {there.arch}; leave arch out, or give "
            f"{newest}"
        )
    chosen = arch or newest
    multiprocessors = there.attribute("MULTIPROCESSOR_COUNT")
    return chosen, None if multiprocessors == ARCHS[chosen].multiprocessors else multiprocessors
