"""
Names of memory, from a first name on: other types of the memory, and the names that loops and
conditions give. `memory.py` finds the first name of a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import arith, llvm, scf
from xdsl.ir import SSAValue, Use

from timetile.passes.raising.memory import is_alias, is_memory


def names_of(value: SSAValue) -> Iterator[SSAValue]:
    """The value, and other names of its memory: each name before the names made of it."""
    yield value
    for use in value.uses:
        op = use.operation
        if is_alias(op) or isinstance(op, llvm.InsertValueOp):
            yield from names_of(op.results[0])


def names_at(loop: scf.ForOp, position: int) -> list[SSAValue]:
    """The names of a carried value in the loop and behind."""
    return [loop.body.block.args[position + 1], loop.results[position]]


def names_in_loop(use: Use) -> list[SSAValue]:
    """The names given by a loop that carries a used value; none for another use."""
    op, around = use.operation, use.operation.parent_op()
    if isinstance(op, scf.ForOp):
        return names_at(op, use.index - 3)
    if isinstance(op, scf.YieldOp) and isinstance(around, scf.ForOp):
        return names_at(around, use.index)
    return []


def given_by(use: Use) -> Iterable[SSAValue]:
    """The names that a loop or a condition gives to memory."""
    op, around = use.operation, use.operation.parent_op()
    if isinstance(op, scf.YieldOp) and isinstance(around, scf.IfOp):
        return [around.results[use.index]]
    return op.results if isinstance(op, arith.SelectOp) else names_in_loop(use)


def all_names_of(value: SSAValue) -> list[SSAValue]:
    """The names of a value's memory, and names in loops that carry it and behind conditions."""
    names = list(names_of(value))
    for name in names:
        uses = list(name.uses) if is_memory(name.type) else []
        further = (other for use in uses for given in given_by(use) for other in names_of(given))
        names += [other for other in dict.fromkeys(further) if other not in names]
    return names
