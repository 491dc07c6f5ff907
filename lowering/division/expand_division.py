"""expand-division: quotients and square roots become multiply-adds, with special cases apart.

Before, for the cells of a row: `%r = math.sqrt %x : f64`, `%q = arith.divf %one, %r : f64`
After:
```
%y = simt.reciprocal_root %x : f64       // a guess; then Newton's method, twice, for every cell
...
%all = simt.all %ordinary : i1           // every operand's exponent lies far from the ends
%q = scf.if %all -> (f64) {
  scf.yield %quick : f64
} else {                                 // division by 0, infinities, NaNs, tiny and huge numbers
  ...                                  // sequences for every number (`far_roots.py`)
  scf.yield %slow : f64
}
```
The assembler expands each quotient and root separately, with a branch for special cases: between
two branches there is one chain of dependent operations. The pass lets all quotients and roots of a
row share one branch, with chains side by side. Results are correctly rounded (`newton.py`).

1. Roots and quotients of a block are taken together, up to the first operation that is not
   arithmetic and needs one of them. A root and the quotient by the root share a branch. A value
   divided again after little other arithmetic, as in the next level of a step, shares the branch,
   too, and the exact side repeats the arithmetic between: with a branch for each level, a warp
   waited for the vote in each. A branch ends where its operands and results take `MOST_WORDS`
   registers: planes would be kept for the exact side. Branches have evenly many levels. Cells taken
   from memory instead, outside of the bounds, count as arithmetic: with a branch for each level,
   tiles on the rim ended a launch late.
2. Later users move behind the branch.
3. The lanes of a warp vote on the side, and must come to the branch together, as guaranteed by
   `lower-tile-to-gpu`; the SIMT interpreter reports a violation.
4. Quotients by a scalar of the kernel share a reciprocal made before all loops
   (`scalar_divisors.py`).
5. Approximate operations (`fastmath<afn>`) have a shorter sequence and no branch
   (`approximations.py`).

The pass is a walk and no rewrite pattern: which operations share a branch depends on the order of
the whole block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.passes import ModulePass

from timetile.dialects import simt
from timetile.dialects.verified import block_of
from timetile.lowering.division.approximations import Approximation
from timetile.lowering.division.far_roots import FarRoots
from timetile.lowering.division.guards import guards_of
from timetile.lowering.division.newton import DivisionExpansion, is_expanded
from timetile.lowering.division.scalar_divisors import ScalarDivisors
from timetile.lowering.division.tiny_numerators import TinyNumerators
from timetile.lowering.division.wide import WideDivision
from timetile.lowering.emitter import Emitter
from timetile.lowering.threads.order_threads import is_anchored, used_values
from timetile.lowering.threads.rewriting import functions_of, move_before, replace_results
from timetile.lowering.tile_to_gpu.cells import is_arithmetic
from timetile.passes.analysis.cells.constants import float_constant
from timetile.passes.analysis.cells.instructions import is_approximate
from timetile.passes.analysis.cells.known_divisors import inverse_of
from timetile.passes.analysis.cells.pressure import value_words
from timetile.passes.not_raised import BEFORE_THREADS, remark_without_loops

MOST_WORDS = 48
"""
Most 32-bit registers of the operands and results that cross one branch. One branch for all 48
quotients of six cells of shallow water took 59 registers more, and spilled.
"""

MOST_BETWEEN = 2
"""
Most operations between for each quotient or root of a branch: the exact side repeats them.
"""


class DivisionRun:
    """
    Quotients and roots of a block, up to an operation that is not arithmetic, and dependent
    arithmetic, by generations with a branch each. A value computed from a quotient or a root, and
    divided again, belongs to the next generation: mostly to the next level.
    """

    def __init__(self) -> None:
        self.members: set[Operation] = set()
        self.generation: dict[Operation, int] = {}

    def depends(self, op: Operation) -> bool:
        """The operation needs a result of the run."""
        return any(v.owner in self.generation for v in used_values(op))

    def generation_of(self, op: Operation, *, member: bool) -> int:
        """The generation of an operation: a member, or an operation dependent on members."""
        makers = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
        owners = [maker for maker in makers if maker in self.generation]
        latest = max((self.generation[owner] for owner in owners), default=0)
        if not member:
            return latest
        between = {owner for owner in owners if owner not in self.members}
        return latest + any(self.generation[owner] == latest for owner in between)

    def words_with(self, op: Operation) -> int:
        """The 32-bit registers that cross a branch, if an operation becomes a member of the run."""
        number = self.generation_of(op, member=True)
        members = [each for each in self.members if self.generation[each] == number]
        values = {v for each in (*members, op) for v in (*each.operands, *each.results)}
        return sum(value_words(v) for v in values if not isinstance(v.owner, arith.ConstantOp))

    def add(self, op: Operation, *, member: bool) -> None:
        """Take in an operation: a member, or an operation dependent on members."""
        self.generation[op] = self.generation_of(op, member=member)
        if member:
            self.members.add(op)

    def expand(self, before: Operation, setup: Emitter, scalars: ScalarDivisors) -> None:
        """Replace the run by branches and dependent operations, ahead of an operation."""
        for shared, behind in self.branches():
            expand_shared(shared, self.members, before, setup, scalars)
            move_before(behind, before)
            for op in reversed(shared):
                op.detach()
                op.erase()

    def branches(self) -> Iterator[tuple[list[Operation], list[Operation]]]:
        """For each branch, the operations that share the branch, and dependent ones behind."""
        ends = self.even_ends()
        for begin, end in zip((0, *ends), ends):
            shared = self.shared(begin, end)
            inside = set(shared)
            yield shared, [op for op in self.of_generations(begin, end) if op not in inside]

    def even_ends(self) -> list[int]:
        """
        The generation behind each branch: as few branches as fit, with as many generations each
        where these fit, too. One H200, seven levels of five points by 118 in FP32: 2111 GCells/s by
        branches of six and one, 2272 of four and three.
        """
        count, ends = max(self.generation.values(), default=-1) + 1, self.ends()
        even = [-(-count * number // len(ends)) for number in range(1, len(ends) + 1)]
        parts = (self.shared(begin, end) for begin, end in zip((0, *even), even))
        return even if all(map(self.is_worth_sharing, parts)) else ends

    def ends(self) -> list[int]:
        """The generation behind each branch, of as many generations as fit one by one."""
        ends: list[int] = []
        begin, count = 0, max(self.generation.values(), default=-1) + 1
        while begin < count:
            end = begin + 1
            while end < count and self.is_worth_sharing(self.shared(begin, end + 1)):
                end += 1
            ends.append(end)
            begin = end
        return ends

    def of_generations(self, begin: int, end: int) -> list[Operation]:
        """The operations of some generations, in the order of the code."""
        return [op for op, generation in self.generation.items() if begin <= generation < end]

    def shared(self, begin: int, end: int) -> list[Operation]:
        """The members of some generations, and the arithmetic between: in the order of the code."""
        needed: set[Operation] = set()
        for op in reversed(ops := self.of_generations(begin, end)):
            if op in self.members or any(use.operation in needed for use in uses_of(op)):
                needed.add(op)
        return [op for op in ops if op in needed]

    def is_worth_sharing(self, ops: Sequence[Operation]) -> bool:
        """Whether a branch for operations of several generations is short and narrow."""
        members = sum(op in self.members for op in ops)
        return len(ops) <= (1 + MOST_BETWEEN) * members and crossing_words(ops) <= MOST_WORDS


def uses_of(op: Operation) -> Iterator[Use]:
    """The uses of an operation's results."""
    return (use for result in op.results for use in result.uses)


def taken_from(ops: Sequence[Operation]) -> list[SSAValue]:
    """The results of operations that others use."""
    inside = set(ops)
    results = (result for op in ops for result in op.results)
    return [value for value in results if any(use.operation not in inside for use in value.uses)]


def crossing_words(ops: Sequence[Operation]) -> int:
    """The 32-bit registers of what operations take from others, and of what others take."""
    inside = set(ops)
    read = {value for op in ops for value in op.operands if value.owner not in inside}
    held = (value for value in read if not isinstance(value.owner, arith.ConstantOp))
    return sum(map(value_words, (*held, *taken_from(ops))))


def expand_shared(
    shared: Sequence[Operation],
    members: Set[Operation],
    before: Operation,
    setup: Emitter,
    scalars: ScalarDivisors,
) -> None:
    """
    Make both sides of a branch for quotients and roots, the `members`, and the arithmetic between,
    ahead of an operation. The branch gives the results.
    """
    taken = taken_from(shared)
    if not taken:
        return
    block, scratch = block_of(before), Block()
    expansion = DivisionExpansion(setup.into(scratch), scalars)
    quick: dict[SSAValue, SSAValue] = {}
    for op in shared:
        if op in members:
            operands = [quick.get(value, value) for value in op.operands]
            needed = guards_of(op.results[0], block)
            quick[op.results[0]] = expansion.expand(op, operands, needed)
        else:
            scratch.add_op(op.clone(quick))
    mask = expansion.all_conditions()
    chosen: Sequence[SSAValue] = [quick[value] for value in taken]
    if mask is not None:
        # All lanes of a warp take one branch: later shuffles need every lane.
        together = expansion.emit.add(simt.AllOp(mask)).result
        agreed = Block([scf.YieldOp(*chosen)])
        exact = exact_side(shared, members, taken, setup)
        branch = scf.IfOp(together, [value.type for value in taken], [agreed], [exact])
        scratch.add_op(branch)
        chosen = branch.results
    move_before(list(scratch.ops), before)
    for value, new in zip(taken, chosen):
        value.replace_all_uses_with(new)


def exact_side(
    shared: Sequence[Operation],
    members: Set[Operation],
    taken: Sequence[SSAValue],
    setup: Emitter,
) -> Block:
    """The side of a branch for operands near the ends of the range."""
    exact = Block()
    slow: dict[SSAValue, SSAValue] = {}
    emit = setup.into(exact)
    wide, tiny, roots = WideDivision(emit), TinyNumerators(emit), FarRoots(emit)
    for op in shared:
        operands = [slow.get(value, value) for value in op.operands]
        divisor = float_constant(op.operands[-1]) if op in members else None
        if op in members and op.results[0].type == f32:
            slow[op.results[0]] = wide.expand(op, operands)
        elif divisor is not None and (known := inverse_of(divisor, f64)) is not None:
            slow[op.results[0]] = tiny.quotient(operands[0], divisor, known)
        elif op in members and (made := roots.expand(op, operands)) is not None:
            slow[op.results[0]] = made
        else:
            exact.add_op(op.clone(slow, clone_name_hints=False))
    exact.add_op(scf.YieldOp(*(slow[value] for value in taken)))
    return exact


def expand_approximations(block: Block, setup: Emitter) -> None:
    """Expand the approximate operations of one block in place."""
    scratch = Block()
    approximation = Approximation(setup.into(scratch))
    for op in [inner for inner in block.ops if is_approximate(inner)]:
        result = approximation.expand(op, op.operands)
        move_before(list(scratch.ops), op)
        replace_results(op, result)


def may_be_repeated(op: Operation) -> bool:
    """
    Whether the exact side may repeat an operation: arithmetic, or cells from global memory in place
    of others.
    """
    return is_arithmetic(op) or (isinstance(op, simt.OverrideOp) and not is_anchored(op))


def expand_block(block: Block, setup: Emitter, scalars: ScalarDivisors) -> None:
    """Expand the quotients and roots of one block. `setup` takes constants."""
    expand_approximations(block, setup)
    run = DivisionRun()
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                expand_block(inner, setup, scalars)
        member, depends = is_expanded(op), run.depends(op)
        if member and run.words_with(op) > MOST_WORDS:
            run.expand(op, setup, scalars)
            run = DivisionRun()
        if member or (depends and may_be_repeated(op)):
            run.add(op, member=member)
        elif depends:
            run.expand(op, setup, scalars)
            run = DivisionRun()
    if block.last_op is not None:
        run.expand(block.last_op, setup, scalars)


class ExpandDivisionPass(ModulePass):
    """Expand the quotients and roots of all kernels; see the module's documentation."""

    name = "expand-division"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, BEFORE_THREADS)
        for function in functions_of(op):
            block = function.body.block
            if any(is_expanded(inner) or is_approximate(inner) for inner in block.walk()):
                setup = Emitter(block)
                expand_block(block, setup, ScalarDivisors(setup))
