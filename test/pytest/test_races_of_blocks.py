"""
Races of generated kernels whose blocks share a tile, found by the SIMT interpreter: every message,
barrier and slot is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

import timetile
from support.catalogue import entry
from support.description import Program, random_inputs
from support.programs import program_text
from support.schedules import Schedule, device_plane, solid
from timetile.dialects import simt
from timetile.dialects.syntax import encode_integers
from timetile.dialects.tile import LaunchOp, Sync, TileLevel
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.executors.runners import SimtRunner
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import Buffer
from timetile.runtime.kernels.of_program import ProgramKernels

APART = Schedule(
    "messages-between-blocks", device_plane((4, 1), 2, 2), streaming=Streaming(delay=1), planes=None
)
"""
Two blocks of two warps, with copies of loaded planes; the blocks send each other the edges of one
level.
"""

MEETING = replace(
    APART, name="barriers-between-blocks", streaming=Streaming(delay=1, sync=Sync.GRID)
)
"""Two blocks of two warps, with a barrier of the grid once a step."""


def kernel_of_blocks(
    depth: int, schedule: Schedule = APART, planes: int = 9
) -> tuple[ProgramKernels, gpu.ModuleOp, Program]:
    """A kernel with a tile of the device, at the thread level, and the program."""
    program = entry("heat-3d").make((planes, 10, 29))
    text = program_text(program)
    compiled = timetile.compile(text, executor="simt", passes=schedule.passes(depth), cache=False)
    return compiled.kernels, compiled.kernels.threads(f"run_d{depth}"), program


def run_blocks(kernels: ProgramKernels, threads: gpu.ModuleOp, program: Program) -> None:
    """Launch a kernel like the executor, with the needed words of messages."""
    runner = SimtRunner(kernels)
    name = threads.sym_name.data
    kernels.lowered[name] = threads
    u, v = (Buffer(array) for array in random_inputs(program, seed=1).arrays.values())
    launch_op = LaunchOp.create(properties={"kernel": SymbolRefAttr(name)})
    runner.launch(launch_op, [u, v, u, v], {})


def messages_of_a_side(module: gpu.ModuleOp) -> list[list[Operation]]:
    """
    The branches for taking or sending messages in warps at a block's edge: one list a side and
    kind.
    """
    found: dict[tuple[SSAValue, type[Operation]], list[Operation]] = {}
    for branch in [op for op in module.walk() if isinstance(op, scf.IfOp)]:
        kinds = {type(op) for op in branch.true_region.block.ops} & {simt.TakeOp, simt.PostOp}
        for kind in kinds:
            found.setdefault((branch.cond, kind), []).append(branch)
    return list(found.values())


def halves(module: gpu.ModuleOp) -> list[list[Operation]]:
    """Every arrival and every wait."""
    return [[op] for op in module.walk() if isinstance(op, simt.ArriveOp | simt.WaitOp)]


NOT_TOLD = (
    "waits for message|overwrites message|never set|waits for phase|as initialised"
    "|without a synchronisation between"
)
"""The interpreter's report on a kernel of blocks without messages from each other."""


def assert_each_is_needed(
    kernels: ProgramKernels,
    threads: gpu.ModuleOp,
    program: Program,
    group: Callable[[gpu.ModuleOp], list[list[Operation]]],
) -> int:
    """A kernel passes, and fails without any one of its groups of operations; their number."""
    run_blocks(kernels, threads.clone(), program)
    count = len(group(threads))
    for number in range(count):
        module = threads.clone()
        for op in group(module)[number]:
            Rewriter.erase_op(op)
        with pytest.raises(SimtError, match=NOT_TOLD):
            run_blocks(kernels, module, program)
    return count


@pytest.mark.parametrize("group", [messages_of_a_side, halves])
def test_every_message_of_a_generated_kernel_is_needed(
    group: Callable[[gpu.ModuleOp], list[list[Operation]]],
):
    """
    A kernel passes; without the takes or sends of a side, or a warp's arrival or wait, the kernel
    fails.
    """
    kernels, threads, program = kernel_of_blocks(2)
    count = assert_each_is_needed(kernels, threads, program, group)
    assert count >= 4, "both sides take and send, and warps arrive and wait"


NOT_MET = "without a synchronisation between|are not numbered one after the other"
"""The interpreter's report on missed barriers."""


@pytest.mark.parametrize("every", [1, 2])
def test_every_barrier_of_the_blocks_of_a_generated_kernel_is_needed(every: int):
    """
    With any barrier of the grid reduced to a barrier of the block, a block reads others' cells too
    early, or misses a number.
    """
    streaming = Streaming(sync=Sync.GRID, every=every)
    # Enough planes for the steady loop, unrolled by more for rare barriers.
    schedule = replace(MEETING, streaming=streaming)
    kernels, threads, program = kernel_of_blocks(2, schedule, planes=9 * every)
    run_blocks(kernels, threads.clone(), program)
    count = sum(isinstance(op, simt.TileBarrierOp) for op in threads.walk())
    assert count, "blocks meet somewhere"
    for number in range(count):
        module = threads.clone()
        barriers = [op for op in module.walk() if isinstance(op, simt.TileBarrierOp)]
        Rewriter.replace_op(barriers[number], gpu.BarrierOp())
        with pytest.raises(SimtError, match=NOT_MET):
            run_blocks(kernels, module, program)


def test_every_barrier_of_a_resident_tile_is_needed():
    """
    Warps read at the corners cells taken by other warps from the blocks beside: without a barrier
    in between, too early.
    """
    schedule = Schedule(
        "resident", solid(TileLevel.DEVICE, (2, 2, 1), (1, 4, 1), blocks=4), planes=None
    )
    program = entry("box-3d").make((6, 6, 28))
    compiled = timetile.compile(
        program_text(program), executor="simt", passes=schedule.passes(2), cache=False
    )
    kernels, threads = compiled.kernels, compiled.kernels.threads("run_d2")
    run_blocks(kernels, threads.clone(), program)
    # The first barrier stands between the tile and the tile before.
    _, *barriers = [op for op in threads.walk() if isinstance(op, gpu.BarrierOp)]
    assert len(barriers) == 2, "one for each level"
    for number in range(1, 3):
        module = threads.clone()
        Rewriter.erase_op([op for op in module.walk() if isinstance(op, gpu.BarrierOp)][number])
        with pytest.raises(SimtError, match="without a synchronisation between"):
            run_blocks(kernels, module, program)


def block_barriers(module: gpu.ModuleOp) -> list[list[Operation]]:
    """Every barrier of a block but the first, which stands between two tiles."""
    _, *barriers = [op for op in module.walk() if isinstance(op, gpu.BarrierOp)]
    return [[op] for op in barriers]


@pytest.mark.parametrize(("group", "count"), [(messages_of_a_side, 16), (block_barriers, 4)])
def test_every_message_and_barrier_between_blocks_along_two_axes_is_needed(
    group: Callable[[gpu.ModuleOp], list[list[Operation]]], count: int
):
    """
    Of a box, blocks send rows, columns and corners, to eight sides. A barrier stands between the
    plane and the gathering of columns, and between taking and reading.
    """
    tiling = device_plane((3, 1), 2, 2, "none", across=2)
    schedule = Schedule("square", tiling, planes=None)
    program = entry("box-2d").make((7, 43))
    compiled = timetile.compile(
        program_text(program), executor="simt", passes=schedule.passes(2), cache=False
    )
    kernels, threads = compiled.kernels, compiled.kernels.threads("run_d2")
    found = assert_each_is_needed(kernels, threads, program, group)
    assert found == count, "sides and barriers of two levels, in one variant"


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (APART, "overwrites message 0, and cannot know that it was taken"),
        (MEETING, "overwrites what another thread may still read"),
    ],
    ids=["messages", "barriers"],
)
def test_a_slot_of_a_generated_kernel_is_needed(schedule: Schedule, message: str):
    """If the edges of two steps share a slot, one edge may overwrite an edge before the take."""
    kernels, threads, program = kernel_of_blocks(2, schedule)
    (slot,) = {min(op.places) for op in threads.walk() if isinstance(op, simt.PostOp)} - {0}
    module = threads.clone()
    for op in module.walk():
        if isinstance(op, simt.PostOp | simt.TakeOp):
            op.offsets = encode_integers([place % slot for place in op.places])
    with pytest.raises(SimtError, match=message):
        run_blocks(kernels, module, program)
