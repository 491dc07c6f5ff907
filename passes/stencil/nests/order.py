"""
Which version of a cell each load of a nest reads, and the order of the stores as whole sweeps.

A nest runs cell by cell: a load of a written memref reads the old cell if the cell's store comes
later, and the new cell otherwise. As sweeps, all cells of a store come before all cells of the next
store. Both agree if each load of new cells follows the store of the cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import memory_of
from timetile.passes.stencil.nests.nest import LoopNest, Written
from timetile.passes.stencil.nests.places import NestPlace, places_of

RECURRENCE = (
    "the nest reads its own new cells (the order of Gauss-Seidel); write a recurrence along an "
    "axis as temporal.sweep (timetile.sweep in Python), or read from a memref and write to another"
)


@dataclass(frozen=True)
class NestRead:
    """
    A load of a nest: its place, the store whose new cells the load reads (None for cells from
    before the nest), and whether the store wrote the cell at this same turn of the loops.
    """

    op: memref.LoadOp
    places: tuple[NestPlace, ...]
    new: Written | None = None
    same_turn: bool = False


@dataclass
class Order:
    """The reads of a nest, and its stores in groups, each group a sweep over one box."""

    reads: dict[Operation, NestRead] = field(default_factory=dict[Operation, NestRead])
    groups: list[list[Written]] = field(default_factory=list[list[Written]])


def order_of(nest: LoopNest) -> Order:
    """The order of a nest. CannotRaiseError for a nest with another result as sweeps."""
    order = Order()
    check_memrefs(nest)
    check_stores(nest)
    for position, load in nest.loads():
        if (read := read_of(nest, position, load)) is not None:
            order.reads[load] = read
    for store in nest.stores:
        behind = operations_behind([store.op.value], nest, order)
        reads = [read for op, read in order.reads.items() if op in behind]
        for read in reads:
            offset_of(read, store)
        needed = [read for read in reads if read.new is not None]
        if any(read.new is store or not comes_before(read.new, store, nest) for read in needed):
            raise CannotRaiseError(store.op, RECURRENCE)
        group = order.groups[-1] if order.groups else []
        apart = [read for read in needed if read.new in group and not read.same_turn]
        if not group or apart or group[0].places != store.places:
            order.groups.append([store])
        else:
            group.append(store)
    return order


def comes_before(first: Written | None, then: Written, nest: LoopNest) -> bool:
    """Whether a store comes before another in the text."""
    return first is None or nest.stores.index(first) < nest.stores.index(then)


def check_memrefs(nest: LoopNest) -> None:
    """
    CannotRaiseError for a memref that may be another one's memory, or with cells out of order.
    Arguments, allocations, and memrefs carried by loops are memory of their own.
    """
    for op in (*(store.op for store in nest.stores), *(load for _, load in nest.loads())):
        root, kind = memory_of(op.memref), op.memref.type
        owner = root.owner
        if not isinstance(owner, Block | memref.AllocOp | memref.AllocaOp | scf.ForOp):
            raise CannotRaiseError(
                op,
                f"the memref comes from {owner.name}, and its memory is unknown; give the nest an "
                "argument or an allocation",
            )
        if isa(kind, MemRefType[Attribute]) and not isinstance(kind.layout, NoneAttr):
            raise CannotRaiseError(
                op, f"the memref has the layout {kind.layout}; give the nest a memref without one"
            )


def check_stores(nest: LoopNest) -> None:
    """CannotRaiseError where two stores of a nest write one memory."""
    written = [store.memory for store in nest.stores]
    for store in nest.stores:
        if written.count(store.memory) > 1:
            raise CannotRaiseError(
                store.op, "the nest stores twice to one memref; give each store a nest of its own"
            )


def read_of(nest: LoopNest, position: int, load: memref.LoadOp) -> NestRead | None:
    """
    What a load reads; None for a number that is equal for all cells, of memory that the nest leaves
    alone.
    """
    stores = [store for store in nest.stores if store.memory is memory_of(load.memref)]
    if not any(nest.is_inside(index) for index in load.indices) and not stores:
        if nest.body[position] is not load:
            raise CannotRaiseError(
                load,
                "a branch of the nest reads a number of all cells; read the number "
                "before the loops",
            )
        return None
    places = places_of(load.indices, nest.numbers)
    if places is None or (not any(place.loop is not None for place in places) and not stores):
        raise CannotRaiseError(
            load,
            "the nest reads at an index other than a loop's number plus a constant; read at "
            "constant distances from the cell",
        )
    if not stores:
        return NestRead(load, places)
    (store,) = stores
    return against(nest, position, NestRead(load, places), store)


def against(nest: LoopNest, position: int, read: NestRead, store: Written) -> NestRead:
    """A read of memory written by a store of the nest."""
    distance = [0] * len(nest.loops)
    for mine, theirs in zip(read.places, store.places):
        if mine.loop != theirs.loop:
            raise CannotRaiseError(
                read.op,
                "the nest reads its own target along other axes than the written axes; read from a "
                "memref and write to another",
            )
        if mine.loop is None:
            if mine.shift != theirs.shift:
                return read
            continue
        distance[mine.loop] = mine.shift - theirs.shift
    if any(abs(d) >= loop.high - loop.low for d, loop in zip(distance, nest.loops)):
        return read
    first = next((k for k, d in enumerate(distance) if d), None)
    if first is None:
        is_new = nest.body.index(store.op) < position
        return NestRead(read.op, read.places, store, True) if is_new else read
    if not all(loop.in_order for loop, d in zip(nest.loops, distance) if d):
        raise CannotRaiseError(
            read.op,
            "a parallel loop reads cells written by other iterations; read from a memref and write "
            "to another",
        )
    if distance[first] > 0:
        return read
    return NestRead(read.op, read.places, store)


def offset_of(read: NestRead, store: Written) -> tuple[list[int], list[int]]:
    """
    The distance from the stored cell to a read along each axis of the memory read, and the axes of
    the store with equal loops. CannotRaiseError for other axes, or another order.
    """
    axes: list[int] = []
    for number, place in enumerate(read.places):
        if place.loop is not None:
            axes.append(store.axis_of(place.loop))
            continue
        if len(read.places) != len(store.places) or store.places[number].loop is not None:
            raise CannotRaiseError(
                read.op,
                "the nest reads at a fixed index along an axis of many written cells; read "
                "at constant distances from the cell",
            )
        axes.append(number)
    if axes != sorted(set(axes)):
        raise CannotRaiseError(
            read.op,
            "the nest reads memory along other axes than the written axes, as in a transpose; give "
            "both memrefs the axes in one order",
        )
    distance = [p.shift - store.places[axis].shift for axis, p in zip(axes, read.places)]
    return distance, axes


def operations_behind(
    values: Iterable[SSAValue], nest: LoopNest, order: Order, group: Sequence[Written] | None = None
) -> set[Operation]:
    """
    The operations of the nest behind values, with the operations of branches. A value stored at
    this turn of the loops by a store of `group` (by any store without a group) stands for its load.
    """
    found: set[Operation] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        owner = value.owner
        if not isinstance(owner, Operation) or owner in found or not nest.is_inside(value):
            continue
        for inner in owner.walk():
            found.add(inner)
            waiting += inner.operands
            read = order.reads.get(inner)
            if read is None or not read.same_turn or read.new is None:
                continue
            if group is None or read.new in group:
                waiting.append(read.new.op.value)
    return found
