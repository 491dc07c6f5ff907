"""Running steps written in Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from timetile import Model
from timetile.runtime.program.compiled_program import Executor

numpy: Any = np
"""NumPy without types: NumPy's stubs refuse a cell's value as an argument of where and others."""


def run(model: Model, executor: Executor, state: dict[str, Any], steps: int, **numbers: float):
    return model.on(executor=executor, fp_contract="off", cache=False).advance(
        state, steps=steps, **numbers
    )


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).random(shape)
