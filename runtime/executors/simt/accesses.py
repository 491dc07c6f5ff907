"""Loads and stores, checked for bounds, alignment, races and unset cells."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from timetile.dialects import simt
from timetile.dialects.verified import memref_type
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.machine import Machine, SimtHandler
from timetile.runtime.executors.simt.memory import Buffer, Ints, Mask, Values


def fetch(
    m: Machine, op: simt.LoadOp | simt.OverrideOp, active: Mask
) -> tuple[Mask, list[tuple[Values, Mask]]]:
    """The threads reading, and the cells of the access with their unset masks."""
    access = m.access_of(op)
    buffer: Buffer = m.values[access.buffer]
    taking = m.selected(active, access.mask, op)
    cell, base = m.addresses(buffer, access.index, access.offset, access.shared)
    who, first, start = m.clocks.threads[taking], cell[taking], base[taking]
    results: list[tuple[Values, Mask]] = []
    for k in range(access.width):
        at = first + k
        buffer.check_bounds(op, at)
        at = at + start
        buffer.note_read(op, at, who, m.clocks)
        results.append(m.spread_over(taking, buffer.data[at], buffer.unset[at]))
    check_alignment(op, first, access.width)
    return taking, results


def check_alignment(op: Operation, cells: Ints, width: int) -> None:
    """Raise SimtError unless an access of several cells begins at a multiple of their number."""
    if width > 1 and (cells % width).any():
        raise SimtError(op, f"an access of {width} cells is not aligned")


def run_load(m: Machine, op: simt.LoadOp, active: Mask) -> None:
    """Run a load."""
    _, cells = fetch(m, op, active)
    for result, (value, unset) in zip(op.cells, cells):
        m.define(result, value, unset)


def run_override(m: Machine, op: simt.OverrideOp, active: Mask) -> None:
    """Run a load under a mask: other threads keep the old values."""
    taking, cells = fetch(m, op, active)
    for old, result, new in zip(op.cells, op.res, cells):
        m.define(result, *m.merge(taking, new, m.known(old)))


def run_prefetch(m: Machine, op: simt.PrefetchOp, active: Mask) -> None:
    """Run a prefetch: nothing changes, but the cell must exist."""
    buffer: Buffer = m.values[op.buffer]
    taking = m.selected(active, op.mask, op)
    cell, _ = m.addresses(buffer, op.index, op.offset.value.data, False)
    buffer.check_bounds(op, cell[taking])


def run_store(m: Machine, op: simt.StoreOp, active: Mask) -> None:
    """Run a store."""
    access = m.access_of(op)
    buffer: Buffer = m.values[access.buffer]
    taking = m.selected(active, access.mask, op)
    cell, base = m.addresses(buffer, access.index, access.offset, access.shared)
    keep = not access.shared and simt.MAY_BE_UNSET not in op.attributes
    write(m, op, buffer, taking, cell, base, keep=keep)


def write(
    m: Machine,
    op: simt.WriteOp,
    buffer: Buffer,
    taking: Mask,
    cell: Ints,
    base: Ints,
    *,
    keep: bool,
) -> None:
    """Write the cells of the `taking` threads. With `keep`, all written values must be set."""
    who = m.clocks.threads[taking]
    for k, stored in enumerate(op.cells):
        at = cell[taking] + k
        buffer.check_bounds(op, at)
        at = at + base[taking]
        buffer.note_write(op, at, who, m.clocks)
        unset = m.unset_of(stored)
        if unset is not None and keep and unset[taking].any():
            raise SimtError(
                op, f"stores a value that was never set to cell {int(at[unset[taking]][0])}"
            )
        buffer.data[at] = m.spread(stored)[taking]
        buffer.unset[at] = False if unset is None else unset[taking]
    check_alignment(op, cell[taking], len(op.cells))


def run_shared(m: Machine, op: simt.SharedOp, active: Mask) -> None:
    """Create a slice of shared memory. Code run again names a slice that exists already."""
    if op.result in m.values:
        return
    kind = memref_type(op.result)
    (cells,) = kind.get_shape()
    data = np.zeros(m.grid * cells, dtype=dtype_of(kind.element_type))
    m.values[op.result] = Buffer(data, m.grid, unset=True)


ACCESSES: dict[type[Operation], SimtHandler] = {
    simt.LoadOp: run_load,
    simt.OverrideOp: run_override,
    simt.PrefetchOp: run_prefetch,
    simt.StoreOp: run_store,
    simt.SharedOp: run_shared,
}
