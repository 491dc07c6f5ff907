"""The functions that compute the cells of updates."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.traits import SymbolTable

from timetile.dialects.temporal import UpdateOp


def cell_functions(module: ModuleOp) -> Iterable[FuncOp]:
    """The functions applied by updates, each once."""
    names = dict.fromkeys(op.cell for op in module.walk() if isinstance(op, UpdateOp))
    for name in names:
        function = SymbolTable.lookup_symbol(module, name)
        if isinstance(function, FuncOp):
            yield function
