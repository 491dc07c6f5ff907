"""The arguments written by a program's steps, and the written cells."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import gpu, llvm, memref, scf
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from timetile.dialects.temporal import GatherOp, LoopOp, PointOp, SweepOp
from timetile.passes.analysis.launches.liveness import written_arguments as written_roles
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.raising.memory import choices, memory_of
from timetile.runtime.program.results import argument_of, begins_with

CHANGES_MEMORY = (
    CallOp,
    gpu.MemcpyOp,
    llvm.StoreOp,
    memref.AtomicRMWOp,
    memref.CopyOp,
    memref.StoreOp,
)
"""Operations by which the host itself may write an argument."""


def roots_of(value: SSAValue, entry: Block) -> Iterator[int]:
    """
    The arguments of a function's block possibly behind a field, through loops over rotating
    buffers, and through picks by a condition.
    """
    waiting, seen = [memory_of(value)], set[SSAValue]()
    while waiting:
        field = waiting.pop()
        if field in seen:
            continue
        seen.add(field)
        if isinstance(field, BlockArgument) and field.block is entry:
            yield field.index
        # Buffers of a loop rotate: the field may be any of the buffers.
        waiting += [memory_of(known) for _, known in choices(field) if known is not None]


def turned_roles(loop: LoopOp) -> list[int]:
    """
    The roles of a time loop with buffers written by some step: written roles, and roles rotating
    with them.
    """
    found = list(written_roles(loop))
    for _ in found:
        found = [known or found[source] for known, source in zip(found, loop.rotation)]
    return [role for role, known in enumerate(found) if known]


def fields_written_by(op: LoopOp | SweepOp) -> list[SSAValue]:
    """The fields written by a time loop, those in turn with them too, or by a sweep."""
    if isinstance(op, SweepOp):
        return list(op.targets)
    return [op.buffers[role] for role in turned_roles(op)]


def successors_of(loop: LoopOp | scf.ForOp) -> list[int]:
    """For each carried value of a loop: the number of the successor after a step."""
    if isinstance(loop, LoopOp):
        return list(loop.rotation)
    args, last = loop.body.block.args[1:], loop.body.block.last_op
    places: dict[SSAValue, int] = {argument: number for number, argument in enumerate(args)}
    yielded = [] if last is None else [memory_of(value) for value in last.operands]
    return [places.get(value, number) for number, value in enumerate(yielded)]


def partners_of(function: FuncOp) -> dict[int, set[int]]:
    """For each argument: the arguments with buffers in turn with the argument's, in some loop."""
    partners: dict[int, set[int]] = {}
    for loop in function.body.block.ops:
        if not isinstance(loop, LoopOp | scf.ForOp):
            continue
        rotation, begin = successors_of(loop), begins_with(loop)
        for role in range(len(rotation)):
            cycle, place = {role}, rotation[role]
            while place not in cycle:
                cycle.add(place)
                place = rotation[place]
            found = {argument_of(begin[k], function) for k in cycle}
            known = {position for position in found if position is not None}
            for position in known:
                partners.setdefault(position, set()).update(known - {position})
    return partners


def written_arguments(function: FuncOp) -> dict[int, StencilBoundsAttr | None]:
    """
    The arguments written by a function, by position, with the smallest box around the cells written
    by time loops and sweeps; None if only the host writes single cells. A call of another function
    may write all arguments.
    """
    entry = function.body.block
    written: dict[int, StencilBoundsAttr | None] = {}
    for op in function.body.walk():
        if isinstance(op, CallOp):
            for position in range(len(entry.args)):
                written.setdefault(position, None)
        elif isinstance(op, memref.StoreOp | memref.AtomicRMWOp):
            for position in roots_of(op.memref, entry):
                written.setdefault(position, None)
        elif isinstance(op, PointOp | GatherOp):
            field = op.written if isinstance(op, PointOp) else op.target
            for position in roots_of(field, entry):
                written.setdefault(position, None)
        elif isinstance(op, LoopOp | SweepOp):
            box = written_bounds(op) if isinstance(op, LoopOp) else op.box
            for field in fields_written_by(op):
                for position in roots_of(field, entry):
                    known = written.get(position)
                    written[position] = box if known is None else known | box
            for table in op.sampled if isinstance(op, LoopOp) else ():
                for position in roots_of(table, entry):
                    written.setdefault(position, None)
    return written


def constant_arguments(function: FuncOp) -> frozenset[int]:
    """
    The positions of arguments that a function only reads. None in a function where the host itself
    changes memory.
    """
    if any(isinstance(op, CHANGES_MEMORY) for op in function.body.walk()):
        return frozenset()
    return frozenset(range(len(function.body.block.args))) - written_arguments(function).keys()
