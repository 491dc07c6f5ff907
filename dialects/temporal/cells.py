"""What an operation that applies a cell function needs of the function."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FunctionType, IndexType, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.series import number_type
from timetile.dialects.syntax import cell_type


def verify_cell(
    op: Operation,
    cell: SymbolRefAttr,
    tapped: Sequence[SSAValue],
    scalars: Sequence[SSAValue],
    axes: Sequence[int],
    targets: Sequence[SSAValue],
) -> None:
    """
    VerifyException unless the function `cell`, if found, takes a cell of each field in `tapped`,
    then the scalars, then a coordinate for each axis, and returns a cell of each target.
    """
    root: Operation = op
    while (parent := root.parent_op()) is not None:
        root = parent
    if not isinstance(root, ModuleOp):
        return
    function = SymbolTable.lookup_symbol(root, cell)
    if function is None:
        return
    if not isinstance(function, FuncOp):
        raise VerifyException(f"expected a func.func named {cell}, got {function.name}")
    inputs: list[Attribute] = [cell_type(field) for field in tapped]
    inputs += [number_type(scalar) for scalar in scalars]
    inputs += [IndexType()] * len(axes)
    expected = FunctionType.from_lists(inputs, [cell_type(target) for target in targets])
    if function.function_type != expected:
        raise VerifyException(f"cell {cell} has type {function.function_type}, expected {expected}")
