"""
Loads under a mask whose registers are set before the load.

1. Loads whose cells a kernel loads again under another mask, or without one.

PTX leaves the register of a load undefined where the mask is off. The assembler may take such a
register for equal to the register of another load from the same address, and then compute from the
undefined register: on an H100 the sign of a coefficient, found at the last level, served all levels
(ptxas 13.0, upwind advection).
2. Loads in a loop over tiles. The register of a load keeps the cell of the tile before where the
mask is off, and so would be taken during the whole loop: elastic waves of order 4 in FP64 move 192
words to memory and back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from xdsl.dialects import llvm, scf
from xdsl.ir import Operation, SSAValue

from timetile.dialects import simt
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.simt import GLOBAL_SPACE, address_space
from timetile.lowering.emitter import OVER_TILES
from timetile.lowering.ptx.text import element_bytes

LoadedPlace = tuple[SSAValue, SSAValue | None, int]
"""A pointer, an index added to the pointer, and a constant distance in bytes."""


def place_of(load: simt.LoadOp) -> LoadedPlace:
    """The address of a load's first cell."""
    pointer, total = load.buffer, load.offset.value.data * CELL_BYTES[load.cell_types[0]]
    while isinstance(gep := pointer.owner, llvm.GEPOp):
        if gep.ssa_indices:
            return gep.ptr, gep.ssa_indices[0], total
        (constant,) = gep.rawConstantIndices.get_values()
        total += int(constant) * element_bytes(gep.elem_type)
        pointer = gep.ptr
    return pointer, None, total


def loads_to_set(function: Operation) -> set[Operation]:
    """The loads of fields, under a mask, whose registers are set before the load."""
    loads: defaultdict[LoadedPlace, list[simt.LoadOp]] = defaultdict(list)
    for op in function.walk():
        if type(op) is simt.LoadOp and address_space(op.place[0]) == GLOBAL_SPACE:
            loads[place_of(op)].append(op)
    again = (
        op
        for group in loads.values()
        if len(group) > 1 and len({load.mask for load in group}) > 1
        for op in group
    )
    return {op for op in {*again, *loads_over_tiles(function)} if op.mask is not None}


def loads_over_tiles(function: Operation) -> Iterator[simt.LoadOp]:
    """The loads in loops over tiles."""
    for loop in function.walk():
        if isinstance(loop, scf.ForOp) and OVER_TILES in loop.attributes:
            yield from (op for op in loop.walk() if isinstance(op, simt.LoadOp))
