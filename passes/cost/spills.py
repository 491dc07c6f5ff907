"""The cost of registers kept in local memory, by the assembler's count in the steady loop.

The model of registers (`registers.py`) decides about considered schedules. An assembled kernel has
a known number of words moved between registers and local memory in a stream step. A few words stay
in the first-level cache, and the transfer hides behind arithmetic; each of many words takes all of
its time.
"""

from __future__ import annotations

from dataclasses import replace

from timetile.passes.cost.terms import Cost
from timetile.passes.targets.target import Target


def spilled_cost(cost: Cost, words: float, warps: int, target: Target) -> Cost:
    """
    The cost of a launch with `warps` warps on a multiprocessor, and with `words` 32-bit words of a
    thread moved between registers and local memory in a stream step.
    """
    computing = target.parameters.computing
    cycles = computing.spill_cycles * words * min(1.0, words / computing.spill_words)
    seconds = warps * cycles / (target.part.clock_ghz * 1e9)
    return replace(cost, compute_seconds=cost.compute_seconds + seconds)
