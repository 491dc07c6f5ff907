"""Decides when the updates of a block run, so that every update reads the values of the program.

`stencil.load` is a snapshot: an apply reads fields as of the load. An update runs at the store of
its value, and reads fields there. If a field has changed in between, the value is computed earlier,
into a scratch field, and copied at the store:

1. A value read by another apply is held by a field stored to before. Otherwise the value is
   computed into a scratch field at the apply.
2. A stored value is computed into a scratch field at the apply, and copied at the store, if its
   sources change before the store, or if the apply reads the target beside the cell.
3. A field changed between a load and the apply is copied to a scratch field at the load.

A law for each update: no cell read by the update is written between the load and the update.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import stencil
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Operation, SSAValue

from timetile.dialects.syntax import field_type
from timetile.passes.raising.boxes import covers, moved, overlap
from timetile.passes.raising.cells import BOUNDARY
from timetile.passes.raising.demand import ApplyRead, Demand, accesses, pieces, unbuffered
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import may_be_one, memory_of, written_memory

BlockPosition = tuple[int, int]
"""A point in a block: the operation's place, and the number of the piece."""

BEFORE: BlockPosition = (-1, 0)


@dataclass(frozen=True)
class Scratch:
    """A field added by the compiler, for a value over a box."""

    value: SSAValue


UpdateTarget = SSAValue | Scratch


@dataclass(frozen=True)
class Write:
    """Cells changed at a position. None as a box or a memory stands for any."""

    at: BlockPosition
    memory: SSAValue | None
    box: StencilBoundsAttr | None
    op: Operation


@dataclass
class Item:
    """An update to make: results of an apply, or a copy of a value, over a box, to targets."""

    at: BlockPosition
    op: Operation
    """The operation behind the update: a store, an apply, a load or a combine."""
    source: stencil.ApplyOp | SSAValue
    results: list[int]
    targets: list[UpdateTarget]
    box: StencilBoundsAttr

    def reads(self) -> Iterator[tuple[SSAValue, tuple[int, ...], ApplyRead | None]]:
        """The values read by the update, with offsets."""
        if isinstance(self.source, SSAValue):
            yield self.source, (0,) * len(self.box.lb), None
            return
        for access in accesses(self.source):
            yield access.operand, access.offset, access


@dataclass
class UpdateOrder:
    """The updates of a block, in order."""

    ops: Sequence[Operation]
    demand: Demand
    place: dict[Operation, int] = field(init=False)
    barriers: list[Write] = field(init=False)
    early: set[stencil.ApplyOp] = field(default_factory=set[stencil.ApplyOp])
    """Applies computed at their own place, into scratch fields."""
    copied: set[stencil.LoadOp] = field(default_factory=set[stencil.LoadOp])
    """Loads with a copy of the field at the load's place."""
    unheld: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values not held by any field until the last read."""

    def __post_init__(self) -> None:
        self.place = {op: k for k, op in enumerate(self.ops)}
        self.barriers = [
            Write((self.place[op], 0), memory, None, op)
            for op in self.ops
            if not op.name.startswith("stencil.")
            for memory in written_memory(op)
        ]

    def items(self) -> list[Item]:
        """The updates, in running order. Raises CannotRaiseError if no order keeps the law."""
        while True:
            items = merged(sorted(self.made(), key=lambda item: item.at), self)
            if not self.mend(items):
                return items

    # Updates, given the operations known to be early, copied or unheld.

    def made(self) -> Iterator[Item]:
        """The updates, each with a single target but where an apply is computed into scratch."""
        for op in self.ops:
            at = self.place[op]
            match op:
                case stencil.LoadOp() if op in self.copied:
                    box = self.copied_cells(op)
                    yield Item((at, 0), op, op.field, [0], [Scratch(op.res)], box)
                case stencil.ApplyOp():
                    yield from self.computed(op, at)
                case stencil.CombineOp():
                    for result in op.results:
                        if result in self.demand.read and not self.holders(result):
                            box = self.demand.read[result]
                            yield from self.stored(op, result, Scratch(result), box)
                case stencil.StoreOp():
                    yield from self.stored(op, op.temp, op.field, op.bounds)
                case _:
                    continue

    def copied_cells(self, load: stencil.LoadOp) -> StencilBoundsAttr:
        """
        The cells in the copy of a loaded field. A boundary continues a copy as it continues the
        field: from the same cells.
        """
        bounds = field_type(load.field).bounds
        if BOUNDARY in load.attributes and isinstance(bounds, StencilBoundsAttr):
            return bounds
        return self.demand.copied(load)

    def computed(self, apply: stencil.ApplyOp, at: int) -> Iterator[Item]:
        """The updates made at the place of an apply."""
        early = apply in self.early
        held = [
            k
            for k, result in enumerate(apply.res)
            if (early and self.is_used(result))
            or (result in self.demand.read and not self.holders(result))
        ]
        if not held:
            return
        boxes = [self.demand.read[apply.res[k]] for k in held if apply.res[k] in self.demand.read]
        boxes = [*boxes, *self.demand.stored.get(apply, [])] if early else boxes
        whole = boxes[0]
        for box in boxes[1:]:
            whole = whole | box
        around = [whole] if whole in boxes or not early else list(dict.fromkeys(boxes))
        for number, box in enumerate(around):
            targets: list[UpdateTarget] = [Scratch(apply.res[k]) for k in held]
            yield Item((at, number), apply, apply, held, targets, box)

    def is_used(self, result: SSAValue) -> bool:
        """Some operation of the block stores, joins or reads the value."""
        return result.first_use is not None

    def stored(
        self, op: Operation, value: SSAValue, target: UpdateTarget, box: StencilBoundsAttr
    ) -> Iterator[Item]:
        """The updates of a store, or of a combine held in a scratch field."""
        for number, piece in enumerate(pieces(value, box, op)):
            at = (self.place[op], number)
            if isinstance(piece.source, stencil.LoadOp):
                yield Item(at, op, piece.source.res, [0], [target], piece.box)
            elif piece.source in self.early:
                result = piece.source.res[piece.result]
                yield Item(at, op, result, [0], [target], piece.box)
            else:
                yield Item(at, op, piece.source, [piece.result], [target], piece.box)

    def holders(self, value: SSAValue) -> list[stencil.StoreOp]:
        """The stores of all cells read of a value, in order."""
        if value in self.unheld or value not in self.demand.read:
            return []
        read = self.demand.read[value]
        return [
            op
            for op in self.ops
            if isinstance(op, stencil.StoreOp)
            and unbuffered(op.temp) is value
            and covers(op.bounds, read)
        ]

    # Violations of the law.

    def writes(self, items: Sequence[Item]) -> list[Write]:
        """All changes of cells of the program's fields."""
        return self.barriers + [
            Write(item.at, memory_of(target), item.box, item.op)
            for item in items
            for target in item.targets
            if isinstance(target, SSAValue)
        ]

    def mend(self, items: Sequence[Item]) -> bool:
        """
        Find a read that breaks the law, and note that its value is held elsewhere. Returns whether
        there was such a read.
        """
        writes = self.writes(items)
        for item in items:
            for value, offset, _ in item.reads():
                broken = self.broken(item, value, offset, writes)
                if broken is not None:
                    self.hold(item, unbuffered(value), broken)
                    return True
        return False

    def broken(
        self, item: Item, value: SSAValue, offset: tuple[int, ...], writes: Sequence[Write]
    ) -> Write | None:
        """
        A write between an update and the load of a value read by the update; None if the law holds.
        """
        since = self.since(unbuffered(value), item)
        if since is None:
            return None
        begin, name = since
        memory, read = memory_of(name), cells_read(unbuffered(value), item.box, offset)
        if begin > item.at:
            return Write(item.at, memory, None, item.op)
        own = [memory_of(t) for t in item.targets if isinstance(t, SSAValue)]
        if any(offset) and any(may_be_one(memory, target) for target in own):
            return Write(item.at, memory, item.box, item.op)
        if field_type(name).get_num_dims() != len(item.box.lb):
            return None
        for write in writes:
            between = begin < write.at < item.at and may_be_one(write.memory, memory)
            if between and (write.box is None or overlap(write.box, read)):
                return write
        return None

    def since(self, value: SSAValue, item: Item) -> tuple[BlockPosition, SSAValue] | None:
        """
        The field from which an update reads a value, and the position of the load; None for scratch
        fields.
        """
        owner = value.owner
        if isinstance(owner, stencil.LoadOp):
            if owner in self.copied:
                return None
            return (self.place[owner], 0) if owner in self.place else BEFORE, owner.field
        if isinstance(value.type, stencil.FieldType):
            apply = item.source
            place = self.place[apply] if isinstance(apply, stencil.ApplyOp) else item.at[0]
            return (place, 0), value
        stores = self.holders(value)
        if not stores or (isinstance(owner, stencil.ApplyOp) and owner in self.early):
            return None
        return (self.place[stores[0]], 1 << 30), stores[0].field

    def hold(self, item: Item, value: SSAValue, broken: Write) -> None:
        """
        Note that a value is held elsewhere. Raises CannotRaiseError if no field can hold the value.
        """
        load = value.owner
        is_load = isinstance(load, stencil.LoadOp)
        if not is_load and not isinstance(value.type, stencil.FieldType):
            self.unheld.add(value)
        elif (apply := self.late_apply(item, broken)) is not None:
            self.early.add(apply)
        elif is_load and load in self.place:
            self.copied.add(load)
        else:
            raise CannotRaiseError(
                broken.op, "the loop writes a field loaded before the loop; load the field inside"
            )

    def late_apply(self, item: Item, broken: Write) -> stencil.ApplyOp | None:
        """
        The apply of an update, if the update runs after the apply and would read correct values at
        the apply; otherwise None.
        """
        apply = item.source
        if not isinstance(apply, stencil.ApplyOp) or isinstance(item.op, stencil.ApplyOp):
            return None
        return apply if broken.at > (self.place[apply], 0) else None


def cells_read(value: SSAValue, box: StencilBoundsAttr, offset: Sequence[int]) -> StencilBoundsAttr:
    """
    The cells of a value read at an offset over a box. Beyond the field of a load with a boundary,
    they may be any cells of the field.
    """
    read, load = moved(box, offset), value.owner
    if not isinstance(load, stencil.LoadOp) or BOUNDARY not in load.attributes:
        return read
    bounds = field_type(load.field).bounds
    if not isinstance(bounds, StencilBoundsAttr) or len(bounds.lb) != len(box.lb):
        return read
    return read if covers(bounds, read) else read | bounds


def merged(items: Sequence[Item], order: UpdateOrder) -> list[Item]:
    """Join neighbouring stores of results of one apply over one box into one update."""
    joined: list[Item] = []
    for item in items:
        last = joined[-1] if joined else None
        if last is not None and are_one(last, item, order):
            last.results += item.results
            last.targets += item.targets
            last.at = item.at
        else:
            joined.append(item)
    return joined


def are_one(last: Item, item: Item, order: UpdateOrder) -> bool:
    """Whether two updates can be one: no operation in between reads or writes their memory."""
    if not (isinstance(last.op, stencil.StoreOp) and isinstance(item.op, stencil.StoreOp)):
        return False
    if not isinstance(item.source, stencil.ApplyOp) or last.source is not item.source:
        return False
    memory = [memory_of(t) for t in (*last.targets, *item.targets) if isinstance(t, SSAValue)]
    if last.box != item.box or len(set(memory)) < len(memory):
        return False
    between = order.ops[last.at[0] + 1 : item.at[0]]
    loads = (op for op in between if isinstance(op, stencil.LoadOp))
    if any(may_be_one(memory_of(load.field), memory[-1]) for load in loads):
        return False
    return not any(last.at < barrier.at < item.at for barrier in order.barriers)
