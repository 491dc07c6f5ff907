"""Time loops as machine code of this processor, on all cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from timetile.dialects.series import is_series, number_type
from timetile.dialects.temporal import LoopOp
from timetile.lowering.cpu.convert_temporal_to_llvm import TEAM
from timetile.lowering.cpu.given import Given, is_read, steps_name
from timetile.passes.analysis.skews import extent_of
from timetile.passes.loops.join_updates import JoinUpdatesPass
from timetile.passes.loops.split_edges import SplitEdgesPass
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.machine.core_cache import core_cache_bytes
from timetile.runtime.machine.llvm import Code
from timetile.runtime.machine.teams import Team
from timetile.runtime.native.blocking import MOST_DEPTH, Blocking, BlockingRule
from timetile.runtime.native.widened import WidenedLoop

CELLS_PER_THREAD = 1 << 16
"""Least cells of an update for a thread: smaller updates use fewer threads."""

CELLS_PER_CALL = 1 << 26
"""Cells updated by a thread between two reports to Python: some tenths of a second."""


def prepared(module: ModuleOp) -> ModuleOp:
    """
    The module, or a copy whose updates read inside their fields, with updates that compute much in
    common as one.
    """
    updates = [list(loop.updates) for loop in loops_of(module)]
    if all(len(each) < 2 and all(u.beyond is None for u in each) for each in updates):
        return module
    copy = module.clone()
    SplitEdgesPass(everywhere=True).apply(Context(), copy)
    JoinUpdatesPass().apply(Context(), copy)
    return copy


def entry(outside: Mapping[SSAValue, Any], series: SSAValue, step: int) -> Any:
    """What a step takes of a series: the rest of the numbers, or one number."""
    return outside[series][step:] if is_read(series) else outside[series][step]


def rotated(names: Sequence[Any], rotation: Sequence[int], steps: int) -> list[Any]:
    """The buffers named by a loop's arguments after some steps."""
    places, period = list(rotation), 1
    while places != list(range(len(rotation))):
        places, period = [rotation[place] for place in places], period + 1
    names = list(names)
    for _ in range(steps % period):
        names = [names[source] for source in rotation]
    return names


def updated_cells(loop: LoopOp) -> list[int]:
    """The cells of each update of a step."""
    return [
        prod(max(high - low, 0) for low, high in zip(update.box.lb, update.box.ub))
        for update in loop.updates
    ]


@dataclass(frozen=True)
class LoopTask:
    """Some steps of a time loop on NumPy arrays, updated in place."""

    steps: int
    buffers: Sequence[Any]
    outside: Mapping[SSAValue, Any]
    """Arrays and numbers from outside the loop, by value."""

    threads: int
    progress: Progress | None = None

    def report(self, done: int) -> None:
        """Report the number of steps done."""
        if self.progress is not None:
            self.progress(done, self.steps)


class LoopCode:
    """
    The machine code of one time loop. Updates of `split` read inside fields; `widened` is the code
    on fields continued beyond periodic ends.
    """

    def __init__(
        self,
        loop: LoopOp,
        split: LoopOp,
        number: int,
        code: Code,
        widened: WidenedCode | None = None,
    ):
        self.given, self.widened = Given.of(loop), widened
        self.steps = code.function(steps_name(number), [*self.given.kinds, *TEAM])
        self.rotation = split.rotation
        cells = updated_cells(split)
        self.cells = max(sum(cells), 1)
        self.rule = BlockingRule(split, core_cache_bytes() // 2)
        extents = [extent_of(update.box, 0) for update in split.updates]
        self.most_threads = max(
            (min(n // CELLS_PER_THREAD, high - low) for n, (low, high) in zip(cells, extents)),
            default=1,
        )
        self.blockings: dict[tuple[int, int], Blocking] = {}

    def threads_of(self, threads: int) -> int:
        """The threads of so many that have work."""
        return max(1, min(threads, self.most_threads))

    def blocking(self, steps: int, threads: int) -> Blocking:
        """How some threads pass over the fields; it is chosen once."""
        key = min(steps, MOST_DEPTH), threads
        if key not in self.blockings:
            self.blockings[key] = self.rule.choice(*key)
        return self.blockings[key]

    def run(self, asked: LoopTask) -> list[Any]:
        """Run in place, and return the buffers named by the loop's results."""
        if any(is_series(scalar) and not is_read(scalar) for scalar in self.given.scalars):
            return self.run_by_steps(asked)
        if self.widened is not None and self.widened.pays(asked.steps, asked.threads):
            return self.widened.run(asked, self.given)
        return self.run_together(asked)

    def run_by_steps(self, asked: LoopTask) -> list[Any]:
        """Run step by step, with the numbers of series at each."""
        names = list(asked.buffers)
        changing = [scalar for scalar in self.given.scalars if is_series(scalar)]
        for step in range(asked.steps):
            entries = {series: entry(asked.outside, series, step) for series in changing}
            known = {**asked.outside, **entries}
            names = self.run_together(LoopTask(1, names, known, asked.threads))
            asked.report(step + 1)
        return names

    def run_together(self, asked: LoopTask) -> list[Any]:
        """Run steps together; the code reads numbers of series."""
        names = list(asked.buffers)
        scalars = [asked.outside[scalar] for scalar in self.given.scalars]
        series = {
            number: np.ascontiguousarray(asked.outside[scalar], dtype_of(number_type(scalar)))
            for number, scalar in enumerate(self.given.scalars)
            if is_read(scalar)
        }
        captures = [asked.outside[field] for field in self.given.captures]
        size = self.threads_of(asked.threads)
        blocking = self.blocking(asked.steps, size)
        depth = blocking.depth
        most = max(1, size * CELLS_PER_CALL // (self.cells * depth)) * depth
        done = 0
        with Team(size) as team:
            while done < asked.steps:
                count = min(most, asked.steps - done)
                pointers = [array.ctypes.data for array in (*names, *captures)]
                sizes = (blocking.together, blocking.rows, blocking.columns)
                numbers = [
                    series[number][done:].ctypes.data
                    if number in series
                    else np.asarray(scalar).item()
                    for number, scalar in enumerate(scalars)
                ]
                given = (*pointers, *numbers, count, depth, *sizes)
                team.run(
                    [
                        partial(self.steps, *given, thread, size, team.barrier.address)
                        for thread in range(size)
                    ]
                )
                names = rotated(names, self.rotation, count)
                done += count
                asked.report(done)
        return names


@dataclass(frozen=True)
class WidenedCode:
    """The machine code of a loop on widened fields, in place of the loop on the given values."""

    made: WidenedLoop
    code: LoopCode

    def pays(self, steps: int, threads: int) -> bool:
        """Whether passes of several steps are worth the copies of the fields."""
        size = self.code.threads_of(threads)
        return steps >= 2 * self.made.most and self.code.blocking(self.made.most, size).depth > 1

    def run(self, asked: LoopTask, given: Given) -> list[Any]:
        """
        Run on widened copies of the fields, and copy the cells back. `given`: the values of the
        loop on the fields themselves.
        """
        made, own = self.made, self.code
        wide = made.wide_arrays(given.buffers, asked.buffers)
        captures = made.wide_arrays(
            given.captures, [asked.outside[field] for field in given.captures]
        )
        scalars = [asked.outside[scalar] for scalar in given.scalars]
        known = dict(zip(own.given.values[len(wide) :], (*captures, *scalars), strict=True))
        names, done = list(wide), 0
        while done < asked.steps:
            count = min(made.most, asked.steps - done)
            series = {value: known[value][done:] for value in own.given.scalars if is_read(value)}
            names = own.run_together(LoopTask(count, names, {**known, **series}, asked.threads))
            done += count
            if done < asked.steps:
                for number in made.refreshed:
                    made.refresh(names[number])
            asked.report(done)
        for array, copy in zip(asked.buffers, wide):
            array.reshape(copy[made.inside(copy.ndim)].shape)[...] = copy[made.inside(copy.ndim)]
        return rotated(asked.buffers, own.rotation, asked.steps)
