"""A multiprocessor holds as many blocks as the plan of a launch counts on."""

import pytest

import timetile
from support.catalogue import star, sum_program
from support.programs import program_text
from timetile.dialects.tile import KernelOp
from timetile.lowering.tile_to_gpu.shared_memory import asked_bytes
from timetile.passes.targets.target import target_named

H200 = target_named("h200")


@pytest.mark.parametrize(
    ("occupancy", "taken", "grid", "asked"),
    [
        # Two blocks of 115840 bytes, with 1024 of the system each, are more than 228 KB.
        (1, 70000, 133, 115840),
        (2, 70000, 265, 76928),
        # The device holds all blocks, or no more than one fits a multiprocessor, or none is shared.
        (1, 70000, 132, 70000),
        (2, 70000, 264, 70000),
        (1, 120000, 999, 120000),
        (1, 0, 999, 0),
    ],
)
def test_no_further_block_fits_a_launch_of_several_turns(
    occupancy: int, taken: int, grid: int, asked: int
):
    tiling = f"device-tiling{{tile=block cells=2,1 lanes=1,32 warps=4,1 occupancy={occupancy}}}"
    passes = f"{tiling},multi-queue-buffering,register-streaming,carry-halos,peel-boundaries"
    text = program_text(sum_program("f32", star(3, 1))((4, 5, 6)))
    program = timetile.compile(text, executor="planes", passes=passes, cache=False)
    (kernel, *_) = (op for op in program.kernels.tiled.ops if isinstance(op, KernelOp))
    assert asked_bytes(kernel, taken, grid, H200) == asked
    isa = H200.isa
    if asked > taken:
        assert (occupancy + 1) * (asked + isa.shared_overhead) > isa.shared_per_multiprocessor
        assert occupancy * (asked + isa.shared_overhead) <= isa.shared_per_multiprocessor
