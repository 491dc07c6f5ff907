"""Runs the host function of a program: the operations around its time loops.

Buffers are whatever the executor works with (NumPy arrays, device buffers): the host function only
passes them on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf, stencil
from xdsl.dialects import math as xmath
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from timetile.passes.diagnostics import refuse
from timetile.passes.raise_time_loop import ALIASES
from timetile.runtime.arithmetic import evaluate, no_signals

Values = dict[SSAValue, Any]

Handler = Callable[[Any, Sequence[Any], Values], Sequence[Any]]
"""Runs one operation on its operands, knowing all values so far, and returns its results."""

Listed = tuple[Operation, tuple[SSAValue, ...], Handler | None]
"""An operation, its operands, and who runs it."""


def ceil_divide(a: Any, b: Any) -> Any:
    """The quotient, rounded up."""
    return -(-a // b)


SCALARS: dict[type[Operation], Callable[..., Any]] = {
    arith.CeilDivSIOp: no_signals(ceil_divide),
    arith.FloorDivSIOp: no_signals(np.floor_divide),
    arith.ShRSIOp: np.right_shift,
    xmath.CeilOp: np.ceil,
    xmath.CosOp: no_signals(np.cos),
    xmath.ExpOp: no_signals(np.exp),
    xmath.FloorOp: np.floor,
    xmath.LogOp: no_signals(np.log),
    xmath.PowFOp: no_signals(np.power),
    xmath.SinOp: no_signals(np.sin),
    xmath.TanOp: no_signals(np.tan),
    xmath.TanhOp: np.tanh,
}
"""What the host computes of scalars, though no cell may."""


class Host:
    """An interpreter of host functions; `handlers` run the operations that touch buffers."""

    def __init__(self, handlers: dict[type[Operation], Handler]):
        self.handlers = handlers
        self.listed: dict[Block, list[Listed]] = {}
        """The operations of blocks that were run: loops run them again and again."""

    def run(self, function: FuncOp, arguments: Sequence[Any]) -> list[Any]:
        """Run a function and return what it returns."""
        values: Values = dict(zip(function.body.block.args, arguments))
        return self.run_block(function.body.block, values)

    def run_block(self, block: Block, values: Values) -> list[Any]:
        """Run the operations of a block up to its terminator, whose operands are returned."""
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
            elif isinstance(op, ReturnOp | scf.YieldOp):
                return operands
            elif isinstance(op, ALIASES):
                results = operands
            elif isinstance(op, scf.ForOp):
                results = self.run_for(op, operands, values)
            elif type(op) in SCALARS:
                results = [SCALARS[type(op)](*operands)]
            elif op.name.startswith(("arith.", "math.")) and not op.regions:
                results = [evaluate(op, operands)]
            elif isinstance(op, stencil.ExternalStoreOp):
                if operands[0] is not operands[1]:
                    refuse(
                        op,
                        "it stores a field to other memory than the field's own; store it to the memref that it was "
                        "loaded from",
                    )
                results = []
            else:
                refuse(
                    op,
                    "it is outside a raised time loop and cannot be run; keep only time loops, "
                    "casts and scalar arithmetic in the function",
                )
            values.update(zip(op.results, results))
        return []

    def run_for(self, op: scf.ForOp, operands: Sequence[Any], values: Values) -> Sequence[Any]:
        """A counted loop of the host."""
        low, high, step, *carried = operands
        for index in range(int(low), int(high), int(step)):
            values.update(zip(op.body.block.args, [index, *carried]))
            carried = self.run_block(op.body.block, values)
        return carried
