"""Loops waiting for other threads, with or without an end."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i32, i64

from timetile.lowering.ptx.writer import Writer

MOST_POLLS = 1 << 20
"""How often a bounded wait looks: for about a second."""

MOST_SLEEPS = 1 << 22
"""
Most looks of a bounded wait whose looks last as long as the hardware likes. The limit is above the
limit for messages: a thread without a message reports first.
"""


def begin_wait(w: Writer, word: str) -> tuple[str, str]:
    """Begin a loop that waits: its label, and the register counting bounded waits."""
    again, polls = w.label(word), ""
    if w.report is not None:
        polls = w.register(i32)
        w.line(f"mov.u32 {polls}, 0")
    w.lines.append(f"{again}:")
    return again, polls


def end_wait(
    w: Writer,
    again: str,
    polls: str,
    missing: str,
    number: str,
    most: int = MOST_POLLS,
    *,
    warp: bool = False,
) -> None:
    """
    End a loop that waits: again while `missing` holds. A bounded wait lasting too long is reported,
    as the block's number from 1 on and the awaited event, and afterwards no thread waits. A whole
    warp waiting together leaves together.
    """
    if w.report is None:
        w.line(f"@{missing} bra {again}")
        return
    done, stop, said = w.label("done"), w.register(i1), w.register(i64)
    block, waited = w.register(i32), w.register(i32)
    w.line(f"@{'' if missing.startswith('!') else '!'}{missing.lstrip('!')} bra {done}")
    w.line(f"ld.relaxed.gpu.global.u64 {said}, [{w.report}]")
    w.line(f"setp.ne.u64 {stop}, {said}, 0")
    if warp:
        w.line(f"vote.sync.any.pred {stop}, {stop}, -1")
    w.line(f"@{stop} bra {done}")
    w.line(f"add.u32 {polls}, {polls}, 1")
    w.line(f"setp.lt.u32 {stop}, {polls}, {most}")
    w.line(f"@{stop} bra {again}")
    w.line(f"mov.u32 {block}, %ctaid.x")
    w.line(f"add.u32 {block}, {block}, 1")
    w.line(f"mov.u32 {waited}, {number}")
    w.line(f"mov.b64 {said}, {{{block}, {waited}}}")
    w.line(f"st.relaxed.gpu.global.u64 [{w.report}], {said}")
    w.lines.append(f"{done}:")
