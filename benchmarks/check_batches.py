"""
Batches of steps of three axes on a GPU: states in a row beside states in turn, and their bits.

    python benchmarks/check_batches.py

Prints a row of JSON for each batch: states, cells of a state, steps, milliseconds of `advance` on
arrays of NumPy for both ways (the least of three calls), and whether all bits are equal.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, cast

import numpy as np
from measure import commit

import timetile
from timetile import Field, Scalar
from timetile.frontend import model as models
from timetile.runtime.machine.driver import gpu_is_available
from timetile.runtime.program.compiled_program import Executor

BATCHES = ((64, 32, 2000), (16, 64, 2000), (4, 192, 200))
"""States, cells along each axis, and steps."""


@timetile.stencil
def heat(u: Field, k: Scalar):
    """Heat in a block."""
    near = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next = u[0, 0, 0] + k * (near - 6 * u[0, 0, 0])


def advanced(executor: Executor, count: int, cells: int, steps: int) -> tuple[float, Any]:
    """The milliseconds of a call, and the cells at the end."""
    drawn = np.random.default_rng(1).random((count, cells, cells, cells), np.float32)
    model, best, found = heat.on(executor=executor), float("inf"), drawn
    for _ in range(4):
        began = time.perf_counter()
        found = model.advance({"u": drawn}, steps, batch=True, k=0.1)["u"]
        best = min(best, 1e3 * (time.perf_counter() - began))
    return best, found


def no_step(*_: object) -> None:
    """States are computed in turn."""


def main() -> int:
    executor = cast(Executor, "gpu" if gpu_is_available() else "cpu")
    in_a_row, failed = models.as_one_step, 0
    for count, cells, steps in BATCHES:
        models.as_one_step = in_a_row
        row, first = advanced(executor, count, cells, steps)
        models.as_one_step = no_step
        turn, second = advanced(executor, count, cells, steps)
        equal = first.tobytes() == second.tobytes()
        failed += not equal
        made = {"states": count, "cells": [cells] * 3, "steps": steps, "row_ms": round(row, 2)}
        rest = {"turn_ms": round(turn, 2), "equal_bits": equal, "commit": commit()}
        print(json.dumps({**made, "executor": executor, **rest}), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
