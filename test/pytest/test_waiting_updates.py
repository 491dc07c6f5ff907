"""
Updates of fields whose results are stored, and nothing else, wait for a later update of a common
field: the step loads each field once. Fields tapped along rows alone are exchanged as well: no tile
overlaps for these fields.
"""

from __future__ import annotations

from functools import cache

import pytest

import timetile
from support.compare import assert_as_unfused
from support.description import Box, Buffer, Program, Store, Update, random_inputs
from support.expressions import Tap
from support.programs import program_text
from support.schedules import Schedule, block_plane
from timetile.dialects.tile import ApplyOp, KernelOp, LoadOp, Sync
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.program.compiled_program import Executor

TILE = Schedule(
    "waiting",
    block_plane((2, 2), (4, 1)),
    Buffering(ahead=2),
    Streaming(sync=Sync.MBARRIER),
    planes=5,
)

HERE = (0, 0, 0)


def wave_and_memory() -> Program:
    """A wave of three planes, and a memory of the wave and of two coefficients nearer by."""
    inner = Box.of((5, 17, 36))
    bounds = inner.grown((2, 2, 2), (2, 2, 2))
    far = Tap("u", (-2, 0, 0)) + Tap("u", (2, 0, 0)) + Tap("u", (0, -2, 0)) + Tap("u", (0, 0, 2))
    wave = far * 0.2 + Tap("u", HERE) * 0.3 + Tap("k", HERE) * Tap("c", HERE)
    steep = Tap("k", (1, 0, 0)) - Tap("k", (-1, 0, 0)) + Tap("c", (0, 0, 1)) - Tap("c", (0, 0, -1))
    memory = Tap("w", HERE) * 0.5 + steep * Tap("u", (0, 1, 0))
    return Program(
        "f32",
        tuple(Buffer(name, bounds, "f32") for name in "uvwxkc"),
        ("u", "v", "w", "x"),
        (1, 0, 3, 2),
        (
            Update((memory,), (Store(0, "x", inner),)),
            Update((wave,), (Store(0, "v", inner),)),
        ),
    )


@cache
def compiled(executor: Executor) -> timetile.CompiledProgram:
    """The program in tiles of one step."""
    return timetile.compile(
        program_text(wave_and_memory()),
        executor=executor,
        passes=TILE.passes(1),
        halos="common",
        fp_contract="off",
        cache=False,
    )


@cache
def kernel() -> KernelOp:
    """The kernel of a step."""
    return next(op for op in compiled("planes").kernels.tiled.ops if isinstance(op, KernelOp))


def test_updates_of_a_common_field_read_the_field_at_one_time():
    applies = [stage for stage in kernel().stages if isinstance(stage, ApplyOp)]
    loads = [each for each in kernel().stages if isinstance(each, LoadOp) and each.data is not None]
    assert len({apply.lag for apply in applies}) == 1 < len(applies)
    assert len(loads) == len({load.data for load in loads}) == 4


def test_no_tile_overlaps_for_a_field_tapped_along_rows_alone():
    assert Geometry(kernel()).overlap.low[1:] == (0, 0)


@pytest.mark.parametrize("executor", ["simt", "ptx"])
def test_waiting_updates_keep_the_bits_of_the_unfused_program(executor: Executor):
    program = wave_and_memory()
    assert_as_unfused(compiled(executor), program, random_inputs(program, 3), 1, executor)
