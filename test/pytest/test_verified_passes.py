"""Results of passes are verified, and an error names the pass that made the wrong IR."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.passes import ModulePass

from timetile.passes.diagnostics import CompileError
from timetile.runtime.kernels.options import run_passes


class Harmless(ModulePass):
    """Changes nothing."""

    name = "harmless"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Change nothing."""


class Breaks(ModulePass):
    """Leaves a return outside any function."""

    name = "breaks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.body.block.add_op(ReturnOp())


def test_the_pass_that_breaks_the_ir_is_named():
    with pytest.raises(CompileError, match=r"the IR is wrong after breaks: .*func\.return"):
        run_passes((Harmless(), Breaks(), Harmless()), ModuleOp([]))


def test_nothing_is_verified_where_nobody_asks():
    module = ModuleOp([])
    run_passes((Breaks(),), module, verify=False)
    assert isinstance(module.body.block.last_op, ReturnOp)
