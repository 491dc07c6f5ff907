"""Reading a field at computed places on a GPU: a kernel of its own, with a thread for each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import GatherOp

THREADS = 256
"""Of a block."""

MOST_AXES = 3


@dataclass(frozen=True)
class GatherFrame:
    """
    The frame of a gather: the cells of the target; for each of three axes of the source, the first
    and the last coordinate and the distance of neighbours in cells, present axes first; and a
    cell's bytes.
    """

    cells: int
    axes: tuple[tuple[int, int, int], ...]
    cell_bytes: int

    @staticmethod
    def of(op: GatherOp) -> GatherFrame:
        """The frame of a gather operation."""
        target, source = field_bounds(op.target), field_bounds(op.source)
        cells, step = 1, 1
        for low, high in zip(target.lb, target.ub):
            cells *= high - low
        axes: list[tuple[int, int, int]] = []
        for low, high in reversed(list(zip(source.lb, source.ub))):
            axes.insert(0, (low, high - 1, step))
            step *= high - low
        # An axis beyond the axes of the source has a step of 0: places along the axis move nothing.
        none = [(0, 0, 0)] * (MOST_AXES - len(axes))
        return GatherFrame(cells, (*axes, *none), CELL_BYTES[element_type(op.target)])

    @staticmethod
    def flat(cells: int, size: int, cell_bytes: int) -> GatherFrame:
        """The frame of a gather of cells of a field, at places counted in row-major order."""
        last = size // cell_bytes - 1
        return GatherFrame(cells, ((0, last, 1), *[(0, 0, 0)] * (MOST_AXES - 1)), cell_bytes)

    @property
    def blocks(self) -> int:
        """Of the launch."""
        return -(-self.cells // THREADS)

    def places(self, given: Sequence[Any]) -> list[Any]:
        """The place fields of a launch: the first again along axes missing in the source."""
        return [*given, *[given[0]] * (MOST_AXES - len(given))]

    def numbers(self) -> list[int]:
        """The other parameters of the kernel."""
        return [self.cells, *(number for axis in self.axes for number in axis)]


def gather_name(cell_bytes: int, *, scatter: bool = False) -> str:
    """The kernel's name."""
    return f"{'scatter' if scatter else 'gather'}{cell_bytes}"


def along(axis: int) -> str:
    """Adds where the place lies along an axis to the offset of the cell, `%rd3`."""
    return f"""\
    ld.param.u64 %rd4, [place{axis}];
    add.s64 %rd4, %rd4, %rd2;
    ld.global.u64 %rd5, [%rd4];
    ld.param.u64 %rd6, [low{axis}];
    ld.param.u64 %rd7, [last{axis}];
    ld.param.u64 %rd8, [step{axis}];
    max.s64 %rd5, %rd5, %rd6;
    min.s64 %rd5, %rd5, %rd7;                          // the nearest coordinate inside
    sub.s64 %rd5, %rd5, %rd6;
    mad.lo.s64 %rd3, %rd5, %rd8, %rd3;
"""


def gather_text(cell_bytes: int, *, scatter: bool = False) -> str:
    """
    The kernel for cells of 1 to 8 bytes. With `scatter` the places are in the target, and the
    source has a cell for each.
    """
    bits = 8 * cell_bytes
    read, written = ("%rd0", "%rd3") if scatter else ("%rd3", "%rd0")
    spans = ", ".join(
        f".param .u64 low{k}, .param .u64 last{k}, .param .u64 step{k}" for k in range(MOST_AXES)
    )
    return f"""\
// A thread copies a cell, to or from the place that is computed for it.
.version 7.0
.target sm_80
.address_size 64
.visible .entry {gather_name(cell_bytes, scatter=scatter)}(
    .param .u64 target, .param .u64 source,
    .param .u64 place0, .param .u64 place1, .param .u64 place2,
    .param .u64 cells, {spans})
{{
    .reg .pred %p<1>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<12>;
    .reg .b{max(bits, 16)} %cell<1>;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd0, %r1, {THREADS};
    cvt.u64.u32 %rd1, %r0;
    add.s64 %rd0, %rd0, %rd1;                          // the cell
    ld.param.u64 %rd1, [cells];
    setp.ge.s64 %p0, %rd0, %rd1;
    @%p0 bra done;
    shl.b64 %rd2, %rd0, 3;                             // where its place lies, in bytes
    mov.u64 %rd3, 0;
{"".join(map(along, range(MOST_AXES)))}
    ld.param.u64 %rd9, [source];
    ld.param.u64 %rd10, [target];
    mad.lo.s64 %rd9, {read}, {cell_bytes}, %rd9;
    mad.lo.s64 %rd10, {written}, {cell_bytes}, %rd10;
    ld.global.b{bits} %cell0, [%rd9];
    st.global.b{bits} [%rd10], %cell0;
done:
    ret;
}}
"""
