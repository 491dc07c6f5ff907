"""
Pairs of a program and a way to compile the program, drawn by the number of a seed: equal for equal
seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Literal, get_args

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from support.description import Program
from support.drawn_batches import drawn_batch
from support.drawn_cells import anything, program_of, sums
from support.drawn_layers import drawn_layers, layers_of_any_size
from support.drawn_models import Drawn
from support.drawn_points import drawn_points
from support.drawn_sequences import drawn_sequence
from support.drawn_steps import STORED, drawn_model, repeating_model
from support.drawn_stops import checks_of_any_number, drawn_stop
from support.drawn_sums import drawn_sums
from support.drawn_sweeps import swept_model
from support.few_schedules import drawn_schedules
from support.generate import programs, schedules, travelling_sums
from support.generate_bounds import programs_of_bounds, schedules_of_bounds
from support.generate_roles import programs_of_any_roles
from support.schedules import Schedule, warp_row
from timetile.dialects.tile import Form
from timetile.runtime.kernels.options import Halos

FORMS = tuple(Form)
"""How sums may be split."""

Family = Literal[
    "programs", "bounds", "roles", "travelling", "cells", "models", "stored", "sweeps", "stops",
    "batches", "sequences", "places", "sums", "points", "layers",
]  # fmt: skip
"""The common property of a batch's programs."""

FAMILIES: tuple[Family, ...] = get_args(Family)
"""The families, batch after batch."""

IN_PYTHON: dict[Family, Callable[[Random], Drawn]] = {
    "models": drawn_model,
    "stored": partial(drawn_model, floats=STORED),
    "sweeps": swept_model,
    "stops": drawn_stop,
    "batches": drawn_batch,
    "sequences": drawn_sequence,
    "places": repeating_model,
    "sums": drawn_sums,
    "points": drawn_points,
    "layers": drawn_layers,
}
"""The families of steps in Python."""


IN_PARTS = frozenset(IN_PYTHON) - {"batches"}
"""The families of steps that run in parts, too."""


@dataclass(frozen=True)
class Pair:
    """
    A program, as data, as text (for cells of any operations) or as a step in Python, with options
    to compile and run.
    """

    family: Family
    program: Program | Drawn | str
    schedule: Schedule | None
    """None for the default pipeline's choice."""
    depth: int
    steps: int
    constant: bool
    """The loop's number of steps, stated in the program."""
    contract: Literal["off", "fast"]
    halos: Halos
    common: bool
    """The buffers of a cycle begin with equal halos."""
    choice: int | None
    """The seed of the schedules that the default pipeline chooses among; None for all."""
    sites: int = 1
    """The parts of the domain, on a GPU, of a step in Python."""
    every: int | None = None
    """Steps between two exchanges; chosen if None."""

    def schedules(self) -> AbstractContextManager[None]:
        """The schedules that the default pipeline chooses among."""
        return nullcontext() if self.choice is None else drawn_schedules(Random(self.choice))

    def places(self) -> dict[str, Any]:
        """The options for the parts, all on the first GPU."""
        return {"gpus": [0] * self.sites, "exchange_every": self.every} if self.sites > 1 else {}

    def thresholds(self) -> AbstractContextManager[None]:
        """The least sizes and times for which a program is changed: drawn ones are less."""
        match self.family:
            case "layers":
                return layers_of_any_size()
            case "stops":
                return checks_of_any_number()
            case _:
                return nullcontext()


@st.composite
def pairs(draw: st.DrawFn, family: Family) -> Pair:
    """A pair of a family."""
    schedule: Schedule | None = None
    match family:
        case "programs":
            program = draw(programs())
            schedule = draw(st.none() | schedules(program.rank))
        case "bounds":
            program = draw(programs_of_bounds())
            schedule = draw(st.none() | schedules_of_bounds(program.rank))
        case "roles":
            program = draw(programs_of_any_roles())
            schedule = draw(st.none() | schedules_of_bounds(program.rank))
        case "travelling":
            program, schedule = draw(travelling_sums())
        case "cells":
            random = Random(draw(st.integers(0, 1 << 32)))
            results = draw(st.integers(1, 2))
            body = sums(random, results, columns=draw(st.booleans()))
            if results == 1 and draw(st.booleans()):
                body = anything(random, draw(st.integers(1, 20)))
            program = program_of(body, results)
            form = draw(st.sampled_from(FORMS))
            chosen = Schedule("cells", warp_row(draw(st.integers(1, 2))), form=form, planes=5)
            schedule = draw(st.sampled_from([None, chosen]))
        case _:
            program = IN_PYTHON[family](Random(draw(st.integers(0, 1 << 32))))
    common = draw(st.booleans())
    return Pair(
        family,
        program,
        schedule,
        draw(st.integers(1, 3)),
        draw(st.integers(0, 7)),
        draw(st.integers(0, 3)) == 0,
        draw(st.sampled_from(["off", "off", "fast"])),
        draw(st.sampled_from(["compared", "common", "apart"] if common else ["compared", "apart"])),
        common,
        draw(st.none() if draw(st.integers(0, 3)) == 0 else st.integers(0, 1 << 16)),
        draw(st.sampled_from([1, 1, 1, 2, 3])) if family in IN_PARTS else 1,
        draw(st.none() | st.integers(1, 4)),
    )


def batch(number: int, count: int, families: Sequence[Family] = FAMILIES) -> list[Pair]:
    """The pairs of a batch: `count` pairs, or fewer after repeated draws."""
    drawn: list[Pair] = []
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=checks,
    )
    @given(pairs(families[number % len(families)]))
    def collect(pair: Pair) -> None:
        drawn.append(pair)

    run: Any = collect
    run()
    return drawn[:count]
