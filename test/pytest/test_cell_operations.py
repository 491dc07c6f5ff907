"""The table of cell operations is complete: whoever asks knows every operation in every type."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects import math as xmath
from xdsl.ir import Block, Operation

from support.cell_operations import Case, arguments, cases
from timetile.dialects.temporal import RoundOp
from timetile.lowering.cpu.cells import LOWERINGS
from timetile.lowering.ptx.module import TABLE
from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS, FLOATS, FUNCTIONS
from timetile.passes.analysis.cells.instructions import instructions
from timetile.passes.cells.expand_cells import PATTERNS
from timetile.runtime.arithmetic.cells import MEANINGS, OF_OPERATIONS, dtype_of, evaluate

CASES = list(cases())
EXPANDED = {
    arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp, xmath.FPowIOp, xmath.IPowIOp,
}  # fmt: skip
"""Operations replaced by other operations at the temporal level."""

MADE = [case for case in CASES if CELL_OPERATIONS[case.operation].meaning]
"""Cases of operations seen by executors."""


def test_every_operation_has_a_type_that_verifies():
    """Constants have no operands."""
    typed = {case.operation for case in CASES} | {arith.ConstantOp}
    assert [operation.name for operation in CELL_OPERATIONS if operation not in typed] == []


@pytest.mark.parametrize("case", [c for c in MADE if c.operation not in FUNCTIONS], ids=str)
def test_numpy_makes_the_results_type_of_any_numbers(case: Case):
    block = Block(arg_types=case.operands)
    op = case.create(block)
    given = arguments(case)
    with np.errstate(all="raise"):
        result = np.asarray(evaluate(op, given))
    assert result.dtype == dtype_of(case.result) and result.shape == given[0].shape


def test_ptx_is_printed_and_work_is_known():
    for case in MADE:
        if case.operation in FUNCTIONS:
            continue
        assert case.operation in TABLE, case
        counts = instructions(case.create(Block(arg_types=case.operands)))
        assert all(count >= 0 for count in counts), case


def test_every_executor_knows_what_is_not_expanded():
    for operation, known in CELL_OPERATIONS.items():
        assert bool(known.meaning) != (operation in EXPANDED), operation
        if known.meaning:
            assert known.meaning in MEANINGS or known.meaning in OF_OPERATIONS, operation
            assert operation in LOWERINGS and operation in TABLE, operation


def test_every_expanded_operation_has_an_expansion():
    assert EXPANDED - {xmath.FPowIOp, xmath.IPowIOp} <= PATTERNS.keys()


def test_no_meaning_is_left_over():
    named = {known.meaning for known in CELL_OPERATIONS.values()}
    assert {*MEANINGS, *OF_OPERATIONS} == named - {""}


def test_every_operation_of_the_dialects_is_in_the_table_or_refused():
    several_results = {arith.AddUIExtendedOp, arith.MulUIExtendedOp, arith.MulSIExtendedOp}
    operations = {*arith.Arith.operations, *xmath.Math.operations, RoundOp}
    assert operations == {*CELL_OPERATIONS} | several_results


@pytest.mark.parametrize("operation", CELL_OPERATIONS, ids=lambda op: op.name)
def test_floating_point_operations_round_floats(operation: type[Operation]):
    known = CELL_OPERATIONS[operation]
    exact = {
        xmath.AbsFOp, arith.NegfOp, xmath.CopySignOp, xmath.FloorOp, xmath.CeilOp, xmath.TruncOp,
        xmath.RoundOp, xmath.RoundEvenOp, xmath.FPowIOp,
    }  # fmt: skip
    of_floats = known.operands and all(kinds == FLOATS for kinds in (*known.operands, known.result))
    conversions = {arith.ExtFOp, arith.TruncFOp}
    counts = bool(of_floats) and operation not in exact | conversions
    assert bool(known.flops) == counts
