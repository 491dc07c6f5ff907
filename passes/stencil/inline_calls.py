"""inline-calls: bodies of called functions replace the calls in cells.

Before:
```
%v = stencil.apply(%x = %u : !t) -> (!t) {
  %l = stencil.access %x[-1] : !t
  %h = func.call @half(%l) : (f64) -> f64
  stencil.return %h : f64
}
func.func private @half(%q: f64) -> f64 { ... arith.mulf ... }
```
After: `arith.mulf` in place of the call. The function is erased if private and without another
caller.
1. A call is replaced if the function is in the module, has one block, only computes, and does not
   call itself, directly or through others. Calls within the body are replaced, too.
2. Other calls stay, and `raise-time-loop` says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import stencil
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import Rewriter

from timetile.passes.analysis.cells.calls import callee_of, why_not_inlined


@dataclass(frozen=True)
class InlineCall(RewritePattern):
    """A call becomes the body of the called function. `called` takes the functions."""

    called: set[FuncOp]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CallOp, rewriter: PatternRewriter, /) -> None:
        function = callee_of(op)
        if not isinstance(function, FuncOp) or why_not_inlined(op) is not None:
            return
        self.called.add(function)
        body = function.body.block
        values: dict[SSAValue, SSAValue] = dict(zip(body.args, op.arguments))
        *inner, end = body.ops
        rewriter.insert([each.clone(values) for each in inner])
        rewriter.replace(op, [], [values[result] for result in end.operands])


def names_in(attribute: Attribute) -> set[str]:
    """The symbols named by an attribute."""
    match attribute:
        case SymbolRefAttr():
            return {attribute.root_reference.data}
        case ArrayAttr():
            return {name for item in attribute.data for name in names_in(item)}
        case DictionaryAttr():
            return {name for item in attribute.data.values() for name in names_in(item)}
        case _:
            return set()


def named(module: ModuleOp) -> set[str]:
    """The symbols named by operations of the module."""
    return {
        name
        for op in module.walk()
        for attribute in (*op.attributes.values(), *op.properties.values())
        for name in names_in(attribute)
    }


class InlineCallsPass(ModulePass):
    """Inline the calls of cells; see the module's documentation."""

    name = "inline-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        called: set[FuncOp] = set()
        # Bodies of applies may contain calls as well.
        walker = PatternRewriteWalker(InlineCall(called))
        for apply in [inner for inner in op.walk() if isinstance(inner, stencil.ApplyOp)]:
            walker.rewrite_region(apply.region)
        private = {function for function in called if is_private(function)}
        # Erasing a function removes its calls, and may leave further functions without a caller.
        while gone := {function for function in private if is_unnamed(function, op)}:
            for function in gone:
                Rewriter.erase_op(function)
            private -= gone


def is_unnamed(function: FuncOp, module: ModuleOp) -> bool:
    """No operation of the module names the function."""
    return function.sym_name.data not in named(module)


def is_private(function: FuncOp) -> bool:
    """Nobody outside the module calls the function."""
    return function.sym_visibility is not None and function.sym_visibility.data == "private"
