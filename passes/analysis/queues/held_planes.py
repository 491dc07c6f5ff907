"""Whether a queue's oldest plane is still needed when the newest plane arrives.

`order-threads` computes everything that does not depend on the newest plane first. A sum in the
order of planes, `n + w + c + e + s`, has then read its oldest plane: the newest plane takes the
register. A sum that begins with both far planes, `(n + s) + w + e`, reads both in one operation:
the newest plane needs a register of its own, and planes age by renaming only if the loop is
unrolled by one stream step more (measured in docs/experiments: heat conduction as everybody
writes the sum, FP64, has 593 instructions for two rows of 8 levels, and 729 for three rows).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from timetile.dialects.tile import ApplyOp, KernelOp, taps_of
from timetile.passes.analysis.queues.lags import oldest_age


def made_from_newest(kernel: KernelOp, queue: SSAValue) -> set[SSAValue]:
    """The queues with a newest plane that depends on the newest plane of a queue, itself too."""
    found = {queue}
    for stage in kernel.stages:
        if isinstance(stage, ApplyOp) and any(
            stage.age(tap) == 0 and stage.queues[tap.operand] in found for tap in stage.tap_list
        ):
            found.update(stage.res)
    return found


def dependent_operations(function: FuncOp, late: set[SSAValue]) -> set[Operation]:
    """The operations of a cell function that depend on an argument in `late`."""
    known = set(late)
    found: set[Operation] = set()
    for op in function.body.block.ops:
        if any(operand in known for operand in op.operands):
            found.add(op)
            known.update(op.results)
    return found


def holds_oldest_plane(kernel: KernelOp, queue: SSAValue) -> bool:
    """
    Whether a reader of the queue combines the queue's oldest plane with a value that depends on the
    queue's newest plane.
    """
    oldest, module = oldest_age(queue, kernel.stream_axis), kernel.parent_op()
    if oldest == 0 or not isinstance(module, ModuleOp):
        return False
    readers = dict.fromkeys(stage for stage, tap in taps_of(queue) if stage.age(tap) == oldest)
    if not readers:
        return False
    newest = made_from_newest(kernel, queue)
    return any(meets_newest(module, stage, queue, newest) for stage in readers)


def meets_newest(module: ModuleOp, stage: ApplyOp, queue: SSAValue, newest: set[SSAValue]) -> bool:
    """
    Whether an operation of a stage's cell function reads the oldest plane of a queue, and depends
    on the newest plane of a queue in `newest`. False without the cell function: kernels may be
    placed before their cells are known.
    """
    function = SymbolTable.lookup_symbol(module, stage.cell)
    if not isinstance(function, FuncOp):
        return False
    arguments = function.body.block.args
    taps = [(stage.queues[tap.operand], stage.age(tap)) for tap in stage.tap_list]
    late: set[SSAValue] = {
        arguments[n] for n, (tapped, age) in enumerate(taps) if age == 0 and tapped in newest
    }
    operations = dependent_operations(function, late)
    oldest = oldest_age(queue, stage.kernel.stream_axis)
    return any(
        use.operation in operations
        for n, (tapped, age) in enumerate(taps)
        if tapped is queue and age == oldest
        for use in arguments[n].uses
    )
