"""Outlines an apply as a scalar function: accesses, scalars and coordinates become arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf, stencil
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from timetile.dialects.cell_types import STORED_TYPES, computed_type
from timetile.dialects.syntax import cell_type
from timetile.dialects.taps import Tap
from timetile.dialects.temporal.boundary import BoundaryAttr, keeping
from timetile.passes.analysis.cells.cell_values import why_not_in_cell
from timetile.passes.raising.demand import ApplyRead, accesses, unbuffered
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.narrow_integers import NarrowIntegers, touches_narrow
from timetile.passes.raising.stored_types import add_in_f32, touches_stored
from timetile.passes.rewriting import erase_unused

STORES_NOTHING = "it stores nothing; return a value on every path"

KEPT = keeping()

BOUNDARY = "boundary"
"""The attribute of a `stencil.load` with the boundary that continues the field."""

SourceOf = Callable[[ApplyRead], SSAValue]
"""The field read by an access of an apply."""


@dataclass
class OutlinedCell:
    """An outlined apply: the body of the function, and the meaning of each argument."""

    sources: list[SSAValue] = field(default_factory=list[SSAValue])
    beyond: list[BoundaryAttr] = field(default_factory=list[BoundaryAttr])
    """For each source, the boundary that continues the field."""
    taps: list[Tap] = field(default_factory=list[Tap])
    scalars: list[SSAValue] = field(default_factory=list[SSAValue])
    indices: list[int] = field(default_factory=list[int])
    results: list[SSAValue] = field(default_factory=list[SSAValue])
    block: Block = field(default_factory=Block)

    def function(self, name: str, results: list[int]) -> FuncOp:
        """
        A private function of the given results, without operations needed for other results only.
        """
        mapping: dict[SSAValue, SSAValue] = {}
        block = Block(arg_types=self.block.arg_types)
        mapping.update(zip(self.block.args, block.args))
        for op in self.block.ops:
            block.add_op(op.clone(mapping))
        values = [mapping[self.results[k]] for k in results]
        block.add_op(FuncReturnOp(*values))
        erase_unused(block)
        kinds = [value.type for value in values]
        return FuncOp(name, (block.arg_types, kinds), Region(block), visibility="private")


def boundary_of(value: SSAValue) -> BoundaryAttr:
    """The boundary that continues a value beyond its field; `keep` unless its load has another."""
    load = unbuffered(value).owner
    if not isinstance(load, stencil.LoadOp) or BOUNDARY not in load.attributes:
        return KEPT
    given = load.attributes[BOUNDARY]
    if not isinstance(given, BoundaryAttr):
        raise CannotRaiseError(
            load, f"{BOUNDARY} is a #temporal.boundary, got {given}; write one, or none"
        )
    return given


def copying_cell(source: SSAValue, rank: int) -> OutlinedCell:
    """A cell function that returns its only tap."""
    cell = OutlinedCell([source], [KEPT], [Tap(0, (0,) * rank)])
    argument = cell.block.insert_arg(cell_type(source), 0)
    cell.results = [argument]
    return cell


def outline(apply: stencil.ApplyOp, source_of: SourceOf) -> OutlinedCell:
    """The scalar function of an apply. `source_of` gives the field of each access."""
    cell, body = OutlinedCell(), apply.region.block
    mapping: dict[SSAValue, SSAValue] = {}
    narrow = NarrowIntegers(cell.block, mapping)
    add_taps(apply, cell, mapping, source_of)
    for argument, operand in zip(body.args, apply.args):
        if isinstance(argument.type, stencil.StencilType):
            continue
        constant = operand.owner
        if isinstance(constant, arith.ConstantOp) and constant.parent is apply.parent:
            if touches_narrow(constant):
                narrow.add(constant)
                mapping[argument] = mapping[constant.result]
                continue
            if touches_stored(constant):
                add_in_f32(constant, cell.block, mapping)
                mapping[argument] = mapping[constant.result]
                continue
            cell.block.add_op(copy := constant.clone())
            mapping[argument] = copy.result
            continue
        if operand.type in STORED_TYPES:
            wide = computed_type(operand.type)
            raise CannotRaiseError(
                apply, f"it takes a number of {operand.type}; give the number as {wide}"
            )
        cell.scalars.append(operand)
        mapping[argument] = cell.block.insert_arg(operand.type, len(cell.block.args))
    add_coordinates(apply, cell, mapping)
    clone_body(body, cell, mapping, narrow)
    return cell


def add_taps(
    apply: stencil.ApplyOp,
    cell: OutlinedCell,
    mapping: dict[SSAValue, SSAValue],
    source_of: SourceOf,
) -> None:
    """Add one argument for each place of a field read by the apply, in the order of first reads."""
    known: dict[Tap, SSAValue] = {}
    for access in accesses(apply):
        source, boundary = source_of(access), boundary_of(access.operand)
        if source not in cell.sources:
            cell.sources.append(source)
            cell.beyond.append(boundary)
        elif cell.beyond[cell.sources.index(source)] != boundary:
            raise CannotRaiseError(
                apply, "it reads a field with two boundaries; load the field with one"
            )
        tap = Tap(cell.sources.index(source), access.offset)
        if tap not in known:
            known[tap] = cell.block.insert_arg(cell_type(source), len(cell.block.args))
            cell.taps.append(tap)
        mapping[access.op.res] = known[tap]


def add_coordinates(
    apply: stencil.ApplyOp, cell: OutlinedCell, mapping: dict[SSAValue, SSAValue]
) -> None:
    """
    Add one argument for each coordinate axis read by the apply, and a sum for a moved coordinate.
    """
    rank = apply.get_rank()
    reads = [op for op in apply.region.block.ops if isinstance(op, stencil.IndexOp)]
    for read in reads:
        if read.dim.value.data >= rank:
            raise CannotRaiseError(
                read, f"it names axis {read.dim.value.data} of {rank}; the first is 0"
            )
    for axis in sorted({read.dim.value.data for read in reads}):
        cell.indices.append(axis)
        coordinate = cell.block.insert_arg(IndexType(), len(cell.block.args))
        for read in reads:
            if read.dim.value.data != axis:
                continue
            shift = tuple(read.offset)[axis]
            if shift == 0:
                mapping[read.idx] = coordinate
                continue
            constant = arith.ConstantOp(IntegerAttr(shift, IndexType()))
            moved = arith.AddiOp(coordinate, constant.result)
            cell.block.add_ops([constant, moved])
            mapping[read.idx] = moved.result


NOT_IN_CELLS = (
    "the operation is not supported inside a stencil.apply; use arith, math and stencil.access"
)

MOST_UNROLLED = 4096
"""Operations of an unrolled loop at most: more take minutes to compile."""

WHY_NOT_IN_CELLS: dict[type[Operation], str] = {
    scf.ForOp: (
        "a loop inside a stencil.apply is unrolled where its step is a constant, its bounds are "
        "constants or places of the stored cells, and "
        f"that makes at most {MOST_UNROLLED} operations; give it bounds for all cells, and select "
        "between the values before and after an iteration"
    ),
    stencil.ReduceOp: (
        "the operation has no result, and cells are not reduced to a number; store the values in "
        "a field, and write temporal.reduce of the field behind the time loop"
    ),
}


def clone_body(
    body: Block, cell: OutlinedCell, mapping: dict[SSAValue, SSAValue], narrow: NarrowIntegers
) -> None:
    """Copy the arithmetic of an apply into the cell function."""
    for op in body.ops:
        match op:
            case stencil.AccessOp() | stencil.IndexOp():
                continue
            case stencil.StoreResultOp(arg=value):
                if value is None:
                    raise CannotRaiseError(op, STORES_NOTHING)
                mapping[op.res] = mapping[value]
            case stencil.ReturnOp():
                if op.unroll is not None:
                    raise CannotRaiseError(op, "the apply is unrolled; run roll-returns first")
                cell.results = [narrow.number(value) for value in op.arg]
            case _ if op.regions or op.name.startswith("stencil."):
                for inner in op.walk():
                    if isinstance(inner, stencil.StoreResultOp) and inner.arg is None:
                        raise CannotRaiseError(inner, STORES_NOTHING)
                raise CannotRaiseError(op, WHY_NOT_IN_CELLS.get(type(op), NOT_IN_CELLS))
            case _ if touches_narrow(op):
                narrow.add(op)
            case _ if touches_stored(op):
                add_in_f32(op, cell.block, mapping)
            case _:
                if (reason := why_not_in_cell(op)) is not None:
                    raise CannotRaiseError(op, reason)
                cell.block.add_op(op.clone(mapping))
