"""Handlers of the host function's loops, sweeps and points, and of memory allocated by the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from timetile.dialects.series import is_series
from timetile.dialects.temporal import LoopOp
from timetile.passes.diagnostics import refuse
from timetile.runtime.executors.runners import LoopRunner
from timetile.runtime.executors.series import series_entries
from timetile.runtime.host.functions import HostHandler, HostValues, check_stride
from timetile.runtime.host.loop_facts import KnownLoops, LoopFacts
from timetile.runtime.host.memory import memory_handlers
from timetile.runtime.host.memory_protocol import Memory
from timetile.runtime.host.points import point_handler
from timetile.runtime.host.run_record import LoopRun, RunRecord
from timetile.runtime.host.sweeps import sweep_handler


def read_and_written(
    loop: LoopOp, buffers: Sequence[Any], outside: Mapping[SSAValue, Any]
) -> list[SSAValue]:
    """The field read by one name and written by another in a sweep of one update, if any."""
    written = [id(buffer) for buffer in buffers]
    both = [field for field, buffer in outside.items() if id(buffer) in written]
    return both if loop.sweep is not None and len(loop.updates) == len(both) == 1 else []


def check_loop(loop: LoopOp, buffers: Sequence[Any], values: HostValues, facts: LoopFacts) -> None:
    """Raise CompileError if a loop cannot run on these buffers."""
    for stride in facts.strides:
        check_stride(loop, values[stride])
    outside = {field: values[field] for field in facts.captures}
    copied = read_and_written(loop, buffers, outside)
    others = [buffer for field, buffer in outside.items() if field not in copied]
    memory = [id(buffer) for buffer in (*buffers, *others)]
    if any(memory.count(id(buffer)) > 1 for buffer in buffers):
        refuse(loop, "two buffers of the loop are one field; give each buffer a field")


def loaded_before(
    loop: LoopOp, buffers: Sequence[Any], outside: dict[SSAValue, Any], memory: Memory
) -> dict[SSAValue, Any]:
    """
    A copy of the field read by one name and written by another in a sweep of one update:
    stencil.load takes all cells before stencil.store writes any. Buffers in turns decide at run
    time whether two names are one field.
    """
    both = read_and_written(loop, buffers, outside)
    if not both:
        return {}
    return {both[0]: memory.copied(loop, both[0], outside[both[0]])}


def loop_handler(
    runner: LoopRunner, steps: int | None, record: RunRecord, loops: KnownLoops, first: int = 0
) -> dict[type[Operation], HostHandler]:
    """
    The host handler for time loops and sweeps. `steps` replaces the trip counts of time loops, and
    the first step is number `first`.
    """

    def run(loop: LoopOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        count, *buffers = operands
        is_sweep = loop.sweep is not None
        facts = loops.of(loop)
        total = int(count) if steps is None or is_sweep or facts.is_inner else steps
        total = max(total, 0)
        outside = {value: values[value] for value in (*facts.captures, *facts.scalars)}
        for series in filter(is_series, facts.scalars):
            begin = first if steps is not None and not facts.is_inner else 0
            outside[series] = series_entries(loop, outside[series], begin, total)
        check_loop(loop, buffers, values, facts)
        if is_sweep:
            outside |= loaded_before(loop, buffers, outside, runner.memory)
        names = runner(loop, total, buffers, outside)
        written = [names[role] for role in facts.latest]
        record.add(LoopRun(total, total * facts.cells, written, is_sweep))
        return names

    return {LoopOp: run}


def handlers_of(
    runner: LoopRunner, steps: int | None, record: RunRecord, loops: KnownLoops, first: int = 0
) -> dict[type[Operation], HostHandler]:
    """Handlers of loops, sweeps, points and memory, for a host function."""
    return {
        **loop_handler(runner, steps, record, loops, first),
        **sweep_handler(runner.memory, record),
        **point_handler(runner.memory),
        **memory_handlers(runner.memory),
    }
