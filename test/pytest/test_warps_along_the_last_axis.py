"""
Warps along the last in-plane axis exchange single cells, or whole planes, with the bits of the
unfused program.
"""

import numpy as np
import pytest

import timetile
from support.executors import thread_executors
from timetile import Field
from timetile.dialects.tile import ExchangeOp
from timetile.frontend.model import Model
from timetile.runtime.program.compiled_program import Executor


@timetile.stencil
def star(u: Field, v: Field):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, 0, -2] + u[0, 0, 1]
    u.next = 0.125 * around + v[0, 0, 1]
    v.next = v[0, 0, 0] + 0.25 * u.next[0, 0, -1]


@timetile.stencil
def system(u: Field, v: Field, w: Field):
    u.next = u[0, 0] + 0.25 * (v[0, 1] - v[0, -2] + w[-1, 0])
    v.next = v[0, 0] + 0.25 * (u.next[0, 0] - u.next[0, -1])
    w.next[1:-1, 1:-1] = w[0, 0] - 0.25 * (u.next[1, 0] - v.next[0, 2])


VOLUME = (4, 5, 101)


@pytest.mark.covering
@pytest.mark.parametrize("executor", thread_executors())
@pytest.mark.parametrize(
    "cells, warps, published",
    [("1,1", "1,2", "edges"), ("1,2", "1,3", "edges"), ("2,2", "1,2", "plane")],
)
def test_warps_along_the_last_axis_publish_their_edges(
    cells: str, warps: str, published: str, executor: Executor
):
    tile = f"tile=block cells={cells} lanes=1,32 warps={warps}"
    assert published in published_by(star, VOLUME, tile, "barrier", executor)


@pytest.mark.covering
@pytest.mark.parametrize("executor", thread_executors())
@pytest.mark.parametrize("cells, warps, sync", [(1, 3, "mbarrier"), (2, 2, "barrier")])
def test_warps_share_a_strip_of_a_system(cells: int, warps: int, sync: str, executor: Executor):
    tile = f"tile=block cells={cells} lanes=32 warps={warps}"
    assert "edges" in published_by(system, (5, 139), tile, sync, executor)


def published_by(
    step: Model, domain: tuple[int, ...], tile: str, sync: str, executor: Executor
) -> set[str]:
    """
    What exchanges publish where two steps of a tile run; all buffers have the bits of the unfused
    program.
    """
    passes = (
        f"temporal-fusion{{depths=2}},device-tiling{{{tile}}},multi-queue-buffering{{ahead=0}},"
        f"register-streaming{{sync={sync}}},carry-halos,peel-boundaries"
    )
    module = step.module(domain, "float64")
    drawn = np.random.default_rng(3)
    fields = [drawn.random(domain) for _ in step.step.fields]
    published: set[str] = set()
    arrays: dict[str, list[np.ndarray]] = {}
    runs: list[tuple[Executor, str | None]] = [(executor, passes), ("numpy", None)]
    for name, given in runs:
        program = timetile.compile(
            module, executor=name, passes=given, halos="common", arch="sm_90", cache=False
        )
        arrays[name] = [array.copy() for field in fields for array in (field, field)]
        program(*arrays[name], 3)
        if given is not None:
            made = [op for op in program.kernels.tiled.walk() if isinstance(op, ExchangeOp)]
            published = {str(each.what.data) for each in made if each.what}
    for a, b in zip(arrays[executor], arrays["numpy"], strict=True):
        assert np.array_equal(a, b)
    return published
