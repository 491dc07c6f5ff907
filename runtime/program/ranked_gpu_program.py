"""A compiled program on several ranks with a GPU each."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from timetile.dialects.decomposition import Decomposition
from timetile.passes.loops.cut_domain import Domain
from timetile.passes.targets.links import FAR_PROCESSES, NEAR_PROCESSES
from timetile.runtime.device.gpu import device
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.machine.driver import checked, gpu_is_available
from timetile.runtime.program.compiled_program import CompiledProgram, Executor, HostCall
from timetile.runtime.program.pieces import Span
from timetile.runtime.program.placed_parts import PlacedParts
from timetile.runtime.program.ranked_program import (
    RankedProgram,
    compiled_on_ranks,
    text_of_first,
)
from timetile.runtime.ranks.cut_program import CutProgram
from timetile.runtime.ranks.exchange import Exchange
from timetile.runtime.ranks.gpu_sites import GpuSite
from timetile.runtime.ranks.mpi import peers_of
from timetile.runtime.ranks.part_kernels import PartKernels
from timetile.runtime.ranks.part_layout import kernels_of_layout
from timetile.runtime.ranks.peers import Peers, digest_of, waiting_limit
from timetile.runtime.ranks.rank_sites import RankSiteRunner
from timetile.runtime.ranks.sites import Site


class RankedGpuProgram(RankedProgram):
    """
    A stencil program running on several ranks, each with a part of the domain on a GPU; see
    `RankedProgram`. `RankSiteRunner` tells how ghosts travel. `make_site` makes the place of the
    rank's part: the rank's GPU, unless given.
    """

    executors = ("gpu",)

    def __init__(
        self,
        alone: CompiledProgram,
        peers: Peers,
        parts: Sequence[int] | Decomposition | None = None,
        exchange_every: int | None = None,
        make_site: Callable[[], Site] | None = None,
    ):
        super().__init__(alone, peers, parts, exchange_every)
        self.gpu = gpu = alone.gpu
        site = make_site or (lambda: GpuSite(device(gpu)))
        cut, kernels, exchange = self.cut, self.parts, Exchange(peers)
        self.placed = PlacedParts(
            lambda: [site()],
            lambda sites, notice: RankSiteRunner(cut, kernels, sites[0], exchange, notice),
        )
        given_back = weakref.finalize(self, self.placed.close)
        given_back.atexit = False

    def cut_for(
        self,
        domain: Domain,
        parts: Sequence[int] | Decomposition | None,
        exchange_every: int | None,
    ) -> CutProgram:
        """The loops of the rank, for launches of a GPU."""
        is_one_host = len(self.peers.ranks_beside) == self.peers.count
        link = NEAR_PROCESSES if is_one_host else FAR_PROCESSES
        module, (options, cache) = self.module, (self.kernels.options, self.kernels.cache)
        own = (self.peers.rank,)
        self.parts = kernels_of_layout(
            domain,
            self.peers.count,
            parts,
            lambda layout: PartKernels(module, layout, options, cache, exchange_every, own, link),
        )
        self.decomposition = self.parts.decomposition
        self.exchange_every = self.parts.steps
        steps = self.parts.zone_steps
        return CutProgram(self.module, domain, self.decomposition, self.peers.rank, steps)

    @property
    def digest(self) -> str:
        """Words that are equal on all ranks: also the schedules of the launches."""
        schedules = digest_of(str(self.parts.schedules), str(self.parts.zone_steps))
        return f"{super().digest} schedules={schedules}"

    def run_on_arrays(
        self, values: Sequence[Any], span: Span, stream: int, progress: Progress | None
    ) -> HostCall:
        """Run on the cells of the rank, and gather the cells of all ranks."""
        self.agree(values, span)
        return self.placed.run(self, values, span, progress)

    def close(self) -> None:
        """Give back the rank's resources on the GPU."""
        self.placed.close()
        super().close()


def compiled_for_ranks(
    comm: object,
    alone: Callable[..., CompiledProgram],
    target_of: Callable[[int], str],
    executor: Executor | None,
    parts: Sequence[int] | Decomposition | None,
    exchange_every: int | None,
    threads: int | None,
) -> RankedProgram:
    """
    A program on the ranks of a communicator, `alone` compiled by each: on a GPU for each rank where
    a driver answers, unless another executor is asked for. Ranks of a host take its GPUs in turn,
    and all compile for the GPU of rank 0: `target_of` names the target of a GPU by number.
    """
    if executor is None:
        executor = "gpu" if gpu_is_available() else "cpu"
    peers = peers_of(comm, waiting_limit())
    if executor != "gpu":
        return compiled_on_ranks(
            peers, lambda: alone(executor=executor), RankedProgram, parts, exchange_every, threads
        )
    gpu = peers.ranks_beside.index(peers.rank) % int(checked(device(0).cuda.cuDeviceGetCount()))
    arch = text_of_first(peers, lambda: target_of(gpu))
    return compiled_on_ranks(
        peers, lambda: alone(executor="gpu", gpu=gpu, arch=arch), RankedGpuProgram, parts,
        exchange_every, threads,
    )  # fmt: skip
