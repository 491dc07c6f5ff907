"""Numbers in place of cells: a warp writes the greatest, or the least, of its cells.

A kernel that ends with a check of all cells, as of the greatest change, then stores no field of the
checked values: a number for each warp is left to reduce. Each thread carries the number
of its own cells from step to step, and the lanes of a warp meet once, behind the loops. The order
in which cells meet changes no bit of a maximum or a minimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from timetile.dialects import simt
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal.reduce import IDENTITY
from timetile.dialects.tile import KernelOp, StoreOp
from timetile.dialects.verified import float_type
from timetile.lowering.joined_numbers import has_no_sign, joined, lanes_met
from timetile.lowering.tile_to_gpu.scopes import StepScope, VariantScope
from timetile.lowering.tile_to_gpu.storing import has_few_planes, planes_of_store, row_stores
from timetile.passes.diagnostics import refuse


def stores_of_numbers(kernel: KernelOp) -> list[StoreOp]:
    """The stages of a kernel that write numbers."""
    stores = [stage for stage in kernel.stages if isinstance(stage, StoreOp)]
    return [stage for stage in stores if stage.number is not None]


def no_numbers(variant: VariantScope) -> dict[StoreOp, SSAValue]:
    """The numbers of no cells."""
    found: dict[StoreOp, SSAValue] = {}
    for stage in stores_of_numbers(variant.code.kernel):
        assert stage.number is not None
        element = element_type(stage.field)
        none = FloatAttr(IDENTITY[stage.number.data], float_type(element))
        found[stage] = variant.emit.constant(none, element)
    return found


def note_number(step: StepScope, number: int, stage: StoreOp) -> None:
    """Let the thread's number meet its own cells of the newest plane."""
    assert stage.number is not None
    code, emit, kind = step.code, step.emit, stage.number.data
    if code.kernel.reads_memory:
        refuse(stage, "a kernel whose threads read memory writes cells, no numbers")
    width = min(
        code.geometry.access_width(stage.field, inside=not step.variant.guarded), code.cells
    )
    plane = step.planes(code.queues[stage.queue])[0]
    known = all(has_no_sign(plane[*row, k]) for row in code.rows for k in range(code.cells))
    planes = planes_of_store(step, stage) if has_few_planes(step, stage) else []
    found = step.numbers[stage]
    for line, row in enumerate(code.rows):
        step.mark(number, line, private=True)
        own = [plane[*row, k] for k in range(code.cells)]
        cells = {start: own[start : start + width] for start in range(0, code.cells, width)}
        for access in row_stores(step, stage, row, cells, code.thread):
            new = reduce(partial(joined, emit, kind, magnitudes=known), [*access.cells, found])
            mask = emit.all_of([*access.masks, *planes])
            found = new if mask is None else emit.select(mask, new, found)
    step.numbers[stage] = found


def store_numbers(variant: VariantScope, numbers: Mapping[StoreOp, SSAValue]) -> None:
    """Write the numbers of the warp's cells, behind the loops."""
    code, emit, thread = variant.code, variant.emit, variant.code.thread
    if not numbers:
        return
    one = emit.value_of(emit.all_of([emit.compare("eq", thread.lane, 0), thread.valid]))
    place = warp_place(variant)
    for stage, none in no_numbers(variant).items():
        assert stage.number is not None
        kind, buffer = stage.number.data, code.arguments[stage.field]
        met = lanes_met(emit, kind, numbers[stage])
        if thread.is_first is not None:
            # The warp has written the number of its cells in the columns before.
            known = emit.add(simt.OverrideOp([none], buffer, place, 0, one)).results[0]
            met = emit.select(thread.is_first, met, joined(emit, kind, met, known))
        emit.add(simt.StoreOp([met], buffer, place, 0, one))


def warp_place(variant: VariantScope) -> SSAValue:
    """The place of the warp's number: that of the warp among all warps of all tiles."""
    emit, layout, thread = variant.emit, variant.code.layout, variant.code.thread
    if layout.pack.data > 1:
        return thread.tile
    block = emit.add_int(emit.mul_int(thread.tile, layout.blocks), thread.rank)
    return emit.add_int(emit.mul_int(block, layout.warps), thread.warp_in_block)
