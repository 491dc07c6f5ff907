"""
Kernels that compare the cells of two buffers around a box: a warp for a segment of a row.

```
gpu.func @halos_differ4(%first: memref<1xi32, 1>, %other: memref<1xi32, 1>,
    %answer: memref<1xi32, 1>, %planes: i32, %low_plane: i32, ..., %segments: i32) kernel {
  ...
  scf.for %at = %zero to %count step %many {
    %a = simt.override %zero from %first[%place + 0] mask %is_word : i32
    %b = simt.override %zero from %other[%place + 0] mask %is_word : i32
    ...
    simt.store %one to %answer[%zero + 0] mask %differs
  }
```
A row outside the box is compared whole, and a row across the box at both ends, mostly in the first
segment. Sizes are parameters: one kernel serves all fields with words of a size.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, ModuleOp, i32, i64
from xdsl.ir import Block, SSAValue

from timetile.dialects.simt import OverrideOp, StoreOp
from timetile.dialects.simt.buffers import GLOBAL_SPACE, buffer_type
from timetile.dialects.tile import LANES
from timetile.lowering.emitter import Emitter
from timetile.lowering.gather_kernels import WORDS
from timetile.lowering.whole_kernels import block_of_launch, module_of_kernel, thread_of_block

WARPS_OF_A_BLOCK = 8

SEGMENT_WORDS = 2048
"""Words of a row compared by a warp: rows outside the box may be long, and few."""

WORDS_OF_A_LANE = 8
"""
Words loaded before the first comparison: a row outside the box has many, and costs only latency.
"""


def comparing_name(word_bytes: int) -> str:
    """The kernel's name."""
    return f"halos_differ{word_bytes}"


class ComparingCode:
    """Emits the code of a thread for words of a size in bytes."""

    def __init__(self, word_bytes: int):
        self.word: IntegerType = WORDS[word_bytes]
        self.name = comparing_name(word_bytes)
        field, answer = (buffer_type(kind, 1, GLOBAL_SPACE) for kind in (self.word, i32))
        self.entry = Block(arg_types=[field, field, answer, *[i32] * 10])
        self.first, self.other, self.answer = self.entry.args[:3]
        self.emit = Emitter(self.entry)

    def make(self) -> ModuleOp:
        """The module of the kernel, with the facts of its launch."""
        emit = self.emit
        planes, rows, words = (self.entry.args[k : k + 3] for k in (3, 6, 9))
        lane, warp = emit.split(thread_of_block(emit), LANES)
        number = emit.add_int(emit.mul_int(block_of_launch(emit), WARPS_OF_A_BLOCK), warp)
        segment, row = self.divided(number, self.entry.args[12])
        place, plane = self.divided(row, rows[0])
        crosses = [*self.inside(plane, planes), *self.inside(place, rows)]
        size, low, high = words
        across = emit.value_of(emit.all_of(crosses))
        skipped = emit.select(across, emit.sub_int(high, low), emit.int(0))
        begin, end = emit.mul_int(segment, SEGMENT_WORDS), emit.sub_int(size, skipped)
        end = emit.select(emit.compare("ult", plane, planes[0]), end, emit.int(0))
        rest = emit.select(emit.compare("ult", begin, end), emit.sub_int(end, begin), emit.int(0))
        is_short = emit.compare("ult", rest, SEGMENT_WORDS)
        count = emit.select(is_short, rest, emit.int(SEGMENT_WORDS))
        before = emit.arithmetic(arith.MuliOp, self.widened(row), self.widened(size))
        block = Block(arg_types=[i32])
        self.emit = emit.into(block)
        start = self.emit.add_int(self.emit.add_int(begin, block.args[0]), lane)
        self.compare(
            [self.word_of(start, k, end, low, skipped) for k in range(WORDS_OF_A_LANE)], before
        )
        block.add_op(scf.YieldOp())
        many = emit.int(LANES * WORDS_OF_A_LANE)
        emit.add(scf.ForOp(emit.int(0), count, many, [], block))
        return module_of_kernel(self.name, self.entry, 0, LANES * WARPS_OF_A_BLOCK)

    def divided(self, number: SSAValue, count: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The remainder and the quotient of a number without a sign."""
        kinds = (arith.RemUIOp, arith.DivUIOp)
        rest, whole = (self.emit.binary(kind, number, count) for kind in kinds)
        return rest, whole

    def widened(self, number: SSAValue) -> SSAValue:
        """A number without a sign, in 64 bits: rows may have 2^31 words and more."""
        return self.emit.add(arith.ExtUIOp(number, i64)).result

    def inside(self, place: SSAValue, ends: Sequence[SSAValue]) -> list[SSAValue]:
        """Conditions: a place lies between the ends of the box along an axis."""
        _, low, high = ends
        return [self.emit.compare("uge", place, low), self.emit.compare("ult", place, high)]

    def word_of(
        self, start: SSAValue, k: int, end: SSAValue, low: SSAValue, skipped: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """The place of a lane's word number `k` in its row, and a mask."""
        emit = self.emit
        own = emit.add_int(start, LANES * k)
        beyond = emit.select(emit.compare("uge", own, low), skipped, emit.int(0))
        return emit.add_int(own, beyond), emit.compare("ult", own, end)

    def compare(self, words: Sequence[tuple[SSAValue, SSAValue]], before: SSAValue) -> None:
        """Compare words of a row, all loaded before the first comparison."""
        emit, found = self.emit, list[tuple[SSAValue, SSAValue]]()
        none = emit.int(0, self.word)
        for place, mask in words:
            at = emit.add_int(before, self.widened(place))
            a, b = (
                emit.add(OverrideOp([none], buffer, at, 0, mask)).results[0]
                for buffer in (self.first, self.other)
            )
            found.append((a, b))
        narrow = self.word not in (i32, i64)
        pairs = [
            [emit.add(arith.ExtSIOp(each, i32)).result for each in pair] if narrow else pair
            for pair in found
        ]
        differs = emit.any_of([emit.compare("ne", a, b) for a, b in pairs])
        emit.add(StoreOp([emit.int(1)], self.answer, emit.int(0), 0, differs))


def comparing_kernel(word_bytes: int) -> ModuleOp:
    """A module with the kernel for words of 1, 2 or 4 bytes, at the level of threads."""
    return ComparingCode(word_bytes).make()
