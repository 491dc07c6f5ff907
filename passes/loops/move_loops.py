"""
Moves the loops of a part to the origin, so that parts of equal extents have equal loops.

Before, of the second of two parts:
```
func.func @loop0(%n: index, %A: !stencil.field<[30,66]xf64>, %B: !stencil.field<[30,66]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0]
      part #temporal.part<rank 1 of [0, 32, 64], ghosts [2, 2], steps 2> {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[31], [65]>
  } : ...
```
After:
```
func.func @loop0(%n: index, %A: !stencil.field<[0,36]xf64>, %B: !stencil.field<[0,36]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [35]>
  } : ...
```
Fields, boxes and fields of fewer axes move by the lower end of the loop's first buffer; arrays in
memory stay. An axis of which an update takes the coordinate stays as it is. The part is left out:
kernels do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import BroadcastOp, LoopOp, PointsAttr, UpdateOp
from timetile.passes.loops.cut_domain import around_function


def move_field(field: SSAValue, distance: Sequence[int]) -> None:
    """Move the bounds of a field."""
    bounds = CellBox.of(field_bounds(field)).moved(distance).bounds()
    Rewriter.replace_value_with_new_type(field, FieldType(bounds, element_type(field)))


def move_points(update: UpdateOp, distance: Sequence[int]) -> None:
    """Move the cells that the lists of an update count from."""
    if not update.points:
        return
    moved = [
        PointsAttr(
            use.kind.data, use.target.data, use.columns.data,
            CellBox.of(use.cells).moved(distance).bounds(),
        )
        for use in update.point_uses
    ]  # fmt: skip
    update.uses = ArrayAttr(moved)


def move_loop(loop: LoopOp) -> None:
    """Move a loop in a function of its own to the origin, along axes without coordinates."""
    kept = {axis for update in loop.updates for axis in update.index_axes}
    lower = field_bounds(loop.body.block.args[0]).lb
    distance = [0 if axis in kept else -low for axis, low in enumerate(lower)]
    lists = loop.point_fields
    captures = [
        field
        for field in loop.captures
        if not isinstance(field.owner, BroadcastOp) and field not in lists
    ]
    for field in dict.fromkeys((*loop.body.block.args, *loop.buffers, *loop.res, *captures)):
        move_field(field, distance)
    spread = [field.owner for field in loop.captures if isinstance(field.owner, BroadcastOp)]
    for op in dict.fromkeys(spread):
        move_field(op.field, distance)
        move_field(op.source, [distance[axis] for axis in op.axis_list])
    for update in loop.updates:
        update.box = CellBox.of(update.box).moved(distance).bounds()
        move_points(update, distance)
    loop.part = None
    around_function(loop).update_function_type()


def moved_to_origin(module: ModuleOp) -> ModuleOp:
    """A copy of the loops of a part, as made by `cut_domain`, moved to the origin."""
    made = module.clone()
    for loop in [op for op in made.walk() if isinstance(op, LoopOp)]:
        if loop.part is not None:
            move_loop(loop)
    return made
