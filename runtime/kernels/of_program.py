"""The kernels of one program: made by the passes, assembled, cached, each when first needed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from threading import RLock
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass, PassPipeline

import timetile
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import ApplyOp, KernelOp
from timetile.dialects.verified import ancestor_of
from timetile.lowering.convert_gpu_to_nvvm import ConvertGpuToNvvmPass
from timetile.lowering.pipelines import (
    temporal_passes,
    thread_passes,
    tile_passes,
)
from timetile.lowering.plan_launches import PlannedKernel, kernel_facts
from timetile.lowering.ptx.functions import nvrtc_version
from timetile.lowering.ptx.module import kernels_of, print_module
from timetile.passes.analysis.cells.quotients import check_quotients
from timetile.passes.analysis.launches.trip_counts import constant_steps, most_steps_at_once
from timetile.passes.cells.contract_cells import FpContract
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.diagnostics import CompileError, apply_verified, collected_remarks, refuse
from timetile.passes.loops.common_halos import CommonHalosPass
from timetile.passes.raising.memory import ANY_MEMORY, written_memory
from timetile.passes.targets.target import ARCH_ATTRIBUTE, DEFAULT_ARCH, Target, target_named
from timetile.runtime.cache.keys import key_of, sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.host.functions import check_host
from timetile.runtime.host.halo_notice import HaloNotice
from timetile.runtime.host.memory import HOST_OPERATIONS
from timetile.runtime.kernels.assembler import assemble, assembler_version
from timetile.runtime.kernels.kernel import (
    Kernel,
    decode_facts,
    decode_kernel,
    encode_facts,
    encode_kernel,
)
from timetile.runtime.kernels.levels import Levels, levels_of
from timetile.runtime.kernels.lowered import launch_facts, lowered_kernel
from timetile.runtime.loading.modules import make_context
from timetile.runtime.loading.plugins import is_foreign
from timetile.runtime.loading.selection import keep_only

LEFT = "left unchanged: "
"""The words of remarks on stencil operations run neither by a kernel nor by the host."""

LOGGER = logging.getLogger("timetile")

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
        return temporal_passes(self.fp_contract, self.fp_division, common_halos=common)

    def tile_passes(self) -> tuple[ModulePass, ...]:
        """Passes from time loops to placed kernels."""
        return self.given.tile or tile_passes(
            self.depth, self.part or self.arch, self.multiprocessors
        )

    def thread_passes(self) -> tuple[ModulePass, ...]:
        """Passes from placed kernels to the code of threads."""
        return self.given.threads or thread_passes()

    def nvvm_passes(self) -> tuple[ModulePass, ...]:
        """Passes from the code of threads to the nvvm level."""
        return self.given.nvvm or (ConvertGpuToNvvmPass(),)

    def key(self) -> str:
        """The options as text."""
        below = (*self.tile_passes(), *self.thread_passes(), *self.nvvm_passes())
        passes = ",".join(str(p) for p in below)
        arithmetic = f"{self.fp_contract};{self.fp_division}"
        return f"{self.arch};{arithmetic};{self.function};{self.bound_waits};{passes}"


def run_passes(passes: tuple[ModulePass, ...], module: ModuleOp, *, verify: bool = True) -> None:
    """Run passes and verify the result. A failure is a bug, and names the pass."""
    # Passes of other packages may need dialects.
    context = make_context() if any(map(is_foreign, passes)) else Context()
    if verify:
        apply_verified(passes, module, context)
    else:
        PassPipeline(passes).apply(context, module)


def loops_of(module: ModuleOp) -> list[LoopOp]:
    """The time loops of a module, in order."""
    return [op for op in module.walk() if isinstance(op, LoopOp)]


def take_steps(loop: LoopOp) -> None:
    """Let a time loop take its number of steps from a new argument of its function."""
    function = ancestor_of(loop, FuncOp)
    block = function.body.block
    loop.operands[0] = block.insert_arg(IndexType(), len(block.args))
    function.update_function_type()


class ProgramKernels:
    """
    The kernels of a program at temporal level (raised, contracted). `host` is the module with the
    kernels of its loops named; kernels are made on demand.
    """

    def __init__(self, source: ModuleOp, options: Options, cache: Cache | None):
        self.options, self.cache = options, cache
        self.source = source
        self.remarks: dict[str, None] = {}
        """
        Operations left unchanged, with reasons, each once: of the program's loops, and of kernels
        made so far.
        """
        self.notice = HaloNotice(options.halos == "compared")
        self.made: dict[str, Kernel] = {}
        self.stated: dict[LoopOp, int | None] = {}
        """The numbers of steps stated by the program."""
        self.lowered: dict[str, gpu.ModuleOp] = {}
        self.one_compilation = RLock()
        """
        Held during a compilation: threads asking for one kernel wait for the thread that makes it.
        """

    @cached_property
    def key(self) -> str:
        """
        Cache key of the kernels. Computed on first use: runs without a GPU do not look for
        assembler or NVRTC.
        """
        return key_of(
            str(self.source), self.options.key(), timetile.__version__, sources_key(),
            version("xdsl"), assembler_version(), nvrtc_version(),
        )  # fmt: skip

    @cached_property
    def tiled(self) -> ModuleOp:
        """The module with all kernels at tile level."""
        module = self.source.clone()
        self.run(self.options.tile_passes(), module)
        return module

    def run(self, passes: tuple[ModulePass, ...], module: ModuleOp, *, verify: bool = True) -> None:
        """Run passes, and keep their remarks."""
        with collected_remarks() as remarks:
            run_passes(passes, module, verify=verify)
        self.remarks.update(dict.fromkeys(map(str, remarks)))

    @property
    def facts(self) -> list[list[PlannedKernel]]:
        """
        The facts about kernels needed by launch plans: for each time loop of the source, its
        kernels, the final kernel last. The facts are cached, so that a program with cached kernels
        runs no tile pass.
        """
        with self.one_compilation:
            return self.facts_once

    @cached_property
    def facts_once(self) -> list[list[PlannedKernel]]:
        """The facts, found by one thread."""
        key = key_of(self.key, "launch facts")
        kept = None if self.cache is None else self.cache.decoded(key, decode_facts)
        if kept is not None and len(kept) == len(self.loops):
            return kept
        self.check_tiled()
        known = kernel_facts(self.tiled)
        facts = [[known[name] for name in loop.kernel_names] for loop in loops_of(self.tiled)]
        if self.cache is not None:
            self.cache.write(key, encode_facts(facts))
        return facts

    def check_tiled(self) -> None:
        """CompileError unless given passes made placed kernels of every time loop."""
        kernels = [op for op in self.tiled.ops if isinstance(op, KernelOp)]
        placed = {op.sym_name.data for op in kernels if op.is_placed and op.variants is not None}
        for loop in loops_of(self.tiled):
            if not loop.kernel_names or not placed.issuperset(loop.kernel_names):
                refuse(
                    loop,
                    "the given passes make no placed kernels of the loop; at least needed are "
                    "device-tiling,multi-queue-buffering,peel-boundaries",
                )

    @property
    def common(self) -> ProgramKernels:
        """The kernels for runs with common halos of rotating buffers."""
        with self.one_compilation:
            return self.common_once

    @cached_property
    def common_once(self) -> ProgramKernels:
        """The kernels for common halos, made by one thread."""
        source = self.source.clone()
        run_passes((CommonHalosPass(everywhere=True),), source)
        return ProgramKernels(source, self.options, self.cache)

    @cached_property
    def loops(self) -> list[LoopOp]:
        """The time loops of the source module, in order."""
        return loops_of(self.source)

    def common_loop(self, loop: LoopOp) -> LoopOp:
        """
        The time loop among the kernels for common halos, for a time loop of the source module.
        """
        return self.common.loops[self.loops.index(loop)]

    @property
    def uncounted(self) -> ProgramKernels:
        """
        The kernels for numbers of steps other than stated: of all depths, for loops whose number of
        steps is an argument.
        """
        with self.one_compilation:
            return self.uncounted_once

    @cached_property
    def uncounted_once(self) -> ProgramKernels:
        """The kernels for any number of steps, made by one thread."""
        source = self.source.clone()
        for loop in loops_of(source):
            if loop.sweep is None and constant_steps(loop) is not None:
                take_steps(loop)
        return ProgramKernels(source, self.options, self.cache)

    def for_steps(self, loop: LoopOp, steps: int) -> tuple[ProgramKernels, LoopOp]:
        """
        The kernels for a number of steps of a time loop, and the loop among them. Other kernels
        serve runs of more steps than stated, if the stated number bounds the depth of these.
        """
        if loop not in self.stated:
            self.stated[loop] = constant_steps(loop)
        stated = self.stated[loop]
        if stated is None or steps <= stated:
            return self, loop
        deepest = max((kernel.steps for kernel in self.facts_of(loop)), default=1)
        most = most_steps_at_once(loop)
        if most is not None and deepest < most:
            return self, loop
        return self.uncounted, self.uncounted.loops[self.loops.index(loop)]

    def facts_of(self, loop: LoopOp) -> list[PlannedKernel]:
        """The kernels of a time loop of the source module, the final one last."""
        return self.facts[self.loops.index(loop)]

    def kernel_module(self, name: str) -> ModuleOp:
        """A module with one kernel at tile level, its loop's schedule and the cell functions."""
        kept: list[Operation] = []
        cells: set[str] = set()
        for op in self.tiled.ops:
            if isinstance(op, KernelOp) and op.sym_name.data == name:
                kept.append(op)
                cells = {s.cell.string_value() for s in op.stages if isinstance(s, ApplyOp)}
        for op in self.tiled.ops:
            if isinstance(op, FuncOp) and op.sym_name.data in cells:
                kept.insert(0, op)
        said: dict[str, Attribute] = {ARCH_ATTRIBUTE: StringAttr(self.options.target.name)}
        return ModuleOp([op.clone() for op in kept], said)

    def threads(self, name: str) -> gpu.ModuleOp:
        """
        A kernel as per-thread code, from memory or made now; verified. Clone the module before a
        change.
        """
        with self.one_compilation:
            if name not in self.lowered:
                module = self.kernel_module(name)
                self.run(self.options.thread_passes(), module)
                self.lowered[name] = lowered_kernel(module)
            return self.lowered[name]

    def nvvm(self, name: str, *, verify: bool = False) -> ModuleOp:
        """A kernel at nvvm level, in a module of its own."""
        module = self.kernel_module(name)
        passes = (*self.options.thread_passes(), *self.options.nvvm_passes())
        self.run(passes, module, verify=verify)
        return module

    def kernel(self, name: str) -> Kernel:
        """A kernel, from memory, from the cache, or made now."""
        with self.one_compilation:
            if name not in self.made:
                self.made[name] = self.cached(name) or self.make(name)
            return self.made[name]

    def cached(self, name: str) -> Kernel | None:
        """The kernel from the cache; None if not cached."""
        key = key_of(self.key, name)
        kept = None if self.cache is None else self.cache.decoded(key, decode_kernel)
        return kept if kept is not None and kept.name == name else None

    def make(self, name: str) -> Kernel:
        """Lower, print, assemble and cache a kernel."""
        LOGGER.info("compiling @%s", name)
        module = self.nvvm(name)
        facts = launch_facts(lowered_kernel(module))
        arch = self.options.target
        bound = self.options.bound_waits
        ptx = print_module(kernels_of(module), arch.isa.ptx_version, arch.name, bound_waits=bound)
        assembled = assemble(ptx, arch.name, name) if assembler_version() is not None else None
        if assembled is not None and assembled.spill_bytes:
            LOGGER.info("@%s spills %d bytes", name, assembled.spill_bytes)
        kernel = Kernel(
            name,
            ptx,
            None if assembled is None else assembled.cubin,
            arch=arch.name,
            grid=facts.grid.data,
            block=facts.block.data,
            cluster=facts.cluster.data,
            blocks_per_tile=facts.blocks_per_tile.data,
            message_words=facts.message_words.data,
            bound_waits=bound,
            shared_bytes=facts.shared_bytes.data,
            registers=0 if assembled is None else assembled.registers,
            spill_bytes=0 if assembled is None else assembled.spill_bytes,
        )
        if self.cache is not None:
            self.cache.write(key_of(self.key, name), encode_kernel(kernel))
        return kernel


def raise_program(module: ModuleOp, options: Options) -> ModuleOp:
    """
    The program at temporal level, with only the function to run. Raises CompileError if the
    function stores no field, or holds operations run neither by a kernel nor by the host.
    """
    function = keep_only(module, options.function)
    with collected_remarks() as remarks:
        run_passes(options.temporal_passes(), module)
    left = [remark for remark in remarks if LEFT in remark.reason]
    if left:
        error = left[0].error()
        for other in left[1:]:
            error.add_note(str(other))
        raise error
    if all(memory is ANY_MEMORY for memory in written_memory(function)):
        raise CompileError(
            f"@{function.sym_name.data} stores no field: timetile compiles stencil.store "
            "operations, "
            "in scf.for loops over rotated fields or outside them; name another function, or store "
            "a result"
        )
    check_quotients(module)
    check_host(function, HOST_OPERATIONS)
    return module
