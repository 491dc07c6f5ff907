"""
Kernels that read a field at computed places, or write there: a thread copies a cell.

```
gpu.func @gather8(%target: memref<1xi64, 1>, %source: memref<1xi64, 1>,
    %place0: memref<1xi64, 1>, %place1, %place2, %cells: i64, %low0: i64, %last0: i64, ...) kernel {
  ...
  %is_cell = arith.cmpi slt, %cell, %cells : i64
  %p = simt.load %place0[%cell + 0] mask %is_cell : i64
  %a = arith.maxsi %p, %low0 : i64
  %b = arith.minsi %a, %last0 : i64
  ...
  %v = simt.load %source[%at + 0] mask %is_cell : i64
  simt.store %v to %target[%cell + 0] mask %is_cell
```
Sizes are parameters: one kernel serves all fields with cells of a size. A place outside the source
is the nearest place inside.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, i8, i16, i32, i64
from xdsl.ir import Block, SSAValue

from timetile.dialects.simt import LoadOp, StoreOp
from timetile.dialects.simt.buffers import GLOBAL_SPACE, buffer_type
from timetile.lowering.emitter import Emitter
from timetile.lowering.whole_kernels import block_of_launch, module_of_kernel, thread_of_block

MOST_AXES = 3

THREADS = 256
"""Threads of a block."""

WORDS = {1: i8, 2: i16, 4: i32, 8: i64}
"""The type of a cell's bits, by bytes."""


def gather_name(cell_bytes: int, *, scatter: bool = False) -> str:
    """The kernel's name."""
    return f"{'scatter' if scatter else 'gather'}{cell_bytes}"


def gather_kernel(cell_bytes: int, *, scatter: bool = False) -> ModuleOp:
    """
    A module with the kernel for cells of 1, 2, 4 or 8 bytes, at the level of threads. With
    `scatter` the places are in the target, and the source has a cell for each.
    """
    cell, place = WORDS[cell_bytes], buffer_type(i64, 1, GLOBAL_SPACE)
    field = buffer_type(cell, 1, GLOBAL_SPACE)
    fields = [field, field, *[place] * MOST_AXES]
    entry = Block(arg_types=[*fields, *[i64] * (1 + 3 * MOST_AXES)])
    target, source, *places = entry.args[: len(fields)]
    cells, *sizes = entry.args[len(fields) :]
    emit = Emitter(entry)
    before = emit.mul_int(emit.extend(block_of_launch(emit), i64), THREADS)
    number = emit.add_int(before, emit.extend(thread_of_block(emit), i64))
    is_cell = emit.compare("slt", number, cells)
    far: SSAValue = emit.int(0, i64)
    for axis, at in enumerate(places):
        low, last, step = sizes[3 * axis : 3 * axis + 3]
        found = emit.add(LoadOp(at, number, 0, [i64], is_cell)).cells[0]
        found = emit.binary(arith.MinSIOp, emit.binary(arith.MaxSIOp, found, low), last)
        distance = emit.arithmetic(arith.MuliOp, emit.sub_int(found, low), step)
        far = emit.add_int(far, distance)
    read, written = (number, far) if scatter else (far, number)
    value = emit.add(LoadOp(source, read, 0, [cell], is_cell)).cells[0]
    emit.add(StoreOp([value], target, written, 0, is_cell))
    return module_of_kernel(gather_name(cell_bytes, scatter=scatter), entry, 0, THREADS)
