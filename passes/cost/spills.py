"""What the assembler's count in the steady loop adds to a cost: spilled words, and instructions.

The model of registers (`registers.py`) decides about considered schedules. An assembled kernel has
a known number of words moved between registers and local memory in a stream step; each takes the
time of a transfer through the first-level cache, and warps that exchange rows wait for each other.
Instructions count where the model has far fewer.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from timetile.passes.cost.shared_memory import cache_beside
from timetile.passes.cost.terms import Cost, StepCycles
from timetile.passes.targets.hardware import (
    CACHED_INSTRUCTIONS,
    LANES,
    SCHEDULERS,
)
from timetile.passes.targets.target import Target

MORE_INSTRUCTIONS = 1.1
"""
How many more instructions than the model counts are believed: weighted sums have 0.9 to 1.07 times
the model's (60 kernels of steps as users write them).
"""


WORD_BYTES = 4


def moved_in_a_turn(words: float, warps: int) -> float:
    """
    Bytes that `warps` warps spill in a turn of the loop, if a thread moves `words` words: each word
    is stored once and loaded once.
    """
    return words / 2 * WORD_BYTES * LANES * warps


def without_counted_spills(cost: Cost) -> Cost:
    """The cost of a launch whose spilled words are known: the count of registers says no more."""
    seconds = cost.compute_seconds / cost.counted_spills
    return replace(cost, compute_seconds=seconds, counted_spills=1.0)


def spilled_cost(
    cost: Cost, words: float, warps: int, target: Target, *, period: int = 1, blocks: int = 1
) -> Cost:
    """
    The cost of a launch that spills: a thread moves `words` 32-bit words between registers and
    local memory in a stream step. A multiprocessor holds `warps` warps in `blocks` blocks, and the
    loop repeats after `period` steps.
    """
    if not words:
        return cost
    computing = target.parameters.computing
    room = cache_beside(cost.shared_bytes, blocks, target)
    near = moved_in_a_turn(words * period, warps) <= room
    cycles = (computing.spill_cycles if near else computing.far_spill_cycles) * words
    seconds = warps * cycles / (target.part.clock_ghz * 1e9) + cost.spilled_seconds
    return replace(
        cost,
        compute_seconds=cost.compute_seconds + seconds,
        # Spilled words and cells share the way to memory.
        memory_seconds=cost.memory_seconds + seconds,
    )


def spilled_parts(cost: Cost, frame: int, threads: int, resident: int, target: Target) -> Cost:
    """
    The cost of a step whose kernels read memory and spill: each of `threads` threads stores and
    loads a part of its frame of `frame` bytes, and `resident` threads share a first-level cache. A
    thread runs one of the two copies of the code, for the rim or inside.
    """
    if not frame:
        return cost
    parameters, clock = target.parameters, target.part.clock_ghz * 1e9
    near = frame * resident <= cache_beside(cost.shared_bytes, 1, target)
    cached = target.multiprocessors * LANES * WORD_BYTES
    rate = cached if near else parameters.reading.l2_bytes_per_cycle
    seconds = threads * frame / (rate * clock)
    return replace(
        cost,
        compute_seconds=cost.compute_seconds + seconds,
        memory_seconds=cost.memory_seconds + seconds,
    )


def fetch_cycles(cycles: StepCycles, warps: int, target: Target) -> float:
    """
    The issue slots lost for an instruction missing in the instruction cache. Other warps of the
    scheduler hide a fetch: three take as many cycles between two instructions of a warp, and two
    take four cycles with FP64 arithmetic. `cycles`: of a stream step; `warps`: of a multiprocessor.
    """
    between = warps / SCHEDULERS * max(1.0, cycles.pipe / cycles.issue)
    lost = sorted(target.parameters.computing.fetch_cycles.items())
    for (fewer, most), (more, least) in pairwise(lost):
        if between < more:
            return most + (least - most) * max(0.0, between - fewer) / (more - fewer)
    return lost[-1][1]


def issue_slots(
    instructions: float, loop: float, cycles: StepCycles, warps: int, target: Target
) -> float:
    """
    Issue slots for a stream step with `instructions` instructions. A steady loop of `loop`
    instructions that overflows the instruction cache loses slots for the part outside. `cycles` and
    `warps` as for `fetch_cycles`.
    """
    missing = max(0.0, 1 - CACHED_INSTRUCTIONS / loop) if loop else 0.0
    return instructions * (1 + fetch_cycles(cycles, warps, target) * missing)


def issued_cost(cost: Cost, instructions: float) -> Cost:
    """
    The cost of a launch whose warps issue `instructions` instructions in a stream step, where these
    are far more than the model counts: guards of many levels, boxes of several updates, or loops
    beyond the instruction cache.
    """
    cycles = cost.cycles
    if instructions <= MORE_INSTRUCTIONS * cycles.issue * SCHEDULERS:
        return cost
    issued = replace(cycles, issue=instructions / SCHEDULERS)
    slower = issued.total / cycles.total
    return replace(cost, cycles=issued, compute_seconds=slower * cost.compute_seconds)
