"""
Programs in the style of frontends, in combinations, compute the results defined by the stencil
dialect.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import timetile
from support.frontends import STYLES, arguments
from support.sizes import seeds
from support.stencil_semantics import run
from timetile.runtime.loading.modules import load_text
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

STEPS = 3


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Remarks are right, and many."""
    caplog.set_level(logging.ERROR, logger="timetile")


def check(style: str, seed: int, executor: Executor) -> None:
    text = STYLES[style](seed)
    program = timetile.compile(text, executor=executor, fp_contract="off", cache=False)
    found, right = (arguments(program.parameters, seed, STEPS) for _ in range(2))
    program(*found)
    functions = [op for op in load_text(text).ops if isinstance(op, FuncOp)]
    run(next(function for function in functions if function.sym_name.data == "step"), right)
    for k, (a, b) in enumerate(zip(found, right, strict=True)):
        assert a is b is None or np.asarray(a).tobytes() == np.asarray(b).tobytes(), (
            f"argument {k} of\n{text}"
        )


@pytest.mark.covering
@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("style", STYLES)
def test_a_program_of_a_frontend_runs(style: str, seed: int):
    check(style, seed, "numpy")


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("seed", seeds(8))
@pytest.mark.parametrize("style", STYLES)
def test_a_program_of_a_frontend_runs_as_kernels(style: str, seed: int):
    check(style, 100 + seed, "cpu")
    check(style, 100 + seed, "planes")
