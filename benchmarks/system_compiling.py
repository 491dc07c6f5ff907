"""The programs of the table of systems, each compiled once, by processes that touch no GPU."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ceilings import ceiling_of
from rows import described
from system_rows import SystemCase
from xdsl.passes import ModulePass

import timetile
from timetile.dialects.tile import KernelOp
from timetile.passes.targets.facts import name_without_facts
from timetile.passes.targets.target import target_named
from timetile.runtime.cache.keys import key_of, sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.options import Options
from timetile.runtime.machine.forks import VARIABLE
from timetile.runtime.program.compile import kernels_for, lists_and_layers
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.option_checks import passes_of
from timetile.runtime.program.targets import ChosenTarget, target_without_gpu


@dataclass(frozen=True)
class Job:
    """
    A program to compile: of a case with the pipeline by name, or with the default passes. Several
    cases share the default.
    """

    case: SystemCase
    named: bool

    @property
    def key(self) -> tuple[object, ...]:
        """What the kernels depend on."""
        case = self.case
        own = case.pipeline if self.named else case.default_depth
        rules = case.fp_division, case.fp_reassoc
        return (self.named, case.program, case.dtype, case.domain, *rules, own)

    @property
    def passes(self) -> str | None:
        """The pipeline by name, or None for the default passes."""
        return self.case.pipeline if self.named else None

    @property
    def depth(self) -> int | None:
        """The depth asked for, of the default passes."""
        return None if self.named else self.case.default_depth


@dataclass(frozen=True)
class Made:
    """What is known of a compiled program: of its deepest kernel, or what went wrong."""

    depth: int = 0
    registers: int = 0
    spilled_bytes: int = 0
    shared_bytes: int = 0
    schedule: str = ""
    ceiling: float = 0.0
    """GCells/s of a busiest resource that never waits (`ceilings.py`)."""
    ceiling_by: str = ""
    seconds: float = 0.0
    """Seconds of compiling."""
    error: str = ""


def jobs_of(case: SystemCase) -> tuple[Job, Job]:
    """The pipeline by name, and the default."""
    return Job(case, True), Job(case, False)


def part_of(name: str) -> ChosenTarget:
    """The target as a program for a GPU of the part has it: facts behind a name are kept."""
    if name_without_facts(name) != name:
        return ChosenTarget(target_named(name).isa.name, name)
    return target_without_gpu(name)


def options_for(arch: str, passes: tuple[ModulePass, ...] | None = None) -> Options:
    """The options of a GPU's program for a target by name, and for fields with equal halos."""
    target = part_of(arch)
    points, layers = lists_and_layers("gpu", None, passes)
    return Options(
        arch=target.arch, passes=passes, halos="common", part=target.part, points=points,
        layers=layers,
    )  # fmt: skip


def options_of(job: Job, arch: str) -> Options:
    """The options of a compilation for a target by name, as of `program_of`."""
    passes, case = None if job.passes is None else passes_of(job.passes), job.case
    rules = {"fp_division": case.fp_division, "fp_reassoc": case.fp_reassoc}
    return replace(options_for(arch, passes), depth=job.depth, **rules)


def compile_alone() -> None:
    """Compile in this process alone: the programs of a table are enough work for all cores."""
    os.environ[VARIABLE] = "1"


def make(job: Job, arch: str, folder: Path) -> Made:
    """What is known of a compiled program, found once for the sources of the compiler."""
    name = key_of(sources_key(), arch, repr(job.key))
    kept = folder / "made" / f"{name}.json"
    if kept.is_file():
        return Made(**json.loads(kept.read_text()))
    made = made_anew(job, arch, folder)
    if not made.error:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(made)))
    return made


def made_anew(job: Job, arch: str, folder: Path) -> Made:
    """
    Compile the kernels of a program into the cache: a run of any number of steps ends with kernels
    of fewer steps, too.
    """
    began = time.perf_counter()
    try:
        kernels = kernels_for(
            job.case.text(job.case.domain), options_of(job, arch), Cache(folder), None
        )
        deepest = max(kernels.facts[0], key=lambda fact: fact.steps)
        for fact in kernels.facts[0]:
            kernels.kernel(fact.name)
        kernel = kernels.kernel(deepest.name)
        module = kernels.tiled
        schedule = loops_of(module)[0].schedule
        placed = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
        ceiling = ceiling_of(placed[deepest.name], module, target_named(arch))
        return Made(
            deepest.steps,
            kernel.registers,
            kernel.spill_bytes,
            kernel.shared_bytes,
            "" if schedule is None else str(schedule.data),
            ceiling.gcells_per_s,
            str(ceiling.resource),
            round(time.perf_counter() - began, 2),
        )
    except Exception as error:
        return Made(seconds=round(time.perf_counter() - began, 2), error=described(error))


def program_of(job: Job, arch: str, folder: Path) -> CompiledProgram:
    """The program of a job through the public interface, with kernels from the cache."""
    return timetile.compile(
        job.case.text(job.case.domain),
        executor="gpu",
        arch=arch,
        depth=job.depth,
        passes=job.passes,
        fp_division=job.case.fp_division,
        fp_reassoc=job.case.fp_reassoc,
        halos="common",
        cache=Cache(folder),
    )


class Compilations:
    """The programs of cases, compiled in a pool of processes, the longest texts first."""

    def __init__(
        self, pool: ProcessPoolExecutor, cases: Sequence[SystemCase], arch: str, folder: Path
    ):
        self.cases = cases
        distinct = {job.key: job for case in cases for job in jobs_of(case)}
        longest = sorted(distinct.values(), key=lambda job: -len(job.case.text(job.case.domain)))
        self.begun: dict[tuple[object, ...], Future[Made]] = {
            job.key: pool.submit(make, job, arch, folder) for job in longest
        }

    def made(self, job: Job) -> Made:
        """What a job made, once done."""
        return self.begun[job.key].result()

    def is_done(self, case: SystemCase) -> bool:
        """Whether both programs of a case are compiled."""
        return all(self.begun[job.key].done() for job in jobs_of(case))

    def as_done(self) -> Iterator[SystemCase]:
        """The cases as their programs are compiled, the first in order of those ready."""
        left = list(self.cases)
        while left:
            ready = next((case for case in left if self.is_done(case)), None)
            if ready is None:
                wait(
                    [each for each in self.begun.values() if not each.done()],
                    return_when=FIRST_COMPLETED,
                )
            else:
                left.remove(ready)
                yield ready
