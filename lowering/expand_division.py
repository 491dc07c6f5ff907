"""expand-division: quotients and square roots as multiply-adds, their special cases apart.

Before, for the cells of a row: `%r = math.sqrt %x : f64   %q = arith.divf %one, %r : f64`
After:
```
%y = simt.reciprocal_root %x : f64       // a guess; then two steps of Newton's method, for every cell
...
%all = simt.all %ordinary : i1           // every operand's exponent lies far from the ends
%q = scf.if %all -> (f64) {
  scf.yield %quick : f64
} else {                                 // division by 0, infinities, NaNs, tiny and huge numbers
  %r = math.sqrt %x : f64
  ...
}
```
The assembler expands each quotient and root by itself, with a branch for its special cases: what lies
between two branches is one chain of dependent operations. Here all of a row share one branch, and their
chains run side by side. The results are the correctly rounded ones (`newton.py`).

1. Roots and quotients of a block are taken together up to the first operation that is not arithmetic
   and needs one of them.
2. The arithmetic between them is done on both sides; what needs them later moves behind the branch.
3. The lanes of a warp vote on the side, so they must come there together, as `lower-tile-to-gpu` lets them;
   the SIMT interpreter reports it where they do not.
4. What may be approximate (`fastmath<afn>`) has a shorter sequence and no branch (`approximations.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from timetile.dialects import simt
from timetile.lowering.approximations import Approximation
from timetile.lowering.emitter import Emitter
from timetile.lowering.newton import Expansion, is_expanded
from timetile.lowering.order_threads import used_values
from timetile.lowering.tile_to_gpu.cells import copied, is_arithmetic
from timetile.passes.analysis.instructions import is_approximate


class Group:
    """Quotients and roots that share a branch, and the arithmetic that depends on them."""

    def __init__(self) -> None:
        self.members: set[Operation] = set()
        self.dependent: dict[Operation, None] = {}

    def depends(self, op: Operation) -> bool:
        """The operation needs a result of the group."""
        return bool(self.dependent) and any(v.owner in self.dependent for v in used_values(op))

    def add(self, op: Operation, *, member: bool) -> None:
        """Take an operation in, a member or one that depends on members."""
        if member:
            self.members.add(op)
        self.dependent[op] = None

    def core(self) -> list[Operation]:
        """The members and what lies between them, in order."""
        needed: set[Operation | Block] = set(self.members)
        for op in reversed(self.dependent):
            if op in needed:
                needed.update(value.owner for value in op.operands)
        return [op for op in self.dependent if op in needed]

    def expand(self, before: Operation, setup: Emitter) -> None:
        """Replace the group by both sides of a branch, ahead of an operation."""
        core = self.core()
        inside = set(core)
        taken = [
            result
            for op in core
            for result in op.results
            if any(use.operation not in inside for use in result.uses)
        ]
        scratch = Block()
        expansion = Expansion(setup.into(scratch))
        quick: dict[SSAValue, SSAValue] = {}
        for op in core:
            operands = [quick.get(value, value) for value in op.operands]
            if op in self.members:
                quick[op.results[0]] = expansion.expand(op, operands)
            else:
                copy = copied(op, operands)
                scratch.add_op(copy)
                quick.update(zip(op.results, copy.results))
        mask = expansion.emit.all_of([*expansion.conditions.values()])
        block = before.parent
        assert block is not None
        kinds = [value.type for value in taken]
        if mask is None:
            chosen: Sequence[SSAValue] = [quick[value] for value in taken]
        else:
            exact = Block()
            slow: dict[SSAValue, SSAValue] = {}
            exact.add_ops([op.clone(slow, clone_name_hints=False) for op in core])
            exact.add_op(scf.YieldOp(*(slow[value] for value in taken)))
            agreed = Block([scf.YieldOp(*(quick[value] for value in taken))])
            # The lanes of a warp stay together, as the shuffles that follow want them.
            together = expansion.emit.add(simt.AllOp(mask)).result
            branch = scf.IfOp(together, kinds, [agreed], [exact])
            scratch.add_op(branch)
            chosen = branch.results
        for op in list(scratch.ops):
            op.detach()
            block.insert_op_before(op, before)
        for op in self.dependent:
            op.detach()
            if op not in inside:
                block.insert_op_before(op, before)
        for value, new in zip(taken, chosen):
            value.replace_all_uses_with(new)
        for op in reversed(core):
            op.erase()


def expand_approximations(block: Block, setup: Emitter) -> None:
    """Expand what may be approximate in one block, where it stands."""
    scratch = Block()
    approximation = Approximation(setup.into(scratch))
    for op in [inner for inner in block.ops if is_approximate(inner)]:
        result = approximation.expand(op, op.operands)
        for new in list(scratch.ops):
            new.detach()
            block.insert_op_before(new, op)
        op.results[0].replace_all_uses_with(result)
        op.detach()
        op.erase()


def expand_block(block: Block, setup: Emitter) -> None:
    """Expand the quotients and roots of one block; constants go where `setup` puts them."""
    expand_approximations(block, setup)
    group = Group()
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                expand_block(inner, setup)
        member, depends = is_expanded(op), group.depends(op)
        if member or (depends and is_arithmetic(op)):
            group.add(op, member=member)
        elif depends:
            group.expand(op, setup)
            group = Group()
    if group.members:
        assert block.last_op is not None
        group.expand(block.last_op, setup)


class ExpandDivisionPass(ModulePass):
    """Expand the quotients and roots of all kernels; see the module's documentation."""

    name = "expand-division"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.walk() if isinstance(inner, gpu.FuncOp)]:
            block = function.body.block
            expand_block(block, Emitter(block))
