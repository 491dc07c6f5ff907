"""Programs of the documentation that stop between steps, and arguments for the programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from timetile.runtime.program.compiled_program import CompiledProgram

PAGE = (Path(__file__).parents[3] / "docs" / "programs.md").read_text()


PROGRAMS = {
    re.findall(r"func\.func @(\w+)", text)[0]: text
    for text in re.findall(r"^```mlir\n(.*?)^```", PAGE, re.M | re.S)
}


NO_LOOP = (
    "the function has no time loop, and a run stops between steps of a time loop; call the "
    "program once for each step"
)


def arguments_of(program: CompiledProgram) -> list[Any]:
    """Fields of random numbers with equal halos, and a number of steps other than the run's."""
    random = np.random.default_rng(4)
    made: list[Any] = []
    for parameter in program.parameters:
        if parameter.bounds is None:
            made.append(7)
            continue
        shape = [high - low for low, high in zip(parameter.bounds.lb, parameter.bounds.ub)]
        cells = np.zeros(shape)
        inside = tuple(slice(1, -1) for _ in shape)
        cells[inside] = random.random(cells[inside].shape)
        made.append(cells)
    return made


def copied(values: list[Any]) -> list[Any]:
    return [value.copy() if np.ndim(value) else value for value in values]
