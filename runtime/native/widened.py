"""
Periodic time loops on a processor: fields go on beyond their ends for some steps at once.

An update at the edge of a periodic field reads the other end, so no pass over the fields could make
two steps. In a widened copy of the loop the fields have ghost cells beyond the ends, and the boxes
of the updates reach over them: the copy has no edge, and is blocked as any loop. Stale cells move
inwards from the outer ends, by the reach of a step in each step; after `most` steps the ghost cells
are copied anew. Cells are computed by equal operations in both loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox, sizes_of
from timetile.dialects.decomposition import Ghosts
from timetile.dialects.series import is_series
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import BroadcastOp, LoopOp
from timetile.lowering.cpu.given import is_read
from timetile.passes.analysis.ghosts import StepMargins
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.loops.cut_domain import Domain, loops_alone, widen
from timetile.passes.loops.join_updates import JoinUpdatesPass
from timetile.passes.loops.split_edges import SplitEdgesPass
from timetile.runtime.kernels.loops import loops_of

MOST_STEPS = 16
"""Most steps between two copies of ghost cells."""

MOST_CELLS = 1.25
"""Most cells of a widened field for each of the field."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class WidenedLoop:
    """A loop on widened fields, the periodic axes, and the ghost cells of `most` steps."""

    loop: LoopOp
    axes: tuple[int, ...]
    ghosts: Ghosts
    most: int

    @property
    def refreshed(self) -> list[int]:
        """
        The buffers that need new ghost cells, by the numbers of the loop's arguments: all but one
        that a single update writes unread. Cells outside its box never change.
        """
        args, updates = self.loop.body.block.args, self.loop.updates
        update = updates[0]
        is_alone = len(updates) == 1 and len(update.targets) == 1
        unread = set(update.targets) - set(update.sources) if is_alone else set[SSAValue]()
        return [number for number, argument in enumerate(args) if argument not in unread]

    def ends(self, rank: int) -> Ghosts:
        """The ghost cells of a field before and behind, along each axis."""
        return tuple(self.ghosts[axis] if axis in self.axes else (0, 0) for axis in range(rank))

    def inside(self, rank: int) -> tuple[slice, ...]:
        """Where a field lies in the widened field."""
        return tuple(slice(below, -above or None) for below, above in self.ends(rank))

    def wide_arrays(self, fields: Sequence[SSAValue], arrays: Sequence[Any]) -> list[Array]:
        """Copies of the arrays of some fields, with ghost cells."""
        pairs = zip(fields, arrays, strict=True)
        return [self.wide(array, sizes_of(field_bounds(field))) for field, array in pairs]

    def wide(self, array: Array, shape: Sequence[int]) -> Array:
        """A copy of a field with ghost cells."""
        found = array.reshape(shape)
        ends = self.ends(len(shape))
        made = np.empty([n + sum(pair) for n, pair in zip(shape, ends)], found.dtype)
        made[self.inside(len(shape))] = found
        self.refresh(made)
        return made

    def refresh(self, made: Array) -> None:
        """Copy the ghost cells of a field from the other ends, one axis after the other."""
        for axis in self.axes:
            (below, above), size = self.ghosts[axis], made.shape[axis]
            along = np.moveaxis(made, axis, 0)
            if below:
                along[:below] = along[size - above - below : size - above]
            if above:
                along[size - above :] = along[below : below + above]


def widened_loops(module: ModuleOp) -> dict[int, WidenedLoop]:
    """The widened copies of time loops, by number, in modules of their own."""
    loops = loops_of(module)
    periodic = {number: axes for number, loop in enumerate(loops) if (axes := unrolled_axes(loop))}
    if not periodic:
        return {}
    made: dict[int, WidenedLoop] = {}
    alone = loops_alone(module)
    copies = loops_of(alone)
    for number, axes in periodic.items():
        loop = copies[number]
        steps = fitting_steps(loop, axes)
        if len(steps) < 2:
            continue
        for axis in axes:
            widen(loop, axis, steps[-1])
        made[number] = WidenedLoop(loop, axes, steps[-1], len(steps))
    # Other axes may go on as mirrors: their edges are boxes that read cells near by.
    SplitEdgesPass(everywhere=True).apply(Context(), alone)
    JoinUpdatesPass().apply(Context(), alone)
    return made


def unrolled_axes(loop: LoopOp) -> tuple[int, ...]:
    """The axes along which places of a loop may go on beyond the ends."""
    fields = (*loop.body.block.args, *loop.captures)
    if not loop.updates or loop.part is not None:
        return ()
    if any(is_series(scalar) and not is_read(scalar) for scalar in loop.scalars):
        return ()
    if any(isinstance(field.owner, BroadcastOp) for field in fields):
        return ()
    domain = Domain(CellBox.of(written_bounds(loop)), (loop,))
    return tuple(axis for axis in range(loop.updates[0].rank) if domain.is_periodic(axis))


def fitting_steps(loop: LoopOp, axes: tuple[int, ...]) -> list[Ghosts]:
    """The ghost cells of 1, 2 and more steps, as long as fields grow little."""
    shape = sizes_of(field_bounds(loop.body.block.args[0]))
    return list(islice(zones_that_fit(StepMargins(loop, axes).zones(), axes, shape), MOST_STEPS))


def zones_that_fit(
    zones: Iterator[Ghosts], axes: tuple[int, ...], shape: Sequence[int]
) -> Iterator[Ghosts]:
    """The first zones with which a field of a shape grows little."""
    for zone in zones:
        sizes = [n + sum(zone[axis]) * (axis in axes) for axis, n in enumerate(shape)]
        if prod(sizes) > MOST_CELLS * prod(shape):
            return
        if any(max(zone[axis]) > shape[axis] for axis in axes):
            return
        yield zone
