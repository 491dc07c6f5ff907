"""
The cost model's predictions against its samples, and better values of parameters.

    python benchmarks/fit.py                                 rank correlation, row by row
    python benchmarks/fit.py --refit waiting.barrier ...     the best value of each, one by one
    python benchmarks/fit.py --refit all
    python benchmarks/fit.py --registers                     registers, beside assembled kernels
    python benchmarks/fit.py --rules                         rules that the samples keep
    python benchmarks/fit.py --undecided                     parameters that no sample decides

A row is a program with its domain. A quarter of the rows, by a hash of the name, is held out:
values are fitted to the other rows, and judged by the held-out rows. Nothing is written: a value
goes by hand into the fit's file (`passes/targets/fits`), with evidence. Timed kernels decide
speeds; assembled kernels decide registers, the groups `registers` and `spare`.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from named_parameters import changed, paths, value_of
from ranks import is_held_out, rank_correlation
from register_fit import is_decided
from register_report import print_registers
from register_samples import RegisterSample, read_register_samples
from rich.console import Console
from rich.table import Table
from rows import parse_row, source
from rule_ablation import print_rules
from samples import Sample, read_samples

from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.facts import KernelFacts
from timetile.passes.cost.launch import launch_cost
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.terms import Cost
from timetile.passes.scheduling.trial_kernels import TrialKernels
from timetile.passes.scheduling.worth import worth_of
from timetile.passes.targets.target import NAMES, Target, target_named
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load

FEWEST = 5
"""Least number of samples of a row for a rank correlation."""

FACTORS = tuple(np.geomspace(0.6, 1.6, 21))
"""Factors of a value in the search for a better value."""

CHANGE = 1.15
"""Factors of a value in the search for samples that depend on the value."""

ASSEMBLED = ("registers", "spare")
"""Groups of parameters decided by assembled kernels."""

ASKED = 3
"""Samples of each row in the search."""


@dataclass(frozen=True)
class Prepared:
    """A sample with the kernel's facts, independent of all parameters."""

    sample: Sample
    facts: KernelFacts
    setting: Setting
    geometry: Geometry

    def cost(self, target: Target) -> Cost:
        """The predicted cost of a launch."""
        schedule = self.sample.whole_schedule
        cost = launch_cost(self.facts, self.setting, self.geometry, target, schedule.ahead)
        if schedule.period == 2:
            turns = target.parameters.worth.turns
            return replace(cost, compute_seconds=cost.compute_seconds / turns)
        return cost

    def speed(self, target: Target) -> float:
        """The predicted speed (GCells/s)."""
        return self.cost(target).gcells_per_second

    @property
    def measured(self) -> float:
        """The measured speed (GCells/s)."""
        return self.sample.gcells_per_s

    def worth(self, target: Target) -> float:
        """The measure by which the model compares candidates."""
        factors, sample = target.parameters.worth, self.sample
        return worth_of(sample.whole_schedule, sample.depth, self.cost(target), factors)


def prepared(row: str, samples: Sequence[Sample]) -> Iterator[Prepared]:
    """The samples of a row; samples with kernels no longer made by the compiler are left out."""
    name, element, domain, *_ = parse_row(row)
    module = raise_program(load(source(name, domain, element)[0]), Options(halos="common"))
    (loop,) = loops_of(module)
    kernels = TrialKernels(loop, module)
    for sample in samples:
        schedule = sample.whole_schedule
        facts = kernels.facts(sample.depth, schedule)
        if facts is None or facts.steps != sample.depth:
            continue
        setting = Setting.of(schedule)
        try:
            geometry = Geometry(facts.kernel, facts.outline, setting.layout)
        except ValueError:
            continue
        yield Prepared(sample, facts, setting, geometry)


def rows_of(target: Target) -> dict[str, list[Prepared]]:
    """The samples of a target's fit, by row."""
    by_row: dict[str, list[Sample]] = defaultdict(list)
    for name in target.fit.samples:
        for sample in read_samples(name):
            by_row[sample.program].append(sample)
    return {row: list(prepared(row, samples)) for row, samples in sorted(by_row.items())}


def with_value(target: Target, path: str, value: float) -> Target:
    """A target with another number for a name of the fit; whole numbers stay whole."""
    made = changed(target.parameters, path, value)
    return replace(target, fit=replace(target.fit, parameters=made))


# How good predictions are.


def deviation(rows: Mapping[str, list[Prepared]], target: Target) -> float:
    """The root mean square of log(predicted / measured speed), with equal weights of rows."""
    squares: list[float] = []
    for samples in rows.values():
        pairs = [(p.speed(target), p.sample.gcells_per_s) for p in samples]
        if pairs:
            squares.append(float(np.mean([math.log(a / b) ** 2 for a, b in pairs])))
    return math.sqrt(float(np.mean(squares)))


def split(rows: Mapping[str, list[Prepared]]) -> tuple[dict[str, list[Prepared]], ...]:
    """The rows for fitting, and the rows for judging."""
    fitted = {row: samples for row, samples in rows.items() if not is_held_out(row)}
    held = {row: samples for row, samples in rows.items() if is_held_out(row)}
    return fitted, held


# Printed tables.


def report(rows: Mapping[str, list[Prepared]], target: Target, console: Console) -> None:
    """The rank correlation of every row with enough samples, and the deviations."""
    table = Table("row", "samples", "rank correlation", "held out")
    found: dict[bool, list[float]] = {True: [], False: []}
    for row, samples in rows.items():
        measured = [p.sample.gcells_per_s for p in samples]
        if len(set(measured)) < FEWEST:
            continue
        correlation = rank_correlation([p.speed(target) for p in samples], measured)
        held = is_held_out(row)
        found[held].append(correlation)
        table.add_row(row, str(len(samples)), f"{correlation:.2f}", "yes" if held else "")
    console.print(table)
    for held, name in ((True, "held out"), (False, "fitted to")):
        console.print(
            f"{name}: mean rank correlation {np.mean(found[held]):.2f} of {len(found[held])} rows"
        )
    for name, part in zip(("fitted to", "held out"), split(rows)):
        console.print(f"{name}: speed off by {deviation(part, target):.1%}")


def refit(
    rows: Mapping[str, list[Prepared]], target: Target, names: Sequence[str], console: Console
) -> None:
    """The value of each parameter with the least deviation on the fitted rows."""
    fitted, held = split(rows)
    table = Table("parameter", "value", "best", "fitted to", "with best", "held out", "with best")
    for path in names:
        now = value_of(target.parameters, path)
        tried = {factor: with_value(target, path, factor * now) for factor in FACTORS}
        losses = {factor: deviation(fitted, made) for factor, made in tried.items()}
        best = min(losses, key=lambda factor: losses[factor])
        table.add_row(
            path,
            f"{now:g}",
            f"{value_of(tried[best].parameters, path):.4g}",
            f"{deviation(fitted, target):.2%}",
            f"{losses[best]:.2%}",
            f"{deviation(held, target):.2%}",
            f"{deviation(held, tried[best]):.2%}",
        )
    console.print(table)


def undecided(
    rows: Mapping[str, list[Prepared]], assembled: Sequence[RegisterSample], target: Target
) -> Iterator[str]:
    """
    The parameters without influence on any prediction: neither on the worth of timed kernels,
    `ASKED` samples of each row, nor on the registers of assembled kernels.
    """
    asked = [p for samples in rows.values() for p in samples[:: max(1, len(samples) // ASKED)]]
    said = [p.worth(target) for p in asked]
    for path in paths(target.parameters):
        if group_of(path) in ASSEMBLED and is_decided(assembled, target.parameters, path):
            continue
        now = value_of(target.parameters, path)
        tried = [
            with_value(target, path, now * CHANGE + (1 if isinstance(now, int) else 0)),
            with_value(target, path, now / CHANGE - (1 if isinstance(now, int) else 0)),
        ]
        if not any(p.worth(made) != before for made in tried for p, before in zip(asked, said)):
            yield path


def group_of(path: str) -> str:
    """The group of a parameter."""
    return path.split(".")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=NAMES, default="h200")
    parser.add_argument("--refit", nargs="+", metavar="GROUP.NAME", help="or all")
    parser.add_argument("--registers", action="store_true")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--undecided", action="store_true")
    options = parser.parse_args()
    target, console = target_named(options.target), Console(width=140)
    known = tuple(p for p in paths(target.parameters) if group_of(p) not in ASSEMBLED)
    names = known if options.refit == ["all"] else options.refit or ()
    if wrong := [name for name in names if name not in known]:
        parser.error(f"--refit has no parameter {wrong[0]}; there are {', '.join(known)}")
    if not target.fit.samples:
        parser.error(f"no kernel was measured for {options.target}, so that nothing can be fitted")
    assembled = [s for name in target.fit.assembled for s in read_register_samples(name)]
    if options.registers:
        print_registers(assembled, target.parameters, target.isa, console)
        return
    rows = rows_of(target)
    if options.undecided:
        for path in undecided(rows, assembled, target):
            console.print(path)
        return
    if options.rules:
        print_rules(rows, target, FEWEST, console)
        return
    if names:
        refit(rows, target, names, console)
        return
    report(rows, target, console)


if __name__ == "__main__":
    main()
