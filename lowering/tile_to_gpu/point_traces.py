"""
Traces: cells on lines along the stream, kept by all levels of a chunk and noted at its end.

1. Ahead of the loops a thread finds the first line among its stored cells, if any.
2. A level's new plane of the thread is written to the list's `traces`, at the place of the level,
   the plane and the line, for planes of the chunk: other chunks and tiles have other places.
3. Behind the loops the lanes of a warp with lines take an entry of the chunk's planes each, read
   the cells of all levels, and note them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr, f64, i32, i64
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.boxes import CellBox
from timetile.dialects.simt import MAY_BE_UNSET
from timetile.dialects.temporal import PointSet
from timetile.dialects.tile import LANES, ApplyOp
from timetile.lowering.emitter import ROLLED, Emitter
from timetile.lowering.tile_to_gpu.point_lines import (
    line_count,
    traced_sets,
    traced_stages,
    words_of_thread,
)
from timetile.lowering.tile_to_gpu.point_numbers import clamped, table_number
from timetile.lowering.tile_to_gpu.points import PointEmitter, WarpEntries
from timetile.lowering.tile_to_gpu.queues import Plane
from timetile.lowering.tile_to_gpu.rings import RingSlots
from timetile.lowering.tile_to_gpu.scopes import (
    LoopScope,
    StepScope,
    StreamStep,
    VariantScope,
    arriving_plane,
    chunk_height,
    once,
    synchronise_warp,
)

BATCHES = 4
"""Batches of 32 entries noted at once: entries come from memory."""


@dataclass(frozen=True)
class ThreadTrace:
    """
    The number of the thread's line, the most lines of the list if there is none, and the planes of
    the chunk whose cells the thread keeps: all, or 0.
    """

    line: SSAValue
    height: SSAValue


def traces_around(variant: VariantScope) -> VariantScope:
    """The variant ahead of whose loops a thread finds its lines."""
    return variant.around or variant


def begin_traces(variant: VariantScope) -> None:
    """Find the thread's lines, ahead of the loops."""
    for made in traced_sets(variant.code):
        thread_trace(traces_around(variant), made)


def step_of_lines(variant: VariantScope, count: SSAValue) -> StreamStep:
    """A step outside of the loops, for the places of cells."""
    slots = RingSlots(count, {})
    return StreamStep(
        LoopScope(variant, variant.emit, 0, count, slots, False, None, {}, 1, True), 0
    )


@once
def thread_trace(variant: VariantScope, made: PointSet) -> ThreadTrace:
    """The trace of the thread: of the first line with a cell that the tile stores."""
    emit, code, layout = variant.emit, variant.code, made.layout
    stage = traced_stages(code, made)[0]
    point = PointEmitter(step_of_lines(variant, emit.int(0)), stage, made, {})
    point.prepare()
    axes = range(1, len(layout.shape))
    own = emit.binary(arith.MinSIOp, code.thread.lane, emit.int(layout.lines - 1))
    known = [table_number(emit, point.places, layout.line(axis), own) for axis in axes]
    block = Block(arg_types=[i32, i32])
    number, line = block.args
    inner, masks = emit.into(block), list[SSAValue]()
    for axis, places in zip(axes, known):
        at = inner.add(simt.PickOp(places, number)).result
        tiling = code.kernel.plane_axes.index(axis)
        start = inner.add_int(code.thread.axes[tiling].coordinate, -point.first[axis])
        cells = code.geometry.axes[tiling].layout.cells
        masks.append(inner.compare("ult", inner.sub_int(at, start), cells))
        masks.append(point.is_stored(inner, axis, at))
    first = inner.binary(arith.MinSIOp, line, number)
    inner.add(scf.YieldOp(inner.select(inner.value_of(inner.all_of(masks)), first, line)))
    none = emit.int(layout.lines)
    bounds = emit.int(0), line_count(variant, made), emit.int(1)
    loop = scf.ForOp(*bounds, [none], block)
    loop.attributes[ROLLED] = UnitAttr()
    found = emit.add(loop).results[0]
    has_line = emit.compare("ne", found, none)
    return ThreadTrace(found, emit.select(has_line, chunk_height(variant), emit.int(0)))


# Cells are kept.


def keep_traces(step: StepScope, stage: ApplyOp, made: PointSet, plane: Plane) -> None:
    """Keep the cells of a stage's new plane."""
    stages = traced_stages(step.code, made)
    if not stages or not isinstance(step, StreamStep):
        return
    emit, code, layout = step.emit, step.code, made.layout
    words = [word for cell in plane.values() for word in bits_of_cell(emit, cell)]
    level, back = stages.index(stage), step.turn - stage.lag
    width = layout.lines * len(words)
    offset = (level * layout.counts[0] + back) * width
    distance = emit.add_int(step.loop.count, back - code.geometry.fill)
    height = thread_trace(traces_around(step.variant), made).height
    mask = emit.compare("ult", distance, height)
    index, places = trace_start(step.loop, made), code.arguments[made.places]
    count = next(n for n in (4, 2, 1) if len(words) % n == 0)
    for start in range(0, len(words), count):
        group = words[start : start + count]
        store = simt.StoreOp(group, places, index, offset + start, mask)
        store.attributes[MAY_BE_UNSET] = UnitAttr()
        emit.add(store)


@once
def trace_start(loop: LoopScope, made: PointSet) -> SSAValue:
    """The place of the cells that the thread would keep of the plane arriving in a turn."""
    emit, code, layout = loop.emit, loop.variant.code, made.layout
    row = emit.add_int(arriving_plane(loop), -CellBox.of(made.bounds).lower[0])
    line = thread_trace(traces_around(loop.variant), made).line
    at = emit.add_int(emit.mul_int(row, layout.lines), line)
    return emit.add_int(emit.mul_int(at, words_of_thread(code, made)), layout.traces)


def bits_of_cell(emit: Emitter, cell: SSAValue) -> list[SSAValue]:
    """The bits of a cell, in words."""
    if cell.type != f64:
        return [emit.add(arith.BitcastOp(cell, i32)).result]
    bits: SSAValue = emit.add(arith.BitcastOp(cell, i64)).result
    high = emit.binary(arith.ShRUIOp, bits, emit.int(32, i64))
    return [emit.add(arith.TruncIOp(part, i32)).result for part in (bits, high)]


def cell_of_bits(emit: Emitter, words: Sequence[SSAValue], like: SSAValue) -> SSAValue:
    """The cell of some words, of the type of a weight."""
    if len(words) == 1:
        return emit.add(arith.BitcastOp(words[0], like.type)).result
    low, high = (emit.add(arith.ExtUIOp(word, i64)).result for word in words)
    high = emit.binary(arith.ShLIOp, high, emit.int(32, i64))
    return emit.add(arith.BitcastOp(emit.binary(arith.OrIOp, low, high), like.type)).result


# Cells are noted.


def note_traces(variant: VariantScope) -> None:
    """Note the kept cells of all planes of the chunk, behind the loops."""
    outer = variant.emit
    for made in traced_sets(variant.code):
        line = thread_trace(traces_around(variant), made).line
        none = outer.add(simt.AllOp(outer.compare("eq", line, made.layout.lines))).result
        empty, block = Block([scf.YieldOp()]), Block()
        variant.emit = outer.into(block)
        note_lines(variant, made)
        variant.emit.add(scf.YieldOp())
        variant.emit = outer
        outer.add(scf.IfOp(none, [], [empty], [block]))


def note_lines(variant: VariantScope, made: PointSet) -> None:
    """Note the kept cells of a list."""
    emit, layout, thread = variant.emit, made.layout, variant.code.thread
    synchronise_warp(emit)
    stages = traced_stages(variant.code, made)
    point = PointEmitter(step_of_lines(variant, emit.int(0)), stages[0], made, {})
    point.prepare()
    ends: list[SSAValue] = []
    for plane in (thread.first, thread.last):
        row = clamped(emit, emit.add_int(plane, -point.first[0]), layout.counts[0])
        ends.append(emit.mul_int(row, layout.strides[0]))
    found = [table_number(emit, point.places, 0, end) for end in ends]
    low, high = (emit.add(simt.UniformOp(number)).result for number in found)

    def turn(inner: Emitter, base: SSAValue, cells: Sequence[SSAValue]) -> list[SSAValue]:
        starts = [inner.add_int(base, LANES * number) for number in range(BATCHES)]
        for entries in [point.entries(inner, start, high) for start in starts]:
            note_entries(inner, variant, point, entries)
        return list(cells)

    point.loop(emit, (low, high, BATCHES * LANES), [], turn)


def note_entries(
    emit: Emitter, variant: VariantScope, point: PointEmitter, entries: WarpEntries
) -> None:
    """Note the cells of some entries at all levels, each by the lane with the entry."""
    code, made, layout = variant.code, point.made, point.layout
    row = table_number(emit, point.places, layout.coordinates(0), entries.number)
    own = thread_trace(traces_around(variant), made).line
    line = emit.add(simt.PickOp(own, entries.lane)).result
    width = words_of_thread(code, made)
    words = width // len(code.geometry.thread_positions)
    at = emit.mul_int(emit.add_int(emit.mul_int(row, layout.lines), line), width)
    at = emit.add_int(at, emit.mul_int(entries.cell, words))
    stages, level = traced_stages(code, made), layout.counts[0] * layout.lines * width
    kept = [
        emit.add(
            simt.LoadOp(
                point.places, at, layout.traces + number * level, [i32] * words, entries.valid
            )
        ).cells
        for number in range(len(stages))
    ]
    for stage, found in zip(stages, kept):
        cell = cell_of_bits(emit, found, entries.weight)
        product = emit.binary(arith.MulfOp, entries.weight, cell)
        number = code.arguments[stage.points[0]]
        point.row = emit.add(arith.TruncIOp(number, i32)).result
        place = point.at(emit, entries.number)
        emit.add(simt.StoreOp([product], point.table, place, 0, entries.valid))
