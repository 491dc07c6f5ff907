"""
expand-boundaries: separate updates write the cells outside the box of an update, except for kept
cells.

Before:
```
%r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [64]> outside #temporal.boundary<keep, mirror>
} : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
```
After:
```
%s = temporal.scratch : !stencil.field<[64,65]xf64>
%r:3 = temporal.loop %n (%a = %A, %b = %B, %c = %s) rotate [1, 0, 2] {
  temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [64]>
  temporal.update %c = @cell_moved(%b[-1]) in <[64], [65]>
  temporal.update %b = @cell_moved(%c[0]) in <[64], [65]>
} : ...
```
1. `dialects/temporal/boundary.py` lists the layers of cells outside the box, and the source cells
   of each layer.
2. An update reads the target at the cell itself only: a layer passes through a scratch field of the
   layer's size. A constant needs none.
3. The loop's schedule and kernels depend on the updates: the pass comes before both are chosen.

Levels below have only updates that keep cells outside their boxes, and know nothing of boundaries.
A kernel of several steps computes the layers again at each level. A periodic axis reaches across
the whole box: kernels then advance one step and read memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from timetile.dialects.boxes import CellBox
from timetile.dialects.cell_types import computed_type, stored_number
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.taps import Tap
from timetile.dialects.temporal import LoopOp, ScratchOp, UpdateOp
from timetile.dialects.temporal.boundary import Layer, layers
from timetile.dialects.verified import number_attribute
from timetile.passes.diagnostics import check_verified, refuse
from timetile.passes.patterns import rewrite_once
from timetile.passes.rewriting import name_function


class BoundaryExpansion:
    """Rewrites one loop."""

    def __init__(self, loop: LoopOp, module: ModuleOp, rewriter: PatternRewriter):
        self.loop, self.module, self.rewriter = loop, module, rewriter
        self.scratch: list[ScratchOp] = []

    def run(self) -> None:
        """
        Put updates after each update without all cells kept, and a loop with the scratch fields in
        the loop's place.
        """
        for update in self.loop.updates:
            if update.outside is None:
                continue
            made: list[UpdateOp] = []
            for target in update.targets:
                boxes = CellBox.of(update.box), CellBox.of(field_bounds(target))
                for layer in layers(update.outside, *boxes):
                    made += self.layer(update, target, layer)
            for new in made:
                new.location = update.location
            self.rewriter.insert(made, InsertPoint.after(update))
            update.outside = None
        if self.scratch:
            self.replace_loop()

    def layer(self, update: UpdateOp, target: SSAValue, layer: Layer) -> list[UpdateOp]:
        """The updates for one layer of a target."""
        prefix, kind = update.cell.string_value(), element_type(target)
        box, here = layer.box.bounds(), (0,) * update.rank
        if layer.offset is None:
            value = stored_number(layer.value, kind)
            name = self.constant(f"{prefix}_value", value, computed_type(kind))
            return [UpdateOp([target], name, [], [], box)]
        name = self.copy(f"{prefix}_moved", computed_type(kind))
        self.scratch.append(ScratchOp(FieldType(box, kind)))
        block, field = self.loop.body.block, self.scratch[-1].field
        between = self.rewriter.insert_block_argument(block, len(block.args), field.type)
        return [
            UpdateOp([between], name, [target], [Tap(0, layer.offset)], box),
            UpdateOp([target], name, [between], [Tap(0, here)], box),
        ]

    def copy(self, name: str, kind: Attribute) -> str:
        """A cell function with its argument as the result."""
        block = Block(arg_types=[kind])
        block.add_op(ReturnOp(*block.args))
        return self.function(name, [kind], block, kind)

    def constant(self, name: str, value: float, kind: Attribute) -> str:
        """A cell function with a number as the result."""
        number = arith.ConstantOp(number_attribute(value, kind))
        return self.function(name, [], Block([number, ReturnOp(number)]), kind)

    def function(
        self, name: str, inputs: Sequence[Attribute], block: Block, kind: Attribute
    ) -> str:
        """
        Add a cell function to the module, under a free name. Functions of earlier layers may serve
        again.
        """
        made = FuncOp(name, (inputs, [kind]), Region(block), visibility="private")
        if name_function(self.module, made):
            self.rewriter.insert(made, InsertPoint.before(self.function_around()))
        return made.sym_name.data

    def function_around(self) -> Operation:
        """The operation of the module around the loop."""
        op: Operation = self.loop
        while (parent := op.parent_op()) is not None and parent is not self.module:
            op = parent
        return op

    def replace_loop(self) -> None:
        """Replace the loop by one over the buffers and the scratch fields, which do not rotate."""
        old = self.loop
        count = len(old.buffers)
        new = LoopOp(
            old.steps,
            [*old.buffers, *(scratch.field for scratch in self.scratch)],
            [*old.rotation, *range(count, count + len(self.scratch))],
            old.detach_region(old.body),
            sweep=old.sweep is not None,
        )
        new.properties.update(
            {
                name: old.properties[name]
                for name in ("common_halos", "depths")
                if name in old.properties
            }
        )
        new.attributes.update(old.attributes)
        new.location = old.location
        for result, kept in zip(old.res, new.res):
            kept.name_hint = result.name_hint
        self.rewriter.insert(self.scratch)
        self.rewriter.replace(old, new, new.res[:count])


@dataclass(frozen=True)
class ExpandLoop(RewritePattern):
    """A time loop with boundaries other than `keep`."""

    module: ModuleOp

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopOp, rewriter: PatternRewriter, /) -> None:
        if all(update.outside is None for update in op.updates):
            return
        check_verified(op)
        if op.kernel_names or op.schedule is not None:
            refuse(
                op,
                "schedule and kernels belong to a step without boundaries; run "
                "expand-boundaries before choose-schedule",
            )
        BoundaryExpansion(op, self.module, rewriter).run()


class ExpandBoundariesPass(ModulePass):
    """Write cells outside boxes by separate updates; see the module's documentation."""

    name = "expand-boundaries"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_once(list(op.walk()), {LoopOp: ExpandLoop(op)})
