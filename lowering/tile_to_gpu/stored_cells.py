"""
Accesses to buffers of 16-bit cells: cells are extended after loads and rounded before stores.

A cell is such a number already (`temporal.round`), and a store changes no value.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from timetile.dialects import simt
from timetile.dialects.cell_types import STORED_TYPES, computed_type
from timetile.lowering.emitter import Emitter


def lengthened(emit: Emitter, cells: Sequence[SSAValue]) -> list[SSAValue]:
    """Cells as the numbers that cells compute with."""
    return [
        emit.add(arith.ExtFOp(cell, computed_type(cell.type))).result
        if cell.type in STORED_TYPES
        else cell
        for cell in cells
    ]


def shortened(emit: Emitter, cells: Sequence[SSAValue], element: Attribute) -> list[SSAValue]:
    """Cells as the numbers of a buffer."""
    if element not in STORED_TYPES:
        return list(cells)
    return [emit.add(arith.TruncFOp(cell, element)).result for cell in cells]


def load_cells(
    emit: Emitter,
    buffer: SSAValue,
    index: SSAValue | None,
    offset: int,
    types: Sequence[Attribute],
    mask: SSAValue | None = None,
) -> list[SSAValue]:
    """The cells read by a `simt.load`, as the numbers that cells compute with."""
    return lengthened(emit, emit.add(simt.LoadOp(buffer, index, offset, types, mask)).cells)


def store_cells(
    emit: Emitter,
    cells: Sequence[SSAValue],
    element: Attribute,
    buffer: SSAValue,
    index: SSAValue | None,
    offset: int,
    mask: SSAValue | None = None,
) -> None:
    """Store cells in a buffer of an element type."""
    emit.add(simt.StoreOp(shortened(emit, cells, element), buffer, index, offset, mask))


def override_cells(
    emit: Emitter,
    cells: Sequence[SSAValue],
    element: Attribute,
    buffer: SSAValue,
    index: SSAValue | None,
    offset: int,
    mask: SSAValue,
) -> list[SSAValue]:
    """The cells, or the cells of a buffer of an element type where the mask is on."""
    own = shortened(emit, cells, element)
    return lengthened(emit, emit.add(simt.OverrideOp(own, buffer, index, offset, mask)).res)
