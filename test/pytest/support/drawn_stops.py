"""Drawn steps that run until a number of all cells passes a limit."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

import numpy as np
import pytest

import timetile
from support.drawn_around import Cells, Symbols
from support.drawn_models import (
    Arrays,
    Assignment,
    DrawnModel,
    How,
    Levels,
    cells_get_values,
    on,
    signature_of,
)
from support.drawn_steps import drawn_model, grower_of
from support.drawn_sweeps import swept_model
from support.drawn_values import NEXT, SCALARS, Node, evaluated, field_of, is_float, taps_of
from support.fixed_order import in_order
from support.grown_values import Grower
from timetile.frontend import checked_pieces

Kind = Literal["total", "maximum", "minimum"]

KINDS: tuple[Kind, ...] = ("total", "maximum", "minimum")


@contextmanager
def checks_of_any_number() -> Generator[None]:
    """The last launch before a check makes its numbers in short runs, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checked_pieces, "WORTH_SECONDS", 0.0)
        patch.setattr(checked_pieces, "PREPARED_SECONDS", 0.0)
        yield


@dataclass(frozen=True)
class DrawnStop:
    """A step, and the kind and value of the number that ends a run above a limit."""

    model: DrawnModel
    kind: Kind
    value: Node
    every: int
    limit: float
    turns: int = 1
    """A run's steps for each step of a pair: checks are many, or one or two."""

    def text(self) -> str:
        """The step and the condition."""
        return (
            f"until {self.kind} of {self.value} > {self.limit}, every {self.every}, "
            f"{self.turns} times the steps\n" + self.model.text()
        )

    @property
    def read(self) -> list[str]:
        """The fields of the condition."""
        return list(dict.fromkeys(field_of(name) for name, _ in taps_of(self.value)))

    def found(self, how: How) -> Arrays:
        """The arrays at the end, the numbers of all checks, and the number of steps."""
        numbers, steps = list[Any](), how.steps * self.turns
        make = getattr(timetile, self.kind)

        def until(**given: Any) -> bool:
            numbers.append(make(evaluated(self.value, Symbols(given))))
            return bool(numbers[-1] > self.limit)

        # A condition names its arguments, as a step does.
        until.__dict__["__signature__"] = signature_of(self.read, list(SCALARS))
        with cells_get_values():
            state = on(self.model.model(), how).advance(
                self.model.arrays(steps),
                steps,
                until=until,
                every=self.every,
                **self.model.numbers(steps),
            )
        return {**state, **ended(numbers, state.steps, state.stopped)}

    def expected(self, how: How) -> Arrays:
        """The arrays, the numbers and the number of steps by NumPy."""
        steps = how.steps * self.turns
        given, numbers = self.model.numbers(steps), list[Any]()
        levels, done, stopped = self.model.begun(self.model.arrays(steps)), 0, False
        while done < steps and not stopped:
            old = levels.now
            levels, done = self.model.stepped(levels, given, done), done + 1
            if done % self.every == 0:
                numbers.append(self.number(old, levels, given))
                stopped = bool(numbers[-1] > self.limit)
        return {**levels.now, **levels.before, **ended(numbers, done, stopped)}

    def number(self, old: Arrays, levels: Levels, given: dict[str, Any]) -> Any:
        """The number of a check."""
        box = self.model.box(Assignment(self.model.written[0], None, self.value))
        known = old | {name + NEXT: array for name, array in levels.now.items()}
        cells = Cells(self.model.fields, self.model.used, known, box, given, 0)
        shape = tuple(each.stop - each.start for each in box)
        with np.errstate(all="ignore"):
            return in_order(self.kind, np.broadcast_to(evaluated(self.value, cells), shape))


def ended(numbers: Sequence[Any], steps: int, stopped: bool) -> Arrays:
    """What a run with a condition tells, as arrays."""
    return {"numbers": np.array(numbers), "ended": np.array([steps, stopped])}


def drawn_stop(random: Random) -> DrawnStop:
    """A step and a condition on its newest values, and on values a step before."""
    model = swept_model(random) if random.random() < 0.2 else drawn_model(random)
    types = {name: model.fields.types[name] for name in model.used}
    if not any(is_float(kind) for kind in types.values()):
        return drawn_stop(random)
    grower = grower_of(random, replace(model.fields, types=types))
    for names in (grower.floats, grower.whole, grower.truth):
        names += [name + NEXT for name in names if name in model.written]
    value = grower.number(random.randint(1, 3))
    if random.random() < 0.5:
        value = change_of(random, grower)
    return DrawnStop(
        model,
        random.choice(KINDS),
        value,
        random.choice((1, 2, 3, 7)),
        random.choice((-1.0, 0.0, 0.5, 1.0, 10.0)),
        random.choice((1, 1, 2, 6)),
    )


def change_of(random: Random, grower: Grower) -> Node:
    """The magnitude of a read, or of the change of a cell in a step."""
    read = grower.tap(grower.floats)
    name, offset = read.given
    if name + NEXT in grower.floats and random.random() < 0.8:
        read = Node("-", (Node("tap", (), (name + NEXT, offset)), read))
    return Node("absolute", (read,))
