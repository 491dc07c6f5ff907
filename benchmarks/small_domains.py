"""Real programs at a pinned schedule on small domains, where bits are compared.

A schedule must leave the bits of the unfused program, from random cells and from a quiet start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from coupled_programs import SYSTEMS
from kept import kept, with_cache
from real_steps import PROGRAMS, first_cells
from rows import read_schedule
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import timetile
from timetile.dialects.temporal import LoopOp
from timetile.frontend.field_types import DType
from timetile.frontend.model import Model
from timetile.lowering.pipelines import tile_passes
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.loops import store_layers
from timetile.passes.loops.temporal_fusion import write_depths
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.runtime.cache.keys import digest
from timetile.runtime.cache.store import Cache
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

DTYPES: dict[str, DType] = {"f32": "float32", "f64": "float64"}

SMALL = {2: (67, 1133), 3: (19, 37, 141)}
"""Odd domains for comparing bits, by the number of axes."""

SMALL_WITH_LAYERS = (61, 63, 141)
"""The odd domain of steps with absorbing layers at both ends of each axis."""

CHECKED_STEPS = 9
"""Steps of a comparison of bits."""

Cached = Cache | Literal[False]
"""A cache of kernels, or none."""


@dataclass(frozen=True)
class PinnedSchedule(ModulePass):
    """
    Gives a time loop a schedule and a depth, and its inside a schedule, if one is given; the model
    chooses for sweeps.
    """

    name = "pinned-schedule"

    schedule: str
    """The attribute's text."""
    depth: int
    inside: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            if loop.sweep is not None:
                continue
            loop.schedule = read_schedule(self.schedule)
            loop.inside = read_schedule(self.inside) if self.inside else None
            write_depths(loop, [self.depth])
        ChooseSchedulePass().apply(ctx, op)


def passes_at(pinned: PinnedSchedule) -> tuple[ModulePass, ...]:
    """The passes of a program's tiles, with a schedule in place of the choice."""
    return tuple(pinned if isinstance(each, ChooseSchedulePass) else each for each in tile_passes())


def model_of(program: str) -> Model:
    """The step of a program."""
    return SYSTEMS[program].step if program in SYSTEMS else PROGRAMS[program]


def domain_of(program: str, element: str) -> tuple[int, ...]:
    """The domain of a program."""
    if program in SYSTEMS:
        return SYSTEMS[program].domains[element]
    return (8192, 8192) if PROGRAMS[program].step.rank == 2 else (512, 512, 512)


def name_of(parameter: str | None) -> str:
    """The field of a buffer: `u` of `u_next` and of `u_prev`."""
    return (parameter or "").removesuffix("_next").removesuffix("_prev")


@dataclass(frozen=True)
class SmallProgram:
    """A program at a schedule on a small domain."""

    program: str
    element: str
    pinned: PinnedSchedule
    order: FpReassoc = "flags"
    domain: tuple[int, ...] = ()
    """A domain in place of the odd one."""
    steps: int = CHECKED_STEPS
    starts: tuple[str, ...] = ("random", "quiet")
    arch: str | None = None
    """The kernels' target; unless given, the GPU's own, or the default target without a GPU."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The domain."""
        if self.domain:
            return self.domain
        has_layers = self.program in SYSTEMS and SYSTEMS[self.program].without
        return SMALL_WITH_LAYERS if has_layers else SMALL[model_of(self.program).step.rank]

    def compiled(
        self, executor: Executor, shape: tuple[int, ...], cache: Cached
    ) -> CompiledProgram:
        """The program for an executor; the executor of NumPy runs the unfused program."""
        # Layers are stored alone on small domains, too.
        store_layers.LEAST_CELLS = 1
        made = timetile.compile(
            model_of(self.program).module(shape, DTYPES[self.element]),
            executor=executor,
            arch=None if executor == "numpy" else self.arch,
            halos="common",
            passes=None if executor == "numpy" else passes_at(self.pinned),
            cache=cache,
            fp_reassoc=self.order,
        )
        return with_cache(made, cache) if cache and executor != "numpy" else made

    def assembled(
        self, cache: Cached = False, executor: Executor = "gpu"
    ) -> tuple[CompiledProgram, tuple[int, ...]]:
        """
        The program with its kernels, and the domain. Rows of odd length are staged in
        shared memory: where a schedule has no room, rows are longer by the cells to the next
        vector.
        """
        shape = self.shape
        try:
            return with_kernels(self.compiled(executor, shape, cache)), shape
        except timetile.CompileError:
            shape = (*shape[:-1], -(-shape[-1] // 4) * 4)
            return with_kernels(self.compiled(executor, shape, cache)), shape

    def prepare(self, cache: Cache) -> None:
        """Keep the kernels and the unfused program's bits in a cache, without a GPU."""
        _, shape = self.assembled(cache, "planes")
        self.unfused(shape, cache)

    def has_equal_bits(self, cache: Cached = False) -> bool:
        """
        Whether the schedule leaves the unfused program's bits, from all starts. `cache`: of the
        kernels, and of the bits.
        """
        made, shape = self.assembled(cache)
        return self.ends(made) == self.unfused(shape, cache)

    def unfused(self, shape: tuple[int, ...], cache: Cached) -> list[str]:
        """What the unfused program leaves from each start; kept in a cache."""
        made = self.compiled("numpy", shape, cache)
        if not cache:
            return self.ends(made)
        about = (made.kernels.source, self.order, self.steps, self.starts)
        return kept(cache, lambda: self.ends(made), *about)

    def ends(self, made: CompiledProgram) -> list[str]:
        """Digests of all arrays after the steps of a comparison, from each start."""
        return [digest(self.end(made, start)) for start in self.starts]

    def end(self, made: CompiledProgram, start: str) -> bytes:
        """The bytes of all arrays after the steps of a comparison."""
        arrays = [
            first_cells(name_of(p.name), p.shape, DTYPES[self.element], quiet=start == "quiet")
            for p in made.parameters[:-1]
        ]
        made(*arrays, steps=self.steps)
        return b"".join(array.tobytes() for array in arrays)


def with_kernels(program: CompiledProgram) -> CompiledProgram:
    """A program whose kernels are assembled."""
    for facts in program.kernels.facts:
        for each in facts:
            program.kernels.kernel(each.name)
    return program
