"""`timetile.compile`: from a stencil program to something that runs."""

from __future__ import annotations

from operator import index
from pathlib import Path
from typing import get_args

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from timetile.lowering.pipelines import FpContract
from timetile.passes.analysis.limits import check_loop
from timetile.passes.arch import ARCHS
from timetile.passes.diagnostics import collected_remarks
from timetile.passes.simplify_cells import FpDivision
from timetile.runtime.cache.store import Cache
from timetile.runtime.gpu import device, gpu_is_available
from timetile.runtime.kernels import Halos, Options, ProgramKernels, loops_of
from timetile.runtime.program import CompiledProgram, Executor
from timetile.runtime.raising import raised


def check_choices(**given: tuple[object, object]) -> None:
    """ValueError for an option that is not among those of its literal type."""
    for name, (value, kind) in given.items():
        if value not in get_args(kind):
            raise ValueError(f"{name} is {' or '.join(get_args(kind))}, got {value!r}")


def compile(
    program: ModuleOp | str | Path,
    *,
    executor: Executor | None = None,
    depth: int | None = None,
    arch: str | None = None,
    fp_contract: FpContract = "fast",
    fp_division: FpDivision = "exact",
    halos: Halos = "compared",
    passes: tuple[ModulePass, ...] | None = None,
    function: str | None = None,
    bound_waits: bool = False,
    gpu: int = 0,
    threads: int | None = None,
    cache: Cache | bool = True,
) -> CompiledProgram:
    """
    Compile a stencil program: a module (which is left as it is), its text, or a file.

    `executor` is `gpu` where a driver answers and `cpu` elsewhere, unless given: machine code that runs on `threads`
    threads of the processor, as many as TIMETILE_NUM_THREADS says or else as there are cores. `numpy`, `planes` and `simt`
    are slow and check the others. `depth` is how many
    time steps a kernel advances at once, chosen if not given. `arch` is the GPU's own unless given.
    `fp_contract` and `fp_division` say how freely products and sums are contracted, and whether quotients and
    reciprocal roots may be off by a few units in the last place where the program itself does not allow it. `halos` says what is known of the cells outside the bounds of buffers that take turns
    (`u` and `v` of `u, v = v, u`): kernels of several steps are faster where they are the same in all of them. They are
    `compared` before every run that has such kernels, bit for bit, which on a GPU waits for what the stream has been given
    before; `common` is the caller's promise that they are, whatever else is there would be ignored, and `apart` compares
    nothing. `passes` replaces the passes from time loops to placed kernels. `cache` is a disk cache, the user's
    where it is True; False compiles anew. A cache that cannot be read or written is a warning, never an error. With `bound_waits`, kernels report a wait in vain (RuntimeError) instead of hanging: for messages or
    barriers of other blocks, or for the arrivals of warps of the block or the cluster; they are slower, and every launch
    that may wait so is waited for.

    Raises CompileError where the program is wrong or cannot be compiled, ValueError or TypeError where an option is
    not one of those named here.
    """
    if executor is None:
        executor = "gpu" if gpu_is_available() else "cpu"
    check_choices(
        executor=(executor, Executor),
        fp_contract=(fp_contract, FpContract),
        fp_division=(fp_division, FpDivision),
        halos=(halos, Halos),
    )
    if depth is not None and (isinstance(depth, bool) or index(depth) < 1):
        raise ValueError(f"depth is a number from 1 on, got {depth!r}")
    if passes is not None and not passes:
        raise ValueError("passes are one or more; leave them out for the default ones")
    if arch is None:
        arch = device(gpu).arch if executor == "gpu" else "sm_90"
        if arch not in ARCHS:
            # PTX for an older architecture runs on newer ones.
            arch = "sm_90" if int(arch.removeprefix("sm_")) > 90 else "sm_80"
    fewer: int | None = None
    if executor == "gpu":
        there = device(gpu).attribute("MULTIPROCESSOR_COUNT")
        fewer = there if there != ARCHS[arch].multiprocessors else None
    options = Options(
        depth,
        arch,
        fp_contract,
        passes,
        function,
        fp_division,
        bound_waits,
        halos,
        multiprocessors=fewer,
    )
    chosen = None if cache is False else cache if isinstance(cache, Cache) else Cache.default()
    with collected_remarks() as remarks:
        module = raised(program, options, chosen)
    for loop in loops_of(module) if executor != "cpu" else ():
        check_loop(loop)
    kernels = ProgramKernels(module, options, chosen)
    kernels.remarks.update(dict.fromkeys(remarks))
    return CompiledProgram(module, kernels, executor, gpu, threads)
