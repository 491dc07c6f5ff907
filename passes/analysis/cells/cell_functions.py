"""The functions that compute the cells of updates, sweeps and stages."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.traits import SymbolTable

from timetile.dialects.temporal import SweepOp, UpdateOp
from timetile.dialects.tile import ApplyOp
from timetile.passes.diagnostics import refuse


def cell_functions(module: ModuleOp) -> Iterable[FuncOp]:
    """The functions applied by updates and sweeps, each once."""
    names = dict.fromkeys(op.cell for op in module.walk() if isinstance(op, UpdateOp | SweepOp))
    for name in names:
        function = SymbolTable.lookup_symbol(module, name)
        if isinstance(function, FuncOp):
            yield function


def cell_function(module: ModuleOp, op: UpdateOp | SweepOp | ApplyOp) -> FuncOp:
    """
    The cell function of an update, a sweep or a stage. Raises CompileError if the module lacks the
    function.
    """
    return checked_function(op, SymbolTable.lookup_symbol(module, op.cell))


def named_function(op: UpdateOp | ApplyOp) -> FuncOp:
    """The cell function of an update or a stage in a module. Raises CompileError without one."""
    return checked_function(op, SymbolTable.lookup_symbol(op, op.cell))


def checked_function(op: UpdateOp | SweepOp | ApplyOp, found: Operation | None) -> FuncOp:
    """The found cell function of an operation; CompileError if there is none."""
    if not isinstance(found, FuncOp):
        refuse(op, f"the cell function {op.cell} is not in the module")
    return found
