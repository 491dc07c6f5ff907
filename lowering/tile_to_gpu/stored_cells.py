"""
Accesses to buffers of narrow cells: cells are extended after loads and shortened before stores.

A cell is a number of the buffer's type already, and a store changes no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import Attribute, SSAValue

from timetile.dialects import simt
from timetile.dialects.cell_types import NARROW_INTEGERS, STORED_TYPES, computed_type
from timetile.lowering.emitter import Emitter


def lengthened(emit: Emitter, cells: Sequence[SSAValue]) -> list[SSAValue]:
    """Cells as the numbers that cells compute with."""
    return [lengthened_cell(emit, cell) for cell in cells]


def lengthened_cell(emit: Emitter, cell: SSAValue) -> SSAValue:
    """A cell as the number that cells compute with."""
    if cell.type not in STORED_TYPES:
        return cell
    if cell.type in NARROW_INTEGERS:
        return emit.add(arith.ExtSIOp(cell, i32)).result
    return emit.add(arith.ExtFOp(cell, computed_type(cell.type))).result


def shortened(emit: Emitter, cells: Sequence[SSAValue], element: Attribute) -> list[SSAValue]:
    """Cells as the numbers of a buffer."""
    if element not in STORED_TYPES:
        return list(cells)
    if element in NARROW_INTEGERS:
        narrow = cast(IntegerType, element)
        return [emit.add(arith.TruncIOp(cell, narrow)).result for cell in cells]
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
