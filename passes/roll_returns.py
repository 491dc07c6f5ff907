"""roll-returns: an apply that computes several neighbouring cells at once computes one again.

Before: `stencil.return %v0, %v1 unroll <[1, 2]> : f64, f64`, where %v1 is the cell beside that of %v0.
After: `stencil.return %v : f64`.

1. The value for the cell at offset k of the unrolled ones is moved by -k: each access and each coordinate
   of what it depends on.
2. Where the moved values are the same expression, the apply was unrolled by `stencil-unroll`, and the first
   one is kept. Values of several results are listed by result, or by cell as `stencil-unroll` does.

An apply whose cells differ otherwise stays unrolled, with a remark.
"""

from __future__ import annotations

from itertools import product

from xdsl.context import Context
from xdsl.dialects import stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from timetile.passes.diagnostics import remark

Offset = tuple[int, ...]


def shifted(offset: stencil.IndexAttr, axes: Offset, by: Offset) -> Offset:
    """An offset of some axes, moved back."""
    return tuple(d - by[axis] for d, axis in zip(offset, axes))


def place_of(value: SSAValue) -> int | None:
    """Which result of its operation a value is."""
    return value.index if isinstance(value, OpResult) else None


def same_cell(a: SSAValue, b: SSAValue, by: Offset) -> bool:
    """`b` is what `a` is, computed `by` cells further."""
    first, second = a.owner, b.owner
    if not (isinstance(first, Operation) and isinstance(second, Operation)):
        return a is b
    if first.name != second.name or a.type != b.type:
        return False
    if isinstance(first, stencil.AccessOp) and isinstance(second, stencil.AccessOp):
        axes = tuple(second.offset_mapping or range(len(second.offset)))
        return (
            first.temp is second.temp
            and first.offset_mapping == second.offset_mapping
            and tuple(first.offset) == shifted(second.offset, axes, by)
        )
    if isinstance(first, stencil.IndexOp) and isinstance(second, stencil.IndexOp):
        axes = tuple(range(len(by)))
        return first.dim == second.dim and tuple(first.offset) == shifted(second.offset, axes, by)
    if first.regions or second.regions or first.properties != second.properties:
        return False
    return (
        first.attributes == second.attributes
        and len(first.operands) == len(second.operands)
        and place_of(a) == place_of(b)
        and all(same_cell(x, y, by) for x, y in zip(first.operands, second.operands))
    )


def first_cells(groups: list[list[SSAValue]], places: list[Offset]) -> list[SSAValue] | None:
    """The value of each group at the first place, if the others are that one, moved."""
    for group in groups:
        if not all(same_cell(group[0], value, by) for value, by in zip(group, places)):
            return None
    return [group[0] for group in groups]


def roll(op: stencil.ReturnOp) -> bool:
    """Keep the first cell's values; False where the others are not the first's, moved."""
    assert op.unroll is not None
    places = list(product(*(range(n) for n in op.unroll)))
    values, count = list(op.arg), len(places)
    results = len(values) // count
    by_result = [values[k * count : (k + 1) * count] for k in range(results)]
    by_cell = [values[k::results] for k in range(results)]
    kept = first_cells(by_result, places) or first_cells(by_cell, places)
    if kept is None:
        return False
    Rewriter.replace_op(op, stencil.ReturnOp(kept))
    return True


class RollReturnsPass(ModulePass):
    """One cell an apply; see the module's documentation."""

    name = "roll-returns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [i for i in op.walk() if isinstance(i, stencil.ReturnOp)]:
            if inner.unroll is not None and not roll(inner):
                remark(
                    inner,
                    "the cells that it returns are not one cell, moved; it stays unrolled",
                )
