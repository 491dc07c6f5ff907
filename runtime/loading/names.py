"""The names of a function's arguments as in the text.

xDSL drops a number at the end of a name: `%u_0` and `%u_1` are both known as `u` after parsing.
The attribute `timetile.argument_names` of a function holds the names, if xDSL has not kept all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from timetile.dialects.syntax import ARGUMENT_NAMES


def keep_names(module: ModuleOp, written: Mapping[SSAValue, str]) -> None:
    """Note the names of arguments at functions whose arguments have lost parts of their names."""
    for function in [op for op in module.walk() if isinstance(op, FuncOp) and op.body.blocks]:
        arguments = function.args
        hints = [argument.name_hint or "" for argument in arguments]
        names = [written.get(a, hint) if hint else "" for a, hint in zip(arguments, hints)]
        if names != hints:
            function.attributes[ARGUMENT_NAMES] = ArrayAttr(StringAttr(name) for name in names)


def argument_names(function: FuncOp) -> Sequence[str | None]:
    """
    The names of a function's arguments, each different: as in the text, else numbered as xDSL
    numbers equal names when printing.
    """
    hints = [argument.name_hint for argument in function.body.block.args]
    kept = function.attributes.get(ARGUMENT_NAMES)
    if isa(kept, ArrayAttr[StringAttr]) and len(kept) == len(hints):
        return [name.data or None for name in kept]
    earlier = [hints[:k].count(hint) for k, hint in enumerate(hints)]
    return [f"{hint}_{k}" if hint and k else hint for hint, k in zip(hints, earlier)]
