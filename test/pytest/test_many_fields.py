"""Programs with too many fields for the usual schedules still have a schedule."""

from __future__ import annotations

import numpy as np
import pytest

import timetile
from timetile.dialects.tile import TileLevel
from timetile.passes.diagnostics import CompileError
from timetile.passes.loops.temporal_fusion import TemporalFusionPass
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.peel_boundaries import PeelBoundariesPass
from timetile.runtime.program.compiled_program import Executor

LARGEST_BLOCK = 232448
"""Bytes of shared memory that sm_90 allows a block."""


def many_fields(fields: int, rank: int, size: int) -> str:
    """
    The cell before along the first axis, and the sum of the cell in a number of coefficient fields.
    """
    field = f"!stencil.field<{'x'.join([f'[-1,{size + 1}]'] * rank)}xf64>"
    temp = f"!stencil.temp<{'?x' * rank}f64>"
    here, before, high = [0] * rank, [-1] + [0] * (rank - 1), [size] * rank
    numbers = range(fields)
    lines = [
        f"func.func @many(%A: {field}, %B: {field}, "
        + "".join(f"%k{n}: {field}, " for n in numbers)
        + "%steps: index) {",
        "%zero = arith.constant 0 : index",
        "%one = arith.constant 1 : index",
        "%r:2 = scf.for %t = %zero to %steps step %one iter_args(%a = %A, %b = %B) "
        f"-> ({field}, {field}) {{",
        f"%u = stencil.load %a : {field} -> {temp}",
        *(f"%u{n} = stencil.load %k{n} : {field} -> {temp}" for n in numbers),
        f"%w = stencil.apply(%x = %u : {temp}, "
        + ", ".join(f"%x{n} = %u{n} : {temp}" for n in numbers)
        + f") -> ({temp}) {{",
        f"%s0 = stencil.access %x{before} : {temp}",
    ]
    for n in numbers:
        lines.append(f"%v{n} = stencil.access %x{n}{here} : {temp}")
        lines.append(f"%s{n + 1} = arith.addf %s{n}, %v{n} : f64")
    lines += [
        f"stencil.return %s{fields} : f64",
        "}",
        f"stencil.store %w to %b(<{here}, {high}>) : {temp} to {field}",
        f"scf.yield %b, %a : {field}, {field}",
        "}",
        "func.return",
        "}",
    ]
    return "\n".join(lines)


@pytest.mark.covering
@pytest.mark.parametrize("depth", [None, 1, 2])
@pytest.mark.parametrize(("fields", "rank", "size"), [(18, 2, 19), (40, 2, 4100), (24, 3, 11)])
def test_a_schedule_of_many_fields_fits_registers_and_shared_memory(
    fields: int, rank: int, size: int, depth: int | None
):
    compiled = timetile.compile(
        many_fields(fields, rank, size), executor="simt", depth=depth, cache=False
    )
    ((deepest, *_),) = compiled.kernels.facts
    kernel = compiled.kernels.kernel(deepest.name)
    assert deepest.steps == (depth or deepest.steps)
    assert kernel.shared_bytes <= LARGEST_BLOCK
    if size > 100:
        return
    generator = np.random.default_rng(2)
    start = [generator.random((size + 2,) * rank) for _ in range(fields + 2)]
    ends: list[list[np.ndarray]] = []
    executors: tuple[Executor, ...] = ("cpu", "simt")
    for compiled.executor in executors:
        buffers = [array.copy() for array in start]
        compiled(*buffers, 3)
        ends.append(buffers)
    assert all(np.array_equal(a, b) for a, b in zip(*ends, strict=True))


def test_blocks_with_too_much_shared_memory_are_refused():
    tiling = DeviceTilingPass(tile=TileLevel.WARP, cells=(4,), lanes=(32,), warps=(1,), pack=16)
    passes = (
        TemporalFusionPass((2,)),
        ChooseSchedulePass(),
        tiling,
        MultiQueueBufferingPass(ahead=7),
        PeelBoundariesPass(),
    )
    compiled = timetile.compile(
        many_fields(9, 2, 4100), executor="simt", passes=passes, cache=False
    )
    with pytest.raises(
        CompileError,
        match=r"tile.kernel in @many_d2: the kernel takes \d+ bytes of shared memory a block, and "
        r"sm_90 has 232448; give device-tiling a smaller pack",
    ):
        compiled.kernels.kernel("many_d2")
