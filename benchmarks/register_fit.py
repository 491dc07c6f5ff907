"""
How well the cost model's registers agree with assembled kernels, and which values of its parameters
would agree better. `benchmarks/fit.py --registers` prints what the functions find.

Three statements of the model are judged: code inside the bounds needs `registers`; a kernel spills
nothing if `registers` and `guard_registers` are available; a schedule is considered if `registers`
and `spare_registers` are available, and then its code inside the bounds spills nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt

from named_parameters import changed, paths, value_of
from register_samples import NEVER, RegisterSample

from timetile.passes.cost.registers import guard_registers, registers, spare_registers
from timetile.passes.targets.isa import Isa
from timetile.passes.targets.parameters import Parameters

STEPS = (-16, -8, -4, -2, -1, 1, 2, 4, 8, 16)
"""Steps of a whole number in the search for a better value."""

FACTORS = (0.7, 0.8, 0.9, 0.95, 0.99, 1.01, 1.05, 1.1, 1.2, 1.4)
"""Factors of another number in the search."""

ROUNDS = 20
"""Most passes over all parameters of a fit."""

LESS = 1e-9
"""The least difference of deviations for a new value."""


def needed(sample: RegisterSample, parameters: Parameters) -> int:
    """The registers that the model predicts for the code inside the bounds."""
    return registers(sample.facts, parameters.registers)


def off(sample: RegisterSample, parameters: Parameters, isa: Isa) -> int:
    """
    The error of a prediction in registers: below 0 for too few predicted registers. Code that
    spills with all registers of a thread needs more, and any prediction of more is right.
    """
    made = needed(sample, parameters)
    if sample.needed == NEVER:
        return min(0, made - isa.registers_per_thread - 1)
    return made - sample.needed


def deviation(samples: Sequence[RegisterSample], parameters: Parameters, isa: Isa) -> float:
    """The root of the mean square of the errors in registers, with equal weights of programs."""
    by_program: dict[str, list[int]] = defaultdict(list)
    for sample in samples:
        by_program[sample.program].append(off(sample, parameters, isa) ** 2)
    means = [sum(each) / len(each) for each in by_program.values()]
    return sqrt(sum(means) / len(means))


# Whether a kernel fits the registers.


@dataclass(frozen=True)
class Confusion:
    """Numbers of kernels that fit the registers or not, as predicted and as assembled."""

    fits: int
    """Kernels that fit, as predicted."""
    spills: int
    """Kernels that spill, as predicted."""
    missed: int
    """Kernels that fit, predicted to spill: a schedule is lost."""
    surprises: int
    """Kernels that spill, predicted to fit: a schedule is slower than predicted."""

    @staticmethod
    def of(answers: Iterable[tuple[bool, bool]]) -> Confusion:
        """The counts of pairs (predicted to fit, fits)."""
        pairs = list(answers)
        kinds = (True, True), (False, False), (False, True), (True, False)
        return Confusion(*map(pairs.count, kinds))

    @property
    def count(self) -> int:
        """All kernels."""
        return self.fits + self.spills + self.missed + self.surprises

    @property
    def right(self) -> float:
        """The share of right predictions."""
        return (self.fits + self.spills) / max(1, self.count)


def inside_fits(samples: Sequence[RegisterSample], parameters: Parameters, isa: Isa) -> Confusion:
    """Whether code inside the bounds fits the available registers."""
    rooms = [(sample, isa.registers_for(sample.facts.threads)) for sample in samples]
    return Confusion.of((needed(s, parameters) <= most, s.needed <= most) for s, most in rooms)


def kernel_fits(samples: Sequence[RegisterSample], parameters: Parameters, isa: Isa) -> Confusion:
    """Whether a whole kernel fits the available registers, guards included."""
    return Confusion.of(
        (
            needed(s, parameters) + guard_registers(s.facts, parameters)
            <= isa.registers_for(s.facts.threads),
            not s.spill_bytes,
        )
        for s in samples
    )


def is_considered(samples: Sequence[RegisterSample], parameters: Parameters, isa: Isa) -> Confusion:
    """Whether the considered schedules have code inside the bounds that fits."""
    rooms = [(sample, isa.registers_for(sample.facts.threads)) for sample in samples]
    return Confusion.of(
        (
            needed(s, parameters) + spare_registers(s.facts, parameters) <= most,
            s.needed <= most,
        )
        for s, most in rooms
    )


# Better values.


def influences(samples: Sequence[RegisterSample], parameters: Parameters, path: str) -> bool:
    """Whether a number has influence on any prediction of the samples."""
    now = value_of(parameters, path)
    for made in (changed(parameters, path, value) for value in around(now)):
        for sample in samples:
            if answers(sample, made) != answers(sample, parameters):
                return True
    return False


def answers(sample: RegisterSample, parameters: Parameters) -> tuple[int, int, int]:
    """The results of the model's functions of registers for a sample."""
    facts = sample.facts
    return (
        registers(facts, parameters.registers),
        guard_registers(facts, parameters),
        spare_registers(facts, parameters),
    )


def around(value: float) -> list[float]:
    """The numbers tried beside a number; no number is below 0."""
    if isinstance(value, int):
        return [value + step for step in STEPS if value + step >= 0]
    return [value * factor for factor in FACTORS]


def descended(
    loss: Callable[[Parameters], float], parameters: Parameters, names: Sequence[str]
) -> Parameters:
    """The parameters after changes of single numbers, taken as long as any lowers the loss."""
    least = loss(parameters)
    for _ in range(ROUNDS):
        before = least
        for path in names:
            for value in around(value_of(parameters, path)):
                made = changed(parameters, path, value)
                if (found := loss(made)) < least - LESS:
                    parameters, least = made, found
        if least == before:
            break
    return parameters


def names_of(parameters: Parameters, group: str) -> list[str]:
    """The names of a group of parameters."""
    return [path for path in paths(parameters) if path.startswith(f"{group}.")]


# Pairs of samples: their schedules differ in a single entry.

PAIRS = {
    "registers.joining": "columns_alone",
    "registers.turns": "period",
    "registers.turns_level": "period",
}
"""Parameters decided by pairs, with the entry of the schedule in which the pairs differ."""

Pair = tuple[RegisterSample, RegisterSample]
"""Two samples: without a cause of further registers, and with the cause."""


def pairs_by(samples: Sequence[RegisterSample], entry: str) -> Iterator[Pair]:
    """
    Samples that differ in an entry of the schedule alone, the usual entry first. Pairs with equal
    figures are left out: their code is equal, as nothing of a column can be joined.
    """
    kinds: dict[str, list[RegisterSample]] = defaultdict(list)
    for sample in samples:
        kept = {name: value for name, value in sample.schedule.items() if name != entry}
        kinds[repr((sample.program, sample.depth, sorted(kept.items())))].append(sample)
    for kind in kinds.values():
        usual = [sample for sample in kind if entry not in sample.schedule]
        others = [sample for sample in kind if entry in sample.schedule]
        for one, other in product(usual, others):
            if figures(one) != figures(other) and NEVER not in (one.needed, other.needed):
                yield one, other


def figures(sample: RegisterSample) -> tuple[int, int, int]:
    """The assembler's answer for a sample."""
    return sample.registers, sample.spill_bytes, sample.needed


def is_decided(samples: Sequence[RegisterSample], parameters: Parameters, path: str) -> bool:
    """Whether samples say something about a number, by a prediction or by pairs."""
    entry = PAIRS.get(path)
    return any(pairs_by(samples, entry)) if entry else influences(samples, parameters, path)


def joining_registers(samples: Sequence[RegisterSample]) -> list[int]:
    """The registers for joined columns, of each pair."""
    return [usual.needed - alone.needed for usual, alone in pairs_by(samples, "columns_alone")]


def turn_registers(samples: Sequence[RegisterSample], *, alone: bool) -> list[tuple[int, int]]:
    """
    The levels, and the registers for a second turn of the loop, of each pair; `alone`: of kernels
    with separate columns.
    """
    return [
        (usual.facts.steps, twice.needed - usual.needed)
        for usual, twice in pairs_by(samples, "period")
        if ("columns_alone" in usual.schedule) == alone
    ]
