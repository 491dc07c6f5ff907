"""A turn of the loop over stream steps: the taps of a step, and the unrolling."""

from __future__ import annotations

from timetile.passes.analysis.queues.storage import fitting_period
from timetile.passes.cost.facts import KernelFacts
from timetile.passes.cost.setting import Setting


def queue_taps_of_step(facts: KernelFacts, setting: Setting) -> int:
    """
    Taps of queues made by a thread in one stream step. Fields read at use have no queue, and are
    left out; `taps_of_step` of the analysis counts the fields, too.
    """
    return setting.thread_cells * sum(len(stage.taps) for stage in facts.stages)


def period_of(facts: KernelFacts, setting: Setting) -> int:
    """Stream steps of a turn of the loop."""
    return fitting_period(facts.natural_period, queue_taps_of_step(facts, setting))
