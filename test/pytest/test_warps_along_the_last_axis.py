"""
Warps along the last of two in-plane axes exchange single cells, or whole planes, with the bits of
the unfused program.
"""

import numpy as np
import pytest

import timetile
from support.executors import thread_executors
from timetile import Field
from timetile.dialects.tile import ExchangeOp, Published
from timetile.runtime.program.compiled_program import Executor


@timetile.stencil
def star(u: Field, v: Field):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, 0, -2] + u[0, 0, 1]
    u.next = 0.125 * around + v[0, 0, 1]
    v.next = v[0, 0, 0] + 0.25 * u.next[0, 0, -1]


@pytest.mark.covering
@pytest.mark.parametrize("executor", thread_executors())
@pytest.mark.parametrize(
    "cells, warps, published",
    [("1,1", "1,2", "edges"), ("1,2", "1,3", "edges"), ("2,2", "1,2", "plane")],
)
def test_edges_of_warps_along_the_last_axis(
    cells: str, warps: str, published: str, executor: Executor
):
    passes = (
        f"temporal-fusion{{depths=2}},device-tiling{{tile=block cells={cells} lanes=1,32 "
        f"warps={warps}}},multi-queue-buffering{{ahead=0}},register-streaming,carry-halos,"
        "peel-boundaries"
    )
    module = star.module((5, 9, 141), "float64")
    drawn = np.random.default_rng(3)
    u, v = (drawn.random((5, 9, 141)) for _ in range(2))
    arrays: dict[str, list[np.ndarray]] = {}
    runs: list[tuple[Executor, str | None]] = [(executor, passes), ("numpy", None)]
    for name, given in runs:
        program = timetile.compile(
            module, executor=name, passes=given, halos="common", arch="sm_90", cache=False
        )
        arrays[name] = [u.copy(), u.copy(), v.copy(), v.copy()]
        program(*arrays[name], 3)
        if given is not None:
            made = [op for op in program.kernels.tiled.walk() if isinstance(op, ExchangeOp)]
            assert Published(published) in [each.what.data for each in made if each.what]
    for a, b in zip(arrays[executor], arrays["numpy"], strict=True):
        assert np.array_equal(a, b)
