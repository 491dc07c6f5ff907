"""Programs on several ranks, which are threads of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import timetile
from support.thread_ranks import ThreadPeers, on_threads
from timetile.dialects.decomposition import Decomposition
from timetile.frontend.model import Model
from timetile.runtime.program.compiled_program import Executor
from timetile.runtime.program.ranked_program import RankedProgram, on_ranks


@dataclass(frozen=True)
class Ranks:
    """How many ranks run a program, and how the domain is cut; chosen where None."""

    count: int
    parts: Sequence[int] | Decomposition | None = None
    every: int | None = None
    executor: Executor = "numpy"

    def compiled(self, text: str, peers: ThreadPeers) -> RankedProgram:
        """A program compiled by a rank."""
        alone = partial(
            timetile.compile,
            text,
            executor=self.executor,
            fp_contract="off",
            cache=False,
            threads=1 if self.executor == "cpu" else None,
        )
        return on_ranks(peers, alone, self.parts, self.every)

    def run(self, text: str, arguments: Sequence[Any]) -> tuple[list[list[Any]], RankedProgram]:
        """
        The arguments after a run, on each rank, and the program of rank 0. Each rank has arrays of
        its own.
        """

        def work(peers: ThreadPeers) -> tuple[list[Any], RankedProgram]:
            program = self.compiled(text, peers)
            own = copies(arguments)
            program(*own)
            return own, program

        found = on_threads(self.count, work)
        return [own for own, _ in found], found[0][1]


def copies(arguments: Sequence[Any]) -> list[Any]:
    """The arguments of a call, with arrays of their own."""
    return [np.copy(value) if np.ndim(value) else value for value in arguments]


def refused(count: int, run: Callable[[ThreadPeers], object]) -> dict[int, BaseException]:
    """The errors of a function on several ranks, by rank."""
    errors: dict[int, BaseException] = {}

    def work(peers: ThreadPeers) -> None:
        try:
            run(peers)
        except Exception as error:
            errors[peers.rank] = error

    on_threads(count, work)
    return errors


def model_case(model: Model, shape: tuple[int, int], steps: int) -> tuple[str, list[Any]]:
    """The program of a model of FP64 fields, and arguments."""
    text = str(model.module(shape))
    random = np.random.default_rng(1)
    program = timetile.compile(text, executor="numpy", cache=False)
    arguments: list[Any] = []
    for parameter in program.parameters:
        if parameter.bounds is not None:
            arguments.append(random.uniform(0.5, 1.5, parameter.shape))
        else:
            arguments.append(steps if parameter.is_steps else 0.1)
    return text, arguments
