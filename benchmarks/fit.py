"""
The cost model's predictions against its samples, and better values of parameters.

    python benchmarks/fit.py                                 rank correlation, row by row
    python benchmarks/fit.py --refit waiting.barrier ...     the best value of each, one by one
    python benchmarks/fit.py --refit all
    python benchmarks/fit.py --undecided                     parameters that no sample decides

A row is a program with its domain. A quarter of the rows, by a hash of the name, is held out:
values are fitted to the other rows, and judged by the held-out rows. Nothing is written: a value
goes by hand into the fit's file (`passes/targets/fits`), with evidence.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.table import Table
from rows import parse_row, source
from samples import Sample, read_samples

from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.facts import KernelFacts
from timetile.passes.cost.launch import launch_cost
from timetile.passes.cost.register_facts import register_facts
from timetile.passes.cost.registers import registers
from timetile.passes.cost.setting import Setting
from timetile.passes.targets.parameters import Parameters
from timetile.passes.targets.target import NAMES, Target, target_named
from timetile.passes.trial_kernels import TrialKernels
from timetile.runtime.kernels.of_program import Options, loops_of, raise_program
from timetile.runtime.loading.modules import load

HELD_OUT = 64
"""Rows with a first byte of the hash below the number are held out: a quarter."""

FEWEST = 5
"""Least number of samples of a row for a rank correlation."""

FACTORS = tuple(np.geomspace(0.6, 1.6, 21))
"""Factors of a value in the search for a better value."""

CHANGE = 1.15
"""Factors of a value in the search for samples that depend on the value."""

ASKED = 3
"""Samples of each row in the search."""


@dataclass(frozen=True)
class Prepared:
    """A sample with the kernel's facts, independent of all parameters."""

    sample: Sample
    facts: KernelFacts
    setting: Setting
    geometry: Geometry

    def speed(self, target: Target) -> float:
        """The predicted speed (GCells/s)."""
        ahead = self.sample.whole_schedule.ahead
        cost = launch_cost(self.facts, self.setting, self.geometry, target, ahead)
        if self.sample.schedule.get("period") == 2:
            turns = target.parameters.worth.turns
            cost = replace(cost, compute_seconds=cost.compute_seconds / turns)
        return cost.gcells_per_second

    def registers(self, target: Target) -> int:
        """The predicted registers of a thread."""
        return registers(register_facts(self.facts, self.setting), target.parameters.registers)


def is_held_out(row: str) -> bool:
    """The row judges values fitted to other rows."""
    return hashlib.sha256(row.encode()).digest()[0] < HELD_OUT


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
            geometry = Geometry(facts.kernel, facts.needs, setting.layout)
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


# Parameters by their names.


def paths(parameters: Parameters) -> Iterator[str]:
    """The name of every number: `group.name`, or `group.name.key` of a mapping."""
    for group in fields(parameters):
        record = getattr(parameters, group.name)
        for field in fields(record):
            value: object = getattr(record, field.name)
            names = cast(Mapping[str, float], value) if isinstance(value, Mapping) else None
            keys = [""] if names is None else [f".{name}" for name in names]
            yield from (f"{group.name}.{field.name}{key}" for key in keys)


def value_of(parameters: Parameters, path: str) -> float:
    """The number of a name."""
    group, name, *key = path.split(".")
    value = getattr(getattr(parameters, group), name)
    return next(v for k, v in value.items() if str(k) == key[0]) if key else value


def with_value(target: Target, path: str, value: float) -> Target:
    """A target with another number for a name of the fit; whole numbers stay whole."""
    group, name, *key = path.split(".")
    parameters = target.parameters
    record = getattr(parameters, group)
    old = getattr(record, name)
    new: Any = round(value) if isinstance(value_of(parameters, path), int) else value
    if key:
        new = {k: new if str(k) == key[0] else v for k, v in old.items()}
    changed = replace(parameters, **{group: replace(record, **{name: new})})
    return replace(target, fit=replace(target.fit, parameters=changed))


# How good predictions are.


def ranks(values: Sequence[float]) -> np.ndarray[Any, Any]:
    """The rank of each value; equal values share the mean of their ranks."""
    array = np.asarray(values)
    below = (array[:, None] > array[None, :]).sum(axis=1)
    return below + ((array[:, None] == array[None, :]).sum(axis=1) - 1) / 2


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Spearman's rank correlation: 1 for equal orders, -1 for opposite orders."""
    a, b = ranks(predicted), ranks(measured)
    return float(np.corrcoef(a, b)[0, 1])


def deviation(rows: Mapping[str, list[Prepared]], target: Target, what: str) -> float:
    """
    The root of the mean square of log(predicted / measured), with equal weights of rows: of speeds,
    or of the registers of kernels without spills.
    """
    squares: list[float] = []
    for samples in rows.values():
        if what == "registers":
            pairs = [
                (p.registers(target), p.sample.registers)
                for p in samples
                if not p.sample.spill_bytes
            ]
        else:
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
        for what in ("speed", "registers"):
            console.print(f"{name}: {what} off by {deviation(part, target, what):.1%}")


def refit(
    rows: Mapping[str, list[Prepared]], target: Target, names: Sequence[str], console: Console
) -> None:
    """The value of each parameter with the least deviation on the fitted rows."""
    fitted, held = split(rows)
    table = Table("parameter", "value", "best", "fitted to", "with best", "held out", "with best")
    for path in names:
        what = "registers" if path.startswith("registers.") else "speed"
        now = value_of(target.parameters, path)
        tried = {factor: with_value(target, path, factor * now) for factor in FACTORS}
        losses = {factor: deviation(fitted, made, what) for factor, made in tried.items()}
        best = min(losses, key=lambda factor: losses[factor])
        table.add_row(
            path,
            f"{now:g}",
            f"{value_of(tried[best].parameters, path):.4g}",
            f"{deviation(fitted, target, what):.2%}",
            f"{losses[best]:.2%}",
            f"{deviation(held, target, what):.2%}",
            f"{deviation(held, tried[best], what):.2%}",
        )
    console.print(table)


def undecided(rows: Mapping[str, list[Prepared]], target: Target) -> Iterator[str]:
    """
    The parameters without influence on any prediction, of speed or of registers, for `ASKED`
    samples of each row.
    """
    asked = [p for samples in rows.values() for p in samples[:: max(1, len(samples) // ASKED)]]
    said = [(p.speed(target), p.registers(target)) for p in asked]
    for path in paths(target.parameters):
        now = value_of(target.parameters, path)
        changed = [
            with_value(target, path, now * CHANGE + (1 if isinstance(now, int) else 0)),
            with_value(target, path, now / CHANGE - (1 if isinstance(now, int) else 0)),
        ]
        if not any(
            (p.speed(made), p.registers(made)) != before
            for made in changed
            for p, before in zip(asked, said)
        ):
            yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=NAMES, default="h200")
    parser.add_argument("--refit", nargs="+", metavar="GROUP.NAME", help="or all")
    parser.add_argument("--undecided", action="store_true")
    options = parser.parse_args()
    target, console = target_named(options.target), Console(width=140)
    known = tuple(paths(target.parameters))
    names = known if options.refit == ["all"] else options.refit or ()
    if wrong := [name for name in names if name not in known]:
        parser.error(f"no parameter is named {wrong[0]}; there are {', '.join(known)}")
    if not target.fit.samples:
        parser.error(f"no kernel was measured for {options.target}, so that nothing can be fitted")
    rows = rows_of(target)
    if options.undecided:
        for path in undecided(rows, target):
            console.print(path)
        return
    if names:
        refit(rows, target, names, console)
        return
    report(rows, target, console)


if __name__ == "__main__":
    main()
