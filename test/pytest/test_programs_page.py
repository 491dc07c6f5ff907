"""Every example of docs/programs.md runs on every executor by the stencil dialect's definition."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import timetile
from support.stencil_semantics import run
from timetile.runtime.loading.modules import load_text
from timetile.runtime.program.compiled_program import Executor

pytestmark = [pytest.mark.covering, pytest.mark.usefixtures("chosen_among_few")]

PAGE = Path(__file__).parents[2] / "docs" / "programs.md"
EXAMPLES = re.findall(r"## ([^\n]*)\n(?:(?!## ).)*?```mlir\n(.*?)```", PAGE.read_text(), re.DOTALL)
STEPS = 5


def arrays_of(program: timetile.CompiledProgram) -> list[Any]:
    """Random cells for each array, and the number of steps for each number."""
    values: list[Any] = []
    for p in program.parameters:
        if p.bounds is None:
            values.append(STEPS)
            continue
        shape = [high - low for low, high in zip(p.bounds.lb, p.bounds.ub)]
        values.append(np.random.default_rng(p.position).random(shape))
    return values


@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "simt"])
@pytest.mark.parametrize(("title", "text"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_example_is_what_the_dialect_says(title: str, text: str, executor: Executor):
    program = timetile.compile(text, executor=executor, fp_contract="off", cache=False)
    found, right = arrays_of(program), arrays_of(program)
    program(*found)
    run(next(op for op in load_text(text).ops if isinstance(op, FuncOp)), right)
    for a, b in zip(found, right, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_the_page_has_an_example_of_each_kind():
    assert len(EXAMPLES) >= 12
