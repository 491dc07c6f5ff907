"""Loops of a plan on parts: turns of equal launches, as graphs where a cycle of turns is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from xdsl.dialects import scf

from timetile.dialects.tile import LaunchOp
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.host.functions import Host, HostValues
from timetile.runtime.ranks.cycles import (
    makes_graphs,
    repeat_in_cycles,
    run_as_graph,
    run_as_graphs,
)
from timetile.runtime.ranks.moved_rims import MovedRims
from timetile.runtime.ranks.parted import PartedField, forget_readers
from timetile.runtime.ranks.sites import Site


class Launching(Protocol):
    """A runner of launches on parts."""

    host: Host
    rims: MovedRims
    sites: Sequence[Site]
    seconds: list[Site]
    progress: Progress | None
    done: int
    total: int


class LoopTurns:
    """The turns of a loop of a plan."""

    def __init__(
        self,
        runner: Launching,
        op: scf.ForOp,
        launches: Sequence[LaunchOp],
        values: HostValues,
    ):
        self.runner, self.op, self.values = runner, op, values
        given = (values[operand] for launch in launches for operand in launch.operands)
        # A number of the host's may be an array without axes, which has no hash.
        fields = (each for each in given if isinstance(each, PartedField))
        self.fields = list(dict.fromkeys(fields))
        self.pieces: list[int] = []
        """The number of launches in pieces, before each turn."""

    def turn(self) -> None:
        """Make a turn."""
        self.pieces.append(self.runner.rims.pieces)
        self.runner.host.run_block(self.op.body.block, self.values)

    def state(self) -> tuple[int, ...]:
        """All that a turn depends on."""
        return (self.runner.rims.have_met, *(field.age for field in self.fields))

    def can_count(self, count: int) -> bool:
        """Whether parts can meet by counts in the next `count` turns, as in the last ones."""
        before = self.pieces[max(0, len(self.pieces) - count)]
        return self.runner.rims.can_count and self.runner.rims.pieces == before

    def repeat(self, count: int, times: int) -> None:
        """
        Make `count` turns `times` times, as a graph. Where parts can meet by counts, each part has
        a graph of its own.
        """
        runner, rims = self.runner, self.runner.rims
        done = runner.done

        def work() -> None:
            # All streams have met.
            forget_readers(self.fields)
            for _ in range(count):
                self.turn()
            forget_readers(self.fields)

        if self.can_count(count):
            rims.by_counts = True
            try:
                run_as_graphs(runner.sites, runner.seconds, work, times)
            finally:
                rims.by_counts = False
        else:
            run_as_graph([*runner.sites, *runner.seconds], work, times)
        runner.done += (times - 1) * (runner.done - done)
        if runner.progress is not None:
            runner.progress(runner.done, runner.total)


def run_turns(
    runner: Launching, op: scf.ForOp, operands: Sequence[Any], values: HostValues, *, records: bool
) -> None:
    """Make the launches of a loop of a plan; with `records`, as graphs where a cycle is found."""
    body, turns = list(op.body.block.ops), len(range(*map(int, operands)))
    launches = [each for each in body if isinstance(each, LaunchOp)]
    is_plain = len(launches) + 1 == len(body)
    if not records or not is_plain or not makes_graphs(len(launches) * turns):
        runner.host.run_for(op, operands, values)
        return
    made = LoopTurns(runner, op, launches, values)
    repeat_in_cycles(turns, len(launches), made.turn, made.state, made.repeat)
