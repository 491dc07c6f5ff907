"""What `choice.py` asks about a program, what it measures, and the rows of its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from choice_models import MODELS

from timetile.frontend.field_types import DType

DTYPES: dict[str, DType] = {"f64": "float64", "f32": "float32"}

PLATE, CUBE = (8192, 8192), (512, 512, 512)
"""The domains by the number of axes."""


@dataclass(frozen=True)
class Question:
    """A program under a depth, or the chosen depth for None, with entries of the schedule."""

    program: str
    element: str
    depth: int | None = None
    changes: str = ""
    """Entries of the schedule in place of the chosen: `period=3;cells=6`."""


@dataclass
class Answer:
    """What was compiled: the schedule, the deepest kernel's resources and steady loop."""

    question: Question
    error: str = ""
    depth: int = 0
    schedule: str = ""
    predicted: float = 0.0
    registers: int = 0
    spilled_bytes: int = 0
    steady_instructions: int = 0
    steady_spill_words: int = 0
    seconds: float = 0.0
    gpts_per_s: float = 0.0
    tuned_gpts: float = 0.0
    """Of the chosen schedule's program: the speed after tuning, where asked for."""
    tuned_schedule: str = ""
    tried: dict[str, float] = field(default_factory=dict[str, float])
    """The best speed of each depth, as measured by tuning."""


def domain_of(name: str) -> tuple[int, ...]:
    """The domain of a program."""
    if name in MODELS:
        return PLATE if MODELS[name].step.step.rank == 2 else CUBE
    return CUBE if name in ("poisson", "wave4") or "3d" in name else PLATE


def rows_of(answers: Sequence[Answer]) -> Iterator[dict[str, Any]]:
    """A row for each program and type: the chosen schedule beside the best depth measured."""
    programs: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        if answer.gpts_per_s:
            question = answer.question
            programs.setdefault((question.program, question.element), []).append(answer)
    for (name, element), measured in programs.items():
        chosen = next((each for each in measured if each.question.depth is None), None)
        if chosen is None:
            continue
        best = max(measured, key=lambda each: each.gpts_per_s)
        yield {
            "program": name,
            "dtype": element,
            "domain": list(domain_of(name)),
            "default_gpts": chosen.gpts_per_s,
            "default_depth": chosen.depth,
            "best_gpts": best.gpts_per_s,
            "best_depth": best.depth,
            "tuned_gpts": chosen.tuned_gpts or None,
            "tuned_schedule": chosen.tuned_schedule,
            "ratio": round(chosen.gpts_per_s / best.gpts_per_s, 3),
            "predicted": chosen.predicted,
            "registers": chosen.registers,
            "spilled_bytes": chosen.spilled_bytes,
            "steady_spill_words": chosen.steady_spill_words,
            "compile_cpu_s": chosen.seconds,
            "schedule": chosen.schedule,
            "other_depths": {str(each.depth): each.gpts_per_s for each in measured},
            "tuning": chosen.tried,
        }


def described_answer(answer: Answer) -> str:
    """A line about an answer."""
    q = answer.question
    return (
        f"{q.program} {q.element} {q.depth or '-'} {q.changes} d{answer.depth} "
        f"{answer.gpts_per_s} tuned {answer.tuned_gpts} pred {answer.predicted} "
        f"r{answer.registers} s{answer.spilled_bytes} loop {answer.steady_instructions}/"
        f"{answer.steady_spill_words} {answer.error}"
    )
