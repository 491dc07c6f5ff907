"""
join-parts: a program of one rank's part, with swaps of halos, becomes the program of the domain.

Before, the program of each of 2 x 2 ranks:
```
func.func @heat(%A: !stencil.field<[-1,33]x[-1,33]xf64>, %B: !stencil.field<[-1,33]x[-1,33]xf64>) {
  %u = stencil.load %A : ...
  %s = "dmp.swap"(%u) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x2>, false>, swaps = [...]} : ...
  %v = stencil.apply(%x = %s : ...) ...
  stencil.store %v to %B(<[0, 0], [32, 32]>) : ...
}
```
After, with 64 x 64 cells:
```
func.func @heat(%A: !stencil.field<[-1,65]x[-1,65]xf64>, %B: !stencil.field<[-1,65]x[-1,65]xf64>) {
  %u = stencil.load %A : ...
  %v = stencil.apply(%x = %u : ...) ...
  stencil.store %v to %B(<[0, 0], [64, 64]>) : ...
}
```
1. The topology of the swaps tells the number of parts along each axis; the boxes of the stores,
   equal in all stores, are the cells of a part. The domain has as many times the cells.
2. A field without room for the domain holds a part, and grows by the other parts' cells. A field
   with room (`distribute-stencil` changes stores only) stays as it is.
3. Bounds of values are of a part, and are left out.
4. Swaps are erased: a program of the domain reads the other parts' cells themselves. Corners, which
   swaps of faces leave stale, are read fresh.

The runtime cuts the domain again, for any number of ranks and GPUs, and places exchanges of its
own. Refused are functions with swaps of several topologies, with stores of different boxes, and
with operations that count from the first cell of a part.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.experimental import dmp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import FieldType, StencilBoundsAttr, TempType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from timetile.dialects.boxes import CellBox
from timetile.passes.diagnostics import refuse
from timetile.passes.stencil.drop_swaps import exchanges_nothing

COUNTING = (stencil.IndexOp, stencil.DynAccessOp, stencil.CombineOp)
"""Operations on places counted from the first cell of a part."""


def swaps_of(function: FuncOp) -> list[dmp.SwapOp]:
    """The swaps of several ranks, of values and fields; swaps of memrefs stay."""
    return [
        op
        for op in function.walk()
        if isinstance(op, dmp.SwapOp)
        and not exchanges_nothing(op)
        and isinstance(op.input_stencil.type, FieldType | TempType)
    ]


def topology_of(swaps: Sequence[dmp.SwapOp]) -> tuple[int, ...]:
    """The number of parts along each axis. CompileError for several topologies."""
    first, *others = [swap.strategy.comm_layout().as_tuple() for swap in swaps]
    for swap, other in zip(swaps[1:], others):
        if other != first:
            refuse(
                swap,
                f"the ranks are {said(other)}, and of another swap {said(first)}; give the program "
                "before distribute-stencil",
            )
    return first


def said(counts: Sequence[int]) -> str:
    """Numbers of parts in words."""
    return " x ".join(map(str, counts))


def stored_part(function: FuncOp) -> CellBox | None:
    """The cells stored by a rank; None without a store. CompileError for several boxes."""
    found: CellBox | None = None
    for op in function.walk():
        if isinstance(op, COUNTING):
            refuse(
                op,
                "the operation counts from the first cell of a rank's part (the function swaps "
                "halos); give the program before distribute-stencil",
            )
        bounds = stored_bounds(op)
        if bounds is None:
            continue
        if found is not None and CellBox.of(bounds) != found:
            refuse(
                op,
                f"a rank stores the cells {CellBox.of(bounds)} here, and {found} elsewhere, and "
                "the domain of all ranks is unknown; give the program before distribute-stencil",
            )
        found = CellBox.of(bounds)
    return found


def stored_bounds(op: Operation) -> StencilBoundsAttr | None:
    """The cells that an operation writes to a field."""
    return op.bounds if isinstance(op, stencil.StoreOp | stencil.ApplyOp) else None


def joined(part: CellBox, counts: Sequence[int]) -> CellBox:
    """The domain of some parts along the first axes."""
    wide = (*counts, *[1] * (len(part.lower) - len(counts)))
    upper = (low + n * cells for low, n, cells in zip(part.lower, wide, part.extents))
    return CellBox(part.lower, tuple(upper))


def type_of_domain(kind: Attribute, part: CellBox, domain: CellBox) -> Attribute:
    """The type of a field or a value in the program of the domain."""
    if isa(kind, TempType[Attribute]):
        return TempType(len(kind.get_shape()), kind.element_type)
    if not isa(kind, FieldType[Attribute]) or not isinstance(kind.bounds, StencilBoundsAttr):
        return kind
    held = CellBox.of(kind.bounds)
    if len(held.lower) != len(part.lower) or domain in held:
        return kind
    upper = (a + d - p for a, d, p in zip(held.upper, domain.upper, part.upper))
    return FieldType(CellBox(held.lower, tuple(upper)).bounds(), kind.element_type)


def all_values(function: FuncOp) -> list[SSAValue]:
    """All values of a function."""
    found: list[SSAValue] = []
    for op in function.walk():
        found += op.results
        found += [arg for region in op.regions for block in region.blocks for arg in block.args]
    return found


def join_parts_of(function: FuncOp) -> None:
    """Make the function of a part the function of the domain."""
    swaps = swaps_of(function)
    if not swaps:
        return
    counts, part = topology_of(swaps), stored_part(function)
    if part is not None:
        if any(count > 1 for count in counts[len(part.lower) :]):
            refuse(
                swaps[0],
                f"{said(counts)} ranks have more axes than the cells {part}; give the program "
                "before distribute-stencil",
            )
        domain = joined(part, counts)
        for value in all_values(function):
            kind = type_of_domain(value.type, part, domain)
            if kind == value.type:
                continue
            if isinstance(value.owner, stencil.ExternalLoadOp) and isinstance(kind, FieldType):
                refuse(
                    value.owner,
                    f"the memory holds the part of one of {said(counts)} ranks; make fields the "
                    "arguments, or give the program before distribute-stencil",
                )
            Rewriter.replace_value_with_new_type(value, kind)
        for op in function.walk():
            if isinstance(op, stencil.StoreOp | stencil.ApplyOp) and op.bounds is not None:
                op.bounds = domain.bounds()
    for swap in swaps:
        if swap.swapped_values is not None:
            swap.swapped_values.replace_all_uses_with(swap.input_stencil)
        Rewriter.erase_op(swap)
    function.update_function_type()


class JoinPartsPass(ModulePass):
    """Make a program of the whole domain from a part's program; see the module's documentation."""

    name = "join-parts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            join_parts_of(function)
