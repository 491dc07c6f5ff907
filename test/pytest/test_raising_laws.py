"""
Raised programs compute the results of the stencil dialect, for any order of loads, applies and
stores.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import timetile
from support.blocks import FIELD, FIELDS, HALO, HIGH, LOW, random_program
from support.sizes import seeds
from support.stencil_semantics import run
from timetile.runtime.loading.modules import load_text
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")

STEPS = 3


def fields_of(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.random(HIGH - LOW + 2 * HALO) for _ in range(FIELDS)]


def expected(text: str, seed: int) -> list[Any]:
    """The fields by the dialect's definition."""
    function = next(op for op in load_text(text).ops if isinstance(op, FuncOp))
    fields = fields_of(seed)
    run(function, [*fields, STEPS])
    return fields


def check(text: str, seed: int, executor: Executor) -> None:
    program = timetile.compile(text, executor=executor, fp_contract="off", cache=False)
    fields = fields_of(seed)
    program(*fields, STEPS)
    for k, (found, right) in enumerate(zip(fields, expected(text, seed), strict=True)):
        assert found.tobytes() == right.tobytes(), f"field {k} of\n{text}"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Remarks on values without a store are right, and many."""
    caplog.set_level(logging.ERROR, logger="timetile")


@pytest.mark.parametrize("seed", seeds(120))
def test_random_sweeps_are_the_dialects(seed: int):
    check(random_program(seed, looped=False, host=False), seed, "cpu")


@pytest.mark.parametrize("seed", seeds(120))
def test_random_time_loops_are_the_dialects(seed: int):
    check(random_program(seed, looped=True, host=False), seed, "cpu")


@pytest.mark.parametrize("seed", seeds(60))
def test_random_loops_of_the_host_are_the_dialects(seed: int):
    check(random_program(seed, looped=True, host=True), seed, "numpy")


@pytest.mark.parametrize("seed", seeds(12))
def test_random_loops_run_as_kernels(seed: int):
    text = random_program(seed, looped=True, host=bool(seed % 2))
    check(text, seed, "planes")
    check(text, seed, "simt")


def test_the_generator_draws_what_is_hard():
    """Stores between a load and its apply, reads of values, and cells changed by the host."""
    texts = [random_program(seed, looped=True, host=True) for seed in range(60)]
    assert any("stencil.combine" in text for text in texts)
    assert any("memref.store" in text for text in texts)
    assert any("stencil.dyn_access" in text for text in texts)
    assert any("arith.select %even" in text for text in texts)
    assert all(FIELD in text for text in texts)
