"""
The cost model's rules, judged by samples: every rule is taken away, and the model is judged without
the rule. `benchmarks/fit.py --rules` prints the table.

A rule is taken away by neutral values of its parameters. The judges are samples with a worth
changed by the rule, in rows with enough samples: how worth and measured speed correlate by rank,
and which share of the best measured speed the schedule of most worth reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from named_parameters import changed, value_of
from ranks import is_held_out, rank_correlation
from rich.console import Console
from rich.table import Table

from timetile.passes.targets.parameters import Parameters
from timetile.passes.targets.target import Target

RULES: Mapping[str, Mapping[str, float | str]] = {
    "spills weighed at the rim (rim_counts_spills)": {"rim.wide": "rim.guards.1"},
    "wide sums": {"worth.wide_sums": 1.0},
    "two turns": {"worth.turns": 1.0},
    "worth of a level": {"worth.level": 1.0},
    "tiles of the device": {"worth.resident_device": 1.0},
    "rim of sums, FP32": {"rim.word_sums": "rim.guards.1"},
    "rim of sums, 3D": {"rim.sums": "rim.guards.2"},
    "halos of other buffers": {"rim.halos.1": "rim.guards.1", "rim.halos.2": "rim.guards.2"},
    "one cell of a row": {"computing.one_cell_speed": 1.0},
    "three warps a scheduler": {"computing.many_warps_speed": 1.0},
    "several blocks": {"computing.several_blocks": 1.0},
    "chains of quotients": {"computing.dividing_power": 0.0},
    "guards of sums": {"computing.sum_guard_instructions": "computing.guard_instructions"},
    "spilled registers": {"computing.spill_instructions": 0},
    "long steps": {"waiting.long_step_instruction": 0.0},
    "nothing fetched ahead": {"waiting.exposed_latency": 0.0},
    "short rows": {"moving.short_row": 1.0},
    "one plane ahead": {"moving.one_ahead": 1.0},
    "rows dealt to lanes": {"moving.dealt": 1.0},
    "wide lanes in 1D": {"moving.two_vectors": 1.0},
    "fields in L2": {"moving.l2": 1.0},
    "tiles beside each other in L2": {
        "moving.found_beside": "moving.found_in_l2",
        "moving.found_together": "moving.found_in_l2",
    },
}
"""Rules, with neutral values of their parameters: numbers, or names of parameters."""

CHANGED = 1e-6
"""The least relative change of worth that counts as a change."""


LEAST = 0.003
"""The least difference, of shares or of correlations, for a verdict."""


class Measured(Protocol):
    """A measured kernel."""

    def worth(self, target: Target) -> float:
        """The measure by which the model compares candidates."""
        ...

    @property
    def measured(self) -> float:
        """The measured speed (GCells/s)."""
        ...


def without(target: Target, rule: str) -> Target:
    """A target without a rule."""
    made: Parameters = target.parameters
    for path, value in RULES[rule].items():
        number = value_of(target.parameters, value) if isinstance(value, str) else value
        made = changed(made, path, number)
    return replace(target, fit=replace(target.fit, parameters=made))


@dataclass(frozen=True)
class Judged:
    """A row, with the unchanged model and without a rule."""

    row: str
    correlation: tuple[float, float]
    """Rank correlation, with the rule and without."""
    share: tuple[float, float]
    """
    Speed of the schedule of most worth, as a share of the best speed, with the rule and without.
    """


def judged(
    rows: Mapping[str, Sequence[Measured]], target: Target, rule: str, fewest: int
) -> Iterator[Judged]:
    """The rows with at least `fewest` samples with a worth changed by the rule."""
    other = without(target, rule)
    for row, samples in rows.items():
        measured = [sample.measured for sample in samples]
        if len(set(measured)) < fewest:
            continue
        worths = [[sample.worth(made) for sample in samples] for made in (target, other)]
        if np.allclose(*worths, rtol=CHANGED, atol=0):
            continue
        now, then = worths
        yield Judged(
            row,
            (rank_correlation(now, measured), rank_correlation(then, measured)),
            (share_of_best(now, measured), share_of_best(then, measured)),
        )


def share_of_best(worths: Sequence[float], measured: Sequence[float]) -> float:
    """Which share of the best measured speed the schedule of most worth reaches."""
    return measured[int(np.argmax(worths))] / max(measured)


def verdict(found: Sequence[Judged]) -> str:
    """Whether rows keep a rule: by the chosen schedules' speed, and if equal by the order."""
    if not found:
        return "no sample"
    for measure in ("share", "correlation"):
        gains = [getattr(each, measure)[0] - getattr(each, measure)[1] for each in found]
        mean = float(np.mean(gains))
        if abs(mean) >= LEAST:
            return "kept" if mean > 0 else "not kept"
    return "no difference"


def print_rules(
    rows: Mapping[str, Sequence[Measured]], target: Target, fewest: int, console: Console
) -> None:
    """Every rule, judged by the rows changed by the rule."""
    table = Table("rule", "rows", "share of best", "without", "correlation", "without", "verdict")
    for rule in RULES:
        found = list(judged(rows, target, rule, fewest))
        held = [each for each in found if is_held_out(each.row)]
        cells = [""] * 4
        if found:
            pairs = [(*each.share, *each.correlation) for each in found]
            cells = [f"{each:.3f}" for each in np.mean(pairs, axis=0)]
        table.add_row(rule, f"{len(found)} ({len(held)} held out)", *cells, verdict(found))
    console.print(table)
