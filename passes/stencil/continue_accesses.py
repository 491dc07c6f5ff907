"""
continue-accesses: reads at wrapped or mirrored places become accesses of a continued field.

Before, over cells 0 to 31 of a field of 32 cells:
```
%x = stencil.load %u : !stencil.field<[0,32]xf64> -> !t
%v = stencil.apply(%p = %x : !t) -> (!t) {
  %i = stencil.index 0 <[0]>
  %j = arith.addi %i, %c31 : index
  %k = arith.remui %j, %c32 : index
  %l = stencil.dyn_access %p[%k] in <[-31]> : <[31]> : !t
  ...
```
After:
```
%x = stencil.load %u {boundary = #temporal.boundary<periodic>} : ...
%v = stencil.apply(%p = %x : !t) -> (!t) {
  %l = stencil.access %p[-1] : !t
  ...
```
1. A read is an access, an access at a computed place, or a choice (`arith.select`, `scf.if`) among
   accesses to one field and numbers, by conditions on coordinates. `passes/raising/read_places.py`
   divides the cells into boxes with a read at one offset each.
2. The offset of most cells is the offset of the new access. A boundary must give the reads of all
   other cells: the cell at the other end, the mirrored cell, or a number.
3. A field is continued if all reads of a load agree, and other accesses stay inside the field.

Other reads stay: `split-guards` computes cells apart, and `gather-cells` reads memory.
The pass is a walk and no rewrite pattern: the reads of all applies decide about a load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, scf, stencil
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.boxes import CellBox, sizes_of
from timetile.dialects.syntax import field_type
from timetile.dialects.temporal.boundary import BoundaryAttr, Kind, Side, image
from timetile.passes.raising.cells import BOUNDARY
from timetile.passes.raising.conditions import coordinates_of
from timetile.passes.raising.demand import ApplyRead, accesses, demand_of
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.known_cells import spans_of
from timetile.passes.raising.read_places import (
    PlacedRead,
    ReadPiece,
    access_behind,
    branches_of,
    leaves_of,
    number_of,
    read_pieces,
)
from timetile.passes.rewriting import erase_unused
from timetile.passes.stencil.gather_cells import joined

KINDS = (Kind.PERIODIC, Kind.MIRROR, Kind.REFLECT, Kind.CLAMP)
"""The kinds looked for, in order."""


@dataclass(frozen=True)
class ContinuedRead:
    """A value of an apply that reads a field beyond its cells: the offset, and all reads."""

    value: SSAValue
    offset: tuple[int, ...]
    pieces: list[ReadPiece]


def sides_left(piece: ReadPiece, offset: Sequence[int], field: CellBox) -> list[tuple[int, bool]]:
    """The axes, and whether above, along which a piece moved by an offset leaves a field."""
    found: list[tuple[int, bool]] = []
    moved = CellBox.of(piece.box).moved(offset)
    for axis, (low, high) in enumerate(zip(moved.lower, moved.upper)):
        if low < field.lower[axis]:
            found.append((axis, False))
        elif high > field.upper[axis]:
            found.append((axis, True))
    return found


def read_by(
    piece: ReadPiece, offset: Sequence[int], field: CellBox, boundary: BoundaryAttr
) -> PlacedRead | None:
    """The read of a piece by a boundary; None if its cells have several."""
    box, read = CellBox.of(piece.box), list[int]()
    # The last axis outside the field decides about a number.
    for axis in reversed(range(len(offset))):
        low, high = box.lower[axis], box.upper[axis]
        ends = field.lower[axis], field.upper[axis]
        seen = [image(p + offset[axis], *ends, boundary.of_axis(axis)) for p in (low, high - 1)]
        first, last = seen
        if isinstance(first, float) or isinstance(last, float):
            return first if repr(first) == repr(last) and isinstance(first, float) else None
        crosses = low + offset[axis] < ends[0] < high + offset[axis] or (
            low + offset[axis] < ends[1] < high + offset[axis]
        )
        if crosses or first - low != last - high + 1:
            return None
        read.insert(0, first - low)
    return tuple(read)


@dataclass
class LoadReads:
    """What a load of a field reads."""

    load: stencil.LoadOp
    field: CellBox

    def run(self) -> None:
        """Continue the field if all reads agree."""
        found = self.reads()
        if not found:
            return
        boundary = self.boundary(found)
        if boundary is None or not all(self.agrees(read, boundary) for read in found):
            return
        self.load.attributes[BOUNDARY] = boundary
        for read in found:
            self.replace(read)

    def applies(self) -> Iterator[tuple[stencil.ApplyOp, SSAValue, StencilBoundsAttr]] | None:
        """The applies that read the load, each with the operand's name and the box."""
        block = self.load.parent
        if block is None or any(
            not isinstance(use.operation, stencil.ApplyOp | stencil.StoreOp)
            or use.operation.parent is not block
            for use in self.load.res.uses
        ):
            return None
        try:
            demand = demand_of(list(block.ops))
        except CannotRaiseError:
            # Raising the block reports the error.
            return None
        users = {use.operation: use.index for use in self.load.res.uses}
        return (
            (op, op.region.block.args[index], joined(boxes))
            for op, index in users.items()
            if isinstance(op, stencil.ApplyOp) and (boxes := demand.boxes(op))
        )

    def reads(self) -> list[ContinuedRead]:
        """The reads beyond the field; none if some access cannot be one, or leaves the field."""
        chosen = {
            use.operation: chosen_reads(
                use.operation.region.block, use.operation.region.block.args[use.index]
            )
            for use in self.load.res.uses
            if isinstance(use.operation, stencil.ApplyOp)
        }
        if not any(chosen.values()):
            # Most programs have no such read: what each apply needs is found where one has.
            return []
        applies, found = self.applies(), list[ContinuedRead]()
        for apply, name, box in applies or ():
            made = [self.read(value, box) for value in chosen[apply]]
            own = [each for each in made if each is not None]
            taken = {leaf.owner for each in own for leaf in leaves_of(each.value)}
            others = [op for op in apply.region.block.walk() if op not in taken]
            if any(isinstance(op, stencil.DynAccessOp) and op.temp is name for op in others):
                return []
            plain = [each for each in accesses(apply) if each.op.temp is name]
            if any(self.leaves(each, box) for each in plain if each.op not in taken):
                return []
            found += own
        return found

    @staticmethod
    def leaves(access: ApplyRead, box: StencilBoundsAttr) -> bool:
        """Whether an access leaves the field for some cell of a box."""
        return any(span.leaves(box) for span in spans_of(access))

    def read(self, value: SSAValue, box: StencilBoundsAttr) -> ContinuedRead | None:
        """The reads of a value over a box; None unless most cells have one offset."""
        pieces = read_pieces(value, box, coordinates_of(value))
        if pieces is None:
            return None
        most = max(pieces, key=lambda piece: prod(sizes_of(piece.box)))
        if not isinstance(most.read, tuple) or len(most.read) != len(box.lb):
            return None
        return ContinuedRead(value, most.read, pieces)

    def boundary(self, reads: Sequence[ContinuedRead]) -> BoundaryAttr | None:
        """The boundary of pieces beyond one side each; None if two disagree."""
        sides: dict[tuple[int, bool], list[Side]] = {}
        for read in reads:
            for piece in read.pieces:
                beyond = sides_left(piece, read.offset, self.field)
                if len(beyond) == 1:
                    known = sides.setdefault(beyond[0], [piece.read] if isinstance(
                        piece.read, float) else list(KINDS))  # fmt: skip
                    sides[beyond[0]] = self.fitting(read, piece, beyond[0][0], known)
        kinds: list[Side] = []
        for axis in range(len(self.field.lower)):
            both = [sides.get((axis, above)) for above in (False, True)]
            known = [each for each in both if each is not None]
            if any(not each for each in known):
                return None
            if not known:
                kinds += (Kind.KEEP, Kind.KEEP)
                continue
            below, above = (known[0] if each is None else each for each in both)
            shared = [kind for kind in below if kind in above]
            kinds += (shared[0], shared[0]) if shared else (below[0], above[0])
            if not shared and Kind.PERIODIC in kinds[-2:]:
                return None
        return None if set(kinds) == {Kind.KEEP} else BoundaryAttr(*kinds)

    def fitting(
        self, read: ContinuedRead, piece: ReadPiece, axis: int, known: Sequence[Side]
    ) -> list[Side]:
        """The sources, of some, by which a piece beyond a side has its read."""
        found: list[Side] = []
        for side in known:
            sides: list[Side] = [Kind.PERIODIC] * (2 * len(read.offset))
            sides[2 * axis : 2 * axis + 2] = side, side
            seen = read_by(piece, read.offset, self.field, BoundaryAttr(*sides))
            if repr(seen) == repr(piece.read):
                found.append(side)
        return found

    def agrees(self, read: ContinuedRead, boundary: BoundaryAttr) -> bool:
        """Whether a boundary gives all pieces of a read."""
        for piece in read.pieces:
            if any(
                boundary.of_axis(axis)[above] is Kind.KEEP
                for axis, above in sides_left(piece, read.offset, self.field)
            ):
                return False
            if repr(read_by(piece, read.offset, self.field, boundary)) != repr(piece.read):
                return False
        return True

    def replace(self, read: ContinuedRead) -> None:
        """One access in place of a read."""
        old = read.value.owner
        assert isinstance(old, Operation)
        source = next(op for leaf in leaves_of(read.value) if (op := access_behind(leaf)))
        block = old.parent
        assert block is not None
        made = stencil.AccessOp(source.temp, read.offset)
        made.location = old.location
        Rewriter.insert_op(made, InsertPoint.before(old))
        read.value.replace_all_uses_with(made.res)
        if all(result.first_use is None for result in old.results):
            Rewriter.erase_op(old)
        if isinstance(block.parent_op(), stencil.ApplyOp):
            erase_unused(block)


def chosen_reads(block: Block, name: SSAValue) -> list[SSAValue]:
    """
    The values of an apply that read one operand by choices or at computed places, and are no part
    of such a value.
    """
    found: list[SSAValue] = []
    for op in block.walk():
        if not isinstance(op, stencil.DynAccessOp | arith.SelectOp | scf.IfOp):
            continue
        for value in op.results:
            leaves = list(leaves_of(value))
            reads = [access for leaf in leaves if (access := access_behind(leaf)) is not None]
            others = [leaf for leaf in leaves if access_behind(leaf) is None]
            whole = all(number_of(leaf) is not None for leaf in others)
            if reads and whole and all(access.temp is name for access in reads):
                found.append(value)
    inner = {part for value in found for part in parts_of(value)}
    return [value for value in found if value not in inner]


def parts_of(value: SSAValue) -> Iterator[SSAValue]:
    """The values among which a value chooses, on the way to its leaves."""
    branches = branches_of(value)
    for part in branches[1:] if branches is not None else ():
        yield part
        yield from parts_of(part)


class ContinueAccessesPass(ModulePass):
    """Continue fields read at wrapped places; see the module's documentation."""

    name = "continue-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for load in [inner for inner in op.walk() if isinstance(inner, stencil.LoadOp)]:
            bounds = field_type(load.field).bounds
            if isinstance(bounds, StencilBoundsAttr) and BOUNDARY not in load.attributes:
                LoadReads(load, CellBox.of(bounds)).run()
