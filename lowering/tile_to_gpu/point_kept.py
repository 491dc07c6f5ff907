"""
Values of few entries, kept in the lanes of a warp for all steps of a run of planes with points.

A step with points would wait three times for memory: for the places of the entries of a level, for
the entries, and for values of the table. Of a source in a few cells a warp reads all of it ahead of
the run's loop: a lane has the value of an entry at a level. Longer lists are read step by step.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, SSAValue

from timetile.dialects import simt
from timetile.dialects.point_lists import PointLayout
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import PointKind
from timetile.dialects.tile import LANES
from timetile.lowering.emitter import Emitter
from timetile.lowering.tile_to_gpu.point_addends import KeptValues
from timetile.lowering.tile_to_gpu.point_levels import (
    LevelEmitter,
    LevelsOfPoints,
    levels_in_loop,
    of_level,
)
from timetile.lowering.tile_to_gpu.point_numbers import divided_in_warp, table_number
from timetile.lowering.tile_to_gpu.rings import RingSlots
from timetile.lowering.tile_to_gpu.scopes import (
    LoopScope,
    StreamStep,
    VariantScope,
    unset_cell,
)
from timetile.passes.analysis.point_stages import stages_with_points

MOST_REGISTERS = 2
"""Most registers of a lane for values: a point of a plate has four entries, of up to 16 levels."""


def registers_of_values(layout: PointLayout, levels: int) -> int:
    """The registers of a lane for the values of a point between cells, at all levels."""
    return min(MOST_REGISTERS, -(-(levels << len(layout.shape)) // LANES))


def keep_values(variant: VariantScope, begin: SSAValue, end: SSAValue) -> None:
    """Read the values of the lists for the loop that follows, from a step up to another."""
    variant.kept_values = kept = {}
    slots = RingSlots(begin, {})
    loop = LoopScope(variant, variant.emit, 0, begin, slots, False, None, {}, 1, True)
    step, is_some = StreamStep(loop, 0), variant.emit.compare("slt", begin, end)
    sets = [made for stage in stages_with_points(variant.code.kernel) for made in stage.point_sets]
    for made in dict.fromkeys(sets):
        levels = levels_in_loop(step, made)
        if made.kind is PointKind.INJECT and levels is not None and levels.count <= LANES:
            kept[made] = KeptEmitter(step, levels).kept(is_some)


class KeptEmitter(LevelEmitter):
    """Reads the values of a run of planes for all levels, ahead of the run's loop."""

    def __init__(self, step: StreamStep, levels: LevelsOfPoints):
        super().__init__(step, levels)
        self.registers = registers_of_values(self.layout, levels.count)
        self.most = self.registers * LANES // levels.count

    def kept(self, is_some: SSAValue) -> KeptValues:
        """The values of the run, if the loop has steps, and the run few entries."""
        emit, kind = self.step.emit, element_type(self.made.weights)
        unset = unset_cell(self.step.variant, kind)
        none, zero = [unset] * self.registers, emit.int(0)
        blocks = Block(), Block()
        inner, outer = emit.into(blocks[0]), emit.into(blocks[1])
        first, planes = self.step.variant.point_planes[self.made.places]
        rows = first, inner.add_int(first, planes)
        starts = [inner.mul_int(row, self.layout.strides[0]) for row in rows]
        found = [table_number(inner, self.places, 0, start) for start in starts]
        low, high = (inner.add(simt.UniformOp(number)).result for number in found)
        count = inner.sub_int(high, low)
        inner.add(scf.YieldOp(low, count))
        outer.add(scf.YieldOp(zero, zero))
        low, count = emit.add(scf.IfOp(is_some, [i32, i32], [blocks[0]], [blocks[1]])).results
        # Runs of all other chunks have no entries.
        are_few = emit.compare("ult", emit.add_int(count, -1), self.most)
        blocks = Block(), Block()
        inner, outer = emit.into(blocks[0]), emit.into(blocks[1])
        inner.add(scf.YieldOp(*self.values_of(inner, low, count)))
        outer.add(scf.YieldOp(zero, *[zero] * self.registers, *none))
        kinds = [i32, *[i32] * self.registers, *[kind] * self.registers]
        planes, *flat = emit.add(scf.IfOp(are_few, kinds, [blocks[0]], [blocks[1]])).results
        keys, values = flat[: self.registers], flat[self.registers :]
        return KeptValues(are_few, count, planes, tuple(keys), tuple(values))

    def values_of(self, emit: Emitter, low: SSAValue, count: SSAValue) -> list[SSAValue]:
        """The planes of some entries from `low` on, the cells of their values, and the values."""
        lane, high = self.step.code.thread.lane, emit.add_int(low, count)
        own = emit.binary(arith.MinSIOp, emit.add_int(low, lane), emit.add_int(high, -1))
        planes = table_number(emit, self.places, self.layout.coordinates(0), own)
        arguments = self.step.code.arguments
        steps = [arguments[stage.points[0]] for stage in self.levels.stages]
        keys, values = list[SSAValue](), list[SSAValue]()
        for start in range(0, self.registers * LANES, LANES):
            number = emit.add_int(lane, start)
            level, entry = divided_in_warp(emit, number, self.levels.count)
            entries = self.entries_of(emit, emit.add_int(low, entry), high)
            self.row = emit.add(arith.TruncIOp(of_level(emit, level, steps), i32)).result
            _, key, value = self.products(emit, entries)
            keys.append(key)
            values.append(value)
        return [planes, *keys, *values]
