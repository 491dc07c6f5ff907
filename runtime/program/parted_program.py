"""A compiled program on several GPUs of one process: each computes a part of the domain."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from threading import RLock
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from timetile.dialects.decomposition import Decomposition
from timetile.passes.diagnostics import CompileError
from timetile.passes.loops.cut_domain import Domain
from timetile.runtime.device.gpu import device
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.program.compiled_program import CompiledProgram, Executor, HostCall
from timetile.runtime.program.option_checks import check_number
from timetile.runtime.program.pieces import Span
from timetile.runtime.program.placed_parts import PlacedParts, SiteMaker
from timetile.runtime.ranks.cut_program import CutProgram, check_cut_operations
from timetile.runtime.ranks.exchange_choice import ExchangeChoice
from timetile.runtime.ranks.gpu_sites import GpuSite, opened
from timetile.runtime.ranks.part_kernels import PartKernels
from timetile.runtime.ranks.part_layout import kernels_of_layout
from timetile.runtime.ranks.parts_runner import PartsRunner

if TYPE_CHECKING:
    from timetile.runtime.program.pickled import ProgramText


class PartedProgram(CompiledProgram):
    """
    A stencil program running on several GPUs of one process, each with a part of the domain. A call
    takes NumPy arrays as on one GPU, cuts fields into parts, and fills the arrays again; the bits
    are those of a run on one GPU. `seconds` of the result leave out both.
    """

    def __init__(
        self,
        alone: CompiledProgram,
        count: int,
        make_sites: SiteMaker,
        parts: Sequence[int] | Decomposition | None = None,
        exchange_every: int | None = None,
    ):
        super().__init__(
            alone.module, alone.kernels, alone.executor, threads=alone.threads, unused=alone.unused
        )
        if exchange_every is not None:
            check_number("exchange_every", exchange_every, 1)
        domain = Domain.of(self.module)
        if domain is None:
            raise CompileError(
                f"{self.name} has no time loop and no sweep to run on several GPUs; "
                "compile without gpus"
            )
        module, (options, cache) = self.module, (alone.kernels.options, alone.kernels.cache)
        self.parts = kernels_of_layout(
            domain,
            count,
            parts,
            lambda layout: PartKernels(module, layout, options, cache, exchange_every),
        )
        self.decomposition = self.parts.decomposition
        self.cuts = [
            CutProgram(self.module, domain, self.decomposition, rank, self.parts.zone_steps)
            for rank in range(count)
        ]
        check_cut_operations(self.function, self.cuts[0])
        cuts, kernels = self.cuts, self.parts
        self.placed = PlacedParts(
            make_sites, lambda sites, notice: PartsRunner(cuts, kernels, sites, notice)
        )
        self.made_of = (count, make_sites, self.decomposition, exchange_every)
        self.one_run = RLock()
        """Held by a run: runs share scratch fields and streams."""
        given_back = weakref.finalize(self, self.placed.close)
        given_back.atexit = False

    @property
    def exchange_every(self) -> int:
        """The steps between two exchanges, at most."""
        return self.parts.steps

    @property
    def exchange(self) -> ExchangeChoice | None:
        """
        The predicted cost of the chosen exchanges, and of others; None for steps that were asked
        for, or for a schedule without a prediction.
        """
        return self.parts.exchange

    def __repr__(self) -> str:
        arguments = ", ".join(map(str, self.parameters))
        return f"<timetile program {self.name}({arguments}) on {len(self.cuts)} GPUs>"

    def __reduce__(self) -> tuple[Callable[..., PartedProgram], tuple[Any, ...]]:
        """A pickle or a copy has the program, its options and its parts."""
        from timetile.runtime.program.pickled import text_of_program

        return parted_again, (text_of_program(self), *self.made_of)

    def close(self) -> None:
        """Give back the program's resources on the GPUs, after all runs are done."""
        with self.one_run:
            self.placed.close()
        super().close()

    def run_on_device_arrays(self, values: Sequence[Any], span: Span, stream: int) -> HostCall:
        """TypeError: the arrays of a run on several GPUs are NumPy's."""
        raise TypeError(
            "the arguments are on one device, and the program runs on several; pass NumPy arrays, "
            "or compile without gpus"
        )

    def run_on_arrays(
        self, values: Sequence[Any], span: Span, stream: int, progress: Progress | None
    ) -> HostCall:
        """Cut the fields into parts, run, and gather the cells of all parts."""
        with self.one_run:
            return self.placed.run(self, values, span, progress)


def parted_again(
    kept: ProgramText,
    count: int,
    make_sites: SiteMaker,
    parts: Decomposition,
    exchange_every: int | None,
) -> PartedProgram:
    """A new program, equal to the program of a pickle."""
    from timetile.runtime.program.pickled import program_of_text

    return PartedProgram(program_of_text(kept), count, make_sites, parts, exchange_every)


@dataclass(frozen=True)
class GpuSites:
    """Makes the sites of some GPUs, given by their numbers."""

    gpus: tuple[int, ...]

    def __call__(self) -> list[GpuSite]:
        """Streams and memory of the GPUs, opened."""
        return [GpuSite(each) for each in opened(self.gpus)]


def gpu_numbers(gpus: object) -> tuple[int, ...]:
    """
    The numbers of GPUs, one for each part, given as a count or in a list. Raises ValueError for
    other objects.
    """
    if isinstance(gpus, SupportsIndex) and not isinstance(gpus, bool):
        check_number("gpus", gpus, 1)
        return tuple(range(index(gpus)))
    if not isinstance(gpus, list | tuple) or not gpus:
        raise ValueError(f"gpus is a number of GPUs, or a list of their numbers, got {gpus!r}")
    for number in cast(Sequence[object], gpus):
        check_number("gpus", number, 0)
    return tuple(cast(Sequence[int], gpus))


def first_of_gpus(gpus: object, executor: str | None) -> tuple[Executor, int]:
    """
    The executor of several GPUs, and the number of the first. Raises ValueError for another
    executor, or for no GPUs.
    """
    if executor not in (None, "gpu"):
        raise ValueError(
            f"gpus and the executor {executor} do not go together; leave out one of both"
        )
    return "gpu", gpu_numbers(gpus)[0]


def check_one_way(gpus: object) -> None:
    """Raise ValueError for several processes with several GPUs each."""
    if gpus is not None:
        raise ValueError(
            "comm and gpus do not go together: with comm, each process has one part; leave out "
            "one of both"
        )


def compiled_on_gpus(
    gpus: tuple[int, ...],
    alone: CompiledProgram,
    parts: Sequence[int] | Decomposition | None,
    exchange_every: int | None,
) -> PartedProgram:
    """A program compiled for one GPU, made ready for several."""
    for number in gpus:
        device(number)
    return PartedProgram(alone, len(gpus), GpuSites(gpus), parts, exchange_every)
