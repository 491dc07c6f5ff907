"""
Steps of a chunk in which some level has a plane with points.

A list of points knows the runs of planes with entries of the chunk's tile (`point_stacks.py`). A
chunk takes the steps of a run in the loop with guards, and all other steps in the steady loop. A
run is found once a turn of both loops; a chunk without points reads once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.boxes import CellBox
from timetile.dialects.point_lists import GAPS, PointLayout, gap_above
from timetile.dialects.temporal import PointSet
from timetile.lowering.tile_to_gpu.point_numbers import clamped, table_number
from timetile.lowering.tile_to_gpu.point_stacks import joined_run, next_run
from timetile.lowering.tile_to_gpu.scopes import VariantScope, chunk_start, once
from timetile.lowering.tile_to_gpu.thread import chunk_steps, whole_turns
from timetile.passes.analysis.point_stages import stages_with_points

FAR = 1 << 29
"""A plane or a step behind all of a chunk."""


@dataclass(frozen=True)
class StreamedList:
    """
    A list of points along the stream: the lags of the first and the last stage with a use, the
    field's first plane, and the number of the gap between runs.
    """

    made: PointSet
    low_lag: int
    high_lag: int
    first: int
    gap: int

    @property
    def layout(self) -> PointLayout:
        """The places of the list's parts."""
        return self.made.layout

    @property
    def rows(self) -> int:
        """The planes of the field."""
        return self.layout.counts[0]


@dataclass(frozen=True)
class PointRun:
    """
    The next run of planes with points of a list: its planes `begin` to `end`, counted from the
    field's first plane, and its steps, with the first step of the run behind, counted from the
    chunk's first step.
    """

    begin: SSAValue
    end: SSAValue
    first_step: SSAValue
    last_step: SSAValue
    next_step: SSAValue


@once
def streamed_lists(variant: VariantScope) -> tuple[StreamedList, ...]:
    """The lists of a kernel, each once."""
    uses: dict[SSAValue, list[tuple[int, PointSet]]] = {}
    for stage in stages_with_points(variant.code.kernel):
        for made in stage.point_sets:
            uses.setdefault(made.places, []).append((stage.lag, made))
    lists: list[StreamedList] = []
    for found in uses.values():
        lags, made = [lag for lag, _ in found], found[0][1]
        gap = gap_above(max(lags) - min(lags) + variant.code.geometry.period)
        first = CellBox.of(made.bounds).lower[0]
        lists.append(StreamedList(made, min(lags), max(lags), first, gap))
    return tuple(lists)


def row_at(variant: VariantScope, found: StreamedList, step: SSAValue) -> SSAValue:
    """
    The plane of the last stage at a step, as a row of the list; the nearest row outside. No stored
    cell depends on planes ahead of the chunk's first.
    """
    emit, start = variant.emit, chunk_start(variant)
    plane = emit.add_int(emit.add_int(step, start), -found.high_lag)
    plane = emit.add_int(emit.binary(arith.MaxSIOp, plane, start), -found.first)
    return clamped(emit, plane, found.rows)


@once
def runs_in_chunk(variant: VariantScope) -> SSAValue:
    """An upper bound of the runs of all lists in a chunk, 0 without points."""
    emit, steps = variant.emit, steps_of_chunk(variant)
    counts: list[SSAValue] = []
    for found in streamed_lists(variant):
        made, layout = found.made, found.layout
        low = row_at(variant, found, emit.int(0))
        high = row_at(variant, found, emit.add_int(steps, found.high_lag - found.low_lag))
        begin, _ = next_run(variant, made, low)
        entries = table_number(
            emit, variant.code.arguments[made.places], layout.following - 1, emit.int(0)
        )
        gap = min(GAPS[found.gap], found.rows)
        shift = emit.int(int(gap).bit_length() - 1)
        most = emit.binary(arith.ShRUIOp, emit.sub_int(high, low), shift)
        most = emit.binary(arith.MinSIOp, emit.add_int(most, 1), entries)
        count = emit.add(simt.UniformOp(emit.add_int(most, 1))).result
        counts.append(emit.select(emit.compare("slt", begin, high), count, emit.int(0)))
    return reduce(emit.add_int, counts)


def steps_of_chunk(variant: VariantScope) -> SSAValue:
    """The steps of the chunk, in whole turns."""
    thread = variant.code.thread
    return chunk_steps(variant.emit, variant.code.geometry, thread.first, thread.last)


def runs_at(variant: VariantScope, step: SSAValue) -> list[PointRun]:
    """For each list, the run with the first plane at some level in a step or later."""
    emit, lists = variant.emit, streamed_lists(variant)
    is_some = emit.compare("ne", runs_in_chunk(variant), 0)
    is_before = emit.compare("slt", step, steps_of_chunk(variant))
    some, none = Block(), Block()
    variant.emit = inner = emit.into(some)
    values = [value for found in lists for value in read_run(variant, found, step)]
    variant.emit = emit
    inner.add(scf.YieldOp(*values))
    none.add_op(scf.YieldOp(*[emit.int(0), emit.int(0), *[emit.int(FAR)] * 3] * len(lists)))
    is_some = emit.binary(arith.AndIOp, is_some, is_before)
    made = emit.add(scf.IfOp(is_some, [i32] * len(values), [some], [none]))
    parts = len(PointRun.__dataclass_fields__)
    return [
        PointRun(*made.results[parts * number : parts * (number + 1)])
        for number in range(len(lists))
    ]


def read_run(variant: VariantScope, found: StreamedList, step: SSAValue) -> list[SSAValue]:
    """The values of a run of a list, from a step on."""
    emit = variant.emit
    row = row_at(variant, found, step)
    begin, end, after = joined_run(variant, found.made, row, GAPS[found.gap])
    start = emit.sub_int(emit.int(found.first), chunk_start(variant))

    def step_of(plane: SSAValue, lag: int) -> SSAValue:
        there = emit.add_int(emit.add_int(plane, start), lag)
        return emit.select(emit.compare("eq", plane, found.rows), emit.int(FAR), there)

    last = emit.add_int(emit.add_int(end, start), found.high_lag)
    return [begin, end, step_of(begin, found.low_lag), last, step_of(after, found.low_lag)]


def take_planes(variant: VariantScope, runs: Sequence[PointRun]) -> None:
    """Let the loops that follow use, and note, cells in the planes of some runs."""
    emit, thread = variant.emit, variant.code.thread
    for found, run in zip(streamed_lists(variant), runs, strict=True):
        place = found.made.places
        variant.point_planes[place] = run.begin, emit.sub_int(run.end, run.begin)
        low = emit.binary(arith.MaxSIOp, run.begin, emit.add_int(thread.first, -found.first))
        high = emit.binary(arith.MinSIOp, run.end, emit.add_int(thread.last, -found.first))
        count = emit.binary(arith.MaxSIOp, emit.sub_int(high, low), emit.int(0))
        variant.noted_planes[place] = low, count


def end_of_runs(variant: VariantScope, runs: Sequence[PointRun], at: SSAValue) -> SSAValue:
    """
    The end of the steps of the runs in a turn of the loop at a step, in whole turns; the step
    itself without such a run.
    """
    emit, geometry, end = variant.emit, variant.code.geometry, at
    turn = emit.add_int(at, geometry.period)
    for run in runs:
        is_now = emit.compare("slt", run.first_step, turn)
        last = whole_turns(emit, geometry, emit.add_int(run.last_step, geometry.period - 1))
        end = emit.select(is_now, emit.binary(arith.MaxSIOp, end, last), end)
    return end


def earliest_step(variant: VariantScope, steps: Sequence[SSAValue]) -> SSAValue:
    """The first of some steps, in whole turns of the loop."""
    first = reduce(lambda a, b: variant.emit.binary(arith.MinSIOp, a, b), steps)
    return whole_turns(variant.emit, variant.code.geometry, first)


def first_steps(runs: Sequence[PointRun]) -> list[SSAValue]:
    """The first steps of runs."""
    return [run.first_step for run in runs]


def next_steps(runs: Sequence[PointRun]) -> list[SSAValue]:
    """The first steps of the runs that follow."""
    return [run.next_step for run in runs]
