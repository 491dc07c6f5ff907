"""Loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import llvm, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation

from timetile.dialects.verified import terminator_of
from timetile.lowering.emitter import ROLLED
from timetile.lowering.ptx.text import REGISTERS, bits, move_kind
from timetile.lowering.ptx.writer import Writer


def print_for(w: Writer, op: scf.ForOp) -> None:
    """Print a counted loop, tested before the first turn and at the end of each."""
    start, end = w.label("loop"), w.label("end")
    index, *carried = op.body.block.args
    counter = w.define(index)
    kind = REGISTERS[index.type][1]
    bound = w.use(op.ub)
    test = w.register(i1)
    w.line(f"mov.{bits('b', index.type)} {counter}, {w.use(op.lb)}")
    for argument, initial in zip(carried, op.iter_args):
        register = w.define(argument)
        w.line(f"mov.{move_kind(argument.type)} {register}, {w.use(initial)}")
    w.line(f"setp.ge.{kind} {test}, {counter}, {bound}")
    w.line(f"@{test} bra {end}")
    w.lines.append(f"{start}:")
    if ROLLED in op.attributes:
        w.line('.pragma "nounroll"')
    w.print_block(op.body.block)
    terminator = terminator_of(op.body.block, scf.YieldOp)
    w.assign([w.use(a) for a in carried], terminator.arguments)
    w.line(f"add.{kind} {counter}, {counter}, {w.use(op.step)}")
    w.line(f"setp.lt.{kind} {test}, {counter}, {bound}")
    w.line(f"@{test} bra {start}")
    w.lines.append(f"{end}:")
    for result, argument in zip(op.results, carried):
        w.names[result] = w.use(argument)


def print_if(w: Writer, op: scf.IfOp) -> None:
    """Print a branch. Values come back in registers assigned by both sides."""
    results = [w.define(result) for result in op.results]
    if op.false_region.blocks and isinstance(op.true_region.block.first_op, scf.YieldOp):
        print_detour(w, op, results)
        return
    otherwise, end = w.label("else"), w.label("fi")
    w.line(f"@!{w.use(op.cond)} bra {otherwise}")
    print_branch(w, op.true_region.block, results)
    if op.false_region.blocks:
        w.line(f"bra {end}")
    w.lines.append(f"{otherwise}:")
    if op.false_region.blocks:
        print_branch(w, op.false_region.block, results)
        w.lines.append(f"{end}:")


def print_detour(w: Writer, op: scf.IfOp, results: Sequence[str]) -> None:
    """
    Print a branch with an empty true side. Values of the true side are assigned ahead of the
    branch, mostly without a move.
    """
    end = w.label("fi")
    print_branch(w, op.true_region.block, results)
    w.line(f"@{w.use(op.cond)} bra {end}")
    print_branch(w, op.false_region.block, results)
    w.lines.append(f"{end}:")


def print_branch(w: Writer, block: Block, results: Sequence[str]) -> None:
    """Print one side of a branch, and assign its values."""
    w.print_block(block)
    if isinstance(terminator := block.last_op, scf.YieldOp):
        w.assign(results, terminator.arguments)


def print_return(w: Writer, op: llvm.ReturnOp) -> None:
    """Print a return."""
    w.line("ret")


CONTROL: dict[type[Operation], Callable[..., None]] = {
    scf.ForOp: print_for,
    scf.IfOp: print_if,
    llvm.ReturnOp: print_return,
}
