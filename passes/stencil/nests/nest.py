"""
Nests: loops one inside the other over cells of memrefs, as frontends of C and Fortran print them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import memref, scf, stencil
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.memory import memory_of
from timetile.passes.stencil.nests.known_numbers import known_integer
from timetile.passes.stencil.nests.places import NestPlace, places_of

MOST_AXES = 3


@dataclass(frozen=True)
class NestLoop:
    """
    One loop of a nest: its number runs from `low` up to, not including, `high`. `in_order`: an
    `scf.for`, with the iterations one after the other.
    """

    number: SSAValue
    low: int
    high: int
    in_order: bool


@dataclass(frozen=True)
class Written:
    """A store of a nest, and its place: an index of every axis of the memory."""

    op: memref.StoreOp
    places: tuple[NestPlace, ...]

    @property
    def memory(self) -> SSAValue:
        """The memory written."""
        return memory_of(self.op.memref)

    def axis_of(self, loop: int) -> int:
        """The axis of the memory along which a loop runs."""
        return next(k for k, place in enumerate(self.places) if place.loop == loop)


@dataclass(frozen=True)
class LoopNest:
    """Loops from the outermost inwards, and all operations inside, in order."""

    root: Operation
    loops: list[NestLoop]
    body: list[Operation]
    stores: list[Written]

    @property
    def numbers(self) -> list[SSAValue]:
        """The numbers of the loops."""
        return [loop.number for loop in self.loops]

    def loads(self) -> Iterator[tuple[int, memref.LoadOp]]:
        """The loads of the body and of its branches, each with the position in the body."""
        for position, op in enumerate(self.body):
            for inner in op.walk():
                if isinstance(inner, memref.LoadOp):
                    yield position, inner

    def is_inside(self, value: SSAValue) -> bool:
        """Whether a value is made in the nest."""
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        return block is not None and self.root.is_ancestor(block)


def loops_at(op: Operation) -> list[tuple[SSAValue, SSAValue, SSAValue, SSAValue, bool]] | None:
    """
    For each loop of an operation its number, first, end and step, and whether iterations follow
    one another; None for other operations, and for loops with carried values.
    """
    if isinstance(op, scf.ForOp) and not op.results:
        return [(op.body.block.args[0], op.lb, op.ub, op.step, True)]
    if isinstance(op, scf.ParallelOp) and not op.results:
        bounds = zip(op.body.block.args, op.lowerBound, op.upperBound, op.step)
        return [(*each, False) for each in bounds]
    return None


def is_of_cell(op: Operation) -> bool:
    """Whether an operation of a nest belongs to a cell: arithmetic, a load, a store or a branch."""
    if isinstance(op, memref.LoadOp | memref.StoreOp):
        return True
    if isinstance(op, scf.IfOp):
        inner = [each for each in op.walk() if each is not op]
        return bool(op.results) and all(gives_number(each) for each in inner)
    return gives_number(op)


def gives_number(op: Operation) -> bool:
    """Whether an operation inside a branch computes a value, or ends the branch."""
    if isinstance(op, memref.LoadOp | scf.YieldOp):
        return True
    if isinstance(op, scf.IfOp):
        return bool(op.results)
    return op.name.startswith(("arith.", "math.")) and not op.regions


def flattened(root: Operation) -> tuple[list[Operation], list[Operation]] | None:
    """
    The loops of a nest from `root` inwards, and the operations of all bodies in order; None unless
    every body holds one loop at most, and operations of a cell beside it.
    """
    holders, body = [root], list[Operation]()
    while True:
        ops = [op for op in holders[-1].regions[0].block.ops if not op.has_trait(IsTerminator)]
        ops = [op for op in ops if not isinstance(op, scf.ReduceOp)]
        inner = [op for op in ops if loops_at(op) is not None]
        others = [op for op in ops if op not in inner]
        if len(inner) > 1 or not all(is_of_cell(op) for op in others):
            return None
        body += others
        if not inner:
            return holders, body
        if any(isinstance(op, memref.StoreOp) for op in others):
            return None
        holders.append(inner[0])


def nest_of(root: Operation) -> LoopNest | None:
    """
    The nest of a loop and the loops inside; None for another operation, and for a loop whose number
    is not in the place of every store, like a time loop. CannotRaiseError for a nest over cells
    with bounds or steps that programs cannot have.
    """
    if loops_at(root) is None or (parts := flattened(root)) is None:
        return None
    holders, body = parts
    found = [each for holder in holders for each in loops_at(holder) or []]
    numbers = [number for number, *_ in found]
    stores: list[Written] = []
    for op in body:
        if isinstance(op, memref.StoreOp):
            places = places_of(op.indices, numbers)
            used = [place.loop for place in places or () if place.loop is not None]
            if places is None or sorted(used) != list(range(len(numbers))):
                return None
            stores.append(Written(op, places))
    if not stores:
        return None
    loops = [nest_loop(root, *each) for each in found]
    for store in stores:
        if len(store.places) > MOST_AXES:
            raise CannotRaiseError(
                store.op,
                f"the nest writes memory of {len(store.places)} axes, and fields have 1 to "
                f"{MOST_AXES}; give each index of the outermost axes a memref of its own",
            )
    return LoopNest(root, loops, body, stores)


def nest_loop(
    root: Operation,
    number: SSAValue,
    first: SSAValue,
    end: SSAValue,
    step: SSAValue,
    in_order: bool,
) -> NestLoop:
    """A loop with constant bounds. CannotRaiseError for another."""
    low, high, stride = (known_integer(value) for value in (first, end, step))
    if low is None or high is None:
        raise CannotRaiseError(
            root,
            "the bounds of a loop over cells are known only at run time; print the program with "
            "constants as bounds",
        )
    if stride != 1:
        raise CannotRaiseError(
            root, f"a loop over cells has a step of {stride or 'unknown size'}; give it a step of 1"
        )
    return NestLoop(number, low, high, in_order)


def is_of_stencils(function: FuncOp) -> bool:
    """Whether a function has stores of the stencil dialect."""
    return any(isinstance(op, stencil.ApplyOp | stencil.StoreOp) for op in function.walk())
