"""factor-sums: where the order is free, weights are joined and sums of rank 1 are cut by axes.

Before, for 25 weights, each the product of a weight along each axis:
```
%s = ... 25 products of constants and cells
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell(%a[-2, -2], ..., %a[2, 2]) in <[0, 0], [64, 64]>
}
```
After:
```
%L = temporal.scratch : !stencil.field<[-2,66]x[0,64]xf64>
temporal.loop %n (%a = %A, %b = %B, %l = %L) rotate [1, 0, 2] {
  temporal.update %l = @cell_line(%a[0, -2], ..., %a[0, 2]) in <[-2, 0], [66, 64]>
  temporal.update %b = @cell(%l[-2, 0], ..., %l[2, 0]) in <[0, 0], [64, 64]>
}
```
1. Cells of one field with constant weights on a full grid of two axes or more, of rank 1: the sum
   along the last axis becomes an update of its own into a scratch field, and the sum takes weighted
   cells of the field. Again for the axes left. The grid is the whole sum, or its cells off the axes
   in a pair of axes (a mixed derivative).
2. A grid is cut only if half of the products or more are saved (from 4 x 4 cells on), and if all
   weights are products of weights along the axes up to four units of the last place.
3. Terms of one plane with a common factor become a product: `k * a + (2 * k) * b` becomes `k * (a +
   2 * b)`. The constant weight of a sum with terms in several planes is spread over its terms:
   each plane then enters one sum on arrival (`spread_weights.py`).
4. Terms of one plane with equal or opposite weights (constants, scalars, or values made from these)
   are joined: `c * a + c * b` becomes `c * (a + b)`. Terms of several planes are not: the joined
   term would keep all planes until the last is here.

Of a function whose sums may all change their order, equal values are computed once first.

`fp-reassoc=flags` (the default) factors sums of operations that all allow a change of order
(`fastmath<reassoc>`); `on` all sums; `off` none. The pass runs before `sort-terms`, contraction and
schedules: all schedules and all executors then compute equal bits. An update with cells beyond
fields, a cell function of several updates, and a sweep keep whole grids.

The pass is a walk and no rewrite pattern: it rewrites a loop together with its cell functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.common_subexpression_elimination import cse

from timetile.dialects.boxes import CellBox
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, ScratchOp, SweepOp, UpdateOp
from timetile.passes.analysis.cells.cell_functions import cell_function, cell_functions
from timetile.passes.analysis.cells.separable import (
    LineSum,
    Separation,
    grids,
    separated,
    weighted_tap,
)
from timetile.passes.analysis.cells.sums import (
    Allows,
    FpReassoc,
    Offset,
    Sum,
    Term,
    reorders,
    shared_flags,
    sums_allow,
    sums_of,
)
from timetile.passes.cells.common_weights import join_weights
from timetile.passes.cells.simplify_cells import constant
from timetile.passes.cells.sort_terms import (
    chain,
    functions_by_offsets,
    has_sums,
    replace_sum,
)
from timetile.passes.cells.spread_weights import spread_weights
from timetile.passes.rewriting import carry_scratch, unique_symbol
from timetile.passes.update_reads import read_more

Lines = tuple[LineSum, ...]

LineKey = tuple[SSAValue, Lines]
"""A field of sums along lines: the source, and the sums, each of the results of the one before."""


@dataclass(frozen=True)
class CutGrid:
    """Terms of a sum: cells of one source, weighted by a grid of rank 1."""

    source: SSAValue
    kind: Attribute
    terms: frozenset[Term]
    found: Separation

    @property
    def key(self) -> LineKey:
        """The field whose weighted cells replace the terms."""
        return self.source, self.found.lines


def grown(box: CellBox, offsets: Sequence[Offset]) -> CellBox:
    """The cells read at some offsets from the cells of a box."""
    far = list(zip(*offsets, strict=True))
    return CellBox(
        tuple(low + min(o) for low, o in zip(box.lower, far, strict=True)),
        tuple(high + max(o) for high, o in zip(box.upper, far, strict=True)),
    )


def line_offsets(line: LineSum, rank: int) -> list[Offset]:
    """The offsets of the cells of a sum along a line."""
    return [
        tuple(place if axis == line.axis else 0 for axis in range(rank))
        for place, _ in line.weights
    ]


def weighted(value: SSAValue, weight: float, made: list[Operation]) -> Term:
    """A value times a weight, as a term; the products are added to `made`."""
    if abs(weight) == 1.0:
        return Term(value, weight < 0.0)
    number = constant(weight, value.type)
    assert number is not None, "weights of a sum are finite floats"
    made += [number, product := arith.MulfOp(number.result, value)]
    return Term(product.result, False)


def line_function(name: str, line: LineSum, kind: Attribute) -> FuncOp:
    """The cell function of a sum along a line."""
    block = Block(arg_types=[kind] * len(line.weights))
    made: list[Operation] = []
    terms = [
        weighted(value, weight, made)
        for value, (_, weight) in zip(block.args, line.weights, strict=True)
    ]
    made += chain(terms, arith.FastMathFlagsAttr("none"))
    block.add_ops([*made, ReturnOp(made[-1].results[0])])
    return FuncOp(name, (block.arg_types, [kind]), Region(block), visibility="private")


class GridCutter:
    """Cuts the grids of one loop's updates."""

    def __init__(self, loop: LoopOp, module: ModuleOp, allows: Allows):
        self.loop, self.module, self.allows = loop, module, allows
        self.scratch: list[ScratchOp] = []

    def run(self) -> None:
        """Cut the grids of all updates, and put a loop with the scratch fields in place."""
        users = [op for op in self.module.walk() if isinstance(op, UpdateOp | SweepOp)]
        names = [op.cell for op in users]
        for update in self.loop.updates:
            if update.beyond is None and names.count(update.cell) == 1:
                self.cut(update)
        if self.scratch:
            carry_scratch(self.loop, self.scratch)

    def cut(self, update: UpdateOp) -> None:
        """Cut the grids of an update."""
        function, reads = cell_function(self.module, update), list[CutGrid]()
        taps: list[tuple[LineKey, Offset]] = []
        for found in sums_of(function, self.allows):
            cuts = list(cut_grids(found, update, self.allows))
            if not cuts:
                continue
            reads += cuts
            cut = frozenset[Term]().union(*(each.terms for each in cuts))
            made: list[Operation] = []
            terms = [term for term in found.terms if term not in cut]
            for each in cuts:
                for offset, weight in each.found.weights.items():
                    place = len(update.tap_list) + len(taps)
                    taps.append((each.key, offset))
                    value = function.body.block.insert_arg(found.root.result.type, place)
                    terms.append(weighted(value, weight, made))
            replace_sum(found, [*made, *chain(terms, shared_flags(found.ops))])
        if not reads:
            return
        kinds = {each.key[0]: each.kind for each in reads}
        fields: dict[LineKey, SSAValue] = {}
        for key, box in line_boxes(reads, update).items():
            fields[key] = self.line(key, box, kinds[key[0]], fields, update)
        sources = [*update.sources, *dict.fromkeys(fields[key] for key, _ in taps)]
        more = [Tap(sources.index(fields[key]), offset) for key, offset in taps]
        read_more(update, function, sources[len(update.sources) :], more)

    def line(
        self,
        key: LineKey,
        box: CellBox,
        kind: Attribute,
        fields: Mapping[LineKey, SSAValue],
        update: UpdateOp,
    ) -> SSAValue:
        """A scratch field of sums along a line, filled before an update."""
        source, (*before, line) = key
        name = unique_symbol(self.module, f"{update.cell.string_value()}_line")
        function = cell_function(self.module, update)
        self.module.body.block.insert_op_before(line_function(name, line, kind), function)
        self.scratch.append(ScratchOp(FieldType(box.bounds(), kind)))
        block = self.loop.body.block
        field = block.insert_arg(self.scratch[-1].field.type, len(block.args))
        made = UpdateOp(
            [field],
            name,
            [fields[source, tuple(before)] if before else source],
            [Tap(0, offset) for offset in line_offsets(line, update.rank)],
            box.bounds(),
        )
        made.location = update.location
        Rewriter.insert_op(made, InsertPoint.before(update))
        return field


def cut_grids(found: Sum, update: UpdateOp, allows: Allows) -> Iterator[CutGrid]:
    """The grids of rank 1 among the terms of a sum."""
    kind = found.root.result.type
    if kind not in (f32, f64):
        return
    known = (weighted_tap(term, len(update.tap_list), allows) for term in found.terms)
    cells = [each for each in known if each is not None]
    for number, source in enumerate(update.sources):
        own = [each for each in cells if update.tap_list[each.argument].operand == number]
        taps = {update.tap_list[each.argument].offset: each for each in own}
        if len(taps) < len(own):
            # A cell with two weights is on no grid.
            continue
        left = dict(taps)
        for grid in grids(list(taps)) if taps else ():
            weights = {offset: left[offset].weight for offset in grid if offset in left}
            cut = separated(weights, kind) if len(weights) == len(grid) > 0 else None
            if cut is not None:
                yield CutGrid(source, kind, frozenset(left.pop(at).term for at in grid), cut)


def line_boxes(cuts: Sequence[CutGrid], update: UpdateOp) -> dict[LineKey, CellBox]:
    """The cells of each field of sums along lines, in the order of their updates."""
    boxes: dict[LineKey, CellBox] = {}
    for cut in cuts:
        box = grown(CellBox.of(update.box), list(cut.found.weights))
        lines = cut.found.lines
        for count in range(len(lines), 0, -1):
            key = cut.source, lines[:count]
            box = boxes[key] | box if key in boxes else box
            boxes[key] = box
            box = grown(box, line_offsets(lines[count - 1], update.rank))
    return dict(sorted(boxes.items(), key=lambda item: len(item[0][1])))


@dataclass(frozen=True)
class FactorSumsPass(ModulePass):
    """Join weights, and cut sums of rank 1 by axes; see the module's documentation."""

    name = "factor-sums"

    fp_reassoc: FpReassoc = "flags"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        allows = reorders(self.fp_reassoc)
        if not any(has_sums(function, allows) for function in cell_functions(op)):
            return
        for loop in [each for each in op.walk() if isinstance(each, LoopOp)]:
            if loop.sweep is None:
                GridCutter(loop, op, allows).run()
        for function, offsets in list(functions_by_offsets(op)):
            if sums_allow(function, allows):
                # A value computed twice would be a term with two weights, or of two sums.
                cse(function.body)
            spread_weights(function, offsets, allows)
            join_weights(function, offsets, allows)
