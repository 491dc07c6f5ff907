"""Reductions in the llvm dialect: a function for each kind and type, for blocks of rows.

```
llvm.func @reduce.total.f64(%source, %target, %lanes: !llvm.ptr, %first, %last, %blocks, ...: i64)
```
The function makes the numbers of the blocks `first` to before `last`, counted along the rows, in
the order fixed by `temporal.reduce`. Rows of a field lie at two distances; the numbers of blocks
are a single row for the next round, by a further call. The 32 lanes lie in memory of the caller,
and LLVM takes several at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import FloatAttr, ModuleOp, i64
from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import CELL_TYPES
from timetile.dialects.temporal.reduce import BLOCK_CELLS, IDENTITY, LANES, ReduceOp, Reduction
from timetile.dialects.verified import float_type
from timetile.lowering.cpu.builder import Builder
from timetile.lowering.cpu.cells import propagated_extremum
from timetile.lowering.cpu.updates import POINTER, function_of

LaneBody = Callable[[SSAValue], None]
"""Appends the work on a lane."""

BLOCKS: list[Attribute] = [*[POINTER] * 3, *[i64] * 7]
"""The types of the arguments: source, target, lanes; see `BlocksFunction` for the numbers."""


def reduction_name(kind: Reduction, element: Attribute) -> str:
    """The name of the function for a kind of reduction."""
    return f"reduce.{kind}.{CELL_TYPES[element].llvm}"


class BlocksFunction:
    """
    Builds the function of a kind of reduction. Numbers among the arguments: the first block, and
    the one behind the last; blocks and cells of a row; rows along the second axis; the distances
    from row to row along the first and the second axis, in cells.
    """

    def __init__(self, kind: Reduction, element: Attribute):
        self.kind, self.element = kind, element
        self.function, entry = function_of(reduction_name(kind, element), BLOCKS, apart=3)
        self.build = Builder(self.function.body)
        self.source, self.target, self.lanes = entry.args[:3]
        self.numbers = entry.args[3:]

    def make(self) -> llvm.FuncOp:
        """The whole function."""
        first, last = self.numbers[:2]
        self.build.loop(first, last, self.build.int(1), self.one_block)
        self.build.add(llvm.ReturnOp())
        return self.function

    def one_block(self, block: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The number of a block."""
        build = self.build
        _, _, blocks, cells, rows, outer, inner = self.numbers
        row, number = self.divided(block, blocks)
        place = [build.times(k, d) for k, d in zip(self.divided(row, rows), (outer, inner))]
        begin = build.times(number, build.int(BLOCK_CELLS))
        corner = build.plus(build.plus(*place), begin)
        count = build.smaller(build.minus(cells, begin), build.int(BLOCK_CELLS))
        turns, rest = self.divided(count, build.int(LANES))
        self.each_lane(build.int(LANES), lambda lane: self.put(lane, self.identity()))

        def turn(number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            at = build.plus(corner, build.times(number, build.int(LANES)))
            self.each_lane(build.int(LANES), lambda lane: self.take(lane, at))
            return carried

        build.loop(build.int(0), turns, build.int(1), turn)
        end = build.plus(corner, build.times(turns, build.int(LANES)))
        self.each_lane(rest, lambda lane: self.take(lane, end))
        half = LANES // 2
        while half:
            distance = build.int(half)
            self.each_lane(distance, lambda lane, by=distance: self.meet(lane, by))
            half //= 2
        at = build.moved(self.target, block, self.element)
        build.store(build.loaded(self.lanes, self.element), at)
        return carried

    def divided(self, number: SSAValue, by: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Quotient and remainder of two numbers that are not negative."""
        quotient = self.build.binary(llvm.SDivOp, number, by)
        return quotient, self.build.minus(number, self.build.times(quotient, by))

    def each_lane(self, lanes: SSAValue, body: LaneBody) -> None:
        """Emit a loop over the first lanes."""

        def turn(lane: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body(lane)
            return carried

        self.build.loop(self.build.int(0), lanes, self.build.int(1), turn)

    def identity(self) -> SSAValue:
        """The number that changes no other."""
        kind = float_type(self.element)
        return self.build.constant(FloatAttr(IDENTITY[self.kind], kind), self.element)

    def lane(self, lane: SSAValue) -> SSAValue:
        """The number of a lane."""
        return self.build.loaded(self.build.moved(self.lanes, lane, self.element), self.element)

    def put(self, lane: SSAValue, number: SSAValue) -> None:
        """Set the number of a lane."""
        self.build.store(number, self.build.moved(self.lanes, lane, self.element))

    def take(self, lane: SSAValue, at: SSAValue) -> None:
        """Let a lane take a cell of the row."""
        place = self.build.moved(self.source, self.build.plus(at, lane), self.element)
        cell = self.build.loaded(place, self.element)
        self.put(lane, self.joined(self.lane(lane), cell))

    def meet(self, lane: SSAValue, by: SSAValue) -> None:
        """Let a lane take the number of a lane farther on."""
        self.put(lane, self.joined(self.lane(lane), self.lane(self.build.plus(lane, by))))

    def joined(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The number made of two."""
        if self.kind is Reduction.TOTAL:
            return self.build.binary(llvm.FAddOp, a, b)
        return propagated_extremum(self.build, a, b, largest=self.kind is Reduction.MAXIMUM)


def reduction_functions(module: ModuleOp) -> list[llvm.FuncOp]:
    """The functions of the reductions of a module, each kind and type once."""
    made: dict[str, llvm.FuncOp] = {}
    for op in module.walk():
        if isinstance(op, ReduceOp):
            kind, element = op.reduction, op.result.type
            name = reduction_name(kind, element)
            if name not in made:
                made[name] = BlocksFunction(kind, element).make()
    return list(made.values())
