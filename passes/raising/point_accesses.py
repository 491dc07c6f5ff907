"""Work of the host at points, inside a time loop: values added to cells, and cells read.

A *unit* is an operation of a step's block that reads or writes memory on the host: a nest of loops,
a branch, or a single access. Each unit either adds values to cells of fields, or reads cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, memref, scf, stencil
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, f32, f64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from timetile.dialects.temporal import PointKind
from timetile.dialects.verified import memref_type
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import is_alias, is_pure, memory_of

ACCESSES = (memref.LoadOp, memref.StoreOp, memref.AtomicRMWOp)
HostAccessOp = memref.LoadOp | memref.StoreOp | memref.AtomicRMWOp

LOOPS = (scf.ForOp, scf.ParallelOp)

ADDED = 0
"""The number of `addf` among the kinds of `memref.atomic_rmw`, in MLIR's arith dialect."""


@dataclass(frozen=True)
class LoopAxis:
    """A counter of a nest: its first value, its step, and the most values."""

    counter: SSAValue
    low: SSAValue
    step: SSAValue
    most: int


@dataclass(frozen=True)
class PointAccess:
    """
    An access to cells of a field in a unit, an entry of a list for each values of the counters:
    cells read by `op`, or cells changed by `op`, with the sum of the old cell and `value`, or less
    `value` if `is_less`.
    """

    unit: Operation
    op: HostAccessOp
    kind: PointKind
    memory: SSAValue
    axes: tuple[LoopAxis, ...]
    value: SSAValue | None = None
    is_less: bool = False

    @property
    def entries(self) -> int:
        """The most entries."""
        return prod(axis.most for axis in self.axes)


def is_unit(op: Operation) -> bool:
    """Whether an operation of a step's block is work of the host on memory."""
    if isinstance(op, scf.IfOp | scf.ForOp | scf.ParallelOp):
        return any(isinstance(inner, ACCESSES) for inner in op.walk())
    return isinstance(op, ACCESSES)


def units_of(block: Block) -> list[Operation]:
    """The units of a step. Raises CannotRaiseError for other work of the host."""
    found = [op for op in block.ops if is_unit(op)]
    for unit in found:
        check_unit(unit)
    return found


def check_unit(unit: Operation) -> None:
    """Raise CannotRaiseError for a unit with other work than accesses and numbers."""
    for op in unit.walk():
        known = isinstance(op, (*ACCESSES, *LOOPS, scf.IfOp, scf.YieldOp, scf.ReduceOp))
        if not known and not is_pure(op):
            raise CannotRaiseError(
                op, "the work at points holds other operations than accesses and numbers"
            )
        if isinstance(op, LOOPS) and op.results:
            raise CannotRaiseError(op, "the loop over points carries a value; add to memory")


def unit_accesses(unit: Operation) -> Iterator[HostAccessOp]:
    """The accesses of a unit, in order."""
    return (op for op in unit.walk() if isinstance(op, HostAccessOp))


def point_accesses(unit: Operation, fields: Sequence[SSAValue]) -> list[PointAccess]:
    """
    The accesses of a unit to cells of the given fields. Raises CannotRaiseError for a unit that
    writes cells other than by sums, or that adds to cells and writes other memory, too.
    """
    writes = [op for op in unit_accesses(unit) if not isinstance(op, memref.LoadOp)]
    own = [op for op in writes if memory_of(op.memref) in fields]
    if not own:
        return [
            PointAccess(unit, op, PointKind.SAMPLE, memory_of(op.memref), counters_around(op, unit))
            for op in unit_accesses(unit)
            if memory_of(op.memref) in fields
        ]
    if len(own) < len(writes):
        raise CannotRaiseError(
            unit, "it adds to cells of a field and writes other memory, too; write two loops"
        )
    memory = [memory_of(op.memref) for op in own]
    if len(set(memory)) < len(memory):
        raise CannotRaiseError(
            unit, "it writes cells of a field at two places; write a loop for each"
        )
    added = [added_at(op, unit) for op in own]
    old = [old_of(op) for op in own]
    for op in unit_accesses(unit):
        if isinstance(op, memref.LoadOp) and memory_of(op.memref) in fields and op not in old:
            raise CannotRaiseError(
                op, "a value added to cells depends on cells of a field; kernels add known values"
            )
    return added


def added_at(op: HostAccessOp, unit: Operation) -> PointAccess:
    """A store or an atomic change as a sum. Raises CannotRaiseError for other changes."""
    memory, axes = memory_of(op.memref), counters_around(op, unit)
    if isinstance(op, memref.AtomicRMWOp):
        if op.kind.value.data == ADDED and op.result.first_use is None:
            return PointAccess(unit, op, PointKind.INJECT, memory, axes, op.value)
        raise CannotRaiseError(op, "it changes a cell of a field by more than a sum")
    old = old_of(op)
    if old is None or not isinstance(op, memref.StoreOp):
        raise CannotRaiseError(
            op, "it sets a cell of a field, and points add to cells; add to the old value"
        )
    total = op.value.owner
    if isinstance(total, arith.SubfOp):
        return PointAccess(unit, op, PointKind.INJECT, memory, axes, total.rhs, True)
    assert isinstance(total, arith.AddfOp)
    value = total.rhs if total.lhs is old.res else total.lhs
    return PointAccess(unit, op, PointKind.INJECT, memory, axes, value)


def old_of(op: HostAccessOp) -> memref.LoadOp | None:
    """The read of the old cell in a sum stored to the cell; None for no such sum."""
    if not isinstance(op, memref.StoreOp):
        return None
    total = op.value.owner
    if not isinstance(total, arith.AddfOp | arith.SubfOp) or not total.result.has_one_use():
        return None
    sides = [total.lhs, total.rhs] if isinstance(total, arith.AddfOp) else [total.lhs]
    for side in sides:
        old = side.owner
        if (
            isinstance(old, memref.LoadOp)
            and old.parent is op.parent
            and old.res.has_one_use()
            and memory_of(old.memref) is memory_of(op.memref)
            and is_same_place(old, op)
        ):
            return old
    return None


def is_same_place(first: memref.LoadOp, other: memref.StoreOp) -> bool:
    """Whether two accesses are to one cell."""
    if memref_type(first.memref).get_shape() != memref_type(other.memref).get_shape():
        return False
    return all(is_same_number(a, b) for a, b in zip(first.indices, other.indices, strict=True))


def is_same_number(first: SSAValue, other: SSAValue) -> bool:
    """Whether two values are equal, as results of equal arithmetic."""
    if first is other:
        return True
    a, b = first.owner, other.owner
    if not isinstance(a, Operation) or not isinstance(b, Operation) or type(a) is not type(b):
        return False
    if not a.name.startswith("arith.") or a.properties != b.properties or a.regions:
        return False
    if first.type != other.type:
        return False
    return all(is_same_number(x, y) for x, y in zip(a.operands, b.operands, strict=True))


def counters_around(op: Operation, unit: Operation) -> tuple[LoopAxis, ...]:
    """
    The counters around an access in a unit, the outermost first. Raises CannotRaiseError for a loop
    with an unknown number of turns.
    """
    found: list[LoopAxis] = []
    around: Operation | None = op
    while around is not unit:
        assert around is not None
        around = around.parent_op()
        if isinstance(around, LOOPS):
            found[:0] = loop_axes(around)
    return tuple(found)


def loop_axes(loop: scf.ForOp | scf.ParallelOp) -> list[LoopAxis]:
    """The counters of a loop."""
    body = loop.body.block
    if isinstance(loop, scf.ForOp):
        bounds = [(loop.lb, loop.ub, loop.step)]
    else:
        bounds = list(zip(loop.lowerBound, loop.upperBound, loop.step))
    return [
        LoopAxis(counter, low, step, most_turns(loop, counter, low, high, step))
        for counter, (low, high, step) in zip(body.args, bounds)
    ]


def most_turns(
    loop: Operation, counter: SSAValue, low: SSAValue, high: SSAValue, step: SSAValue
) -> int:
    """The most turns of a counter, by constant bounds or by the memory read at the counter."""
    first, end, by = map(integer_constant, (low, high, step))
    if counter.type != IndexType():
        raise CannotRaiseError(loop, "the loop over points counts by no index; use type index")
    if first is not None and end is not None and by is not None and by > 0:
        return max(0, -(-(end - first) // by))
    if first == 0 and by == 1 and (sizes := sizes_read_at(counter)):
        return min(sizes)
    raise CannotRaiseError(
        loop,
        "the number of points is unknown; give the loop constant bounds, or let it read memory of "
        "static extents at its counter",
    )


def sizes_read_at(counter: SSAValue) -> list[int]:
    """The extents of memory read in every turn at a counter."""
    found: list[int] = []
    for use in counter.uses:
        op = use.operation
        if isinstance(op, memref.LoadOp) and op.parent is counter.owner and use.index > 0:
            extent = memref_type(op.memref).get_shape()[use.index - 1]
            found += [extent] if extent != DYNAMIC_INDEX else []
    return found


def cell_kind(access: PointAccess) -> Attribute:
    """The type of the cells of an access. Raises CannotRaiseError for other types than floats."""
    kind = memref_type(access.op.memref)
    if kind.element_type not in (f32, f64):
        raise CannotRaiseError(access.op, f"points of cells of {kind.element_type}; use f32 or f64")
    return kind.element_type


def stores_by_field(block: Block) -> dict[SSAValue, list[stencil.StoreOp]]:
    """The stores of a step, by the memory of their fields."""
    found: dict[SSAValue, list[stencil.StoreOp]] = {}
    for op in block.ops:
        if isinstance(op, stencil.StoreOp):
            found.setdefault(memory_of(op.field), []).append(op)
    return found


def is_of_field(op: Operation, fields: Sequence[SSAValue]) -> bool:
    """Whether an operation is another name of one of some fields."""
    return is_alias(op) and memory_of(op.results[0]) in fields


def shape_of_access(access: PointAccess) -> tuple[int, ...]:
    """The extents of the accessed memref. Raises CannotRaiseError for unknown extents."""
    kind = access.op.memref.type
    assert isa(kind, MemRefType[Attribute])
    if DYNAMIC_INDEX in kind.get_shape():
        raise CannotRaiseError(access.op, "the memref has unknown extents; give static extents")
    return kind.get_shape()
