"""contract-cells: products and sums of the cell functions become fused multiply-adds, once.

Before:                                  After:
```
%p = arith.mulf %x, %c : f64
%q = arith.addf %s, %p : f64             %q = math.fma %x, %c, %s : f64
```
Later levels and all executors see `math.fma`, and no later level contracts: all schedules compute
equal bits. `fp-contract=fast` (the default of nvcc) contracts every product with one use; `on` only
if both operations allow contraction (`fastmath<contract>`); `off` none. A difference is contracted
with a negated factor or addend, an exact change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolTable

from timetile.dialects.temporal import UpdateOp
from timetile.passes.rewriting import replace_with


def cell_functions(module: ModuleOp) -> Iterable[FuncOp]:
    """The functions applied by updates, each once."""
    names = dict.fromkeys(op.cell for op in module.walk() if isinstance(op, UpdateOp))
    for name in names:
        function = SymbolTable.lookup_symbol(module, name)
        if isinstance(function, FuncOp):
            yield function


def allows_contraction(op: arith.AddfOp | arith.SubfOp | arith.MulfOp) -> bool:
    """The operation carries `fastmath<contract>`."""
    return FastMathFlag.ALLOW_CONTRACT in op.fastmath.data


def fusible_product(value: SSAValue, everywhere: bool) -> arith.MulfOp | None:
    """The product behind `value`, if the product may be fused into its only use; otherwise None."""
    product = value.owner
    if not isinstance(product, arith.MulfOp) or not product.result.has_one_use():
        return None
    return product if everywhere or allows_contraction(product) else None


def contract(op: arith.AddfOp | arith.SubfOp, everywhere: bool) -> None:
    """Fuse one sum or difference. The right product comes first: the later term of a sum."""
    if not everywhere and not allows_contraction(op):
        return
    right, left = (fusible_product(v, everywhere) for v in (op.rhs, op.lhs))
    new: list[Operation] = []

    def negated(value: SSAValue) -> SSAValue:
        new.append(negation := arith.NegfOp(value))
        return negation.result

    difference = isinstance(op, arith.SubfOp)
    if right is not None:
        factor = negated(right.lhs) if difference else right.lhs
        new.append(math_dialect.FmaOp(factor, right.rhs, op.lhs))
    elif left is not None:
        addend = negated(op.rhs) if difference else op.rhs
        new.append(math_dialect.FmaOp(left.lhs, left.rhs, addend))
    product = right or left
    if product is None:
        return
    replace_with(op, new)
    Rewriter.erase_op(product)


@dataclass(frozen=True)
class ContractCellsPass(ModulePass):
    """Decide contraction; see the module's documentation."""

    name = "contract-cells"

    fp_contract: Literal["fast", "on", "off"] = "fast"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.fp_contract == "off":
            return
        for function in cell_functions(op):
            for inner in list(function.body.block.ops):
                if isinstance(inner, arith.AddfOp | arith.SubfOp):
                    contract(inner, everywhere=self.fp_contract == "fast")
