"""convert-temporal-to-llvm: time loops as functions of the llvm dialect, for the processor's cores.

Before:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell(%a[-1], %a[1]) scalars(%k) in <[0], [64]>
}
```
After, beside the loop:
```
llvm.func internal @loop0.update0(%a: !llvm.ptr {llvm.noalias}, %b: !llvm.ptr {llvm.noalias}, ...)
llvm.func internal @loop0.part(%A: !llvm.ptr, %B: !llvm.ptr, %k: f64, %count: i64, ...)
llvm.func @loop0.steps(%A: !llvm.ptr, %B: !llvm.ptr, %k: f64, %n: i64, %depth: i64, ...)
```
1. Each update becomes a function: loops over spans of the two outermost axes, and over all of the
   other axes, around the cell function. Pointers do not alias, and LLVM vectorises.
2. Each loop becomes a function for a part of the fields. The function takes blocks of rows and
   columns in order. For each block the function calls the updates of all steps of the pass, in
   program order, each on the cells with places in the block. `passes/analysis/skews.py` proves the
   order right.
3. Each loop becomes a function for any number of steps, called once by every thread of a team. The
   function makes a pass for every `%depth` steps, in one phase or two, waits for the other threads
   after each phase, and rotates pointers.

4. Loops of the host on numbers and cells become functions, too: `host_nests.py` has their steps.
5. Each kind of reduction becomes a function for blocks of rows: `reductions.py`.
6. Each sweep along an axis but those in parts becomes a function for some lines: `sweeps.py`.

`expand-cells` runs before: a quotient with a divisor that may be 0 is refused.

The runtime chooses the depth and the sizes of blocks (`runtime/native/blocking.py`), and passes
both as arguments. The loops stay: the host function runs time loops of all executors.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects.series import number_type
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.lowering.cpu.builder import Builder, llvm_type
from timetile.lowering.cpu.given import Given, is_read, part_name, steps_name, update_name
from timetile.lowering.cpu.host_nests import NestFunction, nest_functions
from timetile.lowering.cpu.parts import PartFunction, most_lag
from timetile.lowering.cpu.reductions import reduction_functions
from timetile.lowering.cpu.sweeps import SweepFunction, sweep_functions
from timetile.lowering.cpu.updates import POINTER, UpdateFunction, function_of
from timetile.passes.analysis.boundaries import check_kept
from timetile.passes.analysis.cells.cell_functions import named_function
from timetile.passes.analysis.cells.library import BARRIER
from timetile.passes.analysis.skews import Skew, extent_of

Operands = Sequence[SSAValue]

TEAM: list[Attribute] = [i64, i64, i1, i64, i64, i64, i64, POINTER]
"""Further argument types of `StepsFunction`, after `Given`'s."""

SHORT_ROW = 8
"""Cells of a row below which a loop gets short code: a vector of FP64 has 8 at most."""


class StepsFunction:
    """
    Builds the function running the steps of a loop, on a thread of a team. The arguments are the
    arguments of `Given`, then
    1. `steps`; `depth`, the number of steps of a pass; `together`, true if the updates of a step
       share blocks. Otherwise `depth` is 1, and each update takes a whole box;
    2. `rows` and `columns`: the number of places of the two outermost axes taken at a time;
    3. `thread` and `threads`: the number of the thread, and of all threads. Each thread has a block
       of the outermost places, no narrower than the widest span of `depth` steps;
    4. `barrier`: the address of the team's barrier.
    """

    def __init__(self, loop: LoopOp, number: int):
        self.loop, self.number, self.given = loop, number, Given.of(loop)
        kinds = [*self.given.kinds, *TEAM]
        self.function, entry = function_of(steps_name(number), kinds)
        self.build, self.arguments = (
            Builder(self.function.body),
            entry.args[: len(self.given.kinds)],
        )
        (
            self.steps, self.depth, self.together, self.rows, self.columns,
            self.thread, self.threads, self.barrier,
        ) = entry.args[-len(TEAM):]  # fmt: skip

    def make(self) -> llvm.FuncOp:
        """The whole function."""
        build, count = self.build, len(self.given.buffers)
        teamed = build.compare("sgt", self.threads, build.int(1))
        buffers = self.arguments[:count]

        def steps(done: SSAValue, names: Sequence[SSAValue]) -> Sequence[SSAValue]:
            count = build.smaller(self.depth, build.minus(self.steps, done))
            arguments = (*names, *self.from_step(done))
            self.one_pass(count, arguments, teamed)
            return self.rotated(names, count)

        build.loop(build.int(0), self.steps, self.depth, steps, buffers)
        build.add(llvm.ReturnOp())
        return self.function

    def from_step(self, done: SSAValue) -> list[SSAValue]:
        """The captured fields, the scalars, and the series from a step on."""
        build, count = self.build, len(self.given.buffers)
        found: list[SSAValue] = []
        for value, given in zip(self.given.values[count:], self.arguments[count:]):
            kind = llvm_type(number_type(value)) if is_read(value) else None
            found.append(given if kind is None else build.moved(given, done, kind))
        return found

    def one_pass(self, count: SSAValue, arguments: Operands, teamed: SSAValue) -> None:
        """Emit a pass of some steps: all updates together, or update after update."""
        build, updates = self.build, range(len(self.loop.updates))
        if len(updates) == 1:
            self.phases(None, count, arguments, teamed)
            return

        def one_by_one() -> None:
            for k in updates:
                self.phases(k, count, arguments, teamed)

        build.when(self.together, lambda: self.phases(None, count, arguments, teamed))
        apart = build.binary(llvm.XOrOp, self.together, build.int(1, 1))
        build.when(apart, one_by_one)

    def phases(
        self, only: int | None, count: SSAValue, arguments: Operands, teamed: SSAValue
    ) -> None:
        """
        Emit a pass of all updates, or of update `only`. A single thread needs no second phase, and
        neither do spans without width.
        """
        build, zero, one = self.build, self.build.int(0), self.build.int(1)
        skew = Skew.of(self.loop, 0, None if only is None else [self.loop.updates[only]])
        widest = most_lag(build, skew.spans, count)
        two = build.binary(llvm.AndOp, teamed, build.compare("sgt", widest, zero))
        begin = self.border(skew, self.thread, count)
        end = self.border(skew, build.plus(self.thread, one), count)
        bordered = build.smaller(self.thread, one)

        def phase(number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            first = build.compare("eq", number, zero)
            part = (
                count,
                begin, build.select(first, bordered, zero),
                build.select(first, end, begin), build.select(first, zero, bordered),
                self.rows, self.columns,
            )  # fmt: skip
            build.add(llvm.CallOp(part_name(self.number, only), *arguments, *part))
            build.when(teamed, lambda: build.library(BARRIER, [self.barrier], i32))
            return carried

        build.loop(zero, build.select(two, build.int(2), one), one, phase)

    def border(self, skew: Skew, thread: SSAValue, count: SSAValue) -> SSAValue:
        """Where the block of a thread begins, in a pass of some steps."""
        build = self.build
        more = build.times(build.minus(count, build.int(1)), build.int(skew.lags.step))
        places = build.plus(build.int(skew.high - skew.low), more)
        before = build.binary(llvm.SDivOp, build.times(places, thread), self.threads)
        return build.plus(build.int(skew.low), before)

    def rotated(self, names: Sequence[SSAValue], count: SSAValue) -> Sequence[SSAValue]:
        """The buffers named by the arguments of the body after some steps."""
        build = self.build

        def turn(step: SSAValue, names: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [names[source] for source in self.loop.rotation]

        return build.loop(build.int(0), count, build.int(1), turn, names)


def declared(callees: dict[str, llvm.LLVMFunctionType]) -> list[llvm.FuncOp]:
    """Declarations of library functions."""
    external = llvm.LinkageAttr("external")
    return [llvm.FuncOp(name, kind, external) for name, kind in callees.items()]


def parts_of(loop: LoopOp, number: int) -> list[PartFunction]:
    """The functions for parts: all updates together, and each of several updates alone."""
    updates = range(len(loop.updates))
    alone = updates if len(updates) > 1 else ()
    return [PartFunction(loop, number), *(PartFunction(loop, number, k) for k in alone)]


def compile_once(function: llvm.FuncOp, *, is_short: bool) -> None:
    """
    Keep the code of a function out of its callers, and let it be short where its loops gain nothing
    from long code.
    """
    function.no_inline = UnitAttr()
    if is_short:
        function.passthrough = ArrayAttr([StringAttr("optsize")])


def has_short_rows(update: UpdateOp) -> bool:
    """Whether the rows of an update are shorter than vectors."""
    low, high = extent_of(update.box, update.rank - 1)
    return high - low < SHORT_ROW


def functions_of(
    loops: Sequence[LoopOp],
    nests: Sequence[NestFunction] = (),
    reductions: Sequence[llvm.FuncOp] = (),
    sweeps: Sequence[SweepFunction] = (),
) -> list[llvm.FuncOp]:
    """
    Functions for time loops, host loops, reductions and sweeps, and declarations for the library
    functions they call.
    """
    functions: list[llvm.FuncOp] = []
    callees: dict[str, llvm.LLVMFunctionType] = {}
    for number, loop in enumerate(loops):
        for k, update in enumerate(loop.updates):
            update_code = UpdateFunction(update, named_function(update), update_name(number, k))
            functions.append(update_code.make())
            if len(loop.updates) > 1:
                # Two parts call it: a volume that is periodic for two cells has 125 boxes.
                compile_once(functions[-1], is_short=has_short_rows(update))
            callees |= update_code.build.callees
        steps = StepsFunction(loop, number)
        joint, *alone = (part.make() for part in parts_of(loop, number))
        for part in alone:
            compile_once(part, is_short=True)
        functions += [joint, *alone]
        functions.append(steps.make())
        callees |= steps.build.callees
    for made in (*nests, *sweeps):
        functions.append(made.function)
        callees |= made.build.callees
    return [*declared(callees), *functions, *reductions]


class ConvertTemporalToLlvmPass(ModulePass):
    """Make functions of all time loops; see the module's documentation."""

    name = "convert-temporal-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops = [inner for inner in op.walk() if isinstance(inner, LoopOp)]
        for loop in loops:
            check_kept(loop)
        nests = nest_functions(op, loops)
        op.body.block.add_ops(
            functions_of(loops, nests, reduction_functions(op), sweep_functions(op))
        )
