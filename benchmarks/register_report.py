"""
The tables of `benchmarks/fit.py --registers`: see `register_fit.py` for the judged statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
from families import family_of
from named_parameters import changed, value_of
from ranks import THIRD, is_held_out, rank_correlation
from register_fit import (
    Confusion,
    descended,
    deviation,
    influences,
    inside_fits,
    is_considered,
    is_decided,
    joining_registers,
    kernel_fits,
    names_of,
    needed,
    off,
    turn_registers,
)
from register_samples import NEVER, RegisterSample
from rich.console import Console
from rich.table import Table

from timetile.passes.targets.isa import Isa
from timetile.passes.targets.parameters import Parameters

NEAR = (8, 16, 32)
"""Errors of predictions in registers, in the table of shares."""

OFF = "registers off by"
"""The search for less deviation."""

Samples = Sequence[RegisterSample]

Judge = Callable[[Samples, Parameters, Isa], Confusion]

JUDGES: dict[str, Judge] = {
    "code inside fits": inside_fits,
    "kernel fits": kernel_fits,
    "considered": is_considered,
}
"""A kind of prediction, with a name in the table."""


def parts_of(samples: Samples) -> dict[str, Samples]:
    """The samples for fitting values, and the samples for judging the values."""
    return {
        "fitted to": [sample for sample in samples if not is_held_out(sample.program, THIRD)],
        "held out": [sample for sample in samples if is_held_out(sample.program, THIRD)],
    }


def print_agreement(samples: Samples, parameters: Parameters, isa: Isa, console: Console) -> None:
    """Errors of predictions, their order, and whether kernels fit as predicted."""
    table = Table("", "kernels", *(f"within {n}" for n in NEAR), "mean", "too few", "correlation")
    for name, part in parts_of(samples).items():
        found = [off(sample, parameters, isa) for sample in part]
        known = [sample for sample in part if sample.needed != NEVER]
        correlation = rank_correlation(
            [needed(sample, parameters) for sample in known], [sample.needed for sample in known]
        )
        table.add_row(
            name,
            str(len(part)),
            *(f"{np.mean([abs(each) <= near for each in found]):.0%}" for near in NEAR),
            f"{np.mean(np.abs(found)):.1f}",
            f"{np.mean([each < 0 for each in found]):.0%}",
            f"{correlation:.2f}",
        )
    console.print(table)
    table = Table("", "statement", "fits", "spills", "fits, not predicted", "spills", "right")
    for name, part in parts_of(samples).items():
        for statement, judge in JUDGES.items():
            found = judge(part, parameters, isa)
            counts = found.fits, found.spills, found.missed, found.surprises
            table.add_row(name, statement, *map(str, counts), f"{found.right:.0%}")
    console.print(table)


def print_families(samples: Samples, parameters: Parameters, isa: Isa, console: Console) -> None:
    """The order of predictions and their largest error, by families of programs."""
    table = Table("family", "kernels", "correlation", "mean error", "largest", "considered right")
    families: dict[str, list[RegisterSample]] = {}
    for sample in samples:
        families.setdefault(family_of(sample.program), []).append(sample)
    for name, part in families.items():
        known = [sample for sample in part if sample.needed != NEVER]
        found = [off(sample, parameters, isa) for sample in part]
        orders = [[needed(s, parameters) for s in known], [s.needed for s in known]]
        several = all(len(set(order)) > 1 for order in orders)
        table.add_row(
            name, str(len(part)), f"{rank_correlation(*orders):.2f}" if several else "",
            f"{np.mean(np.abs(found)):.1f}", f"{max(found, key=abs)}",
            f"{is_considered(part, parameters, isa).right:.0%}",
        )  # fmt: skip
    console.print(table)


Measure = Callable[[Parameters], float]


@dataclass(frozen=True)
class Search:
    """A search for better values of some parameters."""

    what: str
    names: Sequence[str]
    fitted: Measure
    """Of the samples for fitting: the deviation minimised by the search."""
    held: Measure
    """Of the samples held out."""

    def best(self, parameters: Parameters) -> Parameters:
        """The parameters at the end of the search."""
        return descended(self.fitted, parameters, self.names)


def searches(samples: Samples, parameters: Parameters, isa: Isa) -> Iterator[Search]:
    """
    The search for less deviation of registers, and the searches for more kernels that fit as
    predicted.
    """
    parts = parts_of(samples).values()

    def named(group: str) -> list[str]:
        known = names_of(parameters, group)
        return [name for name in known if influences(samples, parameters, name)]

    def wrong(judge: Judge, part: Samples, made: Parameters) -> float:
        return 1 - judge(part, made, isa).right

    fitted, held = (partial(deviation_of, part, isa) for part in parts)
    yield Search(OFF, named("registers"), fitted, held)
    for name, judge in JUDGES.items():
        if judge is not inside_fits:
            fitted, held = (partial(wrong, judge, part) for part in parts)
            yield Search(f"wrong: {name}", named("spare"), fitted, held)


def deviation_of(samples: Samples, isa: Isa, parameters: Parameters) -> float:
    """The errors of predictions in registers."""
    return deviation(samples, parameters, isa)


def print_search(search: Search, now: Parameters, best: Parameters, console: Console) -> None:
    """Values beside the best ones, each alone and all together."""
    table = Table("parameter", "value", "best", f"{search.what}, fitted to", "held out")

    def add(name: str, value: str, better: str, made: Parameters) -> None:
        table.add_row(
            name, value, better, *(f"{m(made):.3g}" for m in (search.fitted, search.held))
        )

    add("all now", "", "", now)
    for path in search.names:
        value = value_of(best, path)
        if value != value_of(now, path):
            add(path, f"{value_of(now, path):g}", f"{value:.4g}", changed(now, path, value))
    add("all best", "", "", best)
    console.print(table)
    kept = [path for path in search.names if value_of(best, path) == value_of(now, path)]
    console.print(f"unchanged: {', '.join(kept) or 'none'}")


def print_pairs(samples: Samples, parameters: Parameters, console: Console) -> None:
    """The results of pairs of samples for joined columns, and for second turns."""
    known = parameters.registers
    table = Table("registers of", "pairs", "median", "least", "most", "predicted")
    joined = joining_registers(samples)
    rows: list[tuple[str, list[int], str]] = [("going on", joined, str(known.joining))]
    for alone in (False, True):
        found = turn_registers(samples, alone=alone)
        more = 0 if alone else known.turns
        predicted = [more + known.turns_level * levels for levels, _ in found]
        name = "second turns, columns alone" if alone else "second turns"
        rows.append((name, [taken for _, taken in found], f"{median(predicted or [0]):g}"))
    for name, taken, predicted in rows:
        if taken:
            table.add_row(
                name, str(len(taken)), f"{median(taken):g}", str(min(taken)), str(max(taken)),
                predicted,
            )  # fmt: skip
    console.print(table)


def print_registers(samples: Samples, parameters: Parameters, isa: Isa, console: Console) -> None:
    """All tables."""
    print_agreement(samples, parameters, isa, console)
    print_families(samples, parameters, isa, console)
    for search in searches(samples, parameters, isa):
        best = search.best(parameters)
        print_search(search, parameters, best, console)
        if search.what == OFF:
            print_agreement(samples, best, isa, console)
    print_pairs(samples, parameters, console)
    groups = [*names_of(parameters, "registers"), *names_of(parameters, "spare")]
    silent = [path for path in groups if not is_decided(samples, parameters, path)]
    console.print(f"decided by no sample: {', '.join(silent) or 'none'}")
