"""Code of threads with spared registers leaves equal bits."""

from __future__ import annotations

import numpy as np
import pytest

import timetile
from timetile import Field
from timetile.lowering.lower_tile_to_gpu import LowerTileToGpuPass
from timetile.lowering.pipelines import thread_passes
from timetile.lowering.threads.spare_registers import SpareRegistersPass
from timetile.runtime.program.compiled_program import Executor
from timetile.runtime.program.option_checks import passes_of

STRIPS = passes_of(
    "temporal-fusion{depths=2},device-tiling{tile=warp cells=4 lanes=32 warps=1 pack=2},"
    "multi-queue-buffering{ahead=2},register-streaming,carry-halos,peel-boundaries"
)
"""Strips of warps whose rows change hands, with planes fetched early."""


@timetile.stencil
def wave(p: Field, m: Field):
    around = p[-1, 0] + p[1, 0] + p[0, -1] + p[0, 1] - 4 * p[0, 0]
    p.next = 2 * p[0, 0] - p.prev[0, 0] + m[0, 0] * around


def bits_after(executor: Executor, adjacent: bool = False) -> list[bytes]:
    """The bits of all buffers of a wave after three steps."""
    module = wave.module((23, 130), {"p": "float64", "m": "float32"})
    _, *threads = thread_passes()
    spared = (*STRIPS, LowerTileToGpuPass(adjacent), *threads, SpareRegistersPass())
    passes = None if executor == "numpy" else spared
    program = timetile.compile(
        module, executor=executor, halos="common", cache=False, passes=passes
    )
    drawn = np.random.default_rng(5).random((23, 130)) * 0.1
    arrays = [
        drawn.astype(np.float32 if p.name == "m" else np.float64)
        for p in program.parameters
        if p.is_field
    ]
    program(*arrays, steps=3)
    if passes is not None:
        kernel = program.kernels.facts[0][0].name
        assert "simt.pick" in str(program.kernels.threads(kernel))
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("adjacent", [False, True])
def test_spared_registers_leave_equal_bits(adjacent: bool):
    assert bits_after("simt", adjacent) == bits_after("numpy")
