"""
Races inside a block and between the blocks of a cluster, found by the SIMT interpreter: accesses
without order by a barrier, an arrival or a synchronisation of the warp. Kernels are written by
hand; in generated kernels every synchronisation is needed.
"""

from __future__ import annotations

import pytest
from xdsl.dialects import gpu
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

import timetile
from support.catalogue import entry
from support.description import random_inputs
from support.kernels import (
    BARRIER,
    CELLS,
    COPY,
    SHARED,
    WARP_SYNC,
    WRITE_SHARED,
    Case,
    by_threads_below,
    check,
    wait,
)
from support.programs import program_text
from support.schedules import Schedule, block_plane, cluster_plane, warp_row
from support.sizes import spread
from timetile.dialects import nvvm, simt
from timetile.dialects.tile import Addressing, Published, Storage, Sync
from timetile.dialects.tile.kinds import RingUse
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.interpreter import SimtLaunch
from timetile.runtime.executors.simt.memory import Buffer
from timetile.runtime.kernels.lowered import launch_facts

READ_MIRRORED = """
%w = simt.load %s[%mirrored + 0] : f64
simt.store %w to %f[%t + 0]
"""
READ_NEIGHBOUR = """
%w = simt.load %s[%neighbour + 0] : f64
simt.store %w to %f[%t + 0]
"""
OVERWRITE = "simt.store %x to %s[%t + 0]\n"

RACES = [
    Case(
        "read-after-write",
        WRITE_SHARED + READ_MIRRORED,
        "%w = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without "
        "a synchronisation between; the other access is simt.store %v to %s[%t + 0]",
        WRITE_SHARED + BARRIER + READ_MIRRORED,
    ),
    Case(
        "read-after-write-inside-a-warp",
        WRITE_SHARED + READ_NEIGHBOUR,
        "%w = simt.load %s[%neighbour + 0] : f64: reads what another thread wrote, cell 1, without "
        "a synchronisation between; the other access is simt.store %v to %s[%t + 0]",
        WRITE_SHARED + WARP_SYNC + READ_NEIGHBOUR,
    ),
    Case(
        "warp-sync-between-warps",
        WRITE_SHARED + WARP_SYNC + READ_MIRRORED,
        "%w = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without "
        "a synchronisation between; the other access is simt.store %v to %s[%t + 0]",
        WRITE_SHARED + WARP_SYNC + BARRIER + READ_MIRRORED,
    ),
    Case(
        "write-after-read",
        WRITE_SHARED + BARRIER + READ_MIRRORED + OVERWRITE,
        "simt.store %x to %s[%t + 0]: overwrites what another thread may still read, cell 0, "
        "without a synchronisation between; the other access is %w = simt.load %s[%mirrored + 0] : "
        "f64",
        WRITE_SHARED + BARRIER + READ_MIRRORED + BARRIER + OVERWRITE,
    ),
    Case(
        "write-after-read-inside-a-warp",
        WRITE_SHARED + WARP_SYNC + READ_NEIGHBOUR + OVERWRITE,
        "simt.store %x to %s[%t + 0]: overwrites what another thread may still read, cell 0, "
        "without a synchronisation between; the other access is %w = simt.load %s[%neighbour + 0] "
        ": f64",
        WRITE_SHARED + WARP_SYNC + READ_NEIGHBOUR + WARP_SYNC + OVERWRITE,
    ),
    Case(
        "write-after-the-reads-of-two-warps",
        WRITE_SHARED
        + BARRIER
        + READ_NEIGHBOUR
        + "%z = simt.load %s[%mirrored + 0] : f64\n"
        + WARP_SYNC
        + OVERWRITE,
        "simt.store %x to %s[%t + 0]: overwrites what another thread may still read, cell 0, "
        "without a synchronisation between; the other access is %z = simt.load %s[%mirrored + 0] : "
        "f64",
        WRITE_SHARED
        + BARRIER
        + READ_NEIGHBOUR
        + "%z = simt.load %s[%mirrored + 0] : f64\n"
        + BARRIER
        + OVERWRITE,
    ),
    Case(
        "write-after-write",
        "simt.store %x to %s[%t + 0]\nsimt.store %x to %s[%mirrored + 0]",
        "simt.store %x to %s[%mirrored + 0]: overwrites what another thread wrote, cell 63, "
        "without a synchronisation between; the other access is simt.store %x to %s[%t + 0]",
        f"simt.store %x to %s[%t + 0]\n{BARRIER}\nsimt.store %x to %s[%mirrored + 0]",
    ),
    Case(
        "two-writers-at-once",
        "simt.store %x to %f[%zero + 7]",
        "simt.store %x to %f[%zero + 7]: two threads write cell 7 at once",
        "%first = arith.cmpi eq, %t, %zero : i32\nsimt.store %x to %f[%zero + 7] mask %first",
    ),
    Case(
        "two-blocks-write-one-cell",
        "simt.store %x to %f[%t + 0]",
        "simt.store %x to %f[%t + 0]: two threads write cell 0 at once",
        "%first = arith.muli %b, %width : i32\n%at = arith.addi %first, %t : i32\n"
        "simt.store %x to %f[%at + 0]",
        grid=2,
    ),
    Case(
        "a-block-reads-what-another-wrote",
        "%own = arith.cmpi eq, %b, %zero : i32\n"
        f"simt.store %x to %f[%t + 0] mask %own\n{BARRIER}\n"
        "%w = simt.load %f[%t + 0] : f64",
        "%w = simt.load %f[%t + 0] : f64: reads what another thread wrote, cell 0, without a "
        "synchronisation between; the other access is simt.store %x to %f[%t + 0] mask %own",
        "%own = arith.cmpi eq, %b, %zero : i32\n"
        f"simt.store %x to %f[%t + 0] mask %own\n{BARRIER}\n"
        "%w = simt.load %f[%t + 0] mask %own : f64",
        grid=2,
    ),
    Case(
        "a-copy-that-nobody-waited-for",
        COPY + READ_NEIGHBOUR,
        "%w = simt.load %s[%neighbour + 0] : f64: reads what another thread wrote, cell 1, without "
        "a synchronisation between; the other access is simt.copy_async %s[%t + 0], %f[%t + 0] "
        "bytes 8",
        COPY + wait(0) + WARP_SYNC + READ_NEIGHBOUR,
    ),
    Case(
        "a-copy-waited-for-after-the-barrier",
        COPY + BARRIER + "\n" + wait(0) + READ_MIRRORED,
        "%w = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without "
        "a synchronisation between; the other access is simt.copy_async %s[%t + 0], %f[%t + 0] "
        "bytes 8",
        COPY + wait(0) + BARRIER + READ_MIRRORED,
    ),
    Case(
        "a-copy-over-one-that-is-on-its-way",
        COPY + COPY + wait(0),
        "simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8: copies to cell 0 while a copy to it is on "
        "its way",
        COPY + wait(0) + COPY + wait(0),
    ),
]


WORDS = "memref<2xi64, 3 : i64>"
READY = f"""
%w = simt.shared at 1024 : {WORDS}
%first = arith.cmpi eq, %t, %zero : i32
scf.if %first {{ simt.expect %w warps 2 }}
"""
MINE = "simt.store %x to %s[%t + 0]"
THEIRS = "%y = simt.load %s[%mirrored + 0] : f64"
ARRIVE = f"simt.arrive %w phase %zero : {WORDS}"
WAIT = f"simt.wait %w phase %zero : {WORDS}"

OTHERS = f"""
%rank = arith.xori %b, %one : i32
%peer = simt.peer %s block %rank : {SHARED} -> memref<{CELLS}xf64, 7 : i64>
%there = simt.peer %w block %rank : {WORDS} -> memref<2xi64, 7 : i64>
%is_first = arith.cmpi eq, %t, %zero : i32
%size = arith.constant 512 : i32
%bytes = arith.select %is_first, %size, %zero : i32
"""
SEND = "simt.send %x to %peer[%t + 0] arrivals %there phase %zero"
EXPECT = f"simt.arrive %w phase %zero bytes %bytes : {WORDS}"
OWN = "%y = simt.load %s[%t + 0] : f64"
CLUSTER = "simt.cluster_barrier"

TWO_HALVES = [
    Case(
        "arrivals-that-nobody-waits-for",
        READY + BARRIER + MINE + "\n" + ARRIVE + "\n" + THEIRS,
        "%y = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without "
        "a synchronisation between; the other access is simt.store %x to %s[%t + 0]",
        READY + BARRIER + MINE + "\n" + ARRIVE + "\n" + WAIT + "\n" + THEIRS,
    ),
    Case(
        "written-after-the-arrival",
        READY + BARRIER + ARRIVE + "\n" + MINE + "\n" + WAIT + "\n" + THEIRS,
        "%y = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without "
        "a synchronisation between; the other access is simt.store %x to %s[%t + 0]",
        READY + BARRIER + MINE + "\n" + ARRIVE + "\n" + WAIT + "\n" + THEIRS,
    ),
    Case(
        "a-phase-in-which-some-never-arrive",
        READY + BARRIER + by_threads_below(32, ARRIVE) + WAIT,
        f"simt.wait %w phase %zero : {WORDS}: waits for phase 0, which is not complete",
        READY + BARRIER + by_threads_below(64, ARRIVE) + WAIT,
    ),
    Case(
        "arrivals-that-may-not-be-ready",
        READY + ARRIVE + "\n" + WAIT,
        f"simt.arrive %w phase %zero : {WORDS}: no earlier barrier shows the arrivals as "
        "initialised",
        READY + BARRIER + ARRIVE + "\n" + WAIT,
    ),
    Case(
        "cells-of-another-block-at-once",
        "\n".join((READY, OTHERS, CLUSTER, SEND, EXPECT, OWN, WAIT)),
        "%y = simt.load %s[%t + 0] : f64: reads what another thread wrote, cell 0, without a "
        "synchronisation between; the other access is simt.send %x to %peer[%t + 0] arrivals "
        "%there phase %zero",
        "\n".join((READY, OTHERS, CLUSTER, SEND, EXPECT, WAIT, OWN)),
        grid=2,
        cluster=2,
    ),
    Case(
        "sent-over-what-is-still-read",
        "\n".join((READY, MINE, OTHERS, CLUSTER, OWN, SEND, EXPECT, WAIT)),
        "simt.send %x to %peer[%t + 0] arrivals %there phase %zero: overwrites what another thread "
        "may still read, cell 128, without a synchronisation between; the other access is %y = "
        "simt.load %s[%t + 0] : f64",
        "\n".join((READY, MINE, OWN, OTHERS, CLUSTER, SEND, EXPECT, WAIT)),
        grid=2,
        cluster=2,
    ),
    Case(
        "more-bytes-than-are-sent",
        "\n".join((READY, OTHERS, CLUSTER, EXPECT, WAIT)),
        f"simt.wait %w phase %zero : {WORDS}: waits for phase 0, which is not complete",
        "\n".join((READY, OTHERS, CLUSTER, SEND, EXPECT, WAIT)),
        grid=2,
        cluster=2,
    ),
    Case(
        "sent-to-a-block-that-ends",
        "\n".join((READY, OTHERS, CLUSTER, SEND, EXPECT)),
        "block 0 ends, and nobody waited for phase 0",
        "\n".join((READY, OTHERS, CLUSTER, SEND, EXPECT, WAIT)),
        grid=2,
        cluster=2,
    ),
    Case(
        "a-cluster-barrier-for-one-block",
        "%here = arith.cmpi eq, %b, %zero : i32\nscf.if %here { " + CLUSTER + " }",
        "simt.cluster_barrier: only some threads of a cluster reach it",
        CLUSTER,
        grid=2,
        cluster=2,
    ),
]


@pytest.mark.parametrize("case", [*RACES, *TWO_HALVES], ids=lambda case: case.name)
def test_races_of_barriers_and_arrivals_are_found_and_correct_twins_pass(case: Case):
    check(case)


TILING = block_plane((3, 2), (4, 1))
PLACED = [
    Schedule("edges-a-step-late", TILING, streaming=Streaming(delay=1), planes=23),
    Schedule("edges-at-once", TILING, streaming=Streaming(delay=0), planes=23),
    Schedule(
        "two-planes-for-all-levels",
        TILING,
        streaming=Streaming(delay=0, what=Published.PLANE, ring=RingUse.SHARED),
        planes=23,
    ),
    Schedule("two-halves", TILING, streaming=Streaming(sync=Sync.MBARRIER), planes=23),
    Schedule(
        "two-halves-of-a-cluster",
        cluster_plane((3, 2), 2, 2),
        streaming=Streaming(sync=Sync.MBARRIER),
        planes=23,
    ),
    Schedule(
        "planes-in-shared-memory",
        TILING,
        Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED),
        streaming=None,
        planes=23,
    ),
    Schedule(
        "planes-shared-by-one-warp",
        warp_row(cells=2),
        Buffering(storage=Storage.SHARED, addressing=Addressing.COMPUTED),
        streaming=None,
        planes=23,
    ),
]


FOUND = "without a synchronisation between|waits for phase|nobody waited for phase|as initialised"
"""The interpreter's report on a kernel without one synchronisation."""


def is_synchronisation(op: Operation) -> bool:
    halves = simt.ArriveOp | simt.WaitOp | simt.ClusterBarrierOp
    return isinstance(op, gpu.BarrierOp | nvvm.WarpSyncOp | halves)


@pytest.mark.parametrize("schedule", PLACED, ids=lambda schedule: schedule.name)
def test_every_synchronisation_of_a_generated_kernel_is_needed(schedule: Schedule):
    """
    A kernel passes; without one of its barriers the kernel has a race: tested for a part of the
    barriers, or for each, by profile.
    """
    in_plane = len(schedule.tiling.cells or ())
    name, domain = ("heat-3d", (31, 7, 29)) if in_plane == 2 else ("heat-2d", (31, 61))
    program = entry(name).make(domain)
    compiled = timetile.compile(
        program_text(program), executor="simt", passes=schedule.passes(2), cache=False
    )
    threads = compiled.kernels.threads("run_d2")

    def run(without: int | None) -> None:
        module = threads.clone()
        barriers = [op for op in module.walk() if is_synchronisation(op)]
        if without is not None:
            Rewriter.erase_op(barriers[without])
        function = next(op for op in module.walk() if isinstance(op, gpu.FuncOp))
        u, v = (Buffer(array) for array in random_inputs(program, seed=1).arrays.values())
        facts = launch_facts(module)
        counts = facts.grid.data, facts.block.data
        SimtLaunch(function, *counts, [u, v, u, v], facts.cluster.data).run()

    run(without=None)
    count = sum(is_synchronisation(op) for op in threads.walk())
    assert count, "the kernel synchronises somewhere"
    for number in spread(range(count)):
        with pytest.raises(SimtError, match=FOUND):
            run(without=number)
