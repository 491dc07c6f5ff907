"""
What the SIMT interpreter finds: races, missing synchronisation, wild and misaligned accesses, values
that were never set, and threads that part where they must not. Each kernel is written by hand, and has
a corrected twin that passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser
from xdsl.rewriter import Rewriter

import timetile
from support.catalogue import entry
from support.description import Array, Program, random_inputs
from support.programs import program_text
from support.schedules import Schedule, block_plane, cluster_plane, device_plane, warp_row
from timetile.dialects import nvvm, simt
from timetile.dialects.syntax import encode_integers
from timetile.dialects.tile import LaunchOp
from timetile.passes.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.executors import SimtRunner
from timetile.runtime.kernels import ProgramKernels, launch_fact
from timetile.runtime.loading import make_context
from timetile.runtime.simt.errors import SimtError
from timetile.runtime.simt.interpreter import Launch
from timetile.runtime.simt.memory import Buffer

CELLS = 128
"""Cells of the kernels' field and of their shared buffer."""

FIELD = f"memref<{CELLS}xf64, 1 : i64>"
SHARED = f"memref<{CELLS}xf64, 3 : i64>"

MAIL_WORDS = 4 * CELLS
"""Words of messages: two slots for a cell of every thread of two blocks."""

MAIL = f"memref<{MAIL_WORDS}xi64, 1 : i64>"

BARRIER = '"gpu.barrier"() : () -> ()'
WARP_SYNC = '"nvvm.bar.warp.sync"(%full) : (i32) -> ()'

PROLOGUE = f"""
%full = arith.constant -1 : i32
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%two = arith.constant 2 : i32
%last = arith.constant 63 : i32
%width = arith.constant 64 : i32
%x = arith.constant 1.5 : f64
%thread_index = "gpu.thread_id"() <{{dimension = #gpu<dim x>}}> : () -> index
%t = arith.index_cast %thread_index : index to i32
%block_index = "gpu.block_id"() <{{dimension = #gpu<dim x>}}> : () -> index
%b = arith.index_cast %block_index : index to i32
%mirrored = arith.subi %last, %t : i32
%shift = arith.constant 5 : i32
%warp = arith.shrui %t, %shift : i32
%neighbour = arith.xori %t, %one : i32
%double = arith.muli %t, %two : i32
%s = simt.shared at 0 : {SHARED}
"""


def launch(body: str, *, grid: int = 1, block: int = 64, cluster: int = 1, apart: int = 1) -> Array:
    """Run a kernel of one field of 0, 1, 2, ..., and of words of messages; return what is in the field then."""
    text = f"""
"gpu.module"() <{{sym_name = "m"}}> ({{
  "gpu.func"() <{{function_type = ({FIELD}, {MAIL}) -> (), kernel}}> ({{
  ^entry(%f: {FIELD}, %mail: {MAIL}):
    {PROLOGUE}
    {body}
    "gpu.return"() : () -> ()
  }}) {{sym_name = "k"}} : () -> ()
}}) : () -> ()
"""
    module = Parser(make_context(), text).parse_module()
    module.verify()
    function = next(op for op in module.walk() if isinstance(op, gpu.FuncOp))
    field = Buffer(np.arange(float(CELLS)))
    mail = Buffer(np.zeros(MAIL_WORDS, dtype=np.int64))
    Launch(function, grid, block, [field, mail], cluster, apart).run()
    return field.data


@dataclass(frozen=True)
class Case:
    """A wrong kernel, what the interpreter says of it, and the kernel put right."""

    name: str
    wrong: str
    message: str
    right: str
    grid: int = 1
    cluster: int = 1
    apart: int = 1


WRITE_SHARED = """
%v = simt.load %f[%t + 0] : f64
simt.store %v to %s[%t + 0]
"""
READ_MIRRORED = """
%w = simt.load %s[%mirrored + 0] : f64
simt.store %w to %f[%t + 0]
"""
READ_NEIGHBOUR = """
%w = simt.load %s[%neighbour + 0] : f64
simt.store %w to %f[%t + 0]
"""
OVERWRITE = "simt.store %x to %s[%t + 0]\n"
COMMIT = '"nvvm.cp.async.commit.group"() : () -> ()\n'
COPY = f"simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8\n{COMMIT}"
LATER_COPY = f"simt.copy_async %s[%t + 64], %f[%t + 64] bytes 8\n{COMMIT}"


def wait(pending: int) -> str:
    return f'"nvvm.cp.async.wait.group"() <{{n = {pending} : i32}}> : () -> ()\n'


def by_threads_below(limit: int, body: str) -> str:
    """The body, run by the first threads of the block only."""
    return f"""
%limit = arith.constant {limit} : i32
%taken = arith.cmpi slt, %t, %limit : i32
scf.if %taken {{
{body}
}}
"""


RACES = [
    Case(
        "read-after-write",
        WRITE_SHARED + READ_MIRRORED,
        "%w = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without a "
        "synchronisation between; the other access is simt.store %v to %s[%t + 0]",
        WRITE_SHARED + BARRIER + READ_MIRRORED,
    ),
    Case(
        "read-after-write-inside-a-warp",
        WRITE_SHARED + READ_NEIGHBOUR,
        "%w = simt.load %s[%neighbour + 0] : f64: reads what another thread wrote, cell 1, without a "
        "synchronisation between; the other access is simt.store %v to %s[%t + 0]",
        WRITE_SHARED + WARP_SYNC + READ_NEIGHBOUR,
    ),
    Case(
        "warp-sync-between-warps",
        WRITE_SHARED + WARP_SYNC + READ_MIRRORED,
        "%w = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without a "
        "synchronisation between; the other access is simt.store %v to %s[%t + 0]",
        WRITE_SHARED + WARP_SYNC + BARRIER + READ_MIRRORED,
    ),
    Case(
        "write-after-read",
        WRITE_SHARED + BARRIER + READ_MIRRORED + OVERWRITE,
        "simt.store %x to %s[%t + 0]: overwrites what another thread may still read, cell 0, without "
        "a synchronisation between; the other access is %w = simt.load %s[%mirrored + 0] : f64",
        WRITE_SHARED + BARRIER + READ_MIRRORED + BARRIER + OVERWRITE,
    ),
    Case(
        "write-after-read-inside-a-warp",
        WRITE_SHARED + WARP_SYNC + READ_NEIGHBOUR + OVERWRITE,
        "simt.store %x to %s[%t + 0]: overwrites what another thread may still read, cell 0, without "
        "a synchronisation between; the other access is %w = simt.load %s[%neighbour + 0] : f64",
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
        "simt.store %x to %s[%t + 0]: overwrites what another thread may still read, cell 0, without "
        "a synchronisation between; the other access is %z = simt.load %s[%mirrored + 0] : f64",
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
        "simt.store %x to %s[%mirrored + 0]: overwrites what another thread wrote, cell 63, without a "
        "synchronisation between; the other access is simt.store %x to %s[%t + 0]",
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
        "%w = simt.load %s[%neighbour + 0] : f64: reads what another thread wrote, cell 1, without a "
        "synchronisation between; the other access is simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8",
        COPY + wait(0) + WARP_SYNC + READ_NEIGHBOUR,
    ),
    Case(
        "a-copy-waited-for-after-the-barrier",
        COPY + BARRIER + "\n" + wait(0) + READ_MIRRORED,
        "%w = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without a "
        "synchronisation between; the other access is simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8",
        COPY + wait(0) + BARRIER + READ_MIRRORED,
    ),
    Case(
        "a-copy-over-one-that-is-on-its-way",
        COPY + COPY + wait(0),
        "simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8: copies to cell 0 while a copy to it is on its way",
        COPY + wait(0) + COPY + wait(0),
    ),
]

UNSET = [
    Case(
        "shared-memory-starts-unset",
        "%w = simt.load %s[%t + 0] : f64\nsimt.store %w to %f[%t + 0]",
        "simt.store %w to %f[%t + 0]: stores a value that was never set to cell 0",
        WRITE_SHARED + "%w = simt.load %s[%t + 0] : f64\nsimt.store %w to %f[%t + 0]",
    ),
    Case(
        "what-is-made-of-unset-values",
        "%u = simt.unset : f64\n%w = arith.addf %u, %x : f64\nsimt.store %w to %f[%t + 64]",
        "simt.store %w to %f[%t + 64]: stores a value that was never set to cell 64",
        "%u = simt.unset : f64\n%w = arith.addf %u, %x : f64\n%all = arith.cmpi slt, %t, %full : i32\n"
        "%v = arith.select %all, %w, %x : f64\nsimt.store %v to %f[%t + 64]",
    ),
    Case(
        "a-load-whose-mask-is-off",
        "%low = arith.cmpi slt, %t, %two : i32\n%w = simt.load %f[%t + 0] mask %low : f64\n"
        "simt.store %w to %f[%t + 0]",
        "simt.store %w to %f[%t + 0]: stores a value that was never set to cell 2",
        "%low = arith.cmpi slt, %t, %two : i32\n%w = simt.load %f[%t + 0] mask %low : f64\n"
        "simt.store %w to %f[%t + 0] mask %low",
    ),
    Case(
        "a-shuffle-from-beyond-the-warp",
        "%v = simt.load %f[%t + 0] : f64\n%w = simt.shuffle %v delta -1 : f64\n"
        "simt.store %w to %f[%t + 64]",
        "simt.store %w to %f[%t + 64]: stores a value that was never set to cell 64",
        "%v = simt.load %f[%t + 0] : f64\n%w = simt.shuffle %v delta -1 : f64\n"
        "%lane = arith.remui %t, %two : i32\n%odd = arith.cmpi eq, %lane, %one : i32\n"
        "simt.store %w to %f[%t + 64] mask %odd",
    ),
    Case(
        "a-mask-that-is-unset",
        "%u = simt.unset : f64\n%m = arith.cmpf olt, %u, %x : f64\n"
        "simt.store %x to %f[%t + 0] mask %m",
        "simt.store %x to %f[%t + 0] mask %m: its mask depends on an unset value",
        "%m = arith.cmpf olt, %x, %x : f64\nsimt.store %x to %f[%t + 0] mask %m",
    ),
    Case(
        "a-copy-read-too-early",
        COPY
        + LATER_COPY
        + wait(1)
        + "%w = simt.load %s[%t + 64] : f64\nsimt.store %w to %f[%t + 0]",
        "simt.store %w to %f[%t + 0]: stores a value that was never set to cell 0",
        COPY
        + LATER_COPY
        + wait(0)
        + "%w = simt.load %s[%t + 64] : f64\nsimt.store %w to %f[%t + 0]",
    ),
    Case(
        "a-copy-whose-mask-is-off",
        "%low = arith.cmpi slt, %t, %two : i32\n"
        f"simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8 mask %low\n{COMMIT}{wait(0)}"
        "%w = simt.load %s[%t + 0] : f64\nsimt.store %w to %f[%t + 0]",
        "simt.store %w to %f[%t + 0]: stores a value that was never set to cell 2",
        "%low = arith.cmpi slt, %t, %two : i32\n"
        f"simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8 mask %low\n{COMMIT}{wait(0)}"
        "%w = simt.load %s[%t + 0] : f64\nsimt.store %w to %f[%t + 0] mask %low",
    ),
]

WILD = [
    Case(
        "a-load-beyond-the-end",
        "%w = simt.load %f[%t + 65] : f64",
        "%w = simt.load %f[%t + 65] : f64: accesses cell 128 of a buffer of 128",
        "%w = simt.load %f[%t + 64] : f64",
    ),
    Case(
        "a-store-before-the-start",
        "simt.store %x to %f[%t + -1]",
        "simt.store %x to %f[%t + -1]: accesses cell -1 of a buffer of 128",
        "%m = arith.cmpi sge, %t, %one : i32\nsimt.store %x to %f[%t + -1] mask %m",
    ),
    Case(
        "the-shared-memory-of-another-block",
        "simt.store %x to %s[%t + 128]",
        "simt.store %x to %s[%t + 128]: accesses cell 128 of a buffer of 128",
        "simt.store %x to %s[%t + 0]",
        grid=2,
    ),
    Case(
        "a-copy-from-beyond-the-end",
        "simt.copy_async %s[%t + 0], %f[%t + 100] bytes 8",
        "simt.copy_async %s[%t + 0], %f[%t + 100] bytes 8: accesses cell 128 of a buffer of 128",
        "%m = arith.cmpi slt, %t, %two : i32\n"
        "simt.copy_async %s[%t + 0], %f[%t + 100] bytes 8 mask %m",
    ),
    Case(
        "a-misaligned-load",
        "%v, %w = simt.load %f[%zero + 1] : f64, f64",
        "%v, %w = simt.load %f[%zero + 1] : f64, f64: an access of 2 cells is not aligned",
        "%v, %w = simt.load %f[%double + 0] : f64, f64",
    ),
    Case(
        "a-misaligned-store",
        "%m = arith.cmpi slt, %t, %two : i32\nsimt.store %x, %x to %f[%double + 3] mask %m",
        "simt.store %x, %x to %f[%double + 3] mask %m: an access of 2 cells is not aligned",
        "%m = arith.cmpi slt, %t, %two : i32\nsimt.store %x, %x to %f[%double + 2] mask %m",
    ),
    Case(
        "a-misaligned-copy",
        "%m = arith.cmpi slt, %t, %two : i32\n"
        "simt.copy_async %s[%double + 0], %f[%double + 1] bytes 16 mask %m",
        "simt.copy_async %s[%double + 0], %f[%double + 1] bytes 16 mask %m: "
        "a copy of 16 bytes is not aligned",
        "%m = arith.cmpi slt, %t, %two : i32\n"
        "simt.copy_async %s[%double + 0], %f[%double + 2] bytes 16 mask %m",
    ),
]

LOOP = """
%turns = arith.addi {bound}, %one : i32
scf.for %i = %zero to %turns step %one : i32 {{
  {body}
}}
"""

DIVERGENT = [
    Case(
        "a-barrier-for-some-warps",
        by_threads_below(32, BARRIER),
        '"gpu.barrier"() : () -> (): only some threads of a block reach it',
        by_threads_below(64, BARRIER),
    ),
    Case(
        "a-barrier-for-some-lanes",
        by_threads_below(7, BARRIER),
        '"gpu.barrier"() : () -> (): only some threads of a block reach it',
        by_threads_below(7, "%y = arith.addf %x, %x : f64") + BARRIER,
    ),
    Case(
        "a-barrier-in-loops-of-unequal-length",
        LOOP.format(bound="%warp", body=BARRIER),
        '"gpu.barrier"() : () -> (): only some threads of a block reach it',
        LOOP.format(bound="%b", body=BARRIER),
    ),
    Case(
        "a-warp-sync-for-some-lanes",
        by_threads_below(40, WARP_SYNC),
        '"nvvm.bar.warp.sync"(%full) : (i32) -> (): only some lanes of a warp reach it',
        by_threads_below(32, WARP_SYNC),
    ),
    Case(
        "a-shuffle-for-some-lanes",
        by_threads_below(40, "%w = simt.shuffle %x delta 1 : f64"),
        "%w = simt.shuffle %x delta 1 : f64: only some lanes of a warp reach it",
        by_threads_below(32, "%w = simt.shuffle %x delta 1 : f64"),
    ),
    Case(
        "what-is-not-uniform",
        "%u = simt.uniform %t : i32",
        "%u = simt.uniform %t : i32: the lanes of a warp differ",
        "%u = simt.uniform %warp : i32",
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
        "%y = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without a "
        "synchronisation between; the other access is simt.store %x to %s[%t + 0]",
        READY + BARRIER + MINE + "\n" + ARRIVE + "\n" + WAIT + "\n" + THEIRS,
    ),
    Case(
        "written-after-the-arrival",
        READY + BARRIER + ARRIVE + "\n" + MINE + "\n" + WAIT + "\n" + THEIRS,
        "%y = simt.load %s[%mirrored + 0] : f64: reads what another thread wrote, cell 63, without a "
        "synchronisation between; the other access is simt.store %x to %s[%t + 0]",
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
        f"simt.arrive %w phase %zero : {WORDS}: nothing before it sees to it that the arrivals are ready",
        READY + BARRIER + ARRIVE + "\n" + WAIT,
    ),
    Case(
        "cells-of-another-block-at-once",
        "\n".join((READY, OTHERS, CLUSTER, SEND, EXPECT, OWN, WAIT)),
        "%y = simt.load %s[%t + 0] : f64: reads what another thread wrote, cell 0, without a "
        "synchronisation between; the other access is simt.send %x to %peer[%t + 0] arrivals %there phase %zero",
        "\n".join((READY, OTHERS, CLUSTER, SEND, EXPECT, WAIT, OWN)),
        grid=2,
        cluster=2,
    ),
    Case(
        "sent-over-what-is-still-read",
        "\n".join((READY, MINE, OTHERS, CLUSTER, OWN, SEND, EXPECT, WAIT)),
        "simt.send %x to %peer[%t + 0] arrivals %there phase %zero: overwrites what another thread may "
        "still read, cell 128, without a synchronisation between; the other access is %y = simt.load "
        "%s[%t + 0] : f64",
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


INBOX = """
%three = arith.constant 3 : i32
%start = arith.muli %b, %width : i32
%here = arith.addi %start, %t : i32
%mine = arith.muli %here, %two : i32
%beside = arith.xori %b, %one : i32
%start_beside = arith.muli %beside, %width : i32
%there = arith.addi %start_beside, %t : i32
%theirs = arith.muli %there, %two : i32
"""
"""Two blocks: the words in which a thread finds what the same thread of the other block sends it."""


def post(number: str, offset: int = 0) -> str:
    return f"simt.post %x to %mail[%theirs + {offset}] number %{number}"


def take(number: str, offset: int = 0, result: str = "y") -> str:
    return f"%{result} = simt.take %mail[%mine + {offset}] number %{number} : f64"


def tile_barrier(number: str = "one", blocks: int = 2) -> str:
    return f"simt.tile_barrier %mail[] number %{number} blocks {blocks}"


def apart(name: str, wrong: Sequence[str], message: str, right: Sequence[str]) -> Case:
    """A case of two blocks that send each other messages."""
    return Case(
        name, "\n".join((INBOX, *wrong)), message, "\n".join((INBOX, *right)), grid=2, apart=2
    )


ROUNDS = (post("one"), take("one"), post("two", 256), take("two", 256, "z"))
"""Two messages each way, in two slots: who has taken the second one knows that its own first was taken."""

PLAIN_POST = "simt.post %x to %mail[%theirs + 0]"
PLAIN_TAKE = "%y = simt.take %mail[%mine + 0] : f64"
"""What barriers order has no number."""

STORE_HERE = "simt.store %x to %f[%here + 0]"
LOAD_THERE = "%z = simt.load %f[%there + 0] : f64"

IF_FIRST = "%is_first = arith.cmpi eq, %b, %zero : i32"


def branch(first: Sequence[str], second: Sequence[str]) -> str:
    """What the first block does, and what the second one."""
    return f"scf.if %is_first {{ {' '.join(first)} }} else {{ {' '.join(second)} }}"


MESSAGES = [
    apart(
        "a-message-that-nobody-sends",
        (take("one"),),
        f"{take('one')}: waits for message 1, which nobody sends",
        (post("one"), take("one")),
    ),
    apart(
        "each-block-waits-for-the-other-first",
        (take("one"), post("one")),
        f"{take('one')}: waits for message 1, which nobody sends",
        (post("one"), take("one")),
    ),
    apart(
        "both-sides-of-a-branch-wait-first",
        (IF_FIRST, branch((take("one"), post("one")), (take("one"), post("one")))),
        f"{take('one')}: waits for message 1, which nobody sends",
        (IF_FIRST, branch((take("one"), post("one")), (post("one"), take("one")))),
    ),
    apart(
        "a-later-message-is-there",
        (post("two"), take("one")),
        f"{take('one')}: waits for message 1, and message 2 is there",
        (post("two"), take("two")),
    ),
    apart(
        "over-a-message-that-nobody-took",
        (post("one"), post("two")),
        f"{post('two')}: overwrites message 1, which nobody has taken",
        (post("one"), post("two", 256)),
    ),
    apart(
        "a-slot-too-few",
        (post("one"), take("one"), post("two")),
        f"{post('two')}: overwrites message 1, and cannot know that it was taken",
        (*ROUNDS, post("three")),
    ),
    apart(
        "over-the-message-before-the-first",
        (take("zero"), post("one")),
        f"{post('one')}: overwrites message 0, and cannot know that it was taken",
        (take("zero"), post("one", 256), take("one", 256, "z"), post("two")),
    ),
    apart(
        "heard-of-by-another-lane",
        (
            *ROUNDS[:2],
            "%swapped = arith.xori %theirs, %two : i32",
            "simt.post %x to %mail[%swapped + 256] number %two",
            *(take("two", 256, "z"), post("three")),
        ),
        f"{post('three')}: overwrites message 1, and cannot know that it was taken",
        (*ROUNDS, post("three")),
    ),
    apart(
        "two-write-one-message",
        ("simt.post %x to %mail[%double + 0] number %one",),
        "simt.post %x to %mail[%double + 0] number %one: two threads write one message",
        (post("one"),),
    ),
    apart(
        "a-message-beyond-the-words",
        (post("one", 384),),
        f"{post('one', 384)}: a message at word 512 of a buffer of {MAIL_WORDS}",
        (post("one", 256),),
    ),
    apart(
        "half-a-message-of-eight-bytes",
        (take("zero", 1),),
        f"{take('zero', 1)}: a message at word 1 of a buffer of {MAIL_WORDS}",
        ("%y = simt.take %mail[%mine + 1] number %zero : f32",),
    ),
    apart(
        "a-message-for-some-lanes",
        (by_threads_below(40, take("zero")),),
        f"{take('zero')}: only some lanes of a warp reach it",
        (by_threads_below(32, take("zero")),),
    ),
    apart(
        "the-message-that-nobody-sends-is-unset",
        (take("zero"), "simt.store %y to %f[%here + 0]"),
        "simt.store %y to %f[%here + 0]: stores a value that was never set to cell 0",
        (post("one"), take("one"), "simt.store %y to %f[%here + 0]"),
    ),
    apart(
        "a-message-orders-nothing-else",
        (STORE_HERE, post("one"), take("one"), LOAD_THERE),
        f"{LOAD_THERE}: reads what another thread wrote, cell 64, without a synchronisation between; the "
        f"other access is {STORE_HERE}",
        (STORE_HERE, tile_barrier(), LOAD_THERE),
    ),
    apart(
        "a-cell-that-no-barrier-publishes",
        (PLAIN_POST, BARRIER, PLAIN_TAKE),
        f"{PLAIN_TAKE}: reads what another thread wrote, cell 0, without a synchronisation between; the "
        f"other access is {PLAIN_POST}",
        (PLAIN_POST, tile_barrier(), PLAIN_TAKE),
    ),
    apart(
        "over-a-cell-that-others-still-read",
        (PLAIN_POST, tile_barrier(), PLAIN_TAKE, PLAIN_POST),
        f"{PLAIN_POST}: overwrites what another thread may still read, cell 128, without a "
        f"synchronisation between; the other access is {PLAIN_TAKE}",
        (PLAIN_POST, tile_barrier(), PLAIN_TAKE, tile_barrier("two"), PLAIN_POST),
    ),
    apart(
        "a-tile-barrier-for-one-block",
        (IF_FIRST, f"scf.if %is_first {{ {tile_barrier()} }}"),
        f"{tile_barrier()}: only some blocks of a tile reach it",
        (IF_FIRST, branch((tile_barrier(),), (tile_barrier(),))),
    ),
    apart(
        "a-tile-barrier-twice",
        (tile_barrier(), tile_barrier()),
        f"{tile_barrier()}: the barriers of a tile are not numbered one after the other",
        (tile_barrier(), tile_barrier("two")),
    ),
    apart(
        "a-tile-barrier-of-more-blocks",
        (tile_barrier(blocks=3),),
        f"{tile_barrier(blocks=3)}: a tile has 4 warps",
        (tile_barrier(),),
    ),
]


@pytest.mark.parametrize(
    "case", [*RACES, *UNSET, *WILD, *DIVERGENT, *TWO_HALVES, *MESSAGES], ids=lambda case: case.name
)
def test_what_is_wrong_is_found_and_what_is_right_passes(case: Case):
    with pytest.raises(SimtError) as caught:
        launch(case.wrong, grid=case.grid, cluster=case.cluster, apart=case.apart)
    assert str(caught.value) == case.message
    launch(case.right, grid=case.grid, cluster=case.cluster, apart=case.apart)


TILING = block_plane((3, 2), (4, 1))
PLACED = [
    Schedule("edges-a-step-late", TILING, streaming=Streaming(delay=1), planes=23),
    Schedule("edges-at-once", TILING, streaming=Streaming(delay=0), planes=23),
    Schedule("two-halves", TILING, streaming=Streaming(sync="mbarrier"), planes=23),
    Schedule(
        "two-halves-of-a-cluster",
        cluster_plane((3, 2), 2, 2),
        streaming=Streaming(sync="mbarrier"),
        planes=23,
    ),
    Schedule(
        "planes-in-shared-memory",
        TILING,
        Buffering(storage="shared", addressing="computed"),
        streaming=None,
        planes=23,
    ),
    Schedule(
        "planes-shared-by-one-warp",
        warp_row(cells=2),
        Buffering(storage="shared", addressing="computed"),
        streaming=None,
        planes=23,
    ),
]


FOUND = (
    "without a synchronisation between|waits for phase|nobody waited for phase|arrivals are ready"
)
"""What the interpreter says of a kernel that lacks a synchronisation."""


def is_synchronisation(op: Operation) -> bool:
    halves = simt.ArriveOp | simt.WaitOp | simt.ClusterBarrierOp
    return isinstance(op, gpu.BarrierOp | nvvm.WarpSyncOp | halves)


@pytest.mark.parametrize("schedule", PLACED, ids=lambda schedule: schedule.name)
def test_every_synchronisation_of_a_generated_kernel_is_needed(schedule: Schedule):
    """A kernel passes; with any one of its barriers removed it has a race."""
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
        grid, block, cluster = (launch_fact(module, n) for n in ("grid", "block", "cluster"))
        Launch(function, grid, block, [u, v, u, v], cluster).run()

    run(without=None)
    count = sum(is_synchronisation(op) for op in threads.walk())
    assert count, "the kernel synchronises somewhere"
    for number in range(count):
        with pytest.raises(SimtError, match=FOUND):
            run(without=number)


APART = Schedule(
    "messages-between-blocks", device_plane((4, 1), 2, 2), streaming=Streaming(delay=1), planes=None
)
"""Two blocks of two warps, which copy what they load and send each other the edges of one level."""

MEETING = replace(APART, name="barriers-between-blocks", streaming=Streaming(delay=1, sync="grid"))
"""The same blocks, which meet once a step."""


def kernel_of_blocks(
    depth: int, schedule: Schedule = APART
) -> tuple[ProgramKernels, gpu.ModuleOp, Program]:
    """A kernel whose tile the device holds, at the thread level, and its program."""
    program = entry("heat-3d").make((9, 10, 29))
    text = program_text(program)
    compiled = timetile.compile(text, executor="simt", passes=schedule.passes(depth), cache=False)
    return compiled.kernels, compiled.kernels.threads(f"run_d{depth}"), program


def run_blocks(kernels: ProgramKernels, threads: gpu.ModuleOp, program: Program) -> None:
    """Launch a kernel as the executor does, with the messages' words that it needs."""
    runner = SimtRunner(kernels)
    name = threads.sym_name.data
    runner.threads[name] = threads
    u, v = (Buffer(array) for array in random_inputs(program, seed=1).arrays.values())
    launch_op = LaunchOp.create(properties={"kernel": SymbolRefAttr(name)})
    runner.launch(launch_op, [u, v, u, v], {})


def messages_of_a_side(module: gpu.ModuleOp) -> list[list[Operation]]:
    """The branches in which warps at a block's edge take, or send, messages: one list a side and kind."""
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
    "waits for message|overwrites message|never set|waits for phase|arrivals are ready"
    "|without a synchronisation between"
)
"""What the interpreter says of a kernel whose blocks do not hear of each other."""


@pytest.mark.parametrize("group", [messages_of_a_side, halves])
def test_every_message_of_a_generated_kernel_is_needed(
    group: Callable[[gpu.ModuleOp], list[list[Operation]]],
):
    """A kernel passes; if one side takes or sends nothing, or a warp does not arrive or wait, it does not."""
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
"""The same of blocks that miss a barrier."""


def test_every_barrier_of_the_blocks_of_a_generated_kernel_is_needed():
    """With any barrier left to the block alone, a block reads what the others wrote, or misses a number."""
    kernels, threads, program = kernel_of_blocks(2, MEETING)
    run_blocks(kernels, threads.clone(), program)
    count = sum(isinstance(op, simt.TileBarrierOp) for op in threads.walk())
    assert count, "blocks meet somewhere"
    for number in range(count):
        module = threads.clone()
        barriers = [op for op in module.walk() if isinstance(op, simt.TileBarrierOp)]
        Rewriter.replace_op(barriers[number], gpu.BarrierOp())
        with pytest.raises(SimtError, match=NOT_MET):
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
    """Where the edges of two steps share a slot, one is written over what may not have been taken."""
    kernels, threads, program = kernel_of_blocks(2, schedule)
    (slot,) = {min(op.places) for op in threads.walk() if isinstance(op, simt.PostOp)} - {0}
    module = threads.clone()
    for op in module.walk():
        if isinstance(op, simt.PostOp | simt.TakeOp):
            op.offsets = encode_integers([place % slot for place in op.places])
    with pytest.raises(SimtError, match=message):
        run_blocks(kernels, module, program)
