"""Sequences of drawn steps: a step of each in turn, on shared arrays."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import timetile
from support.drawn_models import Arrays, DrawnModel, How, Levels, cells_get_values, on
from support.drawn_steps import drawn_fields, drawn_step


@dataclass(frozen=True)
class DrawnSequence:
    """Steps of the same fields; the number of the step and a series are shared."""

    models: tuple[DrawnModel, ...]

    def text(self) -> str:
        """The steps in order."""
        return "\nthen\n".join(model.text() for model in self.models)

    def arrays(self, seed: int) -> Arrays:
        """Random arrays of the fields of all steps."""
        fields = self.models[0].fields
        used = {name for model in self.models for name in model.used}
        return fields.arrays([name for name in fields.types if name in used], seed)

    def numbers(self, steps: int) -> dict[str, Any]:
        """The numbers of all steps."""
        return {
            name: value for model in self.models for name, value in model.numbers(steps).items()
        }

    def found(self, how: How) -> Arrays:
        """The arrays after some steps of the sequence."""
        with cells_get_values():
            whole = timetile.sequence(*(model.model() for model in self.models))
            numbers = self.numbers(how.steps)
            return dict(on(whole, how).advance(self.arrays(how.steps), how.steps, **numbers))

    def expected(self, how: How) -> Arrays:
        """The arrays after some steps of each model in turn."""
        now, numbers = self.arrays(how.steps), self.numbers(how.steps)
        before = [model.begun({name: now[name] for name in model.used}) for model in self.models]
        for step in range(how.steps):
            for place, model in enumerate(self.models):
                own = {name: now[name] for name in model.used}
                levels = Levels(own, before[place].before)
                before[place] = model.stepped(levels, numbers, step)
                now = now | before[place].now
        for levels in before:
            now = now | levels.before
        return now


def drawn_sequence(random: Random) -> DrawnSequence:
    """A sequence of two or three steps; a step may stand in it twice."""
    fields = drawn_fields(random)
    # A step that looks back is the only one of its field's, which few drawn sequences have.
    models = [
        drawn_step(random, fields, looks_back=number == 0 and random.random() < 0.3)
        for number in range(random.choice((2, 2, 3)))
    ]
    if random.random() < 0.2:
        models.append(models[-1])
    return DrawnSequence(tuple(models))
