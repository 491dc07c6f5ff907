"""The kernels of one program: made by the passes, assembled, cached, each when first needed."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cached_property
from threading import RLock

from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import timetile
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.lowering.plan_launches import PlannedKernel, kernel_facts
from timetile.lowering.ptx.functions import calls_functions, nvrtc_version
from timetile.passes.analysis.cells.quotients import check_quotients
from timetile.passes.analysis.launches.trip_counts import constant_steps, most_steps_at_once
from timetile.passes.diagnostics import collected_remarks, refuse
from timetile.passes.loops.common_halos import CommonHalosPass
from timetile.passes.scheduling.choose_schedule import ModelChoice, collected_choices
from timetile.runtime.cache.keys import installed_version, key_of, sources_key
from timetile.runtime.cache.sources import find_sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.host.functions import check_host
from timetile.runtime.host.halo_notice import HaloNotice
from timetile.runtime.host.memory import HOST_OPERATIONS
from timetile.runtime.kernels.ahead import KernelsAhead, MadeKernel
from timetile.runtime.kernels.assembled_choice import AssembledChoice
from timetile.runtime.kernels.assembler import assembler_key
from timetile.runtime.kernels.beside import ChoiceBesideRuns
from timetile.runtime.kernels.edge_kernels import EdgeKernels
from timetile.runtime.kernels.foreseen import ForeseenKernels, loop_schedules
from timetile.runtime.kernels.kernel import (
    Kernel,
    decode_facts,
    decode_kernel,
    encode_facts,
    encode_kernel,
)
from timetile.runtime.kernels.loops import loops_of, take_steps
from timetile.runtime.kernels.lowered import lowered_kernel
from timetile.runtime.kernels.making import kernel_module, made_kernel
from timetile.runtime.kernels.measured import (
    ChosenSchedules,
    DeviceRecords,
    Measured,
    schedules_text,
)
from timetile.runtime.kernels.options import Options, run_passes
from timetile.runtime.kernels.raised_checks import check_raised
from timetile.runtime.kernels.rivals import RivalSchedules
from timetile.runtime.loading.selection import keep_only
from timetile.runtime.machine.collection import without_collection
from timetile.runtime.machine.floating_point import in_standard_modes, standard_modes

LOGGER = logging.getLogger("timetile")


class ProgramKernels:
    """
    The kernels of a program at temporal level (raised, contracted). `host` is the module with the
    kernels of its loops named; kernels are made on demand.
    """

    def __init__(
        self,
        source: ModuleOp,
        options: Options,
        cache: Cache | None,
        records: DeviceRecords | None = None,
        given: ChosenSchedules | None = None,
    ):
        """
        `records` are what was measured on the program's GPU; `given` are schedules in place of the
        model's choice.
        """
        self.options, self.cache = options, cache
        self.source, self.records, self.given = source, records, given
        self.remarks: dict[str, None] = {}
        """
        Operations left unchanged, with reasons, each once: of the program's loops, and of kernels
        made so far.
        """
        self.notice = HaloNotice(options.halos == "compared")
        self.model_choices: list[ModelChoice | None] = []
        """The model's choice for each loop, once `tiled` is made; None for given schedules."""
        self.made: dict[str, Kernel] = {}
        self.stated: dict[LoopOp, int | None] = {}
        """The numbers of steps stated by the program."""
        self.ahead = KernelsAhead(self.make_alone)
        self.foreseen = ForeseenKernels(options, self.ahead, self.cached)
        self.lowered: dict[str, gpu.ModuleOp] = {}
        self.edges, self.beside = EdgeKernels(self), ChoiceBesideRuns(self)
        self.rivals = RivalSchedules(self)
        self.one_compilation = RLock()
        """
        Held during a compilation: threads asking for one kernel wait for the thread that makes it.
        """

    @cached_property
    @in_standard_modes
    def model_key(self) -> str:
        """
        Cache key of the kernels with the model's schedules. Computed on first use: runs without a
        GPU do not look for assembler or NVRTC. Programs that call no function do not load NVRTC,
        which takes as long as all else of a run with kernels in the cache.
        """
        calls = bool(self.options.passes) or calls_functions(self.source)
        if self.cache is not None:
            find_sources_key(self.cache)
        return key_of(
            str(self.source), self.options.key(), timetile.__version__, sources_key(),
            installed_version("xdsl"), assembler_key(), nvrtc_version() if calls else "no function",
        )  # fmt: skip

    @cached_property
    def record(self) -> Measured | None:
        """What was measured for the program on its GPU; None without a record."""
        if self.records is None or self.given is not None or self.options.given.tile:
            return None
        return self.records.of(self.model_key)

    @cached_property
    def chosen(self) -> ChosenSchedules | None:
        """The schedules given or kept by measuring; None for the model's choice."""
        return self.given if self.record is None else self.record.taken

    @cached_property
    def key(self) -> str:
        """Cache key of the kernels."""
        if self.chosen is None:
            return self.model_key
        return key_of(self.model_key, schedules_text(self.chosen))

    def with_schedules(self, given: ChosenSchedules) -> ProgramKernels:
        """The kernels of the program with other schedules."""
        return ProgramKernels(self.source, self.options, self.cache, self.records, given)

    def with_new_records(self) -> ProgramKernels:
        """The kernels of the program, chosen anew by what was measured meanwhile."""
        made = self.same_but(self.source)
        made.remarks.update(self.remarks)
        return made

    def same_but(self, source: ModuleOp) -> ProgramKernels:
        """The kernels of a variant of the program. Given schedules hold for the variant, too."""
        return ProgramKernels(source, self.options, self.cache, self.records, self.given)

    @cached_property
    def choice(self) -> AssembledChoice:
        """The schedules of the loops, chosen with the assembler where there is one."""
        key = "" if self.cache is None else self.key
        return AssembledChoice(self.options, self.cache, key, self.foreseen.begin)

    @cached_property
    @in_standard_modes
    @without_collection
    def tiled(self) -> ModuleOp:
        """The module with all kernels at tile level."""
        module = self.source.clone()
        choosing, placing = self.options.halves_of_tile_passes()
        beside = self.beside.schedules()
        for loop, given in zip(loops_of(module), self.chosen or beside or ()):
            if given is not None:
                given.write(loop)
        with collected_choices() as choices:
            self.run(choosing, module)
        if choosing and beside is None:
            chosen = loop_schedules(module)
            self.choice.refine(module, choices)
            if loop_schedules(module) != chosen:
                self.foreseen.forget()
        self.model_choices = [choices.get(loop) for loop in loops_of(module)]
        self.run(placing, module)
        return module

    def expect(self, loop: LoopOp, steps: int) -> None:
        """Note that a run of some steps of a time loop will ask for its kernels."""
        self.foreseen.coming[loop] = steps

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
        found = self.beside.facts() or self.kept_facts
        if found is not None:
            return found
        self.check_tiled()
        known = kernel_facts(self.tiled)
        facts = [[known[name] for name in loop.kernel_names] for loop in loops_of(self.tiled)]
        if self.cache is not None:
            self.cache.write(key_of(self.key, "launch facts"), encode_facts(facts))
        return facts

    @cached_property
    def kept_facts(self) -> list[list[PlannedKernel]] | None:
        """The facts in the cache, if any."""
        if self.cache is None:
            return None
        kept = self.cache.decoded(key_of(self.key, "launch facts"), decode_facts)
        return kept if kept is not None and len(kept) == len(self.loops) else None

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
        """The kernels for common halos: verified loops with one attribute more; by one thread."""
        source = self.source.clone()
        run_passes((CommonHalosPass(everywhere=True),), source, verify=False)
        return self.same_but(source)

    @cached_property
    def loops(self) -> list[LoopOp]:
        """The time loops of the source module, in order."""
        return loops_of(self.source)

    def compares_halos(self, loop: LoopOp, steps: int) -> bool:
        """Whether a run of a number of steps compares halos, and may take the common kernels."""
        asked = self.options.halos == "compared" and loop.common_halos is None
        return asked and steps > 1 and self.options.depth != 1

    def common_loop(self, loop: LoopOp) -> LoopOp:
        """The loop among the kernels for common halos, for a time loop of the source module."""
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
        return self.same_but(source)

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
        if not self.beside.may_begin(loop):
            deepest = max((kernel.steps for kernel in self.facts_of(loop)), default=1)
            most = most_steps_at_once(loop)
            if most is not None and deepest < most:
                return self, loop
        return self.uncounted, self.uncounted.loops[self.loops.index(loop)]

    def facts_of(self, loop: LoopOp) -> list[PlannedKernel]:
        """The kernels of a time loop of the source module, the final one last."""
        return self.facts[self.loops.index(loop)]

    def has(self, name: str) -> bool:
        """Whether some loop has a kernel of a name."""
        return name in self.planned

    @cached_property
    def planned(self) -> dict[str, PlannedKernel]:
        """The kernels of all loops, by name."""
        return {fact.name: fact for facts in self.facts for fact in facts}

    def kernel_module(self, name: str) -> ModuleOp:
        """A module with the named kernel at tile level, and its cell functions."""
        return kernel_module(self.tiled, name, self.options.target)

    def threads(self, name: str) -> gpu.ModuleOp:
        """
        A kernel as per-thread code, from memory or made now; verified. Clone the module before a
        change.
        """
        with self.one_compilation:
            if name not in self.lowered:
                module = self.kernel_module(name)
                with standard_modes():
                    self.run(self.options.thread_passes(), module)
                    self.lowered[name] = lowered_kernel(module)
            return self.lowered[name]

    @in_standard_modes
    def hardware(self, name: str, *, verify: bool = False) -> ModuleOp:
        """
        A kernel at hardware level, in a module of its own: operations of nvvm, pointers of llvm,
        and accesses of simt.
        """
        module = self.kernel_module(name)
        passes = (*self.options.thread_passes(), *self.options.hardware_passes())
        self.run(passes, module, verify=verify)
        return module

    def kernel(self, name: str) -> Kernel:
        """A kernel, from memory, from the cache, or made now."""
        with self.one_compilation:
            if name not in self.made:
                self.made[name] = self.cached(name) or self.make(name)
            return self.made[name]

    @in_standard_modes
    def begin(self, names: Iterable[str]) -> None:
        """
        Begin to make the missing kernels among the named kernels of a run, side by side on the
        cores at hand.
        """
        with self.one_compilation:
            missing = [name for name in dict.fromkeys(names) if name not in self.made]
            for name in missing:
                if name in self.choice.kernels:
                    self.made[name] = self.make(name)
                elif (kept := self.cached(name)) is not None:
                    self.made[name] = kept
            left = [name for name in missing if name not in self.made]
            if len(left) > 1:
                # All need the module with all kernels.
                self.check_tiled()
            self.ahead.begin(left)

    def make_alone(self, name: str) -> MadeKernel:
        """Lower, print and assemble a kernel, with the remarks made on the way."""
        with collected_remarks() as remarks:
            kernel = self.choice.kernels.get(name) or made_kernel(self.tiled, name, self.options)
        return kernel, tuple(map(str, remarks))

    def cached(self, name: str) -> Kernel | None:
        """The kernel from the cache; None if not cached."""
        key = key_of(self.key, name)
        kept = None if self.cache is None else self.cache.decoded(key, decode_kernel)
        return kept if kept is not None and kept.name == name else None

    @in_standard_modes
    @without_collection
    def make(self, name: str) -> Kernel:
        """Lower, print, assemble and cache a kernel."""
        LOGGER.info("compiling @%s", name)
        kernel, remarks = self.ahead.take(name)
        self.remarks.update(dict.fromkeys(remarks))
        if kernel.spill_bytes:
            LOGGER.info("@%s spills %d bytes", name, kernel.spill_bytes)
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
    check_raised(function, remarks)
    check_quotients(module)
    check_host(function, HOST_OPERATIONS)
    return module
