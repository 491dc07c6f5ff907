"""Addresses, loads, stores and asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from timetile.dialects import nvvm, simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.simt import GLOBAL_SPACE, SHARED_SPACE, address_space
from timetile.lowering.ptx.symbols import SHARED_SYMBOL
from timetile.lowering.ptx.text import access_kind, element_bytes, move_kind, together, zero_literal
from timetile.lowering.ptx.writer import Writer
from timetile.passes.targets.hardware import VECTOR_BYTES

LINE_HINT = ".L2::128B"
"""
Lets the second-level cache fetch the line that a sector lies in: the next lanes, or the tile
beside, want the rest.
"""


def address(w: Writer, pointer: SSAValue, offset: int = 0) -> str:
    """`[register+bytes]`."""
    base, constant = w.offsets.get(pointer, ("", 0))
    total = constant + offset
    register = base or w.use(pointer)
    return f"[{register}+{total}]" if total else f"[{register}]"


def guard(w: Writer, mask: SSAValue | None) -> str:
    """`@register `, or nothing where all threads take part."""
    return "" if mask is None else f"@{w.use(mask)} "


def print_gep(w: Writer, op: llvm.GEPOp) -> None:
    """Print a pointer plus an index; constants are folded into the addresses."""
    size = element_bytes(op.elem_type)
    (constant,) = op.rawConstantIndices.get_values()
    pointer, *indices = op.operands
    if not indices:
        base, known = w.offsets.get(pointer, ("", 0))
        w.offsets[op.result] = (base or w.use(pointer), known + int(constant) * size)
        return
    index = indices[0]
    base, name = w.use(pointer), w.use(index)
    if address_space(pointer) != GLOBAL_SPACE:
        w.line(f"mad.lo.s32 {w.define(op.result)}, {name}, {size}, {base}")
    elif index.type == i32:
        w.line(f"mad.wide.s32 {w.define(op.result)}, {name}, {size}, {base}")
    else:
        w.line(f"mad.lo.s64 {w.define(op.result)}, {name}, {size}, {base}")


def access(
    w: Writer, word: str, op: simt.LoadOp | simt.StoreOp | simt.OverrideOp, registers: list[str]
) -> None:
    """Print a load or a store of one or several cells, under a mask."""
    kind = op.cell_types[0]
    buffer, _, mask = op.place
    space = "shared" if address_space(buffer) == SHARED_SPACE else "global"
    vector, data = together(registers)
    where = address(w, buffer, op.offset.value.data * CELL_BYTES[kind])
    operands = f"{data}, {where}" if word == "ld" else f"{where}, {data}"
    w.line(f"{guard(w, mask)}{word}.{space}{vector}.{access_kind(kind)} {operands}")


def print_load(w: Writer, op: simt.LoadOp) -> None:
    """Print a load. Where the mask is off, registers are undefined, or 0 if set before."""
    registers = [w.define(cell) for cell in op.cells]
    if op in w.loads_to_set:
        kind = op.cell_types[0]
        for register in registers:
            w.line(f"mov.{move_kind(kind)} {register}, {zero_literal(kind)}")
    access(w, "ld", op, registers)


def print_store(w: Writer, op: simt.StoreOp) -> None:
    """Print a store."""
    access(w, "st", op, [w.in_register(cell) for cell in op.cells])


def print_override(w: Writer, op: simt.OverrideOp) -> None:
    """Print an override: a load under a mask that keeps old values."""
    registers: list[str] = []
    for cell, result in zip(op.cells, op.res):
        register = w.define(result)
        w.line(f"mov.{move_kind(cell.type)} {register}, {w.use(cell)}")
        registers.append(register)
    access(w, "ld", op, registers)


def print_prefetch(w: Writer, op: simt.PrefetchOp) -> None:
    """Print a prefetch."""
    buffer, _, mask = op.place
    where = address(w, buffer, op.offset.value.data * CELL_BYTES[op.cell])
    w.line(f"{guard(w, mask)}prefetch.global.L1 {where}")


def print_shared(w: Writer, op: simt.SharedOp) -> None:
    """Print the address of a slice of shared memory."""
    register = w.define(op.result)
    w.line(f"mov.u32 {register}, {SHARED_SYMBOL}")
    if op.at.value.data:
        w.line(f"add.u32 {register}, {register}, {op.at.value.data}")


def print_copy(w: Writer, op: nvvm.CpAsyncOp) -> None:
    """Print an asynchronous copy."""
    size = op.size.value.data
    taken = "" if op.cp_size is None else f", {w.use(op.cp_size)}"
    modifier = op.modifier.value.data
    target, source = address(w, op.dst), address(w, op.src)
    lines = LINE_HINT if size == VECTOR_BYTES else ""
    w.line(f"cp.async.{modifier}.shared.global{lines} {target}, {source}, {size}{taken}")


def print_wait(w: Writer, op: nvvm.CpAsyncWaitGroupOp) -> None:
    """Print a wait for groups of asynchronous copies."""
    w.line(f"cp.async.wait_group {op.n.value.data}")


def print_commit(w: Writer, op: nvvm.CpAsyncCommitGroupOp) -> None:
    """Print the end of a group of asynchronous copies."""
    w.line("cp.async.commit_group")


MEMORY: dict[type[Operation], Callable[..., None]] = {
    llvm.GEPOp: print_gep,
    simt.LoadOp: print_load,
    simt.StoreOp: print_store,
    simt.OverrideOp: print_override,
    simt.PrefetchOp: print_prefetch,
    simt.SharedOp: print_shared,
    nvvm.CpAsyncOp: print_copy,
    nvvm.CpAsyncWaitGroupOp: print_wait,
    nvvm.CpAsyncCommitGroupOp: print_commit,
}
