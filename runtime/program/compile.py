"""`timetile.compile`: makes a runnable program from a stencil program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from timetile.dialects.decomposition import Decomposition
from timetile.dialects.temporal import MOST_DEPTH
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.analysis.geometry.limits import check_loop
from timetile.passes.cells.contract_cells import FpContract
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.diagnostics import collected_remarks
from timetile.passes.loops.temporal_fusion import TemporalFusionPass
from timetile.passes.systems.system import SystemPass
from timetile.passes.target_arch import TargetArchPass
from timetile.passes.targets.facts import name_without_facts
from timetile.passes.targets.target import NAMES, target_named
from timetile.runtime.cache.store import Cache
from timetile.runtime.host.loop_facts import has_stored_layers
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.measured import DeviceRecords
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.options import Halos, Options
from timetile.runtime.kernels.raising import raised
from timetile.runtime.loading.made import MadeProgram
from timetile.runtime.loading.modules import check_program, text_of
from timetile.runtime.loading.plugins import is_foreign
from timetile.runtime.machine.collection import without_collection
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.machine.floating_point import in_standard_modes
from timetile.runtime.program.compiled_program import CompiledProgram, Executor
from timetile.runtime.program.option_checks import check_choice, check_number, check_type, passes_of
from timetile.runtime.program.parted_program import (
    check_one_way,
    first_of_gpus,
)
from timetile.runtime.program.ranked_gpu_program import compiled_for_ranks
from timetile.runtime.program.ranked_program import check_alone
from timetile.runtime.program.small_domains import on_gpus
from timetile.runtime.program.targets import (
    device_text,
    name_of_target,
    target_of_gpu,
    target_without_gpu,
)
from timetile.runtime.program.unused_options import UnusedOptions
from timetile.runtime.program.whole_fields import WholeFields

WITH_LISTS = ("gpu", "planes", "simt", "ptx")
"""Executors whose kernels take lists of points: the others run the host's work between steps."""

OF_PARTS: ContextVar[bool] = ContextVar("OF_PARTS", default=False)
"""Whether a program is compiled for parts of a domain, whose fields are cut."""

TUNE = "TIMETILE_TUNE"
"""The variable of the environment that tunes programs if it is 1."""


def is_asked_to_tune(tune: bool | None) -> bool:
    """Whether schedules are to be measured: as given, else by the environment."""
    return os.environ.get(TUNE) == "1" if tune is None else tune


def lists_and_layers(
    executor: Executor, gpus: object, passes: Sequence[ModulePass] | None
) -> tuple[bool, bool]:
    """
    Whether points are lists of kernels, and whether layers with short rows are stored alone, of
    whole programs. A published system takes the program's own loops, without copies of layers.
    """
    lists = executor in WITH_LISTS and gpus is None
    is_system = any(isinstance(each, SystemPass) for each in passes or ())
    return lists, lists and not is_system and not OF_PARTS.get()


def compile_part(program: ModuleOp | str | Path | MadeProgram, **options: Any) -> CompiledProgram:
    """The program compiled for parts of the domain on ranks."""
    token = OF_PARTS.set(True)
    try:
        return compile(program, **options)
    finally:
        OF_PARTS.reset(token)


def check_one_place(tune: bool | None, comm: object, gpus: object) -> None:
    """Raise ValueError for ranks with several GPUs each, and for tuning of several parts."""
    if comm is not None:
        check_one_way(gpus)
    if tune and (comm is not None or gpus is not None):
        raise ValueError(
            "tune measures a program on one GPU; tune the program without comm and gpus, or leave "
            "out tune"
        )


def check_levels(options: Options) -> None:
    """Raise ValueError for options decided by given passes."""
    given = options.given
    decided = (
        ("fp_contract", options.fp_contract, "fast", "contract-cells"),
        ("fp_division", options.fp_division, "exact", "simplify-cells"),
        ("fp_reassoc", options.fp_reassoc, "flags", "sort-terms"),
    )
    for name, value, usual, item in decided:
        if given.temporal and value != usual:
            option = f"{item}{{{name.replace('_', '-')}={value}}}"
            raise ValueError(
                f"{name} has no effect where passes find time loops; write {option} there"
            )
    for item in options.passes or ():
        if isinstance(item, TargetArchPass) and target_named(item.arch).name != options.arch:
            raise ValueError(
                f"the passes are for {item.arch}, and the program is compiled for {options.arch}; "
                f"give arch={item.arch!r}"
            )
    asked = TemporalFusionPass((options.depth,)) if options.depth is not None else None
    if asked is not None and given.tile and asked not in given.tile:
        raise ValueError(f"depth has no effect where passes make kernels; write {asked} there")


def check_words(
    executor: object,
    fp_contract: object,
    fp_division: object,
    fp_reassoc: object,
    halos: object,
    arch: object,
) -> None:
    """Raise ValueError for a word that an option does not know."""
    check_choice("executor", executor, get_args(Executor))
    check_choice("fp_contract", fp_contract, get_args(FpContract))
    check_choice("fp_division", fp_division, get_args(FpDivision))
    check_choice("fp_reassoc", fp_reassoc, get_args(FpReassoc))
    check_choice("halos", halos, get_args(Halos))
    check_arch(arch)


def check_arch(arch: object) -> None:
    """
    Raise ValueError for a name of no target. Facts behind a name are checked by `target_named`.
    """
    if arch is not None:
        check_choice("arch", name_without_facts(arch) if isinstance(arch, str) else arch, NAMES)


def target_text(arch: str | None, cache: Cache | bool, gpu: int) -> str:
    """The target of a GPU as one name, with all facts."""
    check_arch(arch)
    return name_of_target(target_of_gpu(arch, gpu, cache_for(cache, ())))


def default_executor() -> Executor:
    """The GPU where a driver answers, otherwise the processor."""
    return "gpu" if gpu_is_available() else "cpu"


def check_kinds(
    depth: object, function: object, bound_waits: object, tune: object, gpu: object
) -> None:
    """Raise ValueError for an option of a wrong kind."""
    if depth is not None:
        check_number("depth", depth, 1, MOST_DEPTH)
    if function is not None:
        check_type("function", function, str, "the name of a function")
    check_type("bound_waits", bound_waits, bool, "True or False")
    check_number("gpu", gpu, 0)
    check_type("tune", tune, bool | None, "True or False")


def cache_for(cache: Cache | bool, passes: Iterable[ModulePass]) -> Cache | None:
    """
    The cache of kernels made by these passes; None for no cache. Kernels made by passes of other
    packages are not cached: another version of such a package may make other kernels. Raises
    TypeError for anything but a cache or a bool.
    """
    words = "True, False or a Cache (TIMETILE_CACHE_DIR names another folder)"
    check_type("cache", cache, bool | Cache, words)
    if any(map(is_foreign, passes)):
        return None
    return Cache.default() if cache is True else cache or None


def kernels_for(
    program: ModuleOp | str | Path | MadeProgram,
    options: Options,
    chosen: Cache | None,
    gpu: int | None,
) -> ProgramKernels:
    """
    The kernels of a program raised now, with the remarks made on the way, and with what was
    measured on a GPU.
    """
    with collected_remarks() as remarks:
        module = raised(program, options, chosen)
    records = None if gpu is None else DeviceRecords(device_text(gpu), chosen)
    kernels = ProgramKernels(module, options, chosen, records)
    kernels.remarks.update(dict.fromkeys(map(str, remarks)))
    return kernels


def whole_fields(
    program: ModuleOp | str | Path | MadeProgram, made: CompiledProgram
) -> WholeFields:
    """The program for runs of few steps, of a program that may store layers in own fields."""
    kernels = made.kernels
    if not any(map(has_stored_layers, loops_of(kernels.source))):
        return WholeFields()
    kept = program.clone() if isinstance(program, ModuleOp) else program
    if isinstance(program, Path):
        # The file may be another when the program is made.
        kept = text_of(program)
    options = replace(kernels.options, layers=False)
    measured = None if kernels.records is None else made.gpu

    def make() -> CompiledProgram:
        own = kernels_for(kept, options, kernels.cache, measured)
        return CompiledProgram(own.source, own, made.executor, made.gpu, made.threads, made.unused)

    return WholeFields(make)


@in_standard_modes
@without_collection
def compile(
    program: ModuleOp | str | Path | MadeProgram,
    *,
    executor: Executor | None = None,
    depth: int | None = None,
    arch: str | None = None,
    fp_contract: FpContract = "fast",
    fp_division: FpDivision = "exact",
    fp_reassoc: FpReassoc = "flags",
    halos: Halos = "compared",
    passes: Sequence[ModulePass] | str | None = None,
    function: str | None = None,
    bound_waits: bool = False,
    gpu: int = 0,
    threads: int | None = None,
    cache: Cache | bool = True,
    tune: bool | None = None,
    comm: object = None,
    parts: Sequence[int] | Decomposition | None = None,
    exchange_every: int | None = None,
    gpus: int | Sequence[int] | None = None,
) -> CompiledProgram:
    """
    Compile a stencil program: a module (left unchanged), its text, a file, or a program made if the
    cache has none.

    - `executor`: `gpu` if a driver answers and `cpu` otherwise, unless given. `cpu` runs machine
      code on `threads` threads of the processor: by default the number in TIMETILE_NUM_THREADS, or
      else all cores. `numpy`, `planes`, `simt` and `ptx` are slow and check the others; `ptx` runs
      the PTX of a GPU.
    - `depth`: time steps advanced by a kernel at once; chosen if not given.
    - `arch`: an architecture (`sm_90`) or a part (`h100-pcie`); the GPU's own unless given. Kernels
      run on every GPU of the architecture, and schedules are chosen for the part. Facts may follow
      a name: `h100-pcie+copy=1.7` has device copies of 1.7 TB/s.
    - `fp_contract`: how freely products and sums are contracted.
    - `fp_division`: whether quotients and reciprocal roots may be off by a few units in the last
      place without permission by the program.
    - `fp_reassoc`: which sums take their terms by planes, for faster kernels: `flags`, those whose
      operations allow another order (`fastmath<reassoc>`); `on`, all; `off`, none. The last bits
      differ from those of the program's own order, and are equal on all executors and schedules.
    - `halos`: the cells outside the bounds of rotating buffers (`u` and `v` of `u, v = v, u`).
      Kernels of several steps are faster if all such buffers have equal halos. `compared`: compare
      bit for bit before every run of several steps, and on a GPU wait for earlier work of the
      stream. `common`: you promise equal halos; if they differ, results outside the bounds are
      wrong. `apart`: never compare, always use the slower kernels.
    - `passes`: passes in place of the default passes, for each level with given passes (time loops,
      placed kernels, threads, nvvm): passes, or a pipeline as taken by xdsl-opt, also of other
      packages. Kernels made by foreign passes are not cached. Given passes before `temporal-fusion`
      replace the passes that find time loops if `raise-time-loop` is among them.
    - `function`: the function to compile, in a module with several.
    - `cache`: a disk cache; True for the user's cache, False to compile anew. An unreadable cache
      is a warning, never an error.
    - `bound_waits`: where a message, a barrier or an arrival never comes, kernels stop with a
      RuntimeError instead of hanging. Such kernels are slower, and the host waits for every
      launch.
    - `gpu`: the GPU's number.
    - `tune`: the first run measures the best few schedules on copies of its arguments, for at most
      20 s, and keeps the fastest in the cache; later programs of equal sizes use the kept schedule
      without being asked. TIMETILE_TUNE=1 stands for `tune=True` where nothing is given.
    - `comm`: a communicator of mpi4py, as `MPI.COMM_WORLD`. All ranks compile the program and call
      the program together; each computes a part of the domain, and the arrays of each rank end with
      the bits of one process. The executor is `gpu` where a driver answers, the ranks of a host on
      its GPUs in turn; otherwise `cpu`, on a share of the cores. `numpy` serves, too.
    - `gpus`: the number of GPUs of this process that share the domain, or a list of their numbers,
      one for each part. Each computes a part, and the arrays end with the bits of one GPU. One GPU
      runs a domain too small for a number of GPUs, as a remark says.
    - `parts`: with `comm` or `gpus`, the number of parts along each axis, or a `Decomposition`.
    - `exchange_every`: with `comm` or `gpus`, the steps between two exchanges. Both are chosen if
      not given.

    Raises CompileError if the program is wrong or cannot be compiled, ValueError or TypeError for
    an option not named here; with `comm`, RankError on all ranks if a rank cannot compile the
    program, or compiles another.
    """
    check_one_place(tune, comm, gpus)
    same: dict[str, Any] = {
        "depth": depth, "arch": arch, "fp_contract": fp_contract, "fp_division": fp_division,
        "fp_reassoc": fp_reassoc, "halos": halos, "passes": passes, "function": function,
        "bound_waits": bound_waits, "threads": threads, "cache": cache,
    }  # fmt: skip
    if comm is not None:
        alone, named = partial(compile_part, program, **same), partial(target_text, arch, cache)
        return compiled_for_ranks(comm, alone, named, executor, parts, exchange_every, threads)
    if gpus is None:
        check_alone(parts, exchange_every)
    else:
        executor, gpu = first_of_gpus(gpus, executor)
    check_program(program)
    executor = default_executor() if executor is None else executor
    check_words(executor, fp_contract, fp_division, fp_reassoc, halos, arch)
    check_kinds(depth, function, bound_waits, tune, gpu)
    chosen_passes = None if passes is None else passes_of(passes)
    chosen = cache_for(cache, chosen_passes or ())
    target = target_of_gpu(arch, gpu, chosen) if executor == "gpu" else target_without_gpu(arch)
    options = Options(
        depth, target.arch, fp_contract, chosen_passes, function, fp_division, bound_waits, halos,
        target.part, target.multiprocessors, fp_reassoc,
        *lists_and_layers(executor, gpus, chosen_passes),
    )  # fmt: skip
    check_levels(options)
    measures = executor == "gpu" and gpus is None
    kernels = kernels_for(program, options, chosen, gpu if measures else None)
    # Parts of a domain are smaller than the domain.
    for loop in loops_of(kernels.source) if executor != "cpu" and gpus is None else ():
        check_loop(loop)
    unused = UnusedOptions.of(
        executor, depth=depth, arch=arch, bound_waits=bound_waits, threads=threads, tune=tune
    )
    made = CompiledProgram(kernels.source, kernels, executor, gpu, threads, unused)
    made.tunes, made.whole = measures and is_asked_to_tune(tune), whole_fields(program, made)
    alone = partial(compile, program, executor=executor, **same)
    return made if gpus is None else on_gpus(gpus, made, parts, exchange_every, alone)
