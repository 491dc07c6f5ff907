"""
Compares the cells of rotating buffers outside the bounds: kernels of several steps are faster for
equal cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.dialects.boxes import CellBox
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import LoopOp
from timetile.dialects.temporal.boundary import Kind
from timetile.passes.analysis.edges import loop_boundary
from timetile.passes.analysis.launches.liveness import (
    cycle_bounds,
    cycles_in_turn,
    loop_rotation,
)

WARPS_OF_A_BLOCK = 8
"""Warps of a block of the comparing kernel."""

WORD_BYTES = 4

SEGMENT_WORDS = 2048
"""Words of a row compared by a warp: rows outside the box may be long, and few."""


def written_box(loop: LoopOp, role: int) -> CellBox:
    """The cells that a step of a loop writes to the buffers that take turns with a role's."""
    return CellBox.of(cycle_bounds(loop, loop_rotation(loop).cycle_of(role)))


def continued_axes(loop: LoopOp, rank: int) -> frozenset[int]:
    """The axes along which kernels of a loop continue the fields."""
    boundary = loop_boundary(loop)
    if boundary is None:
        return frozenset()
    return frozenset(a for a in range(rank) if Kind.KEEP not in boundary.of_axis(a))


@dataclass(frozen=True)
class HaloFrame:
    """
    The cells of a buffer around a box: sizes of the buffer, and the box's ends in the buffer, by
    axis.
    """

    sizes: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    cell_bytes: int

    @staticmethod
    def of(loop: LoopOp, role: int) -> HaloFrame:
        """
        The frame of a role's buffer around the cells that the loop writes to the buffers that take
        turns.
        """
        buffer, box = loop.buffers[role], written_box(loop, role)
        field = CellBox.of(field_bounds(buffer))
        # A field may be smaller than the box that the loop writes. No edge cell is a halo.
        axes = continued_axes(loop, len(box.lower))
        inside = box & field
        ends = enumerate(zip(inside.lower, inside.upper, field.lower, field.upper, strict=True))
        inside = CellBox(*zip(*(end[2:] if axis in axes else end[:2] for axis, end in ends)))
        return HaloFrame(
            tuple(b - a for a, b in zip(field.lower, field.upper)),
            tuple(b - a for a, b in zip(field.lower, inside.lower)),
            tuple(max(b, c) - a for a, b, c in zip(field.lower, inside.upper, inside.lower)),
            CELL_BYTES[element_type(buffer)],
        )

    @cached_property
    def segments(self) -> int:
        """Of a row, for a warp each."""
        return -(-self.words()[-1][0] // SEGMENT_WORDS)

    @cached_property
    def blocks(self) -> int:
        """Blocks of the launch comparing two buffers."""
        (planes, *_), (rows, *_), _ = self.words()
        return -(-planes * rows * self.segments // WARPS_OF_A_BLOCK)

    @property
    def word_bytes(self) -> int:
        """The bytes of a compared word: four, or a smaller cell."""
        return min(WORD_BYTES, self.cell_bytes)

    def words(self) -> tuple[tuple[int, int, int], ...]:
        """
        (size, low, high) of three axes, the last axis in words. Missing leading axes have a single
        row.
        """
        axes = list(zip(self.sizes, self.low, self.high))
        each = self.cell_bytes // self.word_bytes
        size, low, high = axes.pop()
        axes.append((size * each, low * each, high * each))
        return ((1, 0, 1),) * (3 - len(axes)) + tuple(axes)


def compared_in_turn(loop: LoopOp) -> list[tuple[HaloFrame, int, int]]:
    """
    The roles with buffers to compare, and the frames: of each cycle, the first role with every
    other.
    """
    return [
        (HaloFrame.of(loop, first), first, other)
        for first, *others in cycles_in_turn(loop)
        for other in others
    ]


def halos_differ(frame: HaloFrame, first: NDArray[Any], other: NDArray[Any]) -> bool:
    """Some cell around the box has other bits in one buffer than in the other."""
    bits = np.dtype(f"u{frame.cell_bytes}")
    a, b = (array.view(bits).reshape(frame.sizes) for array in (first, other))
    inside: list[slice] = []
    for low, high in zip(frame.low, frame.high):
        for beyond in (slice(0, low), slice(high, None)):
            if not np.array_equal(a[*inside, beyond], b[*inside, beyond]):
                return True
        inside.append(slice(low, high))
    return False


WORDS_OF_A_LANE = 8
"""
Words loaded before the first comparison: a row outside the box has many, and costs only latency.
"""


def load_words(k: int, size: int) -> str:
    """
    PTX for a lane's word number `k` from the present place, of both buffers: zeros beyond the last
    word, past the skipped part of the row. `size`: bytes of a word.
    """
    return f"""\
    add.u32 %r19, %r3, {32 * k};
    setp.lt.u32 %p3, %r19, %r18;
    setp.ge.u32 %p4, %r19, %r15;
    selp.u32 %r20, %r17, 0, %p4;
    add.u32 %r20, %r19, %r20;
    mul.wide.u32 %rd4, %r20, {size};
    add.u64 %rd5, %rd0, %rd4;
    add.u64 %rd6, %rd1, %rd4;
    mov.u32 %a{k}, 0;
    mov.u32 %b{k}, 0;
    @%p3 ld.global.u{8 * size} %a{k}, [%rd5];
    @%p3 ld.global.u{8 * size} %b{k}, [%rd6];
"""


def or_difference(k: int) -> str:
    """PTX adding the different bits of these words to the different bits found before."""
    return f"""\
    xor.b32 %a{k}, %a{k}, %b{k};
    or.b32 %r21, %r21, %a{k};
"""


LOADS, SHIFT = "LOADS", "SHIFT"
"""In the kernel's text: the loads of words, and the logarithm of the bytes of a word."""

COMPARE_HALOS = f"""\
// A warp compares a segment of a row of two buffers: of the whole row where the row lies outside
// the box, else of the two ends beside the box, which mostly are in the first segment.
.version 7.0
.target sm_80
.address_size 64
.visible .entry halos_differ(
    .param .u64 first, .param .u64 other, .param .u64 answer,
    .param .u32 planes, .param .u32 low_plane, .param .u32 high_plane,
    .param .u32 rows, .param .u32 low_row, .param .u32 high_row,
    .param .u32 words, .param .u32 low_word, .param .u32 high_word, .param .u32 segments)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<24>, %a<{WORDS_OF_A_LANE}>, %b<{WORDS_OF_A_LANE}>;
    .reg .b64 %rd<10>;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    shr.u32 %r2, %r0, 5;
    and.b32 %r3, %r0, 31;
    mad.lo.u32 %r4, %r1, {WARPS_OF_A_BLOCK}, %r2;
    ld.param.u32 %r22, [segments];
    rem.u32 %r23, %r4, %r22;                           // segment of the row
    div.u32 %r4, %r4, %r22;                            // row of the buffer
    ld.param.u32 %r5, [planes];
    ld.param.u32 %r6, [rows];
    mul.lo.u32 %r7, %r5, %r6;
    setp.ge.u32 %p0, %r4, %r7;
    @%p0 bra done;
    mad.lo.u32 %r3, %r23, {SEGMENT_WORDS}, %r3;
    div.u32 %r8, %r4, %r6;                             // plane
    rem.u32 %r9, %r4, %r6;                             // row of the plane
    ld.param.u32 %r10, [low_plane];
    ld.param.u32 %r11, [high_plane];
    ld.param.u32 %r12, [low_row];
    ld.param.u32 %r13, [high_row];
    ld.param.u32 %r14, [words];
    ld.param.u32 %r15, [low_word];
    ld.param.u32 %r16, [high_word];
    setp.ge.u32 %p1, %r8, %r10;
    setp.lt.and.u32 %p1, %r8, %r11, %p1;
    setp.ge.and.u32 %p1, %r9, %r12, %p1;
    setp.lt.and.u32 %p1, %r9, %r13, %p1;               // the row crosses the box
    sub.u32 %r17, %r16, %r15;
    selp.u32 %r17, %r17, 0, %p1;                       // words that it skips
    sub.u32 %r18, %r14, %r17;                          // words to compare
    mad.lo.u32 %r22, %r23, {SEGMENT_WORDS}, {SEGMENT_WORDS};
    min.u32 %r18, %r18, %r22;                          // up to the end of the segment
    ld.param.u64 %rd0, [first];
    ld.param.u64 %rd1, [other];
    mul.wide.u32 %rd2, %r4, %r14;
    shl.b64 %rd2, %rd2, {SHIFT};
    add.u64 %rd0, %rd0, %rd2;                          // the row in each buffer
    add.u64 %rd1, %rd1, %rd2;
next:
    setp.ge.u32 %p2, %r3, %r18;
    @%p2 bra done;
{LOADS}
    mov.u32 %r21, 0;
{"".join(map(or_difference, range(WORDS_OF_A_LANE)))}
    setp.ne.u32 %p4, %r21, 0;
    @%p4 bra differ;
    add.u32 %r3, %r3, {32 * WORDS_OF_A_LANE};
    bra next;
differ:
    ld.param.u64 %rd7, [answer];
    st.global.u32 [%rd7], 1;
done:
    ret;
}}
"""


def comparing_text(size: int) -> str:
    """
    The kernel comparing halos, for words of a size in bytes: `answer` becomes 1 where some word
    around the box differs.
    """
    loads = "".join(load_words(k, size) for k in range(WORDS_OF_A_LANE))
    return COMPARE_HALOS.replace(LOADS, loads).replace(SHIFT, str(size.bit_length() - 1))
