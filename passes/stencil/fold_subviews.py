"""
fold-subviews: loads and stores of a memref's part become loads and stores of the whole.

Before:
```
%a = memref.subview %U[%p, 1] [1, 8] [1, 1] : memref<2x10xf64> to !part
%v = memref.load %a[%i] : !part
```
After:
```
%c1 = arith.constant 1 : index
%at = arith.addi %i, %c1 : index
%v = memref.load %U[%p, %at] : memref<2x10xf64>
```
1. An index of the whole memref is the part's offset plus the index in the part times the stride. An
   axis left out by the part has the offset alone.
2. Parts may be parts of others, and have further names (`memref.cast`).
3. A part without further users is erased. A part that is carried by a loop or cast to a field stays
   (`split-levels` takes the whole levels among them).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from timetile.passes.raising.memory import erase_dead, memory_of

Extent = SSAValue | int
"""An offset, a size or a stride: known, or computed by the program."""


def numbers(static: Sequence[int], computed: Sequence[SSAValue]) -> list[Extent]:
    """The numbers of a subview along all axes."""
    rest = iter(computed)
    return [next(rest) if number == DYNAMIC_INDEX else number for number in static]


def offsets_of(part: memref.SubviewOp) -> list[Extent]:
    """The first cell of a part along each axis of the whole memref."""
    return numbers(part.static_offsets.get_values(), part.offsets)


def kept_axes(part: memref.SubviewOp) -> list[int] | None:
    """
    For each axis of a part the axis of the whole memref; None if sizes do not tell. Axes left out
    have one cell, so the choice among several axes of one cell changes no place.
    """
    sizes = part.static_sizes.get_values()
    kind = part.result.type
    assert isa(kind, MemRefType[Attribute])
    kept: list[int] = []
    wanted = list(kind.get_shape())
    for axis, size in enumerate(sizes):
        left_out = len(sizes) - axis - len(wanted)
        if wanted and wanted[0] == size and not (size == 1 and left_out > 0):
            kept.append(axis)
            wanted.pop(0)
        elif size != 1:
            return None
    return None if wanted else kept


def part_behind(memory: SSAValue) -> memref.SubviewOp | None:
    """The subview of a memref, or of a memref with another name; None for other memory."""
    owner = memory_of(memory).owner
    return owner if isinstance(owner, memref.SubviewOp) else None


class WholePlaces:
    """Makes indices of whole memrefs before an operation."""

    def __init__(self, before: Operation):
        self.before = before

    def value(self, number: Extent) -> SSAValue:
        """A number as a value."""
        if isinstance(number, SSAValue):
            return number
        return self.made(arith.ConstantOp(IntegerAttr(number, IndexType())))

    def made(self, op: arith.ConstantOp | arith.AddiOp | arith.MuliOp) -> SSAValue:
        """The result of an operation, put before the access."""
        op.location = self.before.location
        Rewriter.insert_op(op, InsertPoint.before(self.before))
        return op.results[0]

    def place(self, offset: Extent, index: SSAValue, stride: Extent) -> SSAValue:
        """The index of the whole memref along an axis kept by the part."""
        if stride != 1:
            index = self.made(arith.MuliOp(index, self.value(stride)))
        return index if offset == 0 else self.made(arith.AddiOp(index, self.value(offset)))

    def of_whole(
        self, part: memref.SubviewOp, indices: Sequence[SSAValue], kept: Sequence[int]
    ) -> list[SSAValue]:
        """Indices into the whole memref, for indices into its part."""
        own = dict(zip(kept, indices, strict=True))
        strides = numbers(part.static_strides.get_values(), part.strides)
        return [
            self.place(offset, own[axis], strides[axis]) if axis in own else self.value(offset)
            for axis, offset in enumerate(offsets_of(part))
        ]


def fold(access: memref.LoadOp | memref.StoreOp) -> None:
    """Let an access of a part be one of the whole memref."""
    memory, indices = access.memref, list(access.indices)
    places = WholePlaces(access)
    while (part := part_behind(memory)) is not None and (kept := kept_axes(part)) is not None:
        memory, indices = part.source, places.of_whole(part, indices, kept)
    if memory is access.memref:
        return
    new: memref.LoadOp | memref.StoreOp
    if isinstance(access, memref.LoadOp):
        new = memref.LoadOp.get(memory, indices)
        new.res.name_hint = access.res.name_hint
    else:
        new = memref.StoreOp.get(access.value, memory, indices)
    new.location = access.location
    part = access.memref
    Rewriter.replace_op(access, new)
    erase_dead([part])


class FoldSubviewsPass(ModulePass):
    """Accesses to subviews become accesses to whole memrefs; see the module's documentation."""

    name = "fold-subviews"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = list(op.walk())
        if any(isinstance(inner, memref.SubviewOp) for inner in ops):
            for inner in ops:
                if isinstance(inner, memref.LoadOp | memref.StoreOp):
                    fold(inner)
