"""The scripts that compare the cost model with assembled kernels, and judge the model's rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from types import ModuleType
from typing import Any

import pytest

from support.benchmark_scripts import BENCHMARKS, scripts
from timetile.passes.cost.register_facts import RegisterFacts, StageTaps
from timetile.passes.cost.registers import registers
from timetile.passes.targets.isa import ISAS
from timetile.passes.targets.parameters import Parameters
from timetile.passes.targets.target import Target, target_named

SM_90 = ISAS["sm_90"]
PARAMETERS = target_named("sm_90").parameters


@pytest.fixture(scope="module")
def loaded() -> Iterator[list[ModuleType]]:
    """The scripts, imported together."""
    names = ("register_fit", "register_samples", "rule_ablation", "assemble_samples")
    with scripts(*names) as found:
        yield found


@pytest.fixture
def register_fit(loaded: list[ModuleType]) -> ModuleType:
    return loaded[0]


@pytest.fixture
def register_samples(loaded: list[ModuleType]) -> ModuleType:
    return loaded[1]


@pytest.fixture
def rule_ablation(loaded: list[ModuleType]) -> ModuleType:
    return loaded[2]


@pytest.fixture
def assemble_samples(loaded: list[ModuleType]) -> ModuleType:
    return loaded[3]


def strip(cells: int, steps: int, *, words: int = 2, dividing: int = 0) -> RegisterFacts:
    """The numbers of a strip with two planes a level."""
    return RegisterFacts(
        streams=True, axes=1, threads=256, steps=steps, words=words,
        words_per_cell=words * (1 + 2 * steps), cells=cells, rows=1, row_cells=cells, loads=1,
        row_reach=1, live_words=words, body_words=words, scalar_words=0, fixed_words=0, boxed=0,
        dividing=dividing, approximates=False, sums_early=False, holds_oldest=False, splits=False,
        wide_copies=False, message_edge=0, around=2, has_corners=False, odd_slots=0,
        stages=(StageTaps(0, 0, 5, 2),),
    )  # fmt: skip


def test_scalars_of_32_bits_take_no_registers():
    """Hundreds of weights are read by the instructions that use them."""
    for words, free in ((1, True), (2, False)):
        none = strip(4, 1, words=words)
        needed = [
            registers(each, PARAMETERS.registers)
            for each in (none, replace(none, scalar_words=400))
        ]
        assert (needed[0] == needed[1]) == free


def drawn_facts(random: Random) -> RegisterFacts:
    """The numbers of some strip."""
    words = random.choice((1, 2))
    dividing = random.choice((0, 1, 3))
    return strip(random.choice((4, 6)), random.randint(1, 6), words=words, dividing=dividing)


def sample(script: ModuleType, program: str, facts: RegisterFacts, needed: int, **entries: Any):
    """A kernel without spills, with a given number of registers for the code inside the bounds."""
    return script.RegisterSample(
        "c0ffee", program, facts.steps, entries, facts, needed, 0, True, needed
    )


def test_a_known_model_is_found_again(register_fit: ModuleType, register_samples: ModuleType):
    """Kernels need the model's registers for three other values: the search ends beside these."""
    random = Random(5)
    known = replace(
        PARAMETERS,
        registers=replace(PARAMETERS.registers, fixed=43, dividing=17, dividing_cell={8: 2, 4: 4}),
    )
    made = [
        sample(register_samples, f"p{n % 7}", facts, registers(facts, known.registers))
        for n, facts in enumerate(drawn_facts(random) for _ in range(60))
    ]
    assert (
        register_fit.deviation(made, known, SM_90)
        == 0
        < register_fit.deviation(made, PARAMETERS, SM_90)
    )
    names = ("registers.fixed", "registers.dividing", "registers.dividing_cell.4")

    def loss(tried: Parameters) -> float:
        return register_fit.deviation(made, tried, SM_90)

    found = register_fit.descended(loss, PARAMETERS, names)
    assert loss(found) < 1
    for name, value in zip(names, (43, 17, 4)):
        assert abs(register_fit.value_of(found, name) - value) <= 1


def test_parameters_of_other_kernels_have_no_influence(
    register_fit: ModuleType, register_samples: ModuleType
):
    made = [sample(register_samples, "p", strip(4, 3), 90)]
    assert register_fit.influences(made, PARAMETERS, "registers.fixed")
    for name in ("registers.dividing", "registers.volume", "registers.joining", "spare.resident"):
        assert not register_fit.influences(made, PARAMETERS, name)


def test_code_that_always_spills_is_predicted_right_by_more_than_all_registers(
    register_fit: ModuleType, register_samples: ModuleType
):
    deep, shallow = strip(6, 12), strip(6, 2)
    assert registers(deep, PARAMETERS.registers) > SM_90.registers_per_thread
    never = register_samples.NEVER
    assert register_fit.off(sample(register_samples, "p", deep, never), PARAMETERS, SM_90) == 0
    made = sample(register_samples, "p", shallow, never)
    less = registers(shallow, PARAMETERS.registers) - SM_90.registers_per_thread - 1
    assert register_fit.off(made, PARAMETERS, SM_90) == less < 0


def test_kernels_are_counted_by_whether_they_fit_as_predicted(
    register_fit: ModuleType, register_samples: ModuleType
):
    small, large = strip(4, 2), strip(6, 12)
    assert registers(small, PARAMETERS.registers) < SM_90.registers_for(small.threads)
    made = [
        *[sample(register_samples, "p", small, 64)] * 4,
        *[sample(register_samples, "p", large, register_samples.NEVER)] * 3,
        *[sample(register_samples, "p", large, 240)] * 2,
        sample(register_samples, "p", small, register_samples.NEVER),
    ]
    found = register_fit.inside_fits(made, PARAMETERS, SM_90)
    assert (found.fits, found.spills, found.missed, found.surprises) == (4, 3, 2, 1)
    assert found.right == 0.7


def test_pairs_of_kernels_tell_what_one_entry_of_a_schedule_takes(
    register_fit: ModuleType, register_samples: ModuleType
):
    def made(needed: int, **entries: Any):
        return sample(register_samples, "p", strip(4, 3), needed, **entries)

    samples = [
        made(120),
        made(104, columns_alone=True),
        made(144, period=2),
        made(112, columns_alone=True, period=2),
        made(100, pack=8),
        made(100, pack=8, columns_alone=True),
    ]
    assert sorted(register_fit.joining_registers(samples)) == [16, 32]
    assert register_fit.turn_registers(samples, alone=False) == [(3, 24)]
    assert register_fit.turn_registers(samples, alone=True) == [(3, 8)]


@pytest.mark.parametrize("guess", [10, 60, 128, 300])
def test_the_fewest_registers_are_found_from_any_guess(assemble_samples: ModuleType, guess: int):
    for least in (*range(17, 256, 7), 255, 300):
        asked = Asked(least)
        found = assemble_samples.fewest(asked.spills, SM_90, guess)
        numbers = [*range(assemble_samples.FROM, 255, 8), 255]
        assert found == next((n for n in numbers if n >= least), assemble_samples.NEVER)
        assert len(asked.numbers) == len(set(asked.numbers)) <= 10


@dataclass(frozen=True)
class Asked:
    """Code that spills with fewer registers than `least`, and the requested numbers."""

    least: int
    numbers: list[int] = field(default_factory=list[int])

    def spills(self, number: int) -> bool:
        self.numbers.append(number)
        return number < self.least


def test_a_kept_sample_is_read_as_it_was_written(register_samples: ModuleType):
    samples = register_samples.read_register_samples("registers-sm_90.jsonl")
    assert samples and all(s.registers <= 255 and s.spill_bytes >= 0 for s in samples)
    assert len({(s.program, s.depth, str(s.schedule)) for s in samples}) == len(samples)
    path = BENCHMARKS / "samples" / "registers-sm_90.jsonl"
    assert all("assemble_samples" in c for c in register_samples.commands_of(path.name))
    assert path.stat().st_size < 1 << 20
    for kept in samples[:20]:
        assert register_samples.RegisterSample.of_line(kept.to_line()) == kept


@dataclass(frozen=True)
class Known:
    """A measured kernel, with a worth reduced by a rule."""

    plain: float
    measured: float
    wide: bool

    def worth(self, target: Target) -> float:
        return self.plain * (target.parameters.worth.wide_sums if self.wide else 1)


RULE = "wide sums"


@pytest.mark.parametrize(("loss", "verdict"), [(0.9, "kept"), (1.1, "not kept")])
def test_a_rule_is_kept_if_the_best_schedule_is_found_with_the_rule_alone(
    rule_ablation: ModuleType, loss: float, verdict: str
):
    """Wide kernels are slower than predicted, or faster: the rule takes 4% of the worth."""
    wide = [Known(100 + n, (100 + n) * loss, wide=True) for n in range(5)]
    narrow = [Known(98 + n, 98 + n, wide=False) for n in range(5)]
    target = target_named("h200")
    found = list(rule_ablation.judged({"row": [*wide, *narrow]}, target, RULE, 5))
    assert rule_ablation.verdict(found) == verdict
    assert not list(rule_ablation.judged({"row": narrow}, target, RULE, 5))
    assert rule_ablation.verdict([]) == "no sample"


def test_a_rule_is_taken_away_by_neutral_values(rule_ablation: ModuleType):
    target = target_named("h200")
    for rule, values in rule_ablation.RULES.items():
        made = rule_ablation.without(target, rule).parameters
        assert made != target.parameters
        for path, value in values.items():
            neutral = value
            if isinstance(value, str):
                neutral = rule_ablation.value_of(target.parameters, value)
            assert rule_ablation.value_of(made, path) == neutral
