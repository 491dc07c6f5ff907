"""A turn of the loop over stream steps: the taps of a step, and the unrolling."""

from __future__ import annotations

from math import lcm

from timetile.passes.analysis.queues.storage import fitting_period
from timetile.passes.cost.facts import KernelFacts
from timetile.passes.cost.setting import Setting


def taps_of_thread(facts: KernelFacts, setting: Setting) -> int:
    """Taps made by a thread in one stream step."""
    return setting.thread_cells * facts.cell_taps


def period_of(facts: KernelFacts, setting: Setting) -> int:
    """Stream steps of a turn of the loop."""
    if setting.period is not None:
        return setting.period
    return fitting_period(facts.natural_period, taps_of_thread(facts, setting))


def loop_period(facts: KernelFacts, setting: Setting) -> int:
    """
    Stream steps of a turn of the code: a tile of several warps exchanges planes in two slots by
    turns, and its turns are even.
    """
    period = period_of(facts, setting)
    exchanges = any(not exchange.copies for exchange in facts.exchanges)
    return lcm(period, 2) if exchanges else period
