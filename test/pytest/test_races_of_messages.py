"""
Faults of messages between blocks, and of the barriers of a tile, found by the SIMT interpreter:
messages nobody sends, messages overwritten before a take, accesses without order by a message.
Kernels are written by hand; in generated kernels every message, barrier and slot is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

import timetile
from support.catalogue import entry
from support.description import Program, random_inputs
from support.kernels import BARRIER, MESSAGE_WORDS, Case, by_threads_below, check
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

BUFFER = """
%three = arith.constant 3 : i32
%start = arith.muli %b, %width : i32
%here = arith.addi %start, %t : i32
%mine = arith.muli %here, %two : i32
%beside = arith.xori %b, %one : i32
%start_beside = arith.muli %beside, %width : i32
%there = arith.addi %start_beside, %t : i32
%theirs = arith.muli %there, %two : i32
"""
"""
Two blocks: the words for messages to a thread from the thread of equal number in the other block.
"""


def post(number: str, offset: int = 0) -> str:
    return f"simt.post %x to %buffer[%theirs + {offset}] number %{number}"


def take(number: str, offset: int = 0, result: str = "y") -> str:
    return f"%{result} = simt.take %buffer[%mine + {offset}] number %{number} : f64"


def tile_barrier(number: str = "one", blocks: int = 2) -> str:
    return f"simt.tile_barrier %buffer[] number %{number} blocks {blocks}"


def two_blocks(name: str, wrong: Sequence[str], message: str, right: Sequence[str]) -> Case:
    """A case of two blocks that send each other messages."""
    return Case(
        name,
        "\n".join((BUFFER, *wrong)),
        message,
        "\n".join((BUFFER, *right)),
        grid=2,
        blocks_per_tile=2,
    )


ROUNDS = (post("one"), take("one"), post("two", 256), take("two", 256, "z"))
"""
Two messages each way, in two slots: a block with the second message knows of the take of its own
first message.
"""

PLAIN_POST = "simt.post %x to %buffer[%theirs + 0]"
PLAIN_TAKE = "%y = simt.take %buffer[%mine + 0] : f64"
"""Accesses ordered by barriers have no number."""

STORE_HERE = "simt.store %x to %f[%here + 0]"
LOAD_THERE = "%z = simt.load %f[%there + 0] : f64"

IF_FIRST = "%is_first = arith.cmpi eq, %b, %zero : i32"


def branch(first: Sequence[str], second: Sequence[str]) -> str:
    """The code of the first block, and of the second."""
    return f"scf.if %is_first {{ {' '.join(first)} }} else {{ {' '.join(second)} }}"


NUMBER = "%n = simt.launches_ended %buffer : i32"
LATER = "%later = simt.launches_ended %buffer : i32"
END = "simt.end_launch %buffer number %n"


def by_first(body: str) -> Sequence[str]:
    """The body, run by the first thread of a block."""
    return (by_threads_below(1, body),)


MESSAGES = [
    two_blocks(
        "a-message-that-nobody-sends",
        (take("one"),),
        f"{take('one')}: waits for message 1, which nobody sends",
        (post("one"), take("one")),
    ),
    two_blocks(
        "each-block-waits-for-the-other-first",
        (take("one"), post("one")),
        f"{take('one')}: waits for message 1, which nobody sends",
        (post("one"), take("one")),
    ),
    two_blocks(
        "both-sides-of-a-branch-wait-first",
        (IF_FIRST, branch((take("one"), post("one")), (take("one"), post("one")))),
        f"{take('one')}: waits for message 1, which nobody sends",
        (IF_FIRST, branch((take("one"), post("one")), (post("one"), take("one")))),
    ),
    two_blocks(
        "a-later-message-is-there",
        (post("two"), take("one")),
        f"{take('one')}: waits for message 1, and message 2 is there",
        (post("two"), take("two")),
    ),
    two_blocks(
        "over-a-message-that-nobody-took",
        (post("one"), post("two")),
        f"{post('two')}: overwrites message 1, which no thread has taken",
        (post("one"), post("two", 256)),
    ),
    two_blocks(
        "a-slot-too-few",
        (post("one"), take("one"), post("two")),
        f"{post('two')}: overwrites message 1, and cannot know that it was taken",
        (*ROUNDS, post("three")),
    ),
    two_blocks(
        "over-the-message-before-the-first",
        (take("zero"), post("one")),
        f"{post('one')}: overwrites message 0, and cannot know that it was taken",
        (take("zero"), post("one", 256), take("one", 256, "z"), post("two")),
    ),
    two_blocks(
        "heard-of-by-another-lane",
        (
            *ROUNDS[:2],
            "%swapped = arith.xori %theirs, %two : i32",
            "simt.post %x to %buffer[%swapped + 256] number %two",
            *(take("two", 256, "z"), post("three")),
        ),
        f"{post('three')}: overwrites message 1, and cannot know that it was taken",
        (*ROUNDS, post("three")),
    ),
    two_blocks(
        "two-write-one-message",
        ("simt.post %x to %buffer[%double + 0] number %one",),
        "simt.post %x to %buffer[%double + 0] number %one: two threads write one message",
        (post("one"),),
    ),
    two_blocks(
        "a-message-beyond-the-words",
        (post("one", 384),),
        f"{post('one', 384)}: a message at word 512 of a buffer of {MESSAGE_WORDS}",
        (post("one", 256),),
    ),
    two_blocks(
        "half-a-message-of-eight-bytes",
        (take("zero", 1),),
        f"{take('zero', 1)}: a message at word 1 of a buffer of {MESSAGE_WORDS}",
        ("%y = simt.take %buffer[%mine + 1] number %zero : f32",),
    ),
    two_blocks(
        "a-message-for-some-lanes",
        (by_threads_below(40, take("zero")),),
        f"{take('zero')}: only some lanes of a warp reach it",
        (by_threads_below(32, take("zero")),),
    ),
    two_blocks(
        "the-message-that-nobody-sends-is-unset",
        (take("zero"), "simt.store %y to %f[%here + 0]"),
        "simt.store %y to %f[%here + 0]: stores a value that was never set to cell 0",
        (post("one"), take("one"), "simt.store %y to %f[%here + 0]"),
    ),
    two_blocks(
        "a-message-orders-nothing-else",
        (STORE_HERE, post("one"), take("one"), LOAD_THERE),
        f"{LOAD_THERE}: reads what another thread wrote, cell 64, without a synchronisation "
        f"between; the other access is {STORE_HERE}",
        (STORE_HERE, tile_barrier(), LOAD_THERE),
    ),
    two_blocks(
        "a-cell-that-no-barrier-publishes",
        (PLAIN_POST, BARRIER, PLAIN_TAKE),
        f"{PLAIN_TAKE}: reads what another thread wrote, cell 0, without a synchronisation "
        f"between; the other access is {PLAIN_POST}",
        (PLAIN_POST, tile_barrier(), PLAIN_TAKE),
    ),
    two_blocks(
        "over-a-cell-that-others-still-read",
        (PLAIN_POST, tile_barrier(), PLAIN_TAKE, PLAIN_POST),
        f"{PLAIN_POST}: overwrites what another thread may still read, cell 128, without a "
        f"synchronisation between; the other access is {PLAIN_TAKE}",
        (PLAIN_POST, tile_barrier(), PLAIN_TAKE, tile_barrier("two"), PLAIN_POST),
    ),
    two_blocks(
        "a-tile-barrier-for-one-block",
        (IF_FIRST, f"scf.if %is_first {{ {tile_barrier()} }}"),
        f"{tile_barrier()}: only some blocks of a tile reach it",
        (IF_FIRST, branch((tile_barrier(),), (tile_barrier(),))),
    ),
    two_blocks(
        "a-tile-barrier-twice",
        (tile_barrier(), tile_barrier()),
        f"{tile_barrier()}: the barriers of a tile are not numbered one after the other",
        (tile_barrier(), tile_barrier("two")),
    ),
    two_blocks(
        "a-tile-barrier-of-more-blocks",
        (tile_barrier(blocks=3),),
        f"{tile_barrier(blocks=3)}: a tile has 4 warps",
        (tile_barrier(),),
    ),
    two_blocks(
        "a-launch-that-ends-before-all-have-its-number",
        (IF_FIRST, branch((NUMBER, *by_first(END)), ())),
        f"{END}: ends a launch whose number block 1 does not know",
        (NUMBER, IF_FIRST, branch(by_first(END), ())),
    ),
    two_blocks(
        "a-launch-that-two-threads-end",
        (NUMBER, END),
        f"{END}: ends a launch that another thread ends",
        (NUMBER, IF_FIRST, branch(by_first(END), ())),
    ),
    two_blocks(
        "the-number-of-a-launch-that-has-ended",
        (NUMBER, IF_FIRST, branch(by_first(END), ()), LATER),
        f"{LATER}: counts the launches before one that has ended",
        (NUMBER, LATER, IF_FIRST, branch(by_first(END), ())),
    ),
]


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case.name)
def test_races_of_messages_are_found_and_correct_twins_pass(case: Case):
    check(case)


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


@pytest.mark.parametrize("group", [messages_of_a_side, halves])
def test_every_message_of_a_generated_kernel_is_needed(
    group: Callable[[gpu.ModuleOp], list[list[Operation]]],
):
    """
    A kernel passes; without the takes or sends of a side, or a warp's arrival or wait, the kernel
    fails.
    """
    kernels, threads, program = kernel_of_blocks(2)
    run_blocks(kernels, threads.clone(), program)
    count = len(group(threads))
    assert count >= 4, "both sides take and send, and warps arrive and wait"
    for number in range(count):
        module = threads.clone()
        for op in group(module)[number]:
            Rewriter.erase_op(op)
        with pytest.raises(SimtError, match=NOT_TOLD):
            run_blocks(kernels, module, program)


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
