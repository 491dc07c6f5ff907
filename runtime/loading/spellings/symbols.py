"""Numbers that a program of Devito's xDSL frontend reads by name become arguments of the function.

Before, as Devito prints an operator without numbers:
```
func.func @Kernel(%u: !field) {
  %dt = "devito.load_symbolic"() {"symbol_name" = "dt"} : () -> f32
```
After:
```
func.func @Kernel(%u: !field, %dt: f32) {
```
A name has one argument, behind the function's own arguments, in the order of first reading.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import IRDLOperation, attr_def, irdl_op_definition, result_def

from timetile.passes.diagnostics import refuse


@irdl_op_definition
class LoadSymbolicOp(IRDLOperation):
    """
    A number that the caller gives by name.

    ```
    %dt = "devito.load_symbolic"() {"symbol_name" = "dt"} : () -> f32
    ```
    """

    name = "devito.load_symbolic"
    symbol_name = attr_def(StringAttr)
    result = result_def()


SYMBOLS = Dialect("devito", [LoadSymbolicOp])
"""The operation of Devito's frontend for numbers given by name."""


def symbols_to_arguments(module: ModuleOp, written: dict[SSAValue, str]) -> None:
    """
    Replace numbers read by name by arguments, and note the names as `written`. Raises CompileError
    for a name read under two types, and for the name of an argument.
    """
    for function in [op for op in module.walk() if isinstance(op, FuncOp) and op.body.blocks]:
        taken = {written.get(argument) for argument in function.args}
        arguments: dict[str, SSAValue] = {}
        for op in list(function.walk()):
            if isinstance(op, LoadSymbolicOp):
                if op.symbol_name.data in taken:
                    refuse(
                        op,
                        f"it reads {op.symbol_name.data!r}, and an argument of the function has "
                        "the name, too; rename the argument",
                    )
                op.result.replace_all_uses_with(argument_of(op, function, arguments))
                op.detach()
                op.erase()
        if arguments:
            function.update_function_type()
        written.update((argument, name) for name, argument in arguments.items())


def argument_of(op: LoadSymbolicOp, function: FuncOp, arguments: dict[str, SSAValue]) -> SSAValue:
    """The argument of a name, made at the first reading."""
    symbol, kind = op.symbol_name.data, op.result.type
    if symbol not in arguments:
        if not symbol or not SSAValue.is_valid_name(symbol):
            refuse(op, f"{symbol!r} is no name of an argument; use letters, digits and _")
        block = function.body.blocks[0]
        argument = block.insert_arg(kind, len(block.args))
        argument.name_hint = symbol
        arguments[symbol] = argument
    known = arguments[symbol].type
    if known != kind:
        refuse(
            op,
            f"it reads {symbol!r} as {kind}, and an earlier operation as {known}; read one type, "
            "and convert it with arith",
        )
    return arguments[symbol]
