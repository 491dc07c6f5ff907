"""Emits the sweeps of a step: `temporal.sweep` operations with cell functions of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import stencil
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import BroadcastOp, Direction, SweepOp
from timetile.frontend.boxes import Box
from timetile.frontend.cells import Cell, located
from timetile.frontend.field_types import elements_of
from timetile.frontend.operations import Access, Argument, Time
from timetile.frontend.steps import walk
from timetile.frontend.sweeps import Sweep
from timetile.frontend.symbols import Assignment
from timetile.frontend.typed_values import TypedStep
from timetile.passes.raising.cells import outline
from timetile.passes.raising.demand import ApplyRead
from timetile.passes.raising.errors import CannotRaiseError

SweptRead = tuple[str, Time, int]
"""A field or a temporary, the time level, and the number of the new values."""


@dataclass
class SweepOperations:
    """
    Operations for the sweeps in a function: `functions` are the cell functions, and `spread` gives
    each field of fewer axes its copy with all axes.
    """

    name: str
    """The name of the function."""
    functions: list[FuncOp] = field(default_factory=list[FuncOp])
    spread: dict[SSAValue, BroadcastOp] = field(default_factory=dict[SSAValue, BroadcastOp])

    def emit(
        self,
        block: Block,
        made: Sequence[Assignment],
        box: Box,
        typed: TypedStep,
        shape: Sequence[int],
        fields: Mapping[tuple[str, Time], SSAValue],
        scalars: Mapping[str, SSAValue],
    ) -> None:
        """Append the operation of a sweep to a block."""
        sweep = made[0].sweep
        assert sweep is not None
        apply = swept_cell(made, sweep, typed, shape, fields, scalars)
        loads = [v.owner for v in apply.args if isinstance(v.owner, stencil.LoadOp)]

        def source_of(access: ApplyRead) -> SSAValue:
            load = access.operand.owner
            assert isinstance(load, stencil.LoadOp)
            if len(access.axes) == len(shape):
                return load.field
            return self.wide(load.field, access.axes, shape)

        try:
            cell = outline(apply, source_of)
        except CannotRaiseError as problem:
            raise ValueError(
                f"the sweep in line {sweep.place.line} has no cell: {problem}"
            ) from None
        name = f"{self.name}_sweep{len(self.functions)}"
        self.functions.append(cell.function(name, list(range(len(made)))))
        for op in (apply, *loads):
            Rewriter.erase_op(op)
        direction = Direction.DESCENDING if sweep.descending else Direction.ASCENDING
        op = SweepOp(
            [fields[item.field, Time.NEXT] for item in made],
            name,
            cell.sources,
            cell.taps,
            sweep.axis,
            direction,
            stencil.StencilBoundsAttr.from_bounds(box),
            cell.scalars,
            cell.indices,
        )
        block.add_op(located(op, sweep.place))

    def wide(self, narrow: SSAValue, axes: Sequence[int], shape: Sequence[int]) -> SSAValue:
        """A field of fewer axes as a field of all axes, made once."""
        if narrow not in self.spread:
            bounds = stencil.StencilBoundsAttr.from_bounds([(0, size) for size in shape])
            kind = stencil.FieldType(bounds, element_type(narrow))
            self.spread[narrow] = BroadcastOp(narrow, axes, kind)
        return self.spread[narrow].field


def swept_cell(
    made: Sequence[Assignment],
    sweep: Sweep,
    typed: TypedStep,
    shape: Sequence[int],
    fields: Mapping[tuple[str, Time], SSAValue],
    scalars: Mapping[str, SSAValue],
) -> stencil.ApplyOp:
    """
    The cell of a sweep as the body of an apply, with a load of each field: where the body reads new
    values, the load is of the places before. The block holds the apply for the moment only.
    """
    values = [typed.stored(item) for item in made]
    used = [value.operation for value in walk(values)]
    reads = dict.fromkeys(
        (read.field, read.time, read.version)
        for read in used
        if isinstance(read, Access) and not sweep.is_made_here(read)
    )
    holder = Block()
    loads: dict[SweptRead, SSAValue] = {}
    for read in reads:
        level = Time.NEXT if read[1] is Time.SWEPT else read[1]
        holder.add_op(load := stencil.LoadOp(fields[read[0], level]))
        loads[read] = load.res
    names = [name for name in scalars if Argument(name) in used]
    operands = [*loads.values(), *(scalars[name] for name in names)]
    body = Block(arg_types=[operand.type for operand in operands])
    cell = Cell(
        body,
        shape,
        dict(zip(loads, body.args)),
        dict(zip(names, body.args[len(loads) :])),
        typed.step.edges,
        ((0, 0),) * len(shape),
    )
    elements = elements_of(typed.types)
    results: list[SSAValue] = []
    for item, value in zip(made, values):
        (result,) = cell.results([value])
        results.append(cell.stored(result, elements[item.field], item.place))
        cell.new[item.field, item.version] = results[-1]
    last: Operation = stencil.ReturnOp(results)
    body.add_op(located(last, made[-1].place))
    kinds: list[Attribute] = [elements[item.field] for item in made]
    temps = [stencil.TempType(len(shape), kind) for kind in kinds]
    apply = stencil.ApplyOp(operands, body, temps)
    holder.add_op(located(apply, made[0].place))
    return apply
