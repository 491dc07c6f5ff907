"""
Kernels of threads, written by hand: most kernels are wrong, and the SIMT interpreter must report
the fault. Each wrong kernel has a corrected twin without a report.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects import gpu
from xdsl.parser import Parser

from support.description import Array
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.interpreter import SimtLaunch
from timetile.runtime.executors.simt.memory import Buffer
from timetile.runtime.loading.modules import make_context

CELLS = 128
"""Cells of the kernels' field and of the shared buffer."""

FIELD = f"memref<{CELLS}xf64, 1 : i64>"
SHARED = f"memref<{CELLS}xf64, 3 : i64>"

MESSAGE_WORDS = 4 * CELLS
"""Words of messages: two slots for a cell of every thread of two blocks."""

WORDS = f"memref<{MESSAGE_WORDS}xi64, 1 : i64>"

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


def launch(
    body: str, *, grid: int = 1, block: int = 64, cluster: int = 1, blocks_per_tile: int = 1
) -> Array:
    """Run a kernel on a field of 0, 1, 2, ..., and on words of messages; return the field."""
    text = f"""
"gpu.module"() <{{sym_name = "m"}}> ({{
  "gpu.func"() <{{function_type = ({FIELD}, {WORDS}) -> (), kernel}}> ({{
  ^entry(%f: {FIELD}, %buffer: {WORDS}):
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
    words = Buffer(np.zeros(MESSAGE_WORDS, dtype=np.int64))
    SimtLaunch(function, grid, block, [field, words], cluster, blocks_per_tile).run()
    return field.data


@dataclass(frozen=True)
class Case:
    """A wrong kernel, the interpreter's report, and the corrected kernel."""

    name: str
    wrong: str
    message: str
    right: str
    grid: int = 1
    cluster: int = 1
    blocks_per_tile: int = 1


WRITE_SHARED = """
%v = simt.load %f[%t + 0] : f64
simt.store %v to %s[%t + 0]
"""
COMMIT = '"nvvm.cp.async.commit.group"() : () -> ()\n'
COPY = f"simt.copy_async %s[%t + 0], %f[%t + 0] bytes 8\n{COMMIT}"


def wait(pending: int) -> str:
    """Wait for all groups of copies but the newest."""
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


def check(case: Case) -> None:
    """
    The interpreter reports the fault of the wrong kernel, and nothing for the corrected kernel.
    """
    with pytest.raises(SimtError) as caught:
        launch(
            case.wrong, grid=case.grid, cluster=case.cluster, blocks_per_tile=case.blocks_per_tile
        )
    assert str(caught.value) == case.message
    launch(case.right, grid=case.grid, cluster=case.cluster, blocks_per_tile=case.blocks_per_tile)
