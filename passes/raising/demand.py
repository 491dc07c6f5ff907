"""Computes the boxes over which the values of a block are needed, backwards from the stores.

A `stencil.store` needs its value over the store's box. An apply computed over a box needs each
operand over the box moved by the offset of every access. `stencil.combine` divides a box between
the joined values; `stencil.buffer` is another name of its operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import stencil
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Operation, SSAValue

from timetile.dialects.verified import maker_of
from timetile.passes.raising.boxes import above, below, box_of, moved
from timetile.passes.raising.errors import CannotRaiseError


@dataclass(frozen=True)
class ApplyRead:
    """A read of an operand of an apply, with the offset along all axes of the domain."""

    op: stencil.AccessOp
    operand: SSAValue
    offset: tuple[int, ...]
    axes: tuple[int, ...]
    """The axes of the domain present in the operand."""


def accesses(apply: stencil.ApplyOp) -> Iterator[ApplyRead]:
    """The reads of an apply, in order. An axis missing in an operand has offset 0."""
    rank, block = apply.get_rank(), apply.region.block
    for op in block.walk():
        if not isinstance(op, stencil.AccessOp):
            continue
        axes = tuple(range(rank)) if op.offset_mapping is None else tuple(op.offset_mapping)
        if len(axes) != len(op.offset):
            axes = tuple(range(len(op.offset)))
        offset = [0] * rank
        for axis, shift in zip(axes, op.offset):
            offset[axis] = shift
        yield ApplyRead(op, apply.args[block.args.index(op.temp)], tuple(offset), axes)


def extents(
    apply: stencil.ApplyOp, box: StencilBoundsAttr
) -> Iterator[tuple[SSAValue, StencilBoundsAttr]]:
    """
    The operands read by an apply over a box at computed places, with boxes by the declared extents
    of the accesses.
    """
    block = apply.region.block
    for op in block.walk():
        if isinstance(op, stencil.DynAccessOp) and len(op.lb) == len(box.lb):
            around = moved(box, tuple(op.lb)) | moved(box, tuple(op.ub))
            yield apply.args[block.args.index(op.temp)], around


@dataclass(frozen=True)
class Piece:
    """A value over a box: a loaded field, or result `result` of an apply."""

    source: stencil.ApplyOp | stencil.LoadOp
    result: int
    box: StencilBoundsAttr


def unbuffered(value: SSAValue) -> SSAValue:
    """The value named by `stencil.buffer` operations."""
    while isinstance(value.owner, stencil.BufferOp):
        value = value.owner.temp
    return value


def combined(op: stencil.CombineOp, value: SSAValue) -> tuple[SSAValue | None, SSAValue | None]:
    """The two values that `stencil.combine` joins to a result: below its index, and from it on."""
    at = op.results.index(value)
    both = len(op.lower)
    if at < both:
        return op.lower[at], op.upper[at]
    if at < both + len(op.lowerext):
        return op.lowerext[at - both], None
    return None, op.upperext[at - both - len(op.lowerext)]


def pieces(value: SSAValue | None, box: StencilBoundsAttr | None, reader: Operation) -> list[Piece]:
    """The pieces of a value over a box; empty if value or box is None."""
    if value is None or box is None:
        return []
    value = unbuffered(value)
    owner = value.owner
    if isinstance(owner, stencil.CombineOp):
        axis, index = owner.dim.value.data, owner.index.value.data
        if axis >= len(box.lb):
            raise CannotRaiseError(owner, f"it names axis {axis} of {len(box.lb)}; the first is 0")
        lower, upper = combined(owner, value)
        return [
            *pieces(lower, below(box, axis, index), reader),
            *pieces(upper, above(box, axis, index), reader),
        ]
    if isinstance(owner, stencil.ApplyOp):
        return [Piece(owner, owner.res.index(value), box)]
    return [Piece(maker_of(value, stencil.LoadOp), 0, box)]


@dataclass
class Demand:
    """
    The needs of a block: for each apply the boxes of direct stores, and for each value read by an
    apply the smallest box around all reads.
    """

    stored: dict[stencil.ApplyOp, list[StencilBoundsAttr]] = field(
        default_factory=dict[stencil.ApplyOp, list[StencilBoundsAttr]]
    )
    read: dict[SSAValue, StencilBoundsAttr] = field(
        default_factory=dict[SSAValue, StencilBoundsAttr]
    )

    loaded: dict[stencil.LoadOp, StencilBoundsAttr] = field(
        default_factory=dict[stencil.LoadOp, StencilBoundsAttr]
    )
    """For each load stored unchanged, the smallest box around the stored cells."""

    def boxes(self, apply: stencil.ApplyOp) -> list[StencilBoundsAttr]:
        """The boxes over which an apply is computed, in no order."""
        boxes = list(self.stored.get(apply, []))
        boxes += [self.read[result] for result in apply.res if result in self.read]
        return list(dict.fromkeys(boxes))

    def copied(self, load: stencil.LoadOp) -> StencilBoundsAttr:
        """The cells needed in a copy of a loaded field."""
        read, stored = self.read.get(load.res), self.loaded.get(load)
        if read is not None and stored is not None:
            return read | stored
        return self.loaded[load] if read is None else read

    def store(self, piece: Piece) -> None:
        """Note that a value is stored, or joined to another, over a box."""
        if isinstance(piece.source, stencil.ApplyOp):
            self.stored.setdefault(piece.source, []).append(piece.box)
            return
        known = self.loaded.get(piece.source)
        self.loaded[piece.source] = piece.box if known is None else known | piece.box

    spread: dict[tuple[SSAValue, tuple[int, ...]], StencilBoundsAttr] = field(
        default_factory=dict[tuple[SSAValue, tuple[int, ...]], StencilBoundsAttr]
    )
    """For each value of fewer axes, with the axes in a domain, the reading cells."""

    def need_of(self, access: ApplyRead, box: StencilBoundsAttr) -> None:
        """Note what an apply over a box reads by an access."""
        around = moved(box, access.offset)
        if len(access.axes) < len(box.lb):
            key = unbuffered(access.operand), access.axes
            known = self.spread.get(key)
            self.spread[key] = around if known is None else known | around
            low, high = tuple(around.lb), tuple(around.ub)
            around = box_of([low[a] for a in access.axes], [high[a] for a in access.axes])
        self.need(access.operand, around)

    def need(self, value: SSAValue, box: StencilBoundsAttr) -> None:
        """Note that an apply reads a value over a box."""
        value = unbuffered(value)
        self.read[value] = self.read[value] | box if value in self.read else box


def demand_of(ops: Sequence[Operation]) -> Demand:
    """The needs of the operations of a block, computed backwards."""
    demand = Demand()
    for op in reversed(ops):
        match op:
            case stencil.StoreOp():
                for piece in pieces(op.temp, op.bounds, op):
                    demand.store(piece)
            case stencil.ApplyOp():
                for box in demand.boxes(op):
                    for access in accesses(op):
                        demand.need_of(access, box)
                    for operand, around in extents(op, box):
                        demand.need(operand, around)
            case stencil.CombineOp():
                for result in op.results:
                    if result not in demand.read:
                        continue
                    for piece in pieces(result, demand.read[result], op):
                        demand.store(piece)
            case _:
                continue
    return demand
