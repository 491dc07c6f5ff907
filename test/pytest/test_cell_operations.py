"""The table of cell operations is complete: whoever asks knows every operation in every type."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Block

from support.cell_operations import Case, arguments, cases
from timetile.lowering.ptx.values import VALUES
from timetile.passes.analysis.cell_operations import CELL_OPERATIONS, FUNCTIONS
from timetile.passes.analysis.instructions import instructions
from timetile.runtime.arithmetic import dtype_of, evaluate

CASES = list(cases())
MADE = [case for case in CASES if CELL_OPERATIONS[case.operation].meaning]
"""Those that executors see."""


@pytest.mark.parametrize("operation", CELL_OPERATIONS, ids=lambda op: op.name)
def test_every_operation_has_a_type_that_verifies(operation: type):
    special = {"arith.constant"}
    assert operation.name in special or any(case.operation is operation for case in CASES)


@pytest.mark.parametrize("case", [c for c in MADE if c.operation not in FUNCTIONS], ids=str)
def test_numpy_makes_the_results_type_of_any_numbers(case: Case):
    block = Block(arg_types=case.operands)
    op = case.create(block)
    given = arguments(case)
    with np.errstate(all="raise"):
        result = np.asarray(evaluate(op, given))
    assert result.dtype == dtype_of(case.result) and result.shape == given[0].shape


@pytest.mark.parametrize("case", [c for c in MADE if c.operation not in FUNCTIONS], ids=str)
def test_ptx_is_printed_and_work_is_known(case: Case):
    assert case.operation in VALUES
    assert all(count >= 0 for count in instructions(case.create(Block(arg_types=case.operands))))
