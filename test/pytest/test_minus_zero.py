"""
The sign of zero outlives the assembler. NVIDIA's folds `selp.f32` of 1.0 and -0.0, and tests of a
negated choice's bits, as if -0.0 were 0.0; so a choice of two literals of FP32 is one of words.
Judged by the PTX, and by the numbers of the PTX executor.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import timetile

CELLS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "choice of 1 and -0": (
        lambda u, w: timetile.where(u[0] > 0.5, 1.0, -0.0),
        lambda u, w: np.where(u > 0.5, 1.0, -0.0),
    ),
    "choice of -0 and -1": (
        lambda u, w: timetile.where(u[0] > 0.5, -0.0, -1.0),
        lambda u, w: np.where(u > 0.5, -0.0, -1.0),
    ),
    "quotient of a negated choice": (
        lambda u, w: -timetile.where(u[0] > 0.5, 1.0, 0.0) / w[0],
        lambda u, w: -np.where(u > 0.5, 1.0, 0.0) / w,
    ),
    "root of a negated choice": (
        lambda u, w: np.sqrt(-timetile.where(u[0] > 2.0, 1.0, 0.0)),
        lambda u, w: np.sqrt(-np.where(u > 2.0, 1.0, 0.0)),
    ),
    "a condition times -1": (
        lambda u, w: -1.0 * timetile.where(u[0] > 0.5, 1.0, 0.0),
        lambda u, w: -1.0 * np.where(u > 0.5, 1.0, 0.0),
    ),
}

TWO_LITERALS = re.compile(r"selp\.f32 %f\d+, 0f[0-9A-F]{8}, 0f[0-9A-F]{8}")


@pytest.mark.parametrize("name", CELLS)
def test_the_sign_of_zero_is_numpys(name: str):
    of_cell, of_array = CELLS[name]

    @timetile.stencil
    def stepped(u: timetile.Field, w: timetile.Field) -> None:
        u.next = of_cell(u, w)
        w.next = w[0]

    u = np.array([0.0, 1.0, 0.2, 0.9] * 16, np.float32)
    w = np.full(64, 1.5, np.float32)
    model = stepped.on(executor="ptx", arch="sm_90")
    run = model.advance({"u": u, "w": w})["u"]
    wanted = of_array(u, w).astype(np.float32)
    np.testing.assert_array_equal(run.view(np.uint32), wanted.view(np.uint32))
    kernels = model.program((64,), "float32").kernels
    for fact in (fact for loop in kernels.facts for fact in loop):
        assert not TWO_LITERALS.search(kernels.kernel(fact.name).ptx)
