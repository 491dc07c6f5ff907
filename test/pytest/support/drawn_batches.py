"""Batches of drawn steps: every index of the first axis is a state of its own."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from support.drawn_fields import Array
from support.drawn_models import Arrays, DrawnModel, How, cells_get_values, on
from support.drawn_steps import drawn_model
from support.drawn_sweeps import swept_model
from support.drawn_values import SCALARS, SERIES


@dataclass(frozen=True)
class DrawnBatch:
    """A step, run for several states at once."""

    model: DrawnModel
    count: int
    shared: tuple[str, ...]
    """Coefficients with one array for all indices."""
    apart: tuple[str, ...]
    """Scalars and series with numbers for each index."""

    def text(self) -> str:
        """The step and the parts of the batch."""
        parts = f"batch of {self.count}, shared {self.shared}, apart {self.apart}"
        return f"{parts}\n{self.model.text()}"

    def state(self, seed: int, index: int) -> Arrays:
        """The arrays of an index."""
        common = self.model.arrays(seed)
        own = self.model.arrays(1000 * (index + 1) + seed)
        return {name: common[name] if name in self.shared else own[name] for name in own}

    def numbers(self, steps: int, index: int) -> dict[str, Any]:
        """The numbers of an index; each is a number of float32."""
        found = self.model.numbers(steps)
        return {
            name: value + 0.25 * index if name in self.apart else value
            for name, value in found.items()
        }

    def found(self, how: How) -> Arrays:
        """The arrays after some steps, by one call of timetile."""
        indices = range(self.count)
        states = [self.state(how.steps, index) for index in indices]
        numbers = [self.numbers(how.steps, index) for index in indices]
        state = {
            name: array if name in self.shared else np.stack([each[name] for each in states])
            for name, array in states[0].items()
        }
        given: dict[str, Any] = {
            name: np.array([each[name] for each in numbers]) if name in self.apart else value
            for name, value in numbers[0].items()
        }
        with cells_get_values():
            model = on(self.model.model(), how)
            return dict(model.advance(state, how.steps, batch=True, **given))

    def expected(self, how: How) -> Arrays:
        """The arrays after some steps, index by index."""
        ends: list[dict[str, Array]] = [
            self.model.after(
                self.state(how.steps, index), how.steps, self.numbers(how.steps, index)
            )
            for index in range(self.count)
        ]
        return {
            name: array if name in self.shared else np.stack([end[name] for end in ends])
            for name, array in ends[0].items()
        }


def drawn_batch(random: Random) -> DrawnBatch:
    """A batch of one to four states of a drawn step."""
    model = swept_model(random) if random.random() < 0.2 else drawn_model(random)
    read = [name for name in model.used if name not in model.written]
    names = [*SCALARS, *([SERIES] if model.has_series else [])]
    return DrawnBatch(
        model,
        random.randint(1, 4),
        tuple(name for name in read if random.random() < 0.5),
        tuple(name for name in names if random.random() < 0.4),
    )
