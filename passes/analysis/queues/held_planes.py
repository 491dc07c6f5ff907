"""Whether a queue's oldest plane is still needed when the newest plane arrives.

`order-threads` computes everything that does not depend on the newest plane first. A sum in the
order of planes, `n + w + c + e + s`, has then read its oldest plane: the newest plane takes the
register. A sum that begins with both far planes, `(n + s) + w + e`, reads both in one operation:
the newest plane needs a register of its own, and planes age by renaming only if the loop is
unrolled by one stream step more (measured in docs/experiments: heat conduction as everybody
writes the sum, FP64, has 593 instructions for two rows of 8 levels, and 729 for three rows).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from timetile.dialects.tile import ApplyOp, KernelOp

TappedPlanes: TypeAlias = list[tuple[SSAValue, int]]
"""For each tap of a stage, the queue and the plane's age, in the order of the cell function."""


def tapped_planes(stage: ApplyOp) -> TappedPlanes:
    """The queues and the ages of the planes tapped by a stage."""
    queues = stage.queues
    return [(queues[tap.operand], stage.age(tap)) for tap in stage.tap_list]


def made_from_newest(
    readers: dict[SSAValue, list[tuple[int, ApplyOp]]], queue: SSAValue, end: int
) -> set[SSAValue]:
    """
    The queues with a newest plane that depends on the newest plane of a queue, itself too, as far
    as made before the stage of number `end`. `readers`: the stages that tap the newest plane of
    each queue, with their numbers.
    """
    found, new = {queue}, [queue]
    while new:
        for number, stage in readers.get(new.pop(), ()):
            if number < end and stage.results[0] not in found:
                found.update(stage.results)
                new.extend(stage.results)
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


def queues_holding_oldest(kernel: KernelOp, oldest: Mapping[SSAValue, int]) -> set[SSAValue]:
    """
    The queues whose oldest plane some reader combines with a value made from the newest plane.
    `oldest`: the considered queues of a kernel, with the age of the oldest plane.
    """
    module = kernel.parent_op()
    if not isinstance(module, ModuleOp):
        return set()
    taps = {stage: tapped_planes(stage) for stage in kernel.stages if isinstance(stage, ApplyOp)}
    of_queue: dict[SSAValue, dict[ApplyOp, int]] = {}
    of_newest: dict[SSAValue, list[tuple[int, ApplyOp]]] = {}
    for number, (stage, planes) in enumerate(taps.items()):
        for queue, age in dict.fromkeys(planes):
            of_queue.setdefault(queue, {})[stage] = number
            if age == 0:
                of_newest.setdefault(queue, []).append((number, stage))
    found: set[SSAValue] = set()
    for queue, age in oldest.items():
        readers = of_queue.get(queue)
        if age == 0 or readers is None:
            continue
        newest = made_from_newest(of_newest, queue, max(readers.values()))
        if any(meets_newest(module, stage, taps[stage], (queue, age), newest) for stage in readers):
            found.add(queue)
    return found


def meets_newest(
    module: ModuleOp,
    stage: ApplyOp,
    planes: TappedPlanes,
    oldest: tuple[SSAValue, int],
    newest: set[SSAValue],
) -> bool:
    """
    Whether an operation of a stage's cell function reads the plane `oldest`, and depends on the
    newest plane of a queue in `newest`. False without the cell function: kernels may be placed
    before their cells are known.
    """
    if oldest not in planes:
        return False
    function = SymbolTable.lookup_symbol(module, stage.cell)
    if not isinstance(function, FuncOp):
        return False
    arguments = function.body.block.args
    late: set[SSAValue] = {
        arguments[n] for n, (tapped, age) in enumerate(planes) if age == 0 and tapped in newest
    }
    operations = dependent_operations(function, late)
    return any(
        use.operation in operations
        for n, plane in enumerate(planes)
        if plane == oldest
        for use in arguments[n].uses
    )
