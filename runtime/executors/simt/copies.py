"""Asynchronous copies: sources are read at the start, targets arrive at the wait."""

from __future__ import annotations

from xdsl.ir import Operation

from timetile.dialects import nvvm, simt
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.machine import Machine, SimtHandler
from timetile.runtime.executors.simt.memory import Buffer, Mask, PendingCopy, some


def run_copy(m: Machine, op: simt.CopyAsyncOp, active: Mask) -> None:
    """Read now, arrive when waited for; meanwhile the target is unset."""
    target: Buffer = m.values[op.target]
    source: Buffer = m.values[op.source]
    reading = m.selected(active, op.mask, op)
    to, base = m.addresses(target, op.target_index, op.target_offset.value.data, True)
    of, _ = m.addresses(source, op.source_index, op.source_offset.value.data, False)
    width = op.bytes.value.data // target.data.itemsize
    if (to[active] % width).any() or (of[reading] % width).any():
        raise SimtError(op, f"a copy of {op.bytes.value.data} bytes is not aligned")
    for k in range(width):
        at = to[active] + k
        target.check_bounds(op, at)
        at = at + base[active]
        if target.awaited[at].any():
            cell = int(at[target.awaited[at]][0])
            raise SimtError(op, f"copies to cell {cell} while a copy to it is on its way")
        target.awaited[at] = True
        target.note_write(op, at, m.clocks.threads[active], m.clocks)
        taken = of[reading] + k
        source.check_bounds(op, taken)
        source.note_read(op, taken, m.clocks.threads[reading], m.clocks)
        cells, unset = m.spread_over(reading, source.data[taken], source.unset[taken])
        target.unset[at] = True
        m.pending.append(
            PendingCopy(
                op,
                target,
                at,
                cells[active],
                unset[active],
                m.clocks.threads[active],
                m.groups[active],
            )
        )


def run_commit(m: Machine, op: Operation, active: Mask) -> None:
    """Close the group of the copies so far."""
    m.groups[active] += 1


def run_wait(m: Machine, op: nvvm.CpAsyncWaitGroupOp, active: Mask) -> None:
    """Let the copies of all groups but the last `n` arrive, for the waiting threads."""
    n = op.n.value.data
    left: list[PendingCopy] = []
    for copy in m.pending:
        arrived = active[copy.who] & (copy.group < m.groups[copy.who] - n)
        if not some(arrived):
            left.append(copy)
            continue
        at = copy.at[arrived]
        copy.target.data[at] = copy.cells[arrived]
        copy.target.unset[at] = copy.unset[arrived]
        copy.target.awaited[at] = False
        copy.target.note_arrival(copy.op, at, copy.who[arrived], m.clocks)
        if not arrived.all():
            rest = ~arrived
            left.append(
                PendingCopy(
                    copy.op,
                    copy.target,
                    copy.at[rest],
                    copy.cells[rest],
                    copy.unset[rest],
                    copy.who[rest],
                    copy.group[rest],
                )
            )
    m.pending = left


COPIES: dict[type[Operation], SimtHandler] = {
    simt.CopyAsyncOp: run_copy,
    nvvm.CpAsyncCommitGroupOp: run_commit,
    nvvm.CpAsyncWaitGroupOp: run_wait,
}
