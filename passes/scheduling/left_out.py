"""Schedules that the model leaves out for registers, where the assembler takes far fewer.

Sums by rows of far boxes enter nine sums on arrival, and the model counts words for all rows that
are read: 213 registers for radius 4 in FP64, where the assembler takes 46. With two cells a thread
the model counts 250, more than a thread has; with one, each weight is loaded for a cell alone, and
the kernel is far slower than predicted. One H200, 512 x 512 x 512 cells: 11.5 GCells/s by other
schedules, 15.7 by two cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from timetile.passes.scheduling.assembled import AssembledCandidate, are_alike
from timetile.passes.scheduling.candidates import Candidate, Trials
from timetile.passes.scheduling.schedule_space import schedules

OVERCOUNTED = 2
"""How many times too many registers the model must count for a schedule that was assembled."""

SLOWER = 1.25
"""How many times slower than predicted the assembled kernel must be: more cells may be faster."""


def is_overcounted(seen: AssembledCandidate) -> bool:
    """Whether an assembled candidate has far fewer registers than counted, and is slow."""
    few = OVERCOUNTED * seen.kernel.registers <= seen.candidate.cost.registers
    return few and SLOWER * seen.worth <= seen.candidate.worth


def left_out(
    trials: Trials, seen: Sequence[AssembledCandidate], known: Sequence[Candidate]
) -> list[Candidate]:
    """
    The candidates like a slow assembled one with far fewer registers than counted, of as many
    steps, that are not `known`: the model left them out. `trials`: with schedules that may spill.
    """
    few = [each.candidate for each in seen if is_overcounted(each)]
    if not few:
        return []
    every = schedules(trials.loop, trials.target, trials.step)
    alike = [each for each in every if any(are_alike(each, one.schedule) for one in few)]
    found = trials.compared(few[0].depth, alike).found
    before = {(each.depth, each.schedule) for each in known}
    return [each for each in found if (each.depth, each.schedule) not in before]
