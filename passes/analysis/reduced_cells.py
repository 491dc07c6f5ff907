"""
Cells read by one reduction alone: the kernel of the reduction computes the cells.

```
%0 = stencil.alloc : !stencil.field<[0,30]x[0,51]xf64>
%1 = temporal.loop %one (%2 = %0) rotate [0] sweep {
  temporal.update %2 = @change(%v[0, 0], %u[0, 0]) in <[0, 0], [30, 51]>
}
%3 = temporal.reduce maximum %0 in <[0, 0], [30, 51]>
```
The field is neither written nor read: the greatest change takes one pass over `%v` and `%u`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, stencil
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import f32, f64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import LoopOp, ReduceOp, UpdateOp

PLAIN = (
    arith.ConstantOp, arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, arith.MaximumfOp,
    arith.MinimumfOp, arith.CmpfOp, arith.SelectOp, xmath.FmaOp, xmath.AbsFOp,
)  # fmt: skip
"""Operations of cells taken by a kernel without a rewrite."""

MOST_TAPS, MOST_OPERATIONS = 12, 40
"""Most taps and operations of a cell: a thread's code has 32 cells."""


@dataclass(frozen=True)
class ReducedCells:
    """An update whose cells a reduction reads, and the cell function."""

    update: UpdateOp
    function: FuncOp

    @property
    def sources(self) -> tuple[SSAValue, ...]:
        """The fields read."""
        return tuple(self.update.sources)


def reduced_cells(op: ReduceOp) -> ReducedCells | None:
    """The update behind the cells of a reduction, without another reader or writer."""
    maker = op.field.owner
    if not isinstance(maker, stencil.AllocOp):
        return None
    loops = [use.operation for use in op.field.uses if use.operation is not op]
    if len(loops) != 1 or not isinstance(loops[0], LoopOp):
        return None
    return update_of_cells(loops[0], op)


def reductions_with_cells(loop: LoopOp) -> list[ReduceOp]:
    """The reduction computing the cells of a loop, if any."""
    if loop.sweep is None or len(loop.buffers) != 1:
        return []
    users = [use.operation for use in loop.buffers[0].uses]
    found = [op for op in users if isinstance(op, ReduceOp) and reduced_cells(op) is not None]
    return found if len(users) == 2 else []


def update_of_cells(loop: LoopOp, op: ReduceOp) -> ReducedCells | None:
    """The update of a single step, if its cells can be computed by the reduction."""
    updates = list(loop.body.block.ops)
    if loop.sweep is None or len(updates) != 1:
        return None
    (update,) = updates
    if not isinstance(update, UpdateOp) or any(result.first_use for result in loop.results):
        return None
    more = update.scalars, update.points, update.indices, update.outside, update.beyond
    if any(more) or update.box != op.box or len(loop.buffers) != 1 or op.parent is not loop.parent:
        return None
    function = SymbolTable.lookup_symbol(loop, update.cell)
    if not isinstance(function, FuncOp) or not is_plain(function, update):
        return None
    return ReducedCells(update, function) if only_arithmetic_between(loop, op) else None


def only_arithmetic_between(loop: LoopOp, op: Operation) -> bool:
    """The loop comes before the reduction, with scalar arithmetic between."""
    behind = loop.next_op
    while behind is not None and behind is not op:
        if behind.regions or not behind.name.startswith("arith."):
            return False
        behind = behind.next_op
    return behind is op


def is_plain(function: FuncOp, update: UpdateOp) -> bool:
    """A cell is made by few plain operations on numbers of the field's type."""
    ops = [op for op in function.body.block.ops if not isinstance(op, ReturnOp)]
    kind = element_type(update.targets[0])
    fields = (*update.targets, *update.sources)
    inner = {field for field in update.sources if field.owner is update.parent}
    return (
        kind in (f32, f64)
        and len(update.targets) == 1
        and not inner
        and all(element_type(field) == kind for field in fields)
        and all(isinstance(op, PLAIN) for op in ops)
        and len(ops) <= MOST_OPERATIONS
        and len(update.tap_list) <= MOST_TAPS
    )
