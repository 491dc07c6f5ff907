"""Launches and reductions noted once, and made again on other memory."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from timetile.runtime.device.actions import Prepared
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.cells import DeviceBuffer, NotedNumbers
from timetile.runtime.program.noted import NotedLaunches, NotedReductions

A, B, C, D = (DeviceBuffer(pointer, 8) for pointer in (100, 200, 300, 400))


@dataclass
class WorkHere:
    """A program, its runner, the runner's memory and device: all launches are listed."""

    scratch: int = 0
    runs: int = 0
    steps: int = 4
    stream: int = 0
    given: list[Any] = field(default_factory=list[Any])
    launches: list[Prepared] = field(default_factory=list[Prepared])

    @property
    def device(self) -> WorkHere:
        return self

    fields = device

    def launch(self, kernel: Any, arguments: LaunchArguments, stream: int) -> None:
        self.given.append([each.value for each in arguments.packed])

    def reduce(self, function: Any, made: Any, pointers: Sequence[int], stream: int) -> None:
        self.given.append(list(pointers))

    @contextmanager
    def noting(self) -> Generator[NotedNumbers]:
        self.noted = NotedNumbers()
        yield self.noted

    def run_host(self, runner: object, values: Sequence[Any], span: object) -> None:
        """Launch twice, with the buffers, a number as large as a pointer, and scratch memory."""
        buffers = [each.pointer for each in values if isinstance(each, DeviceBuffer)]
        self.runs += 1
        pointers = [*buffers, *[self.scratch] * bool(self.scratch)]
        types = [*[ctypes.c_void_p] * len(pointers), ctypes.c_int64]
        kernel: Any = None
        one = Prepared((), kernel, LaunchArguments([*pointers, 100], types))
        self.launches = [one, one]
        for each in self.launches:
            self.launch(kernel, each.arguments, 0)
        if hasattr(self, "noted"):
            self.noted.numbers.append((500, np.dtype("float64")))
            made: Any = None
            self.noted.rounds.append((None, made, [*pointers, 500]))


@pytest.mark.parametrize("scratch", [0, 700])
def test_launches_move_to_other_memory(scratch: int):
    """Only buffers change places, and other scalars or unclear pointers take a run."""
    here: Any = WorkHere(scratch)
    more = [scratch] * bool(scratch)
    noted = NotedLaunches(here, here)
    for buffers, scalars in (([A, B], [0.5]), ([C, A], [0.5]), ([C, D], [-0.5]), ([B, C], [-0.5])):
        here.given.clear()
        noted.give(buffers, scalars)
        assert here.given == [[*(each.pointer for each in buffers), *more, 100]] * 2
    assert here.runs == (4 if scratch else 2)
    # One buffer given twice does not tell the places of two.
    noted = NotedLaunches(here, here)
    for buffers in ([A, A], [A, B]):
        here.given.clear()
        noted.give(buffers, [])
        assert here.given[0][:2] == [each.pointer for each in buffers]


@pytest.mark.parametrize(("scratch", "runs"), [(0, 1), (700, 2)])
def test_reductions_move_to_other_memory(scratch: int, runs: int):
    """A reduction of cells that other kernels have written takes a run."""
    here: Any = WorkHere(scratch)
    noted = NotedReductions(here, here)
    found = [noted.give(buffers, []) for buffers in ([A, B], [C, A])]
    assert found[0] == found[1] == [(500, np.dtype("float64"))]
    assert here.runs == runs
    assert scratch or here.given[-1] == [300, 100, 500]
