"""Rows beyond a tile: a reader there is no cell of the tile; the neighbouring tile stores it."""

import numpy as np
import pytest

import timetile
from timetile import Field
from timetile.runtime.program.compiled_program import Executor


@timetile.stencil
def carried(u: Field, k: Field):
    """The coefficient is read in the row before, and from the next plane on."""
    u.next = 0.3 * k[1, -1, -1] + 0.37 * u[1, 0, -1]


@pytest.mark.parametrize("executor", ["simt", "ptx"])
def test_a_ring_of_copies_holds_no_row_beyond_a_tile(executor: Executor):
    module = carried.module((5, 6, 40), "float32")
    passes = (
        "temporal-fusion{depths=2},"
        "device-tiling{tile=block cells=2,1 lanes=1,32 warps=1,1},"
        "multi-queue-buffering{ahead=1},register-streaming,carry-halos,peel-boundaries"
    )
    found = timetile.compile(
        module.clone(), executor=executor, passes=passes, halos="apart", cache=False
    )
    unfused = timetile.compile(module, executor="numpy", halos="apart", cache=False)
    assert "#tile.copies" in str(found.kernels.tiled)
    random = np.random.default_rng(0)
    start = [random.uniform(-1, 1, (5, 6, 40)).astype("float32") for _ in range(3)]
    arrays, others = ([array.copy() for array in start] for _ in range(2))
    found(*arrays, 4)
    unfused(*others, 4)
    for one, other in zip(arrays, others, strict=True):
        np.testing.assert_array_equal(one, other)
