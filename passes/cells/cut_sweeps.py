"""cut-sweeps: a long line goes on side by side, in parts.

Before: `temporal.sweep %s = @sum(%s[-1], %u[0]) along 0 ascending in <[1], [1000000]>`
After:  `temporal.sweep %s = @sum(%s[-1], %u[0]) along 0 ascending parts in <[1], [1000000]>`

1. A domain of one axis has a single line, which is work for a single thread. A sweep of `LEAST`
   places or more whose cells make changes that join (`passes/analysis/cells/recurrences.py`), as
   sums, products and `a * before + b`, is cut into parts.
2. Sums of numbers then have another order of terms: the operation with the value before must
   allow another order, by `fastmath<reassoc>` or by the option, as in `factor-sums`. Sums of
   integers have one result in any order.
3. The order of a sweep in parts is fixed, and is decided here once: all executors have equal bits.

Cost: none; with parts, the line is read and written once by all multiprocessors.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from timetile.dialects.cell_types import CELL_BYTES, STORED_TYPES
from timetile.dialects.syntax import cell_type, element_type
from timetile.dialects.temporal import SweepOp
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.recurrences import recurrence_of, recurrence_of_sweep
from timetile.passes.analysis.cells.sums import FpReassoc
from timetile.passes.diagnostics import remark

LEAST, MOST = 4096, 2**30
"""
Places of the shortest line that is cut (one block of a GPU takes it whole) and of the longest
(indices have 32 bits).
"""

MOST_BYTES = 20
"""Bytes of the cells read at a place: a block keeps those of 4096 places in shared memory."""


@dataclass(frozen=True)
class CutSweepsPass(ModulePass):
    """Cut long lines into parts; see the module's documentation."""

    name = "cut-sweeps"

    fp_reassoc: FpReassoc = "flags"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for sweep in [inner for inner in op.walk() if isinstance(inner, SweepOp)]:
            if sweep.parts is not None:
                recurrence_of_sweep(sweep, cell_function(op, sweep))
            elif is_one_long_line(sweep):
                self.cut(sweep, op)

    def cut(self, sweep: SweepOp, module: ModuleOp) -> None:
        """Cut a line into parts, or tell why not."""
        before = next(k for k, tap in enumerate(sweep.tap_list) if sweep.is_result(tap))
        found = recurrence_of(cell_function(module, sweep), before)
        if found is None:
            remark(
                sweep,
                "the line is work for a single thread: its cells are no sum, product, minimum, "
                "maximum or a * before + b of the value before; write the cell as one of these",
            )
        elif not is_allowed(found.carrier, self.fp_reassoc):
            remark(
                sweep,
                "the line is work for a single thread: its terms have an order of their own; allow "
                "another order with fp_reassoc=on, and the line goes on side by side",
            )
        else:
            sweep.parts = UnitAttr()


def is_one_long_line(op: SweepOp) -> bool:
    """
    Whether a sweep has one long line and one target, of which it reads the value before and the
    own cell at most, of a type without conversions.
    """
    if op.rank != 1 or len(op.targets) != 1 or not LEAST <= len(op.places) <= MOST:
        return False
    if element_type(op.targets[0]) in STORED_TYPES:
        return False
    loads = [tap for tap in dict.fromkeys(op.tap_list) if not op.is_result(tap)]
    if sum(CELL_BYTES[cell_type(op.sources[tap.operand])] for tap in loads) > MOST_BYTES:
        return False
    own = [op.age(tap) for tap in op.tap_list if op.sources[tap.operand] in op.targets]
    return [age for age in own if age] == [1]


def is_allowed(carrier: Operation, fp_reassoc: FpReassoc) -> bool:
    """Whether an operation of a cell allows another order of terms; integers always do."""
    flags = carrier.properties.get("fastmath")
    if not isinstance(flags, FastMathFlagsAttr):
        return True
    return fp_reassoc == "on" or (fp_reassoc == "flags" and FastMathFlag.REASSOC in flags.data)
