"""
Some steps of a time loop on a part of the places, as a function. `analysis/skews.py` proves the
order right.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.series import number_type
from timetile.dialects.temporal import LoopOp
from timetile.lowering.arguments import fields_of, scalars_of
from timetile.lowering.cpu.builder import Builder, llvm_type
from timetile.lowering.cpu.given import Given, is_read, part_name, update_name
from timetile.lowering.cpu.updates import function_of
from timetile.passes.analysis.skews import Lags, Skew, extent_of

PART: list[Attribute] = [i64] * 7
"""Further argument types of `PartFunction`, after `Given`'s."""


def lag_of(build: Builder, lags: Lags, step: SSAValue, update: int) -> SSAValue:
    """The lag of an update in a step."""
    along = build.times(step, build.int(lags.step))
    return build.plus(along, build.int(lags.updates[update]))


def most_lag(build: Builder, lags: Lags, steps: SSAValue) -> SSAValue:
    """The largest lag in some steps."""
    along = build.times(build.minus(steps, build.int(1)), build.int(lags.step))
    return build.plus(along, build.int(lags.most(1)))


class PartFunction:
    """
    Builds the function running some steps on a part of the places: all updates of a step, or only
    update `only`. The arguments are the arguments of `Given`, a series from the first of the steps
    on, then
    1. `count`: how many steps;
    2. `low`, `opening`, `high`, `closing`: the part. A stage with a span of width w has the places
       from `low + opening * w` to `high + closing * w` of the outermost axis, and all places of
       the second axis;
    3. `rows` and `columns`: how many places of the two axes are taken at a time.
    """

    def __init__(self, loop: LoopOp, number: int, only: int | None = None):
        self.loop, self.number, self.given = loop, number, Given.of(loop)
        self.updates = list(enumerate(loop.updates))
        if only is not None:
            self.updates = [self.updates[only]]
        kinds = [*self.given.kinds, *PART]
        self.function, entry = function_of(part_name(number, only), kinds, "internal")
        self.build, self.arguments = (
            Builder(self.function.body),
            entry.args[: len(self.given.kinds)],
        )
        self.count, self.low, self.opening, self.high, self.closing, self.rows, self.columns = (
            entry.args[-len(PART) :]
        )
        together = [update for _, update in self.updates]
        self.skews = (Skew.of(loop, 0, together), Skew.of(loop, 1, together))

    def make(self) -> llvm.FuncOp:
        """The whole function: blocks of columns, in each blocks of rows, in each all stages."""
        build, (first, second) = self.build, self.skews
        widest = most_lag(build, first.spans, self.count)
        end = build.plus(self.high, build.times(self.closing, widest))
        later = build.times(build.minus(self.count, build.int(1)), build.int(second.lags.step))

        def columns(column: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def rows(row: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                self.stages(row, column)
                return carried

            build.loop(self.low, end, self.rows, rows)
            return carried

        second_end = build.plus(build.int(second.high), later)
        build.loop(build.int(second.low), second_end, self.columns, columns)
        build.add(llvm.ReturnOp())
        return self.function

    def stages(self, row: SSAValue, column: SSAValue) -> None:
        """Emit all stages on the block of places that begins at a row and a column."""
        build, count = self.build, len(self.given.buffers)
        others = self.arguments[count:]

        def step(number: SSAValue, names: Sequence[SSAValue]) -> Sequence[SSAValue]:
            values = dict(zip(self.given.values, (*names, *others)))
            for k, (name, update) in enumerate(self.updates):
                used = [values[field] for field in fields_of(update)]
                used += [self.number_in(v, values[v], number) for v in scalars_of(update)]
                spans = (*self.row_span(row, number, k), *self.column_span(column, number, k))
                build.add(llvm.CallOp(update_name(self.number, name), *used, *spans))
            return [names[source] for source in self.loop.rotation]

        build.loop(build.int(0), self.count, build.int(1), step, self.arguments[:count])

    def number_in(self, scalar: SSAValue, given: SSAValue, step: SSAValue) -> SSAValue:
        """The number of a scalar in a step of the pass: of a series, the step's entry."""
        if not is_read(scalar):
            return given
        kind = llvm_type(number_type(scalar))
        return self.build.loaded(self.build.moved(given, step, kind), kind)

    def row_span(self, row: SSAValue, step: SSAValue, update: int) -> tuple[SSAValue, SSAValue]:
        """Where the cells of a stage in a block of rows begin and end along the outermost axis."""
        build, skew = self.build, self.skews[0]
        width = lag_of(build, skew.spans, step, update)
        low = build.plus(self.low, build.times(self.opening, width))
        high = build.plus(self.high, build.times(self.closing, width))
        low, high = build.larger(low, row), build.smaller(high, build.plus(row, self.rows))
        return self.cells(0, (low, high), lag_of(build, skew.lags, step, update), update)

    def column_span(
        self, column: SSAValue, step: SSAValue, update: int
    ) -> tuple[SSAValue, SSAValue]:
        """Where the cells of a stage in a block of columns begin and end along the second axis."""
        build = self.build
        places = (column, build.plus(column, self.columns))
        lag = lag_of(build, self.skews[1].lags, step, update)
        return self.cells(1, places, lag, update)

    def cells(
        self, axis: int, places: tuple[SSAValue, SSAValue], lag: SSAValue, update: int
    ) -> tuple[SSAValue, SSAValue]:
        """The cells of an update's box with places in a span along an axis."""
        build = self.build
        low, high = extent_of(self.skews[axis].updates[update].box, axis)
        return (
            build.larger(build.minus(places[0], lag), build.int(low)),
            build.smaller(build.minus(places[1], lag), build.int(high)),
        )
