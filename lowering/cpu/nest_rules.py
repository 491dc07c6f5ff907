"""Which loops of the host become machine code: loops on numbers and on cells of memory.

A time loop of the host may also contain sweeps, and inner loops of a constant number of sweeps:
each is called as the function of its loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from timetile.dialects.cell_types import CELL_TYPES
from timetile.dialects.series import is_series
from timetile.dialects.temporal import LoopOp
from timetile.lowering.cpu.cells import LOWERINGS
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.analysis.cells.quotients import Quotient, Remainder, has_safe_divisor
from timetile.passes.raising.memory import is_alias, is_memory, may_be_one
from timetile.passes.raising.raise_time_loop import TIME_LOOP

HostLoop = scf.ForOp | scf.ParallelOp
"""Loops of the host."""

HostAccess = memref.LoadOp | memref.StoreOp | memref.AtomicRMWOp

SUMS, PRODUCTS, ASSIGNMENT = (0, 1), (9, 10), 2
"""The compiled kinds of `memref.atomic_rmw`, by number in MLIR's arith dialect."""


def kind_number(op: memref.AtomicRMWOp) -> int:
    """The number of the kind of an atomic change."""
    return op.kind.value.data


def host_operations(op: Operation) -> Iterator[Operation]:
    """The operations of the host inside an operation, in order: none of a raised time loop's."""
    for inner in (o for region in op.regions for block in region.blocks for o in block.ops):
        yield inner
        if not isinstance(inner, LoopOp):
            yield from host_operations(inner)


def is_cell_number(kind: Attribute) -> bool:
    """Values of the type are numbers of cells."""
    return kind in CELL_TYPES


def has_static_shape(kind: Attribute) -> bool:
    """The memref has cells of a known type and static extents."""
    if not isa(kind, MemRefType[Attribute]):
        return False
    is_cell = is_cell_number(kind.element_type) and kind.element_type != i1
    return is_cell and DYNAMIC_INDEX not in kind.get_shape()


def counts_upwards(steps: Iterator[SSAValue]) -> bool:
    """All steps of a loop are constants of 1 or more."""
    known = [integer_constant(step) for step in steps]
    return all(step is not None and step >= 1 for step in known)


def is_compiled_operation(op: Operation, top: Block) -> bool:
    """Whether an operation inside a loop of the host becomes machine code."""
    match op:
        case scf.YieldOp() | scf.ReduceOp():
            return not op.regions
        case scf.ForOp():
            numbers = all(is_cell_number(value.type) for value in op.iter_args)
            return TIME_LOOP not in op.attributes and numbers and counts_upwards(iter([op.step]))
        case scf.ParallelOp():
            return not op.results and counts_upwards(iter(op.step))
        case scf.IfOp():
            return all(is_cell_number(value.type) for value in op.results)
        case memref.LoadOp() | memref.StoreOp():
            return has_static_shape(op.memref.type)
        case memref.AtomicRMWOp():
            known = kind_number(op) in (*SUMS, *PRODUCTS, ASSIGNMENT)
            return known and has_static_shape(op.memref.type)
        case LoopOp():
            return op.parent is top and is_compiled_sweep(op)
        case _ if is_alias(op):
            return True
        case _ if isinstance(op, Quotient | Remainder) and not has_safe_divisor(op):
            return False
        case _:
            return type(op) in LOWERINGS and all(is_cell_number(v.type) for v in op.results)


def turns_of(loop: LoopOp) -> int:
    """How many steps a sweep or an inner loop of sweeps has, if constant; otherwise 0."""
    steps = integer_constant(loop.steps) or 0
    return steps if loop.sweep is None or steps == 1 else 0


def is_compiled_sweep(loop: LoopOp) -> bool:
    """
    Whether a sweep of a step, or an inner loop of sweeps, is called from machine code: its numbers
    do not change from step to step, and no two of its fields may be one.
    """
    if turns_of(loop) < 1 or any(map(is_series, loop.scalars)):
        return False
    written = list(loop.buffers)
    pairs = [(a, b) for k, a in enumerate(written) for b in written[:k]]
    pairs += [(a, b) for a in written for b in loop.captures]
    return not any(may_be_one(a, b) for a, b in pairs)


def is_compiled(loop: HostLoop) -> bool:
    """Whether a loop of the host becomes machine code."""
    if isinstance(loop, scf.ParallelOp) and loop.results:
        return False
    is_time_loop = TIME_LOOP in loop.attributes
    inner = list(host_operations(loop))
    if not is_time_loop and any(isinstance(op, LoopOp) for op in inner):
        return False
    top = loop.body.block
    carried = loop.iter_args if isinstance(loop, scf.ForOp) else ()
    known = all(is_cell_number(v.type) or (is_time_loop and is_memory(v.type)) for v in carried)
    works = any(isinstance(op, HostAccess | LoopOp) for op in inner)
    return known and works and all(is_compiled_operation(op, top) for op in inner)


def compiled_loops(root: Operation) -> list[HostLoop]:
    """
    The loops of the host that become machine code, a time loop before the loops inside: of a loop
    that is no time loop only the whole.
    """
    found: list[HostLoop] = []
    for op in host_operations(root):
        if isinstance(op, HostLoop) and is_compiled(op):
            around = (outer for outer in found if is_ancestor(outer, op))
            if all(TIME_LOOP in outer.attributes for outer in around):
                found.append(op)
    return found


def is_ancestor(outer: Operation, op: Operation) -> bool:
    """Whether an operation lies inside another."""
    around = op.parent_op()
    while around is not None and around is not outer:
        around = around.parent_op()
    return around is outer
