"""
The sweeps of a rank: `cut-domain` puts each sweep of the domain into a function of its own.

Before:
```
temporal.sweep %c = @cell(%c[-1, 0], %u[0, 1]) along 0 ascending in <[1, 0], [8, 63]>
```
After, for the second of two parts along axis 1, with ghosts of one cell:
```
func.func @sweep0(%c: !stencil.field<[0,8]x[31,64]xf64>, %u: !stencil.field<[0,8]x[31,64]xf64>) {
  temporal.sweep %c = @cell(%c[-1, 0], %u[0, 1]) along 0 ascending in <[1, 32], [8, 63]>
```
Lines along the axis of a sweep are whole on a rank, as no cut crosses the axis. A rank computes its
own lines, and reads ghosts of other fields beside them. A rank without a line has an empty
function. Sweeps of fewer axes than the domain run as a whole on each rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from timetile.dialects.boxes import CellBox
from timetile.dialects.decomposition import Ghosts
from timetile.dialects.syntax import element_type, field_bounds
from timetile.dialects.temporal import BroadcastOp, PartAttr, SweepOp
from timetile.passes.diagnostics import refuse


def sweeps_of_module(module: ModuleOp) -> list[SweepOp]:
    """The sweeps of a module, in order."""
    return [op for op in module.walk() if isinstance(op, SweepOp)]


def reach_of_sweep(op: SweepOp) -> Ghosts:
    """The cells below and above a line, along each axis, up to which the sweep reads fields."""
    offsets = [tap.offset for tap in op.tap_list if not op.is_result(tap)]
    return tuple(
        (0, 0)
        if axis == op.axis.data
        else (max([0, *(-o[axis] for o in offsets)]), max([0, *(o[axis] for o in offsets)]))
        for axis in range(op.rank)
    )


def values_of_sweep(op: SweepOp) -> list[SSAValue]:
    """The fields and scalars of a sweep, each once."""
    return list(dict.fromkeys(op.operands))


def arguments_of_sweep(op: SweepOp) -> Iterator[SSAValue]:
    """The arguments of a sweep's function; of a field spread along more axes, the field itself."""
    for value in values_of_sweep(op):
        yield value.owner.source if isinstance(value.owner, BroadcastOp) else value


def sweep_function(op: SweepOp, name: str) -> FuncOp:
    """A function with a copy of a sweep, on the sweep's fields and scalars."""
    given = list(dict.fromkeys(arguments_of_sweep(op)))
    block = Block(arg_types=[value.type for value in given])
    mapping: dict[SSAValue, SSAValue] = dict(zip(given, block.args))
    for old, new in zip(given, block.args):
        new.name_hint = old.name_hint
    for value in values_of_sweep(op):
        if isinstance(value.owner, BroadcastOp):
            block.add_op(value.owner.clone(mapping))
    block.add_op(op.clone(mapping))
    block.add_op(ReturnOp())
    return FuncOp(name, ([value.type for value in given], []), Region(block))


def name_of_rank_sweep(number: int) -> str:
    """The name of the function with a sweep, by the sweep's number in the program."""
    return f"sweep{number}"


def cut_sweep(op: SweepOp, part: PartAttr, bounds: dict[SSAValue, CellBox]) -> None:
    """
    Keep a rank's lines of a sweep, and cut the fields to `bounds`; the sweep is alone in its
    function. A sweep without a line is erased.
    """
    function = op.parent_op()
    assert isinstance(function, FuncOp)
    whole = CellBox.of(op.box)
    box = part.decomposition.owned(part.rank.data, whole) & whole
    for field, held in bounds.items():
        kind = FieldType(held.bounds(), element_type(field))
        Rewriter.replace_value_with_new_type(field, kind)
    function.update_function_type()
    if box.is_empty:
        Rewriter.erase_op(op)
    else:
        op.box = box.bounds()


def fields_of_sweep(op: SweepOp) -> list[SSAValue]:
    """The fields of a sweep, each once."""
    return list(dict.fromkeys((*op.targets, *op.sources)))


def whole_bounds(op: SweepOp) -> dict[SSAValue, CellBox]:
    """The bounds of the fields of a sweep."""
    return {field: CellBox.of(field_bounds(field)) for field in fields_of_sweep(op)}


def check_whole_lines(
    sweeps: Sequence[SweepOp], axes: int, count: int, counts: Sequence[int] | None = None
) -> None:
    """
    Raise CompileError where the numbers of parts along some axes cut a line of a sweep, or where
    sweeps leave no axis to `count` parts.
    """
    swept = sorted({op.axis.data for op in sweeps})
    if count == 1 or not swept:
        return
    if len(swept) == axes:
        refuse(
            sweeps[0],
            f"sweeps go along all axes of the domain, and {count} parts would cut lines of a "
            "sweep; run the program in one process, on one GPU",
        )
    crossed = [axis for axis in swept if counts is not None and counts[axis] > 1]
    if not crossed:
        return
    free = next(axis for axis in range(axes) if axis not in swept)
    works = tuple(count if axis == free else 1 for axis in range(axes))
    refuse(
        next(op for op in sweeps if op.axis.data == crossed[0]),
        f"a sweep along axis {crossed[0]} goes through whole lines, and the parts "
        f"{tuple(counts or ())} cut them; cut another axis, as parts={works} does, or leave parts "
        "out",
    )
