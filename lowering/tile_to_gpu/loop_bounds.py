"""Steps at which the loops of a chunk begin and end."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from timetile.lowering.tile_to_gpu.scopes import VariantScope, chunk_height, chunk_start
from timetile.lowering.tile_to_gpu.thread import chunk_steps, whole_turns
from timetile.passes.analysis.geometry.field_access import steady_steps


def chunk_end(variant: VariantScope) -> SSAValue:
    """
    The steps of the chunk, up to the last storing step. Computed at each use, from values of the
    stores' masks, as registers are scarce.
    """
    geometry = variant.code.geometry
    return variant.emit.add_int(chunk_height(variant), geometry.fill + geometry.drain)


def turns_end(variant: VariantScope) -> SSAValue:
    """The steps of the chunk in whole turns of the unrolled loop."""
    code = variant.code
    return chunk_steps(variant.emit, code.geometry, code.thread.first, code.thread.last)


def segments(variant: VariantScope) -> tuple[SSAValue, SSAValue]:
    """
    The first step of the steady loop, and the first of the tail, counted from the chunk's first. In
    the steady loop no queue's newest plane lies outside the bounds (`steady_steps`).
    """
    code, emit, geometry = variant.code, variant.emit, variant.code.geometry
    length = chunk_steps(emit, geometry, code.thread.first, code.thread.last)
    negative = emit.sub_int(emit.int(0), chunk_start(variant))
    steps = steady_steps(geometry)
    head = whole_turns(emit, geometry, emit.add_int(negative, steps.start + geometry.period - 1))
    tail = whole_turns(emit, geometry, emit.add_int(negative, steps.stop))
    head = emit.binary(arith.MinSIOp, head, length)
    return head, emit.binary(arith.MinSIOp, emit.binary(arith.MaxSIOp, tail, head), length)
