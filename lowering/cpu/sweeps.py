"""Sweeps in the llvm dialect: a function for each, for some lines along the axis.

```
llvm.func @sweep0(%c, %u: !llvm.ptr, %r: f64, %low, %high: i64)
```
The function takes the lines whose places on the outermost other axis are `low` to before `high`.
Loops over the other axes but the last lie outside, then the places along the axis in order, then
the last axis: LLVM takes neighbouring lines at a time, and the cells written last are in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.series import number_type
from timetile.dialects.temporal import SweepOp
from timetile.lowering.arguments import fields_of, scalars_of
from timetile.lowering.cpu.builder import Builder, llvm_type
from timetile.lowering.cpu.updates import POINTER, CellCode, function_of
from timetile.lowering.sweep_frames import sweeps_of
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.skews import extent_of


def sweep_name(number: int) -> str:
    """The name of the function of a sweep, by the number of the sweep in the module."""
    return f"sweep{number}"


def kinds_of(op: SweepOp) -> list[Attribute]:
    """The types of the arguments: fields, scalars, and a span of lines."""
    scalars = [llvm_type(number_type(scalar)) for scalar in scalars_of(op)]
    return [*[POINTER for _ in fields_of(op)], *scalars, i64, i64]


class SweepFunction(CellCode):
    """
    Builds the function of a sweep. The arguments are the fields (pointers to first cells), the
    scalars, and start and end of a span of lines.
    """

    def __init__(self, op: SweepOp, module: ModuleOp, number: int):
        function, entry = function_of(sweep_name(number), kinds_of(op), apart=len(fields_of(op)))
        *given, self.low, self.high = entry.args
        super().__init__(op, cell_function(module, op), Builder(function.body), given)
        self.sweep, self.function = op, function
        self.lines = op.line_axes

    def make(self) -> llvm.FuncOp:
        """The whole function."""
        along, last = self.sweep.axis.data, self.sweep.rank - 1
        inner = [along] if along == last else [along, last]
        self.nest([*(axis for axis in self.lines if axis != last), *inner], {})
        self.build.add(llvm.ReturnOp())
        return self.function

    def nest(self, axes: Sequence[int], places: dict[int, SSAValue]) -> None:
        """Emit the loop of the first axis, around the loops of the others, or around the cell."""
        if not axes:
            self.places[:] = [places[axis] for axis in range(self.sweep.rank)]
            self.one_cell()
            return
        axis, *inner = axes
        low, high = self.span(axis)

        def turn(counter: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            place = counter
            if axis == self.sweep.axis.data and not self.sweep.is_ascending:
                first, last = extent_of(self.sweep.box, axis)
                place = self.build.minus(self.build.int(first + last - 1), counter)
            self.nest(inner, {**places, axis: place})
            return carried

        self.build.loop(low, high, self.build.int(1), turn)

    def span(self, axis: int) -> tuple[SSAValue, SSAValue]:
        """Start and end of the function's cells along an axis."""
        if self.lines and axis == self.lines[0]:
            return self.low, self.high
        low, high = extent_of(self.sweep.box, axis)
        return self.build.int(low), self.build.int(high)


def ordered_sweeps(module: ModuleOp) -> list[SweepOp]:
    """The sweeps whose lines have an order of their own; the host goes through those in parts."""
    return [op for op in sweeps_of(module) if op.parts is None]


def sweep_functions(module: ModuleOp) -> list[SweepFunction]:
    """A function for each sweep of a module that goes place after place, made."""
    found = [SweepFunction(op, module, number) for number, op in enumerate(ordered_sweeps(module))]
    for each in found:
        each.make()
    return found
