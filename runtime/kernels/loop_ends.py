"""Kernels of a loop in a graph: one begins a launch of the loop, and one checks whether it goes on.

The loop goes on while each comparison of numbers has a given outcome. All numbers of a check are
kept in a table, a row of 8-byte numbers for each check of a launch.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack
from typing import Any

import numpy as np

BEGIN, CHECK = "loop_begins", "loop_goes_on"

WORDS = 3
"""
Words of 4 bytes of a loop: the checks made in a launch, the most of a launch, and 1 after an end.
"""

KINDS = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "eq": "eq", "ne": "neu"}
"""The comparisons: false with a NaN, but `ne`."""


@dataclass(frozen=True)
class Comparison:
    """
    Compares the check's number `number` with a constant, or, if `is_place`, with the check's number
    `other`. `holds`: the outcome while the loop goes on.
    """

    number: int
    kind: str
    other: float
    is_place: bool
    holds: bool

    def outcome(self, row: Sequence[float]) -> bool:
        """The outcome for the numbers of a check."""
        other = row[int(self.other)] if self.is_place else self.other
        return bool(getattr(operator, self.kind)(row[self.number], other))


HEAD = """\
.version 8.1
.target {arch}
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

"""
"""The driver has the function that sets the value of a loop in a graph (CUDA 12.4 and later)."""

SETTING = """\
    {{
    .param .b64 handle;
    .param .b32 value;
    st.param.b64 [handle], %rd1;
    st.param.b32 [value], {value};
    call.uni cudaGraphSetConditional, (handle, value);
    }}
    ret;
}}
"""


def begin_text(arch: str) -> str:
    """The kernel before a loop: no check is made, and a loop that has ended stays ended."""
    return (
        HEAD.format(arch=arch)
        + f"""\
.visible .entry {BEGIN}(.param .u64 loop, .param .u64 words)
.maxntid 1, 1, 1
{{
    .reg .b64 %rd<3>;
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [loop];
    ld.param.u64 %rd2, [words];
    st.global.u32 [%rd2], 0;
    ld.global.u32 %r1, [%rd2+8];
    setp.eq.u32 %p1, %r1, 0;
    selp.u32 %r2, 1, 0, %p1;
"""
        + SETTING.format(value="%r2")
    )


def constant(number: float) -> str:
    """A number of 8 bytes as PTX."""
    return "0d" + pack(">d", number).hex().upper()


def check_text(types: Sequence[np.dtype[Any]], comparisons: Sequence[Comparison], arch: str) -> str:
    """
    The kernel of a check: notes the numbers, of some types, and ends the loop if some comparison
    has another outcome.
    """
    numbers = [f", .param .u64 number{place}" for place in range(len(types))]
    lines = [
        f".visible .entry {CHECK}(.param .u64 loop, .param .u64 words, .param .u64 table"
        + "".join(numbers)
        + ")",
        f"""\
.maxntid 1, 1, 1
{{
    .reg .b64 %rd<6>;
    .reg .b32 %r<8>;
    .reg .f32 %f<2>;
    .reg .f64 %fd<{len(types) + 1}>;
    .reg .pred %p<6>;
    ld.param.u64 %rd1, [loop];
    ld.param.u64 %rd2, [words];
    ld.param.u64 %rd3, [table];
    ld.global.u32 %r1, [%rd2];
    ld.global.u32 %r2, [%rd2+4];
    mul.wide.u32 %rd4, %r1, {8 * len(types)};
    add.s64 %rd3, %rd3, %rd4;
    setp.eq.u32 %p1, %r1, %r1;""",
    ]
    for place, dtype in enumerate(types):
        lines.append(f"    ld.param.u64 %rd5, [number{place}];")
        if dtype.itemsize == 8:
            lines.append(f"    ld.global.f64 %fd{place}, [%rd5];")
        else:
            lines += ["    ld.global.f32 %f1, [%rd5];", f"    cvt.f64.f32 %fd{place}, %f1;"]
        lines.append(f"    st.global.f64 [%rd3+{8 * place}], %fd{place};")
    for each in comparisons:
        other = f"%fd{int(each.other)}" if each.is_place else constant(each.other)
        lines.append(f"    setp.{KINDS[each.kind]}.f64 %p2, %fd{each.number}, {other};")
        if not each.holds:
            lines.append("    not.pred %p2, %p2;")
        lines.append("    and.pred %p1, %p1, %p2;")
    lines.append("""\
    selp.u32 %r3, 0, 1, %p1;
    st.global.u32 [%rd2+8], %r3;
    add.u32 %r4, %r1, 1;
    st.global.u32 [%rd2], %r4;
    setp.lt.u32 %p3, %r4, %r2;
    and.pred %p1, %p1, %p3;
    selp.u32 %r5, 1, 0, %p1;""")
    return HEAD.format(arch=arch) + "\n".join(lines) + "\n" + SETTING.format(value="%r5")
