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


def symbols_to_arguments(module: ModuleOp) -> None:
    """
    Replace numbers read by name by arguments. Raises CompileError for a name read under two types.
    """
    for function in [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]:
        arguments: dict[str, SSAValue] = {}
        for op in list(function.walk()):
            if isinstance(op, LoadSymbolicOp):
                op.result.replace_all_uses_with(argument_of(op, function, arguments))
                op.detach()
                op.erase()
        if arguments:
            function.update_function_type()


def argument_of(op: LoadSymbolicOp, function: FuncOp, arguments: dict[str, SSAValue]) -> SSAValue:
    """The argument of a name, made at the first reading."""
    symbol, kind = op.symbol_name.data, op.result.type
    if symbol not in arguments:
        block = function.body.block
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
