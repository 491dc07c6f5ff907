"""Messages between blocks, barriers of a tile's blocks, and numbers of launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Operation, SSAValue

from timetile.dialects import simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.lowering.ptx.memory import address, guard
from timetile.lowering.ptx.text import move_kind, together
from timetile.lowering.ptx.waits import begin_wait, end_wait
from timetile.lowering.ptx.writer import Writer


def print_send(w: Writer, op: simt.SendOp) -> None:
    """Print a send of cells to another block, counted there on arrival."""
    registers = [w.in_register(cell) for cell in op.cells]
    kind = op.cell_types[0]
    vector, data = together(registers)
    where = address(w, op.buffer, op.offset.value.data * CELL_BYTES[kind])
    word = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
    count = address(w, op.arrivals)
    w.line(f"{guard(w, op.mask)}{word}{vector}.{move_kind(kind)} {where}, {data}, {count}")


def unnumbered(w: Writer, op: simt.PostOp | simt.TakeOp) -> Iterator[tuple[SSAValue, str, str]]:
    """The cells of a message without a number, a word each: the cell, the type, and the place."""
    for cell, place in zip(op.cells, op.places):
        yield cell, move_kind(cell.type), address(w, op.buffer, place * CELL_BYTES[i64])


def print_post(w: Writer, op: simt.PostOp) -> None:
    """Print one write for each 64-bit word: four bytes of a cell and the message's number."""
    if op.number is None:
        for cell, kind, where in unnumbered(w, op):
            w.line(f"st.global.{kind} {where}, {w.in_register(cell)}")
        return
    number = w.in_register(op.number)
    for cell, place in zip(op.cells, op.places):
        where = address(w, op.buffer, place * CELL_BYTES[i64])
        halves = [w.in_register(cell)]
        if CELL_BYTES[cell.type] == CELL_BYTES[i64]:
            halves = [w.register(i32), w.register(i32)]
            w.line(f"mov.b64 {{{', '.join(halves)}}}, {w.in_register(cell)}")
        words: list[str] = []
        for half in halves:
            words.append(w.register(i64))
            w.line(f"mov.b64 {words[-1]}, {{{half}, {number}}}")
        vector, data = together(words)
        w.line(f"st.relaxed.gpu.global{vector}.b64 {where}, {data}")


def print_take(w: Writer, op: simt.TakeOp) -> None:
    """
    Print a loop reading all words until each has the message's number, in all lanes of the warp.
    """
    if op.number is None:
        for cell, kind, where in unnumbered(w, op):
            w.line(f"ld.global.{kind} {w.define(cell)}, {where}")
        return
    number, missing, test = w.use(op.number), w.register(i1), w.register(i1)
    again, polls = begin_wait(w, "take")
    halves: list[list[str]] = []
    seen: list[str] = []
    for kind, place in zip(op.cell_types, op.places):
        where = address(w, op.buffer, place * CELL_BYTES[i64])
        words = [w.register(i64) for _ in range(CELL_BYTES[kind] // CELL_BYTES[i32])]
        vector, data = together(words)
        w.line(f"ld.relaxed.gpu.global{vector}.b64 {data}, {where}")
        halves.append([])
        for word in words:
            halves[-1].append(w.register(i32))
            seen.append(w.register(i32))
            w.line(f"mov.b64 {{{halves[-1][-1]}, {seen[-1]}}}, {word}")
    w.line(f"setp.ne.u32 {missing}, {seen[0]}, {number}")
    for other in seen[1:]:
        w.line(f"setp.ne.or.u32 {test}, {other}, {number}, {missing}")
        missing, test = test, w.register(i1)
    w.line(f"vote.sync.any.pred {test}, {missing}, -1")
    end_wait(w, again, polls, test, number, warp=True)
    for cell, parts in zip(op.cells, halves):
        register = w.define(cell)
        if len(parts) > 1:
            w.line(f"mov.b64 {register}, {{{', '.join(parts)}}}")
        else:
            w.line(f"mov.b32 {register}, {parts[0]}")


def print_tile_barrier(w: Writer, op: simt.TileBarrierOp) -> None:
    """
    Print a barrier of a tile: one thread counts its block, after all of the block has come, and
    waits until all blocks are counted. Earlier accesses of the block are released with the count,
    and those of other blocks acquired.
    """
    others, behind = w.register(i1), w.label("met")
    thread, wanted, seen = w.register(i32), w.register(i32), w.register(i32)
    where = address(w, op.words)
    w.line("bar.sync 0")
    w.line(f"mov.u32 {thread}, %tid.x")
    w.line(f"setp.ne.u32 {others}, {thread}, 0")
    w.line(f"@{others} bra {behind}")
    w.line(f"mul.lo.s32 {wanted}, {w.use(op.number)}, {op.blocks.value.data}")
    w.line(f"red.release.gpu.global.add.u32 {where}, 1")
    again, polls = begin_wait(w, "meet")
    w.line(f"ld.acquire.gpu.global.u32 {seen}, {where}")
    w.line(f"setp.lt.u32 {others}, {seen}, {wanted}")
    end_wait(w, again, polls, others, w.use(op.number))
    w.lines.append(f"{behind}:")
    w.line("bar.sync 0")


def print_launches_ended(w: Writer, op: simt.LaunchesEndedOp) -> None:
    """Print how many launches have ended."""
    w.line(f"ld.relaxed.gpu.global.u32 {w.define(op.count)}, {address(w, op.words)}")


def print_end_launch(w: Writer, op: simt.EndLaunchOp) -> None:
    """Print the end of a launch."""
    w.line(f"st.relaxed.gpu.global.u32 {address(w, op.words)}, {w.use(op.number)}")


MESSAGES: dict[type[Operation], Callable[..., None]] = {
    simt.SendOp: print_send,
    simt.PostOp: print_post,
    simt.TakeOp: print_take,
    simt.TileBarrierOp: print_tile_barrier,
    simt.LaunchesEndedOp: print_launches_ended,
    simt.EndLaunchOp: print_end_launch,
}
