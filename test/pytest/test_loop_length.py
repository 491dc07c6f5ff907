"""
Pipelines by hand compile in seconds for any options: loops above the limit are made shorter, with a
remark.
"""

from __future__ import annotations

from itertools import product

import pytest

import timetile
from support.catalogue import entry, sum_program
from support.compare import assert_as_unfused
from support.description import Program, random_inputs
from support.programs import program_text
from support.schedules import Schedule, block_plane, block_row, warp_row
from timetile.dialects.tile import KernelOp, Storage
from timetile.passes.analysis.geometry.unrolling import operations_of_step, unrolled_steps
from timetile.passes.analysis.queues.storage import MOST_STEPS
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.loop_length import MOST_OPERATIONS
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.kernels.of_program import ProgramKernels

FLAT = entry("heat-2d").make((17, 90))
CUBE = sum_program("f64", list(product((-1, 0, 1), repeat=3)))((6, 9, 40))


def lengths(kernels: ProgramKernels) -> list[tuple[int, int]]:
    """For each kernel: the steps a turn of its loop takes, and a thread's operations a step."""
    module = kernels.tiled
    return [
        (unrolled_steps(kernel), operations_of_step(kernel, module))
        for kernel in module.ops
        if isinstance(kernel, KernelOp)
    ]


@pytest.mark.parametrize(
    ("program", "tiling", "buffering", "streaming"),
    [
        (FLAT, warp_row(), Buffering(period=1_000_000), None),
        (FLAT, warp_row(), Buffering(), Streaming(period=1_000_000)),
        (FLAT, block_row(), Buffering(period=360), Streaming()),
        (FLAT, block_row(), Buffering(ahead=0), Streaming(delay=37)),
        (FLAT, block_row(), Buffering(ahead=0, period=31), Streaming(delay=6)),
        (CUBE, block_plane((2, 1), (3, 1)), Buffering(ahead=0, period=24), Streaming(delay=1)),
        (CUBE, block_plane((2, 2), (3, 1)), Buffering(storage=Storage.SHARED), None),
    ],
)
def test_turns_of_a_loop_are_short(
    program: Program, tiling: DeviceTilingPass, buffering: Buffering, streaming: Streaming | None
):
    schedule = Schedule("long", tiling, buffering, streaming, planes=5)
    compiled = timetile.compile(
        program_text(program),
        executor="planes",
        passes=schedule.passes(2),
        fp_contract="off",
        cache=False,
    )
    assert_as_unfused(compiled, program, random_inputs(program, 3), 3)
    for steps, operations in lengths(compiled.kernels):
        assert steps <= MOST_STEPS
        assert steps == 1 or steps * operations <= MOST_OPERATIONS
