"""A multiprocessor holds as many blocks as the schedule counts on, if they are to be alone."""

import pytest

import timetile
from support.catalogue import star, sum_program
from support.programs import program_text
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.schedule import Schedule, ScheduleAttr
from timetile.lowering.tile_to_gpu.shared_memory import asked_bytes
from timetile.passes.targets.target import target_named

H200 = target_named("h200")
TILING = "device-tiling{{tile=block cells=2,1 lanes=1,32 warps=4,1 occupancy={}}}"
PLACING = "multi-queue-buffering,register-streaming,carry-halos,peel-boundaries"


def kernel_of(occupancy: int, *, alone: bool) -> KernelOp:
    """A kernel with a number of blocks of a multiprocessor."""
    text = program_text(sum_program("f32", star(3, 1))((4, 5, 6)))
    passes = f"{TILING.format(occupancy)},{PLACING}"
    program = timetile.compile(text, executor="planes", passes=passes, cache=False)
    (kernel, *_) = (op for op in program.kernels.tiled.ops if isinstance(op, KernelOp))
    kernel.schedule = ScheduleAttr(Schedule(blocks_alone=alone))
    return kernel


@pytest.mark.parametrize(
    ("occupancy", "taken"),
    # The last block leaves no room for another, whatever a launch asks for.
    [(1, 70000), (2, 70000), (1, 120000)],
)
def test_no_further_block_fits_beside_blocks_alone(occupancy: int, taken: int):
    kernel, isa = kernel_of(occupancy, alone=True), H200.isa
    each = asked_bytes(kernel, taken, H200) + isa.shared_overhead
    assert (occupancy + 1) * each > isa.shared_per_multiprocessor >= occupancy * each
    # Blocks that share nothing are held by registers.
    assert asked_bytes(kernel, 0, H200) == 0


def test_launches_ask_for_the_memory_of_their_blocks():
    assert asked_bytes(kernel_of(1, alone=False), 70000, H200) == 70000
