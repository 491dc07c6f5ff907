"""Runs the host function of a program: the operations around time loops.

Buffers are NumPy arrays, device buffers or others, as the executor likes: the host function only
passes buffers on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
from xdsl.dialects import arith, llvm, memref, scf, stencil
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import SymbolTable
from xdsl.utils.hints import isa

from timetile.lowering.cpu.nest_rules import host_operations
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.diagnostics import refuse
from timetile.passes.raising.memory import ALIASES, number_behind
from timetile.passes.raising.raise_time_loop import TIME_LOOP
from timetile.runtime.arithmetic.cells import DTYPES, evaluate, no_signals
from timetile.runtime.host.allocations import ALLOCATIONS, FREED, check_allocation
from timetile.runtime.host.run_record import RunRecord

HostValues = dict[SSAValue, Any]

HostHandler = Callable[[Any, Sequence[Any], HostValues], Sequence[Any]]
"""Runs one operation on its operands, with all values so far, and returns the results."""

Around = Callable[[Operation, HostValues], AbstractContextManager[None]]
"""The context of a loop of the host, with all values so far."""

Listed = tuple[Operation, tuple[SSAValue, ...], HostHandler | None]
"""An operation, its operands, and its handler."""


@dataclass(frozen=True)
class NestRun:
    """
    A loop of the host run elsewhere: its results, the cells updated by its sweeps, and the buffers
    written by the last step.
    """

    results: Sequence[Any]
    cells: int
    written: Sequence[Any]


class HostLoops(Protocol):
    """Runs loops of the host with machine code."""

    def run(
        self, op: Operation, counts: Sequence[range], carried: Sequence[Any], values: HostValues
    ) -> NestRun | None:
        """
        Run a loop over ranges, the innermost last, with the values so far; None for a loop left to
        the interpreter.
        """
        ...


class Interpreted:
    """Leaves all loops to the interpreter."""

    def run(
        self, op: Operation, counts: Sequence[range], carried: Sequence[Any], values: HostValues
    ) -> NestRun | None:
        """No loop runs elsewhere."""
        return None


def nothing_around(op: Operation, values: HostValues) -> AbstractContextManager[None]:
    """Run a loop without a context."""
    return nullcontext()


def ceil_divide(a: Any, b: Any) -> Any:
    """The quotient, rounded up."""
    return -(-a // b)


SCALARS: dict[type[Operation], Callable[..., Any]] = {
    arith.CeilDivSIOp: no_signals(ceil_divide),
    arith.FloorDivSIOp: no_signals(np.floor_divide),
}
"""Operations on scalars computed by the host, but not allowed in cells."""


def number_of_scalars(op: Operation, operands: Sequence[Any]) -> Any:
    """
    The result of an operation on numbers, with the bits of cells: Python's numbers get the types of
    the operands.
    """
    if type(op) in SCALARS:
        return SCALARS[type(op)](*operands)
    typed: list[Any] = []
    for name, value in zip(op.operands, operands):
        is_plain = isinstance(value, int | float) and name.type in DTYPES
        typed.append(DTYPES[name.type](value) if is_plain else value)
    return evaluate(op, typed)


IGNORED = FREED
"""Operations without an effect for the host."""


class Host:
    """
    An interpreter of host functions; `handlers` run the operations on buffers. `steps` replaces the
    trip count of the host's own time loops, with first step number `first`, and `record` notes the
    loops. Other loops run in the context made by `around`. `loops` runs loops elsewhere.
    """

    def __init__(
        self,
        handlers: dict[type[Operation], HostHandler],
        steps: int | None = None,
        record: RunRecord | None = None,
        first: int = 0,
        around: Around | None = None,
        loops: HostLoops | None = None,
    ):
        self.handlers, self.steps, self.first = handlers, steps, first
        self.around: Around = nothing_around if around is None else around
        self.record = RunRecord() if record is None else record
        self.loops: HostLoops = Interpreted() if loops is None else loops
        self.listed: dict[Block, list[Listed]] = {}
        """The operations of blocks run before: loops run blocks again and again."""

    def run(self, function: FuncOp, arguments: Sequence[Any]) -> list[Any]:
        """Run a function, and return the results."""
        values: HostValues = dict(zip(function.body.block.args, arguments))
        return self.run_block(function.body.block, values)

    def run_block(self, block: Block, values: HostValues) -> list[Any]:
        """
        Run the operations of a block up to its terminator, and return the terminator's operands.
        """
        if block not in self.listed:
            self.listed[block] = [
                (op, tuple(op.operands), self.handlers.get(type(op))) for op in block.ops
            ]
        for op, used, handler in self.listed[block]:
            operands = [values[v] for v in used]
            if handler is not None:
                results = handler(op, operands, values)
                if not results:
                    continue
            elif isinstance(op, ReturnOp | scf.YieldOp | scf.ReduceOp):
                return operands
            else:
                results = self.run_operation(op, operands, values)
            values.update(zip(op.results, results))
        return []

    def run_operation(
        self, op: Operation, operands: Sequence[Any], values: HostValues
    ) -> Sequence[Any]:
        """
        Run an operation without a handler. Raises CompileError for an operation without a meaning
        on the host.
        """
        match op:
            case llvm.UndefOp():
                return [None]
            case llvm.InsertValueOp():
                is_pointer = isinstance(op.value.type, llvm.LLVMPointerType)
                return [operands[1] if is_pointer else operands[0]]
            case scf.ForOp():
                return self.run_for(op, operands, values)
            case scf.IfOp():
                region = op.true_region if operands[0] else op.false_region
                return self.run_block(region.block, values) if region.blocks else []
            case scf.ParallelOp():
                return self.run_parallel(op, operands, values)
            case CallOp():
                return self.run_call(op, operands)
            case stencil.ExternalStoreOp():
                if operands[0] is operands[1]:
                    return []
                refuse(
                    op,
                    "the function stores a field to other memory than the field's own; store the "
                    "field to the memref of the load",
                )
            case arith.SelectOp():
                # Operands are numbers or buffers.
                return [operands[1] if operands[0] else operands[2]]
            case llvm.LoadOp():
                # The caller passes the number itself for a pointer to a number.
                return operands
            case _ if isinstance(op, ALIASES):
                return operands
            case _ if isinstance(op, IGNORED):
                return []
            case _ if type(op) in SCALARS or is_scalar(op):
                return [number_of_scalars(op, operands)]
            case _:
                refuse(op, WHY_NOT_RUN)

    def run_for(self, op: scf.ForOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """A counted loop of the host."""
        low, high, step, *carried = operands
        check_stride(op, step)
        is_time_loop = TIME_LOOP in op.attributes
        if is_time_loop and self.steps is not None:
            low = int(low) + self.first * int(step)
            high = low + self.steps * int(step)
        counts = range(int(low), int(high), int(step))
        scope = self.record.time_loop(len(counts)) if is_time_loop else self.around(op, values)
        with scope as run:
            made = self.loops.run(op, [counts], carried, values)
            if made is not None:
                if run is not None:
                    run.cells, run.written = made.cells, list(made.written)
                return made.results
            for index in counts:
                if run is not None:
                    # Only the writes of the last step count.
                    run.written = []
                values.update(zip(op.body.block.args, [index, *carried]))
                carried = self.run_block(op.body.block, values)
        return carried

    def run_parallel(
        self, op: scf.ParallelOp, operands: Sequence[Any], values: HostValues
    ) -> Sequence[Any]:
        """A loop nest of the host without reductions, in row-major order."""
        rank = len(op.lowerBound)
        if op.results:
            refuse(op, "the loop reduces values; write a loop with scf.for")
        low, high, step = (operands[k * rank : (k + 1) * rank] for k in range(3))
        for stride in step:
            check_stride(op, stride)
        ranges = [range(int(a), int(b), int(c)) for a, b, c in zip(low, high, step)]
        if self.loops.run(op, ranges, (), values) is not None:
            return []
        for indices in product(*ranges):
            values.update(zip(op.body.block.args, indices))
            self.run_block(op.body.block, values)
        return []

    def run_call(self, op: CallOp, operands: Sequence[Any]) -> Sequence[Any]:
        """A call of a function of the module."""
        callee = callee_of(op)
        buffers = [id(value) for value in operands if not np.isscalar(value)]
        if len(set(buffers)) < len(buffers):
            refuse(op, "the call passes one field twice; give each argument a separate field")
        return self.run(callee, operands)


def check_stride(loop: Operation, stride: Any) -> None:
    """CompileError where a loop counts downwards, or not at all."""
    if int(stride) < 1:
        refuse(loop, f"the loop's step is {stride}; give it a step of 1 or more")


def is_scalar(op: Operation) -> bool:
    """The operation computes numbers from numbers."""
    return op.name.startswith(("arith.", "math.")) and not op.regions


WHY_NOT_RUN = (
    "it stays on the host, which cannot run it; keep only time loops, sweeps, casts, scalar "
    "arithmetic, conditions, and memref loads and stores in the function"
)

WHY_NOT_RUN_OF: dict[type[Operation], str] = {
    memref.SubviewOp: (
        "it makes a view of a part of a memref, and fields are whole memrefs; make the part an "
        "argument, or the levels an axis of a field"
    ),
    llvm.IntToPtrOp: (
        "it makes a pointer of a number, and the memory behind is unknown; make the memory an "
        "argument: a field, a memref or a pointer"
    ),
}


def check_host(function: FuncOp, known: Sequence[type[Operation]]) -> None:
    """CompileError where the host cannot run an operation of a function; `known` have handlers."""
    runnable = (
        *known, *ALIASES, *IGNORED, ReturnOp, CallOp, stencil.ExternalStoreOp, llvm.UndefOp,
        llvm.InsertValueOp, scf.YieldOp, scf.ForOp, scf.IfOp, scf.ParallelOp, scf.ReduceOp,
        llvm.LoadOp,
    )  # fmt: skip
    for op in host_operations(function):
        if not (isinstance(op, runnable) or type(op) in SCALARS or is_scalar(op)):
            refuse(op, WHY_NOT_RUN_OF.get(type(op), WHY_NOT_RUN))
        check_operation(op)


def check_operation(op: Operation) -> None:
    """CompileError for an operation of a known kind with operands unknown to the host."""
    match op:
        case memref.LoadOp() if isa(op.res.type, MemRefType[Attribute]):
            refuse(
                op,
                "the function reads the memory to use from memory; make each buffer an argument, "
                "and carry the buffers in the loop",
            )
        case llvm.LoadOp() if number_behind(op.ptr) is None:
            refuse(
                op,
                "the function reads memory through a pointer; give the pointer as a field or a "
                "memref",
            )
        case scf.ForOp() if (stride := integer_constant(op.step)) is not None:
            check_stride(op, stride)
        case CallOp():
            callee_of(op)
        case _ if isinstance(op, ALLOCATIONS):
            check_allocation(op)
        case _:
            return


def callee_of(op: CallOp) -> FuncOp:
    """The function of the module behind a call. CompileError for a function without a body."""
    callee = SymbolTable.lookup_symbol(op, op.callee)
    if not isinstance(callee, FuncOp) or callee.is_declaration:
        refuse(op, f"{op.callee} has no body; define the function, or leave out the call")
    return callee
