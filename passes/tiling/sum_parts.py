"""
The parts of a cell function that is a sum: each part needs the taps up to one plane, or column, and
no later tap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.verified import terminator_of
from timetile.passes.rewriting import erase_unused, name_function

Latest = dict[SSAValue, int | None]
"""
For each value of a body, the largest offset, in planes or columns, on which the value depends; None
for values independent of taps.
"""


@dataclass
class SumPart:
    """
    The operations of the body needing the taps up to one plane, or column, and are not in earlier
    parts.
    """

    offset: int
    taps: list[int]
    operations: list[Operation]
    incoming: list[SSAValue]
    """The values of earlier parts needed in this part or in later parts."""
    results: list[SSAValue]


@dataclass(frozen=True)
class SumFunction:
    """
    A function of a part, by name, and the numbers of the whole function's scalars and coordinates
    taken by the part.
    """

    name: str
    others: tuple[int, ...]


def latest_plane(function: FuncOp, offsets: Sequence[int]) -> Latest:
    """
    For each value of the body, the largest offset on which the value depends. None for constants,
    scalars, coordinates, and values computed from these alone. `offsets`: the offsets of the taps.
    """
    latest: Latest = dict.fromkeys(function.body.block.args)
    latest.update(zip(function.body.block.args, offsets))
    for op in function.body.block.ops:
        known = [o for v in op.operands if (o := latest[v]) is not None]
        latest.update(dict.fromkeys(op.results, max(known) if known else None))
    return latest


def returned(function: FuncOp) -> Sequence[SSAValue]:
    """The values returned by a function."""
    return terminator_of(function.body.block, ReturnOp).operands


def crossing_values(block: Block, latest: Latest, plane: int) -> list[SSAValue]:
    """The values made from planes up to `plane` and used by operations on later planes."""
    crossing: list[SSAValue] = []
    for op in block.ops:
        own = max((o for r in op.results if (o := latest[r]) is not None), default=None)
        if isinstance(op, ReturnOp):
            own = max(o for o in latest.values() if o is not None)
        if own is None or own <= plane:
            continue
        for operand in op.operands:
            at = latest[operand]
            if at is not None and at <= plane and operand not in crossing:
                crossing.append(operand)
    return crossing


def split_body(
    function: FuncOp, offsets: Sequence[int], carried: int | None = None, *, again: bool = False
) -> list[SumPart] | None:
    """
    The body in parts, the oldest plane first. None if more values pass from a part to the next than
    the body has results, or a value of a type that no queue holds. With `carried`, so many sums may
    pass, and of more values than results none is a cell of a plane; with `again`, cells of earlier
    planes do not pass, and are tapped again in later parts.
    """
    block = function.body.block
    latest = latest_plane(function, offsets)
    planes = sorted(set(offsets))
    parts = [SumPart(o, [k for k, x in enumerate(offsets) if x == o], [], [], []) for o in planes]
    for op in block.ops:
        at = latest[op.results[0]] if op.results else None
        if at is not None:
            parts[planes.index(at)].operations.append(op)
    results = returned(function)
    most = len(results) if carried is None else carried
    for part, following in pairwise(parts):
        crossing = crossing_values(block, latest, part.offset)
        if again:
            crossing = [value for value in crossing if value not in block.args]
        part.results = following.incoming = crossing
        if not 1 <= len(crossing) <= most:
            return None
        if len(crossing) > len(results) and any(value in block.args for value in crossing):
            return None
        if any(value.type not in CELL_BYTES for value in part.results):
            return None
    parts[-1].results = list(results)
    if again:
        tap_again(parts, block.args[: len(offsets)])
    return parts


def tap_again(parts: Sequence[SumPart], taps: Sequence[SSAValue]) -> None:
    """Let each part tap all cells that its operations read, earlier planes included."""
    numbers = {tap: number for number, tap in enumerate(taps)}
    for part in parts:
        read = {v for op in part.operations for v in op.operands} | set(part.results)
        part.taps = sorted(numbers[value] for value in read if value in numbers)


def part_function(
    module: ModuleOp, function: FuncOp, part: SumPart, name: str, latest: Latest
) -> SumFunction:
    """
    The function of one part: of incoming partial sums, taps, and the needed scalars and
    coordinates. Operations independent of taps are copied.
    """
    block = Block()
    own = set(part.operations)
    mapping: dict[SSAValue, SSAValue] = {}
    body = function.body.block
    for value in (*part.incoming, *(body.args[k] for k in part.taps)):
        mapping[value] = block.insert_arg(value.type, len(block.args))
    fixed = len(block.args)
    others = [k for k, value in enumerate(body.args) if latest[value] is None]
    for k in others:
        mapping[body.args[k]] = block.insert_arg(body.args[k].type, len(block.args))
    for op in body.ops:
        if op in own or (op.results and latest[op.results[0]] is None):
            block.add_op(op.clone(mapping))
    block.add_op(ReturnOp(*(mapping[value] for value in part.results)))
    erase_unused(block)
    unread = [n for n in range(len(others)) if block.args[fixed + n].first_use is None]
    for n in reversed(unread):
        block.erase_arg(block.args[fixed + n])
    kinds = [value.type for value in part.results]
    made = FuncOp(name, (block.arg_types, kinds), Region(block), visibility="private")
    first = others[0] if others else 0
    kept = tuple(k - first for n, k in enumerate(others) if n not in unread)
    return SumFunction(held(module, function, made), kept)


def held(module: ModuleOp, function: FuncOp, part: FuncOp) -> str:
    """
    The module's name of a part of a function: the name of an equal part, or a new name. Stages with
    one function may be cut differently.
    """
    if name_function(module, part):
        module.body.block.insert_op_after(part, function)
    return part.sym_name.data
