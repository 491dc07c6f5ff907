"""Kernels of the default pipeline, with and without loops that fill the pipeline."""

from __future__ import annotations

from functools import cache

import timetile
from support.catalogue import Domain, box, star, sum_program
from support.description import Element
from support.few_schedules import model_alone
from support.programs import program_text
from timetile.runtime.program.compiled_program import CompiledProgram

STARS = {radius: tuple(star(2, radius)) for radius in (1, 2, 3)}
BOXES = {radius: tuple(box((-radius, -radius), (radius, radius))) for radius in (1, 2)}
CUBE = tuple(star(3, 1))


@cache
def compiled(
    element: Element, offsets: tuple[tuple[int, ...], ...], domain: Domain, depth: int
) -> CompiledProgram:
    """The kernels of the default pipeline, with a schedule chosen by the model."""
    text = program_text(sum_program(element, list(offsets))(domain))
    made = timetile.compile(text, executor="simt", cache=False, depth=depth, halos="common")
    with model_alone():
        assert made.kernels.facts
    return made
