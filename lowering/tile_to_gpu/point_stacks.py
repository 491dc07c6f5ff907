"""
Planes with points of a tile: a list of points knows, for each stack of buckets along axis 0, the
next plane with an entry, and the end of the run of planes.

Each lane reads the numbers of one of the tile's stacks, or of several, and the lanes meet. Runs of
several stacks are one run if planes overlap, or lie near each other. All warps of a tile read equal
stacks, and take equal steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr, i32
from xdsl.ir import Block, Operation, SSAValue

from timetile.dialects import simt
from timetile.dialects.boxes import CellBox
from timetile.dialects.point_lists import NEAR
from timetile.dialects.temporal import PointSet
from timetile.dialects.tile import LANES
from timetile.lowering.emitter import ROLLED
from timetile.lowering.tile_to_gpu.point_lines import has_traces, traced_stages
from timetile.lowering.tile_to_gpu.point_numbers import table_number
from timetile.lowering.tile_to_gpu.scopes import VariantScope, once

MOST_JOINED = 8
"""Runs joined at most: behind more, all planes are one run."""


def touched(variant: VariantScope, made: PointSet, axis: int) -> int:
    """The most buckets of a tile along an in-plane axis."""
    code, cells = variant.code, made.layout.buckets[axis]
    extent = code.geometry.axes[code.kernel.plane_axes.index(axis)].layout.extent
    return min((extent + cells - 2) // cells + 1, made.layout.counts[axis])


def count_of_stacks(variant: VariantScope, made: PointSet) -> int:
    """The most stacks of a tile."""
    return prod(touched(variant, made, axis) for axis in range(1, len(made.layout.shape)))


def first_bucket(variant: VariantScope, made: PointSet, axis: int) -> SSAValue:
    """The first bucket of the tile along an in-plane axis."""
    code, emit = variant.code, variant.emit
    number = code.kernel.plane_axes.index(axis)
    place, cells = code.thread.axes[number], made.layout.buckets[axis]
    start = emit.sub_int(place.coordinate, place.in_tile)
    start = emit.add_int(start, -CellBox.of(made.bounds).lower[axis])
    first = emit.binary(arith.ShRSIOp, start, emit.int(cells.bit_length() - 1))
    # A tile may begin before the field, and end behind.
    first = emit.binary(arith.MaxSIOp, first, emit.int(0))
    last = made.layout.counts[axis] - touched(variant, made, axis)
    return emit.binary(arith.MinSIOp, first, emit.int(last))


def lanes_of(count: int) -> int:
    """The lanes that read numbers of their own: a power of two."""
    return min(LANES, 1 << (count - 1).bit_length())


@once
def stacks_of_lane(variant: VariantScope, made: PointSet) -> tuple[SSAValue, ...]:
    """The stacks of a lane, among the tile's."""
    emit, layout = variant.emit, made.layout
    axes = range(1, len(layout.shape))
    firsts = [first_bucket(variant, made, axis) for axis in axes]
    count = count_of_stacks(variant, made)
    own = emit.binary(arith.AndIOp, variant.code.thread.lane, emit.int(lanes_of(count) - 1))
    found: list[SSAValue] = []
    for start in range(0, count, LANES):
        left = emit.binary(arith.MinSIOp, emit.add_int(own, start), emit.int(count - 1))
        stack = emit.int(0)
        for axis, first in reversed(list(zip(axes, firsts))):
            part, left = emit.split(left, touched(variant, made, axis))
            bucket = emit.add_int(first, part)
            stack = emit.add_int(stack, emit.mul_int(bucket, layout.strides[axis]))
        found.append(stack)
    return tuple(found)


def met(
    variant: VariantScope, made: PointSet, kind: type[Operation], numbers: Sequence[SSAValue]
) -> SSAValue:
    """The least or the greatest of the numbers of all lanes."""
    emit, lane = variant.emit, variant.code.thread.lane
    number = reduce(lambda a, b: emit.binary(kind, a, b), numbers)
    half = lanes_of(count_of_stacks(variant, made)) // 2
    while half:
        other = emit.add(simt.PickOp(number, emit.add_int(lane, half))).result
        number, half = emit.binary(kind, number, other), half // 2
    return emit.add(simt.UniformOp(number)).result


def next_run(variant: VariantScope, made: PointSet, row: SSAValue) -> tuple[SSAValue, SSAValue]:
    """
    The first plane from a plane on with an entry of the tile's stacks, and the end of the runs
    beginning near; twice the number of planes without an entry, and for lists with traces.
    """
    emit, layout, places = variant.emit, made.layout, variant.code.arguments[made.places]
    at = emit.mul_int(row, layout.stacks)
    found = [emit.add_int(at, stack) for stack in stacks_of_lane(variant, made)]
    # All reads are on their way before the first is waited for.
    begins, ends = (
        [table_number(emit, places, part, place) for place in found]
        for part in (layout.following, layout.run_ends)
    )
    begin = met(variant, made, arith.MinSIOp, begins)
    near = emit.add_int(begin, NEAR)
    ends = [
        emit.select(emit.compare("slt", first, near), end, emit.int(0))
        for first, end in zip(begins, ends)
    ]
    end = met(variant, made, arith.MaxSIOp, ends)
    if not traced_stages(variant.code, made):
        return begin, end
    traced, none = has_traces(variant, made), emit.int(layout.counts[0])
    return emit.select(traced, none, begin), emit.select(traced, none, end)


def joined_run(
    variant: VariantScope, made: PointSet, row: SSAValue, gap: float
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """
    The run of planes with entries of the tile's stacks from a plane on, `gap` planes from others:
    its first plane, its end, and the first plane of the next run.
    """
    outer, rows = variant.emit, made.layout.counts[0]
    begin, end = next_run(variant, made, row)
    if gap > rows:
        return begin, outer.int(rows), outer.int(rows)
    block = Block(arg_types=[i32, i32, i32, i32])
    _, *state = block.args
    variant.emit = inner = outer.into(block)
    goes_on = inner.compare("ne", inner.add(simt.UniformOp(state[2])).result, 0)
    some, none = Block(), Block([scf.YieldOp(*state)])
    variant.emit = emit = inner.into(some)
    after, further = next_run(variant, made, state[0])
    is_near = emit.compare("slt", after, emit.add_int(state[0], int(gap)))
    is_near = emit.binary(arith.AndIOp, is_near, emit.compare("slt", after, rows))
    joined = emit.select(is_near, further, state[0])
    some.add_op(scf.YieldOp(joined, after, emit.select(is_near, emit.int(1), emit.int(0))))
    chosen = inner.add(scf.IfOp(goes_on, [i32] * 3, [some], [none]))
    block.add_op(scf.YieldOp(*chosen.results))
    variant.emit = outer
    start = (end, end, outer.int(1))
    loop = scf.ForOp(outer.int(0), outer.int(MOST_JOINED), outer.int(1), start, block)
    loop.attributes[ROLLED] = UnitAttr()
    end, after, near = outer.add(loop).results
    is_known = outer.compare("eq", near, 0)
    end, after = (outer.select(is_known, each, outer.int(rows)) for each in (end, after))
    return begin, end, after
