"""convert-temporal-to-llvm: time loops as functions of the llvm dialect, for the processor's own cores.

Before:
```
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @cell(%a[-1], %a[1]) scalars(%k) in <[0], [64]>
}
```
After, beside the loop:
```
llvm.func internal @loop0.update0(%a: !llvm.ptr {llvm.noalias}, %b: !llvm.ptr {llvm.noalias}, %k: f64, %low: i64, %high: i64)
llvm.func @loop0.steps(%A: !llvm.ptr, %B: !llvm.ptr, %k: f64, %n: i64, %thread: i64, %threads: i64, %barrier: !llvm.ptr)
```
1. Each update becomes a function: loops over a span of the outermost axis, which is a thread's share of
   it, and over all of the other axes. The cell function stands in the innermost loop. Its pointers do not
   alias, so that LLVM vectorises.
2. Each loop becomes a function that every thread of a team calls once for any number of steps: it calls
   the updates in order, waits for the other threads after each, and rotates pointers.

The loops stay: the host function runs them, as it runs those that have GPU kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.stencil import FieldType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable

from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.lowering.cpu.builder import Builder, llvm_type
from timetile.lowering.cpu.updates import (
    POINTER,
    UpdateFunction,
    fields_of,
    function_of,
    outermost,
    scalars_of,
)
from timetile.passes.analysis.boundaries import check_kept
from timetile.passes.analysis.cells.library import BARRIER
from timetile.passes.diagnostics import refuse


def update_name(loop: int, update: int) -> str:
    """The function of an update, by the numbers of its loop and of itself."""
    return f"loop{loop}.update{update}"


def steps_name(loop: int) -> str:
    """The function that runs the steps of a loop."""
    return f"loop{loop}.steps"


def cell_of(update: UpdateOp) -> FuncOp:
    """The cell function of an update."""
    function = SymbolTable.lookup_symbol(update, update.cell)
    if not isinstance(function, FuncOp):
        refuse(update, f"its cell function {update.cell} is not in the module")
    return function


@dataclass(frozen=True)
class Given:
    """What the steps of a loop work on, in the order of its function's arguments."""

    buffers: tuple[SSAValue, ...]
    """The arguments of the loop's body: they rotate."""
    captures: tuple[SSAValue, ...]
    scalars: tuple[SSAValue, ...]

    @staticmethod
    def of(loop: LoopOp) -> Given:
        return Given(tuple(loop.body.block.args), loop.captures, loop.scalars)

    @property
    def kinds(self) -> list[Attribute]:
        """
        The types of the arguments: pointers to the first cells of buffers and captured fields, the
        scalars, then the number of steps, of the thread and of all threads, and their barrier.
        """
        pointers = [POINTER for _ in (*self.buffers, *self.captures)]
        return [*pointers, *map(type_of, self.scalars), i64, i64, i64, POINTER]


def type_of(value: SSAValue) -> Attribute:
    """How compiled code takes a field or a scalar."""
    return POINTER if isinstance(value.type, FieldType) else llvm_type(value.type)


class StepsFunction:
    """
    Builds the function that runs the steps of a loop, on one thread of a team: see `Given` for its
    arguments. Between updates the threads wait for each other.
    """

    def __init__(self, loop: LoopOp, number: int):
        self.loop, self.number, self.given = loop, number, Given.of(loop)
        self.function, self.entry = function_of(steps_name(number), self.given.kinds)
        self.build = Builder(self.entry)
        self.steps, self.thread, self.threads, self.barrier = self.entry.args[-4:]

    def block(self, kinds: Sequence[Attribute] = ()) -> Block:
        """A new block at the end of the function."""
        block = Block(arg_types=kinds)
        self.function.body.add_block(block)
        return block

    def make(self) -> llvm.FuncOp:
        """The whole function."""
        build, given, loop = self.build, self.given, self.loop
        spans = [self.span(update) for update in loop.updates]
        teamed = build.compare("sgt", self.threads, build.int(1))
        head, body, done = self.block([i64, *map(type_of, given.buffers)]), self.block(), Block()
        count = len(given.buffers)
        build.jump(head, build.int(0), *self.entry.args[:count])
        step, *names = head.args
        values: dict[SSAValue, SSAValue] = dict(zip(given.buffers, names))
        values.update(zip((*given.captures, *given.scalars), self.entry.args[count:]))
        build.block = head
        build.branch(build.compare("slt", step, self.steps), body, done)
        build.block = body
        for number, (update, span) in enumerate(zip(loop.updates, spans)):
            used = [values[v] for v in (*fields_of(update), *scalars_of(update))]
            build.add(llvm.CallOp(update_name(self.number, number), *used, *span))
            self.wait(teamed)
        following = build.binary(llvm.AddOp, step, build.int(1))
        build.jump(head, following, *(names[source] for source in loop.rotation))
        self.function.body.add_block(done)
        build.block = done
        build.add(llvm.ReturnOp())
        return self.function

    def span(self, update: UpdateOp) -> tuple[SSAValue, SSAValue]:
        """The thread's share of an update's outermost axis: where it begins, and where it ends."""
        build, (low, high) = self.build, outermost(update.box)
        extent = build.int(high - low)

        def end(thread: SSAValue) -> SSAValue:
            before = build.binary(llvm.MulOp, extent, thread)
            before = build.binary(llvm.SDivOp, before, self.threads)
            return build.binary(llvm.AddOp, before, build.int(low))

        return end(self.thread), end(build.binary(llvm.AddOp, self.thread, build.int(1)))

    def wait(self, teamed: SSAValue) -> None:
        """Wait for the other threads, where there are any."""
        waiting, after = self.block(), self.block()
        self.build.branch(teamed, waiting, after)
        self.build.block = waiting
        self.build.library(BARRIER, [self.barrier], i32)
        self.build.jump(after)
        self.build.block = after


def declared(callees: dict[str, llvm.LLVMFunctionType]) -> list[llvm.FuncOp]:
    """Declarations of library functions."""
    external = llvm.LinkageAttr("external")
    return [llvm.FuncOp(name, kind, external) for name, kind in callees.items()]


def functions_of(loops: Sequence[LoopOp]) -> list[llvm.FuncOp]:
    """The functions of time loops, and of the library's what they call."""
    functions: list[llvm.FuncOp] = []
    callees: dict[str, llvm.LLVMFunctionType] = {}
    for number, loop in enumerate(loops):
        for k, update in enumerate(loop.updates):
            made = UpdateFunction(update, cell_of(update), update_name(number, k))
            functions.append(made.make())
            callees |= made.build.callees
        steps = StepsFunction(loop, number)
        functions.append(steps.make())
        callees |= steps.build.callees
    return [*declared(callees), *functions]


class ConvertTemporalToLlvmPass(ModulePass):
    """Make functions of all time loops; see the module's documentation."""

    name = "convert-temporal-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops = [inner for inner in op.walk() if isinstance(inner, LoopOp)]
        for loop in loops:
            check_kept(loop)
        op.body.block.add_ops(functions_of(loops))
