"""A compiled program on several ranks: each runs a part, and the caller's arrays get all cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from threading import Lock
from typing import Any, NoReturn

import numpy as np

import timetile
from timetile.dialects.decomposition import Decomposition
from timetile.passes.diagnostics import CompileError, muted_remarks
from timetile.passes.loops.cut_domain import Domain
from timetile.passes.raising.point_runs import drop_point_runs
from timetile.runtime.cache.keys import sources_key
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.executors.runners import LoopRunner, NumpyRunner
from timetile.runtime.host.arrays import is_numpy_array
from timetile.runtime.native.program import NativeProgram, NativeRunner
from timetile.runtime.program.compiled_program import CompiledProgram, HostCall
from timetile.runtime.program.option_checks import check_number
from timetile.runtime.program.pieces import Span
from timetile.runtime.program.results import RunResult
from timetile.runtime.ranks.cut_program import CutProgram, check_cut_operations
from timetile.runtime.ranks.exchange import CutField, Exchange
from timetile.runtime.ranks.layout import layout
from timetile.runtime.ranks.peers import Peers, RankError, digest_of, words_of_all
from timetile.runtime.ranks.point_tables import merge_between_ranks
from timetile.runtime.ranks.runner import PartRunner

RANK_EXECUTORS = ("cpu", "numpy")
"""The executors of parts."""

ONE_COMPILATION = Lock()
"""Ranks may be threads of a process, and programs are loaded by a single thread at a time."""

OK, PROBLEM = "same ", "problem "
"""How the word of a rank begins: with a digest, or with the reason why the rank cannot run."""

ALL = "all"
"""The name under which the digest of all digests is sent."""


def words_of_able(peers: Peers, text: str) -> list[str]:
    """
    The texts of all ranks, in order. Raises RankError on every rank if a rank objects in place of a
    text.
    """
    words = words_of_all(peers, OK + text)
    for rank, word in enumerate(words):
        if word.startswith(PROBLEM):
            cause = word.removeprefix(PROBLEM)
            raise RankError(f"nothing has run, as rank {rank} of {peers.count} cannot: {cause}")
    return [word.removeprefix(OK) for word in words]


def text_of_first(peers: Peers, own: Callable[[], str]) -> str:
    """
    The text of rank 0, once all ranks have made their own. Raises RankError on every rank if a rank
    cannot.
    """
    try:
        text = own()
    except BaseException as error:
        object_to(peers, error)
        raise
    return words_of_able(peers, text)[0]


def check_agreement(peers: Peers, digest: str) -> None:
    """
    Wait for all ranks. Raises RankError on every rank unless all have the same digest: a rank
    cannot run, or differs.
    """
    # A long digest loses the end on the way: the digest of the digest comes first.
    words = words_of_able(peers, f"{ALL}={digest_of(digest)} {digest}")
    own = words[0].split()
    for rank, word in enumerate(words):
        parts = dict(zip(own, word.split()))
        different = [mine.partition("=")[0] for mine, other in parts.items() if mine != other]
        if different:
            # Steps are an argument, and the length of the run.
            names = dict.fromkeys(name for name in different if name != ALL) or ["the arguments"]
            raise RankError(
                f"nothing has run, as ranks 0 and {rank} of {peers.count} differ in "
                f"{', '.join(names)}; give every rank the same"
            )


def object_to(peers: Peers, error: BaseException) -> None:
    """Tell all ranks about to agree why a rank cannot run."""
    words_of_all(peers, PROBLEM + " ".join(f"{error}".split()))


def number_digest(value: Any) -> str:
    """A digest of an array or a number."""
    array = np.ascontiguousarray(value)
    return digest_of(str((array.dtype, array.shape)), array.tobytes())


class RankedProgram(CompiledProgram):
    """
    A stencil program running on several ranks, each a process with the same program and the same
    arrays. A call is made by all ranks together: every rank computes the cells of its part and
    exchanges ghosts with the others. Then the arrays of every rank have all cells, with the bits of
    a run on one process.

    A call raises RankError on all ranks if a rank cannot run, or has other arguments: nothing has
    run then. If a rank fails during a run, all ranks raise, and all processes end with an exit
    status other than 0. Arrays are of NumPy; the executors are `cpu` and `numpy`.
    """

    executors: tuple[str, ...] = RANK_EXECUTORS

    def __init__(
        self,
        alone: CompiledProgram,
        peers: Peers,
        parts: Sequence[int] | Decomposition | None = None,
        exchange_every: int | None = None,
    ):
        if alone.executor not in self.executors:
            raise ValueError(
                f"the executor {alone.executor} runs on one process; with comm run on the "
                f"executor gpu, {' or '.join(RANK_EXECUTORS)}"
            )
        drop_point_runs(alone.module)
        super().__init__(
            alone.module, alone.kernels, alone.executor, threads=alone.threads, unused=alone.unused
        )
        if exchange_every is not None:
            check_number("exchange_every", exchange_every, 1)
        self.peers = peers
        domain = Domain.of(self.module)
        if domain is None:
            raise CompileError(
                f"{self.name} has no time loop and no sweep to run on several ranks; "
                "compile without comm"
            )
        self.cut = self.cut_for(domain, parts, exchange_every)
        check_cut_operations(self.function, self.cut)
        self.has_agreed, self.was_told = False, False

    def cut_for(
        self,
        domain: Domain,
        parts: Sequence[int] | Decomposition | None,
        exchange_every: int | None,
    ) -> CutProgram:
        """The loops of the rank, with the decomposition and the steps between two exchanges."""
        count, rank = self.peers.count, self.peers.rank
        self.decomposition, self.exchange_every = layout(domain, count, parts, exchange_every)
        return CutProgram(self.module, domain, self.decomposition, rank, self.exchange_every)

    def __reduce__(self) -> NoReturn:
        """TypeError: the ranks of a program belong to their processes."""
        raise TypeError(
            f"{self.name} runs on ranks, and is neither pickled nor copied; compile the program "
            "with comm in each process"
        )

    @property
    def digest(self) -> str:
        """Words that are equal on all ranks of a program."""
        options = self.kernels.options
        arithmetic = options.fp_contract, options.fp_division, options.fp_reassoc
        return (
            f"version={timetile.__version__}-{sources_key()} program={digest_of(str(self.module))} "
            f"options={digest_of(str(arithmetic))} "
            f"executor={self.executor} parts={repr(self.decomposition.faces).replace(' ', '')} "
            f"exchange_every={self.exchange_every}"
        )

    @property
    def part(self) -> tuple[slice, ...]:
        """The cells of the domain computed by the rank, in the program's coordinates."""
        box = self.decomposition.part(self.peers.rank)
        return tuple(slice(low, high) for low, high in zip(box.lower, box.upper))

    @cached_property
    def native(self) -> NativeProgram:
        """The machine code of the rank's loops."""
        return NativeProgram(self.cut.module, self.kernels.cache)

    def __call__(self, *arguments: Any, **options: Any) -> RunResult:
        """Run on arguments together with all ranks; see `CompiledProgram`."""
        self.has_agreed = False
        try:
            return super().__call__(*arguments, **options)
        except RankError:
            raise
        except BaseException as error:
            self.was_told = True
            if self.has_agreed:
                self.peers.tell(f"{type(error).__name__}: {error}")
            else:
                object_to(self.peers, error)
            raise

    def agree(self, values: Sequence[Any], span: Span) -> None:
        """Raise RankError unless all ranks run the same program on the same arguments."""
        words = [f"steps={span.steps},{span.first}"]
        for parameter, value in zip(self.parameters, values):
            if value is not None:
                name = parameter.name or f"argument{parameter.position}"
                words.append(f"{name}={number_digest(value)}")
        self.has_agreed = True
        check_agreement(self.peers, " ".join(words))

    def run_on_arrays(
        self, values: Sequence[Any], span: Span, stream: int, progress: Progress | None
    ) -> HostCall:
        """Run on the cells of the rank, and gather the cells of all ranks."""
        self.agree(values, span)
        fields = [self.field_of(position, value) for position, value in enumerate(values)]
        held = [value if f is None else f.cut(value) for f, value in zip(fields, values)]
        exchange = Exchange(self.peers)
        runner = PartRunner(self.cut, self.inner_runner(), exchange, progress)
        for field, array in zip(fields, held):
            if field is not None:
                runner.own.hold(field, array)
        call = self.run_host(runner, held, span)
        changed = [
            (field, held[position], values[position])
            for position, field in enumerate(fields)
            if field is not None and id(held[position]) in runner.own.changed
        ]
        exchange.gather(changed)
        merge_between_ranks(exchange, self.decomposition, self.cut.tables, values)
        return call

    def field_of(self, position: int, value: Any) -> CutField | None:
        """The cut field of an argument; None for numbers and for fields of fewer axes."""
        if not is_numpy_array(value) or not self.parameters[position].is_field:
            return None
        return self.cut.field(self.function.body.block.args[position])

    def inner_runner(self) -> LoopRunner:
        """The executor of the rank's loops."""
        if self.executor == "numpy":
            return NumpyRunner()
        return NativeRunner(self.native, self.threads)


RankedMaker = Callable[
    [CompiledProgram, Peers, Sequence[int] | Decomposition | None, int | None], RankedProgram
]
"""Makes a program of ranks: from the program of one process, parts and steps between exchanges."""


def on_ranks(
    peers: Peers,
    alone: Callable[[], CompiledProgram],
    parts: Sequence[int] | Decomposition | None = None,
    exchange_every: int | None = None,
    make: RankedMaker | None = None,
) -> RankedProgram:
    """
    A program compiled by every rank alone, made ready to run on all ranks. Raises RankError on
    every rank if a rank cannot compile the program, or compiles another.
    """
    try:
        with ONE_COMPILATION:
            made = (make or RankedProgram)(alone(), peers, parts, exchange_every)
    except BaseException as error:
        object_to(peers, error)
        raise
    check_agreement(peers, made.digest)
    return made


def compiled_on_ranks(
    peers: Peers,
    alone: Callable[[], CompiledProgram],
    make: RankedMaker,
    parts: Sequence[int] | Decomposition | None,
    exchange_every: int | None,
    threads: int | None,
) -> RankedProgram:
    """
    A program on the ranks of a communicator of mpi4py; see `on_ranks`. Unless `threads` are asked
    for, the ranks of a machine share its cores. Rank 0 alone tells remarks on the program.
    """
    with muted_remarks() if peers.rank else nullcontext():
        made = on_ranks(peers, alone, parts, exchange_every, make)
    if threads is None:
        made.threads = max(1, made.threads // len(peers.ranks_beside))
    return made


def check_alone(parts: object, exchange_every: object) -> None:
    """Raise ValueError for options of ranks without ranks."""
    for name, value in (("parts", parts), ("exchange_every", exchange_every)):
        if value is not None:
            raise ValueError(
                f"{name} has no effect on one process and one GPU; give comm=MPI.COMM_WORLD or "
                "gpus=2, too"
            )
