"""
split-edges: updates that read beyond a field become updates of boxes that read inside.

Before:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [64]> beyond [#temporal.boundary<periodic>]
} : !stencil.field<[0,64]xf64>, !stencil.field<[0,64]xf64>
```
After:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell(%a[63], %a[1]) in <[0], [1]>
  temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [63]>
  temporal.update %b = @cell(%a[-1], %a[-63]) in <[63], [64]>
} : ...
```
1. Along each axis the box is cut before each cell with a tap beyond a field, and after: a cell at
   the edge is a box of its own, and all cells inside are one box.
2. In a box every tap reads a cell at a constant distance: the cell's image by the boundary
   (`dialects/temporal/boundary.py`), or a constant, which enters the cell function.
3. The boxes of an update are disjoint, and an update reads its targets at the cell itself only: any
   order of the boxes is right.

A step of reach r has (2r + 1)^rank boxes. The pass comes before a schedule is chosen. With
`everywhere` all loops are split; otherwise loops stay whose kernels continue the fields themselves
(`passes/analysis/edges.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.boxes import CellBox
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.dialects.temporal.boundary import image
from timetile.dialects.verified import number_attribute
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.edges import continues_in_kernels, why_split
from timetile.passes.diagnostics import check_verified, refuse, remark
from timetile.passes.rewriting import name_function

EdgeSpan = tuple[int, int]


@dataclass(frozen=True)
class EdgeSplit:
    """The split of one update."""

    update: UpdateOp
    module: ModuleOp

    def run(self) -> None:
        """Put the updates of the boxes in the place of the update."""
        spans = [self.spans(axis) for axis in range(self.update.rank)]
        made = [self.part(CellBox(*zip(*box))) for box in product(*spans)]
        for new in made:
            new.location = self.update.location
        Rewriter.insert_op(made, InsertPoint.before(self.update))
        Rewriter.erase_op(self.update)

    def spans(self, axis: int) -> Iterator[EdgeSpan]:
        """The spans of the boxes along an axis, in order."""
        update = self.update
        low, high = tuple(update.box.lb)[axis], tuple(update.box.ub)[axis]
        inner_low, inner_high = low, high
        for tap in update.tap_list:
            known = update.known_cells(tap.operand)
            inner_low = max(inner_low, known.lower[axis] - tap.offset[axis])
            inner_high = min(inner_high, known.upper[axis] - tap.offset[axis])
        inner_low = min(inner_low, high)
        inner_high = max(inner_high, inner_low)
        yield from ((place, place + 1) for place in range(low, inner_low))
        if inner_low < inner_high:
            yield inner_low, inner_high
        yield from ((place, place + 1) for place in range(inner_high, high))

    def part(self, box: CellBox) -> UpdateOp:
        """The update of one box."""
        update, continued = self.update, self.update.continued
        reads: list[Tap | float] = []
        for tap in update.tap_list:
            known = update.known_cells(tap.operand)
            moved: list[int] = []
            constant: float | None = None
            for axis, (low, high) in enumerate(zip(known.lower, known.upper)):
                place = box.lower[axis] + tap.offset[axis]
                whole = box.upper[axis] - box.lower[axis] > 1
                sides = continued[tap.operand].of_axis(axis)
                seen = place if whole else image(place, low, high, sides)
                if isinstance(seen, float):
                    constant = seen
                else:
                    moved.append(seen - box.lower[axis])
            # The last axis outside the field decides about a corner.
            reads.append(Tap(tap.operand, tuple(moved)) if constant is None else constant)
        name, taps = self.cell(reads)
        # A box with a number for all reads of a field does not read the field.
        read = sorted({tap.operand for tap in taps})
        sources = [update.sources[number] for number in read]
        taps = [Tap(read.index(tap.operand), tap.offset) for tap in taps]
        return UpdateOp(
            update.targets, name, sources, taps, box.bounds(), update.scalars,
            update.index_axes, update.outside, points=update.points, uses=update.point_uses,
        )  # fmt: skip

    def cell(self, reads: Sequence[Tap | float]) -> tuple[str, list[Tap]]:
        """A cell function with constants in the place of some taps, and the remaining taps."""
        taps = [read for read in reads if isinstance(read, Tap)]
        old = cell_function(self.module, self.update)
        if len(taps) == len(reads):
            return old.sym_name.data, taps
        block, mapping = Block(), dict[SSAValue, SSAValue]()
        for number, argument in enumerate(old.body.block.args):
            read = reads[number] if number < len(reads) else None
            if isinstance(read, float):
                constant = arith.ConstantOp(number_attribute(read, argument.type))
                block.add_op(constant)
                mapping[argument] = constant.result
            else:
                mapping[argument] = block.insert_arg(argument.type, len(block.args))
        for op in old.body.block.ops:
            block.add_op(op.clone(mapping))
        kinds = list(block.arg_types), list(old.function_type.outputs)
        made = FuncOp(f"{old.sym_name.data}_edge", kinds, Region(block), visibility="private")
        if name_function(self.module, made):
            self.module.body.block.insert_op_before(made, old)
        return made.sym_name.data, taps


@dataclass(frozen=True)
class SplitEdgesPass(ModulePass):
    """Read inside fields only; see the module's documentation."""

    name = "split-edges"

    everywhere: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, LoopOp)]:
            edged = [update for update in loop.updates if update.beyond is not None]
            if not edged or (continues_in_kernels(loop) and not self.everywhere):
                continue
            check_verified(loop)
            if loop.kernel_names or loop.schedule is not None:
                refuse(
                    loop,
                    "schedule and kernels belong to a step that reads inside its fields; run "
                    "split-edges before choose-schedule",
                )
            if not self.everywhere:
                remark(
                    edged[0],
                    f"{why_split(loop)}: the edges are updates of their own, and the time loop "
                    "runs a step at a time; give both sides of each axis one boundary for all "
                    "fields, or keep both sides",
                )
            for update in edged:
                EdgeSplit(update, op).run()
