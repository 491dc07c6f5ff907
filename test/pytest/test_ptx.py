"""
The code for the GPU, without a GPU: all PTX of the table assembles, the default schedules do not
spill, and the inner loops hold no more instructions than needed by the stencil.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from xdsl.dialects import arith, gpu, scf
from xdsl.dialects import math as xmath
from xdsl.ir import Operation

import timetile
from support.catalogue import CATALOGUE, Domain, Entry, entry
from support.programs import program_text
from support.schedules import Schedule, block_plane, block_row, device_plane, warp_row
from support.sizes import is_nightly
from timetile.dialects import nvvm, simt
from timetile.dialects.simt import SHARED_SPACE, address_space
from timetile.dialects.tile import Addressing, Form, Published, Storage, Sync
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.kernels.assembler import AssemblerError, assemble
from timetile.runtime.kernels.kernel import Kernel

pytestmark = pytest.mark.covering


def made_kernels(case: Entry, depth: int | None, arch: str) -> list[Kernel]:
    """
    The kernels of a program: the deepest kernel and the kernel of a single step; in `make nightly`
    all kernels.
    """
    text = program_text(case.make(case.domains[0]))
    compiled = timetile.compile(text, executor="simt", depth=depth, arch=arch, cache=False)
    names = [fact.name for loop in compiled.kernels.facts for fact in loop]
    if not is_nightly():
        names = [names[0], *names[1:][-1:]]
    return [compiled.kernels.make(name) for name in names]


@pytest.mark.covering(every=4)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("case", CATALOGUE, ids=lambda case: case.name)
def test_default_schedules_assemble_without_spills(case: Entry, arch: str):
    kernels = made_kernels(case, None, arch)
    assert kernels[-1].name == "run_step"
    for kernel in kernels:
        assert f".visible .entry {kernel.name}(" in kernel.ptx
        assert f".target {arch}\n" in kernel.ptx
        assert kernel.cubin and 0 < kernel.registers <= 255
        assert kernel.spill_bytes == 0


def test_the_assembler_says_what_is_wrong():
    with pytest.raises(AssemblerError, match=r"undefined symbol|Unknown symbol|%r9"):
        assemble(
            ".version 8.0\n.target sm_90\n.address_size 64\n"
            ".visible .entry k() { add.s32 %r9, 1, 1; ret; }\n",
            "sm_90",
        )


def test_every_rounding_is_explicit():
    """ptxas contracts plain products and sums; explicitly rounded operations stay."""
    for kernel in made_kernels(entry("roots-2d"), 2, "sm_90"):
        instructions = {line.split()[0] for line in kernel.ptx.splitlines() if line.strip()}
        floating = {word for word in instructions if word.endswith((".f64", ".f32"))}
        rounded = ("add", "sub", "mul", "div", "fma", "sqrt", "rcp")
        # The start of Newton's method has nothing to contract.
        modes = (".rn.", ".approx.")
        plain = {w for w in floating if w.startswith(rounded) and not any(m in w for m in modes)}
        assert floating and not plain


# The steady loop of the interior: per stream step, for all of a thread's cells and levels.

DEPTH = 3

FOR_SOME = simt.CopyAsyncOp | simt.PostOp | simt.TakeOp
"""Some threads have more to copy than others, and only warps at a block's edge send messages."""


def kind_of(op: Operation) -> str | None:
    """The counted name of an operation."""
    match op:
        case arith.MulfOp() | xmath.FmaOp() | arith.AddfOp():
            return op.name
        case simt.ShuffleOp():
            return "shuffle"
        case simt.CopyAsyncOp():
            return "copy"
        case simt.LoadOp() | simt.StoreOp():
            space = "shared" if address_space(op.buffer) == SHARED_SPACE else "global"
            return f"{'load' if isinstance(op, simt.LoadOp) else 'store'} {space}"
        case simt.PostOp() | simt.TakeOp() | simt.TileBarrierOp() | simt.ArriveOp() | simt.WaitOp():
            return op.name.removeprefix("simt.")
        case scf.IfOp() if any(isinstance(inner, FOR_SOME) for inner in op.walk()):
            return None
        case simt.OverrideOp() | scf.IfOp():
            return "guard"
        case gpu.BarrierOp():
            return "barrier"
        case nvvm.WarpSyncOp():
            return "warp sync"
        case _:
            return None


@cache
def steady_loop(name: str, domain: Domain, schedule: Schedule) -> dict[str, float]:
    """
    The operations of one stream step of the deepest kernel's interior: a loop without any guard,
    with stores.
    """
    text = program_text(entry(name).make(domain))
    compiled = timetile.compile(text, executor="simt", passes=schedule.passes(DEPTH), cache=False)
    threads = compiled.kernels.threads(f"run_d{DEPTH}")
    counts = [
        (op, Counter(kind for inner in op.body.walk() if (kind := kind_of(inner)) is not None))
        for op in threads.walk()
        if isinstance(op, scf.ForOp)
    ]
    loop, count = next(
        (loop, count) for loop, count in counts if not count["guard"] and count["store global"]
    )
    turns = integer_constant(loop.step)
    assert turns
    return {kind: number / turns for kind, number in count.items()}


STREAMED = Schedule("streamed", warp_row(cells=4, pack=4), Buffering(ahead=3))
DOMAIN = (64, 512)


def test_a_star_in_a_warp_takes_one_shuffle_to_each_side_and_no_barrier():
    """Four cells a thread: five terms a cell and level, one shuffle to each side, no barrier."""
    assert steady_loop("heat-2d", DOMAIN, STREAMED) == {
        "arith.mulf": 4 * DEPTH,
        "math.fma": 4 * 4 * DEPTH,
        "shuffle": 2 * DEPTH,
        # Two doubles, or 16 bytes, at a time, dealt to successive lanes: a row changes hands
        # after loading, and before storing.
        "copy": 2,
        "load shared": 2 + 2,
        "store shared": 2,
        "store global": 2,
        "warp sync": 2,
    }


def test_a_box_cut_into_rows_shuffles_each_plane_once():
    """Nine terms a cell and level; every plane is shuffled once, when new."""
    rows = replace(STREAMED, form=Form.ROWS)
    assert steady_loop("box-2d", DOMAIN, rows) == {
        "arith.mulf": 4 * DEPTH,
        "math.fma": 8 * 4 * DEPTH,
        "shuffle": 2 * DEPTH,
        # A row of 514 singles: 8 bytes at a time are aligned in memory, 16 in shared memory.
        "copy": 2,
        "load shared": 1 + 2,
        "store shared": 1,
        "store global": 2,
        "warp sync": 2,
    }


def test_a_gathering_box_shuffles_all_planes():
    count = steady_loop("box-2d", DOMAIN, STREAMED)
    assert count["shuffle"] == 3 * 2 * DEPTH
    assert count["math.fma"] == 8 * 4 * DEPTH


@pytest.mark.parametrize(("delay", "barriers"), [(0, DEPTH), (1, 1)])
def test_edges_a_step_late_need_one_barrier(delay: int, barriers: int):
    """
    Published at once, every level waits for the neighbours; a step later, one wait serves all
    levels.
    """
    tiling = block_plane((3, 2), (4, 1))
    schedule = Schedule(
        "volume", tiling, Buffering(ahead=3), Streaming(delay=delay, what=Published.EDGES)
    )
    count = steady_loop("heat-3d", (64, 64, 128), schedule)
    assert count["barrier"] == barriers
    assert count["math.fma"] == 6 * (3 * 2) * DEPTH
    # Per level and row: one shuffle to each side; per level: an edge row read from each side.
    assert count["shuffle"] == 2 * 3 * DEPTH
    assert count["load shared"] == 2 * DEPTH + 3
    assert count["store shared"] == 2 * DEPTH


def test_copies_serve_the_first_level():
    """
    Nothing of the loaded field is published; the neighbours' cells are read at the target of the
    copies.
    """
    tiling = block_plane((3, 2), (4, 1))
    schedule = Schedule("volume", tiling, Buffering(ahead=3), Streaming(delay=1))
    count = steady_loop("heat-3d", (64, 64, 128), schedule)
    assert count["barrier"] == 1
    assert count["store shared"] == 2 * (DEPTH - 1)
    # The other levels shuffle, and the first level shuffles along the lanes; rows come from
    # shared memory.
    assert count["shuffle"] == 2 * 3 * DEPTH
    assert count["load shared"] == 2 * DEPTH + 3
    # Three rows of the thread, and the threads' shares of the two rows around the tile.
    assert count["copy"] == 3 + 1


def test_planes_in_shared_memory_need_one_synchronisation():
    """
    One circular multi-queue for all levels: a warp waits once a step, a block too. Rows with
    changed hands before stores need one more wait of the warp.
    """
    shared = Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED)
    warp = Schedule("warp", warp_row(cells=4, pack=4), shared, streaming=None)
    assert steady_loop("heat-2d", DOMAIN, warp)["warp sync"] == 1 + 1
    block = Schedule("block", block_row(cells=4), shared, streaming=None)
    count = steady_loop("heat-2d", DOMAIN, block)
    assert count["barrier"] == 1
    assert "shuffle" not in count


APART = Schedule(
    "apart",
    device_plane((3, 2), 4, 3),
    Buffering(ahead=3),
    Streaming(delay=1),
    exchanged=Addressing.FIXED,
)


def test_blocks_send_one_message_a_side():
    """
    The edges of all levels are sent together, and received together; the slots of messages, with a
    period like the loop's, need no computation.
    """
    count = steady_loop("heat-3d", (64, 64, 128), APART)
    assert (count["post"], count["take"]) == (2, 2)
    assert (count["wait"], count["arrive"]) == (1, 1)
    assert "barrier" not in count
    # The loaded level is copied; both edges of the other levels are published, and received edges
    # are put beside.
    assert count["store shared"] == (2 + 2) * (DEPTH - 1)
    assert count["load shared"] == 2 * DEPTH + 3


def test_blocks_meet_once_a_step():
    """One barrier serves all levels, and is the block's own as well."""
    meeting = replace(APART, streaming=Streaming(delay=1, sync=Sync.GRID))
    count = steady_loop("heat-3d", (64, 64, 128), meeting)
    assert (count["post"], count["take"]) == (2, 2)
    assert count["tile_barrier"] == 1
    assert not count.keys() & {"barrier", "wait", "arrive"}
