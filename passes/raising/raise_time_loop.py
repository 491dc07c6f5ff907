"""
raise-time-loop: the stencil dialect becomes `temporal.loop`s, one for a time loop, and sweeps for
other stores.

Before:
```
%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!f, !f) {
  %u = stencil.load %a : !f -> !t
  %v = stencil.apply(%x = %u : !t) -> (!t) { ... stencil.access %x[-1, 0] ... }
  stencil.store %v to %b(<[0, 0], [8, 8]>) : !t to !f
  scf.yield %b, %a : !f, !f
}
```
After:
```
func.func private @step_cell0(%0: f64, ...) -> f64 { ... }
%r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @step_cell0(%a[-1, 0], ...) in <[0, 0], [8, 8]>
}
```
1. A loop's arguments must be fields, and its yield a permutation of them: the rotation.
2. Outer fields written by the body become buffers that do not rotate.
3. Each apply becomes a private function of scalars, with the accesses as arguments.
4. Stores become updates, in order. Neighbouring stores of one apply's results over one box become
   one update. A value read by another apply, or with sources changed before the store, is held in a
   scratch field (`passes/raising/order.py`).
5. Stores outside time loops become sweeps: loops of one step (`passes/raising/sweeps.py`).

A time loop in which the host takes part (the loop depends on the time index, reads or writes single
cells, or decides) stays an `scf.for` with the attribute `timetile.time_loop`, and its stores become
sweeps: the loop runs a step at a time. Operations that cannot be raised stay unchanged. Both cases
have a remark.

The pass is a walk and no rewrite pattern: the order of all stores of a block says which are raised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import scf, stencil
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects.temporal import GatherOp, LoopOp, ScratchOp
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.diagnostics import place_of, refuse, remark, remark_at
from timetile.passes.raising.errors import CannotRaiseError
from timetile.passes.raising.loops import raise_loop
from timetile.passes.raising.point_runs import raise_points
from timetile.passes.raising.point_work import has_work_at_points
from timetile.passes.raising.sweeps import erase_unused_loads, raise_sweeps, stores_fields

TIME_LOOP = "timetile.time_loop"
"""The attribute of a loop of the host whose iterations are the program's time steps."""


def raise_time_loop(loop: scf.ForOp, module: ModuleOp, prefix: str, points: bool) -> None:
    """Replace a time loop, or else the stores in the loop, with a remark on the reason."""
    stride = integer_constant(loop.step)
    if stride is not None and stride < 1:
        refuse(loop, f"the loop's step is {stride}; give it a step of 1 or more")
    try:
        raise_loop(loop, module, prefix)
        return
    except CannotRaiseError as error:
        place, reason = place_of(error.op), error.reason
        if isinstance(error.op, GatherOp):
            # Name the operation of the user's program that gather-cells replaced.
            place = replace(place, operation=stencil.DynAccessOp.name)
    takes_points = False
    if points and has_work_at_points(loop):
        try:
            raise_points(loop, module, prefix)
            takes_points = True
        except CannotRaiseError as error:
            place, reason = place_of(error.op), error.reason
    loop.attributes[TIME_LOOP] = UnitAttr()
    try:
        raise_sweeps(loop.body.block, module, prefix, loop)
    except CannotRaiseError as error:
        remark(error.op, f"the time loop is left unchanged: {error.reason}")
        return
    if not takes_points:
        remark_at(place, f"the time loop runs a step at a time: {reason}")


def raise_block(block: Block, module: ModuleOp, prefix: str, root: Operation, points: bool) -> None:
    """Raise a block of `root`: first blocks inside, then the block's own stores."""
    for op in list(block.ops):
        if isinstance(op, stencil.ApplyOp | LoopOp):
            continue
        for region in op.regions:
            for inner in region.blocks:
                raise_block(inner, module, prefix, op, points)
    if not stores_fields(block):
        erase_unused_loads(block)
        return
    if isinstance(root, scf.ForOp):
        raise_time_loop(root, module, prefix, points)
        return
    try:
        raise_sweeps(block, module, prefix, root)
    except CannotRaiseError as error:
        remark(error.op, f"the operation is left unchanged: {error.reason}")


def hoist_scratch(function: FuncOp) -> None:
    """Make scratch fields before the time loops of the host: the steps share a field."""
    for op in [op for op in function.walk() if isinstance(op, ScratchOp)]:
        around = outermost_time_loop(op)
        if around is not op:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(around))


def outermost_time_loop(op: Operation) -> Operation:
    """The outermost of the host's time loops directly around an operation, or the operation."""
    while (parent := op.parent_op()) is not None and TIME_LOOP in parent.attributes:
        op = parent
    return op


@dataclass(frozen=True)
class RaiseTimeLoopPass(ModulePass):
    """
    Recognise time loops over rotated fields, and sweeps; see the module's documentation. `points`:
    work of the host at points becomes functions beside the loop, for a runtime that calls them.
    """

    name = "raise-time-loop"

    points: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, FuncOp)]:
            for block in function.body.blocks:
                raise_block(block, op, function.sym_name.data, function, self.points)
            hoist_scratch(function)
