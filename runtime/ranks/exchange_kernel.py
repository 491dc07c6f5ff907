"""
The kernel of an exchange: meets the neighbours, copies rims from their memory, and meets again.

Blocks `x` of `y` copy the cells of copy number `y`. The first block counts the meeting and tells
the neighbours, as in `gpu_meetings.py`. Each block waits for the neighbours' counts, and copies.
The block that ends last counts the second meeting, tells the neighbours that their rims are read,
and waits until they have read. Copies between two kernels of meetings take 27 us of a graph.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import gcd
from typing import Any

from timetile.runtime.ranks.rims import BoxCopy

NAME = "exchange"

THREADS = 512
"""Threads of a block."""

MOST_BLOCKS = 264
"""Blocks of a launch: two on each multiprocessor of an H200."""

MOST_COPIES = 40
"""Most copies of a launch: their rows are arguments, of 4096 bytes at most."""

MOST_NEIGHBOURS = 32
"""Most neighbours of a GPU in a meeting: their rows are arguments, too."""

NEIGHBOUR_ROW = 32
"""Bytes of a neighbour's row among the arguments."""

ROW = 9
"""64-bit words of a copy among the arguments."""

UNITS = (16, 8, 4, 2, 1)
"""The bytes that a thread may copy at once."""


def row_of(source: int, target: int, copy: BoxCopy) -> list[int]:
    """
    A copy among the arguments: the number of a thread's unit among `UNITS`, units of a row, rows of
    a plane, all rows; the first byte, and the bytes between rows and between planes of the target,
    then of the source. Bytes between planes count from the last row of a plane.
    """
    ends: list[int] = []
    for pointer, pitches in ((target, copy.target), (source, copy.source)):
        ends += [pointer + pitches.first, pitches.pitch, pitches.pitch * pitches.height]
    many = [copy.width, ends[0], ends[3]]
    many += [ends[1], ends[4]] if copy.rows > 1 else []
    many += [ends[2], ends[5]] if copy.planes > 1 else []
    unit = gcd(UNITS[0], *many)
    units = copy.width // unit
    first, pitch, plane, first_source, pitch_source, plane_source = ends
    return [
        UNITS.index(unit) | copy.rows << 32, units | copy.rows * copy.planes << 32,
        units * copy.rows * copy.planes, first, pitch, plane,
        first_source, pitch_source, plane_source,
    ]  # fmt: skip


def copied_units(row: Sequence[int]) -> int:
    """The units of a copy."""
    return row[2]


def rows_argument(rows: Sequence[Sequence[int]]) -> Any:
    """Rows of copies as an argument of the kernel."""
    return (ctypes.c_uint64 * (ROW * MOST_COPIES))(*(word for row in rows for word in row))


def grid_of(rows: Sequence[Sequence[int]]) -> tuple[int, int]:
    """The blocks of each copy, and the number of copies; at least one of both."""
    most = max((copied_units(row) for row in rows), default=0)
    copies = max(1, len(rows))
    return max(1, min(-(-most // THREADS), MOST_BLOCKS // copies)), copies


def wait_for_neighbour(label: str, *, is_told: bool) -> str:
    """
    A thread's wait until the count in the own memory is `%count`; `%row` is the thread's row.
    `is_told`: the host is told.
    """
    tell = "st.volatile.global.u32 [%word], %count;" if is_told else ""
    forget = "st.volatile.global.u32 [%word], 0;" if is_told else ""
    return f"""
  ld.param.u64 %place, [%row+16];
  ld.param.u64 %word, [%row+24];
  ld.acquire.sys.global.u32 %seen, [%place];
  sub.u32 %seen, %seen, %count;
  setp.lt.s32 %waits, %seen, 0;
  @!%waits bra {label}_met;
  {tell}
  mov.u64 %begin, %globaltimer;
{label}_look:
  ld.acquire.sys.global.u32 %seen, [%place];
  sub.u32 %seen, %seen, %count;
  setp.lt.s32 %waits, %seen, 0;
  @!%waits bra {label}_seen;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %begin;
  setp.gt.u64 %late, %now, %limit;
  @%late trap;
  bra {label}_look;
{label}_seen:
  {forget}
{label}_met:"""


TELL = """
  ld.param.u64 %place, [%row+8];
  st.release.sys.global.u32 [%place], %count;"""
"""Tell a neighbour the count, behind all earlier stores."""


def unit_address(register: str, at: int) -> str:
    """The address of a thread's unit: of the end whose words of the copy begin at byte `at`."""
    return f"""\
  ld.param.u64 {register}, [%copy+{at}];
  ld.param.u64 %more, [%copy+{at + 8}];
  mad.lo.u64 {register}, %begin, %more, {register};
  ld.param.u64 %more, [%copy+{at + 16}];
  mad.lo.u64 {register}, %now, %more, {register};
  mad.wide.u32 {register}, %inside, %bytes, {register};"""


def copy_unit(number: int) -> str:
    """The copy of a unit from `%from` to `%to`."""
    word = {16: "v4.b32", 8: "b64", 4: "b32", 2: "b16", 1: "b8"}[UNITS[number]]
    cells = {16: "{%a, %b, %c, %d}", 8: "%wide", 4: "%a", 2: "%half", 1: "%half"}[UNITS[number]]
    return f"""
unit_{number}:
  ld.global.{word} {cells}, [%from];
  st.global.{word} [%to], {cells};
  bra next;"""


TEXT = f"""
.version 7.8
.target sm_80
.address_size 64
// met: for each neighbour a row of addresses, as in a meeting. neighbours: their number. done: a
// word, 0 between launches. limit: nanoseconds. copies: rows of copies.
.visible .entry {NAME}(.param .align 8 .b8 met[{NEIGHBOUR_ROW * MOST_NEIGHBOURS}],
    .param .u32 neighbours, .param .u64 done, .param .u64 limit,
    .param .align 8 .b8 copies[{8 * ROW * MOST_COPIES}]) {{
  .reg .u64 %row, %place, %word, %begin, %now, %limit, %copy, %from, %to, %wide, %more;
  .reg .u64 %unit_count, %index, %stride;
  .reg .u32 %thread, %lanes, %count, %seen, %block, %blocks, %x, %y, %last, %unit, %rows, %units;
  .reg .u32 %at, %line, %plane, %inside, %a, %b, %c, %d, %bytes;
  .reg .b16 %half;
  .reg .pred %waits, %late, %is_first, %is_lane, %is_other, %is_unit;
  ld.param.u32 %lanes, [neighbours];
  ld.param.u64 %limit, [limit];
  mov.u32 %thread, %tid.x;
  mov.u32 %x, %ctaid.x;
  mov.u32 %y, %ctaid.y;
  or.b32 %block, %x, %y;
  setp.lt.u32 %is_lane, %thread, %lanes;
  mov.u64 %row, met;
  mad.wide.u32 %row, %thread, {NEIGHBOUR_ROW}, %row;
  mov.u32 %count, 0;
  @!%is_lane bra begun;
  ld.param.u64 %place, [%row];
  ld.volatile.global.u32 %count, [%place];
  add.u32 %count, %count, 1;
  setp.ne.u32 %is_other, %block, 0;
  @%is_other bra others;
  {TELL}
  {wait_for_neighbour("first", is_told=True)}
  bra begun;
others:
  {wait_for_neighbour("other", is_told=False)}
begun:
  bar.sync 0;
  mov.u64 %copy, copies;
  mad.wide.u32 %copy, %y, {8 * ROW}, %copy;
  ld.param.u32 %unit, [%copy];
  ld.param.u32 %rows, [%copy+4];
  ld.param.u32 %units, [%copy+8];
  ld.param.u64 %unit_count, [%copy+16];
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %stride, %blocks, {THREADS};
  mul.wide.u32 %index, %x, {THREADS};
  cvt.u64.u32 %more, %thread;
  add.u64 %index, %index, %more;
again:
  setp.ge.u64 %is_other, %index, %unit_count;
  @%is_other bra copied;
  cvt.u32.u64 %at, %index;
  div.u32 %line, %at, %units;
  mul.lo.u32 %inside, %line, %units;
  sub.u32 %inside, %at, %inside;
  div.u32 %plane, %line, %rows;
  mul.lo.u32 %seen, %plane, %rows;
  sub.u32 %line, %line, %seen;
  mov.u32 %bytes, {UNITS[0]};
  shr.u32 %bytes, %bytes, %unit;
  cvt.u64.u32 %begin, %line;
  cvt.u64.u32 %now, %plane;
{unit_address("%to", 24)}
{unit_address("%from", 48)}
  setp.eq.u32 %is_unit, %unit, 0;
  @%is_unit bra unit_0;
  setp.eq.u32 %is_unit, %unit, 1;
  @%is_unit bra unit_1;
  setp.eq.u32 %is_unit, %unit, 2;
  @%is_unit bra unit_2;
  setp.eq.u32 %is_unit, %unit, 3;
  @%is_unit bra unit_3;
{copy_unit(4)}
{copy_unit(3)}
{copy_unit(2)}
{copy_unit(1)}
{copy_unit(0)}
next:
  add.u64 %index, %index, %stride;
  bra again;
copied:
  bar.sync 0;
  // The block that ends last meets the neighbours again.
  ld.param.u64 %place, [done];
  cvta.to.global.u64 %place, %place;
  mov.u32 %a, %nctaid.y;
  mul.lo.u32 %last, %blocks, %a;
  sub.u32 %last, %last, 1;
  setp.ne.u32 %is_other, %thread, 0;
  mov.u32 %b, 0;
  @%is_other bra counted;
  membar.gl;
  atom.global.inc.u32 %b, [%place], %last;
  membar.gl;
  setp.eq.u32 %is_first, %b, %last;
  selp.u32 %b, 1, 0, %is_first;
counted:
  setp.ne.u32 %is_first, %b, 0;
  barrier.cta.red.or.pred %is_first, 0, %is_first;
  @!%is_first bra done_all;
  @!%is_lane bra done_all;
  add.u32 %count, %count, 1;
  ld.param.u64 %place, [%row];
  st.volatile.global.u32 [%place], %count;
  {TELL}
  {wait_for_neighbour("second", is_told=True)}
done_all:
  ret;
}}
\0"""
"""The kernel of an exchange, as PTX."""
