"""Which buffers of a time loop hold data that a later step reads."""

from __future__ import annotations

from math import prod

from xdsl.dialects.stencil import StencilBoundsAttr

from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.rotation import Rotation


def written_bounds(loop: LoopOp) -> StencilBoundsAttr:
    """The smallest box that holds every cell that a step writes."""
    updates = loop.updates
    bounds = updates[0].box
    for update in updates[1:]:
        bounds = bounds | update.box
    return bounds


def live_arguments(loop: LoopOp) -> tuple[bool, ...]:
    """
    For each argument of the loop: what it holds before a step is read, by this step or by a later
    one, before it is overwritten. An update whose box is smaller than the written bounds leaves part
    of its target, and so reads it.
    """
    bounds = written_bounds(loop)
    args = loop.body.block.args
    read, overwritten = [False] * len(args), [False] * len(args)
    for update in loop.updates:
        for source in update.sources:
            if source in args and not overwritten[args.index(source)]:
                read[args.index(source)] = True
        for target in update.targets:
            position = args.index(target)
            if overwritten[position]:
                continue
            if update.box == bounds:
                overwritten[position] = True
            else:
                read[position] = True
    successor = {source: k for k, source in enumerate(loop.rotation)}
    live = [False] * len(args)
    while True:
        new = [read[k] or (not overwritten[k] and live[successor[k]]) for k in range(len(args))]
        if new == live:
            return tuple(live)
        live = new


def written_arguments(loop: LoopOp) -> tuple[bool, ...]:
    """For each argument of the loop: a step writes it."""
    targets = {target for update in loop.updates for target in update.targets}
    return tuple(arg in targets for arg in loop.body.block.args)


def written_cells(loop: LoopOp) -> int:
    """The cells of the box around all that a step writes."""
    bounds = written_bounds(loop)
    return prod(high - low for low, high in zip(bounds.lb, bounds.ub))


def rotation_of(loop: LoopOp) -> Rotation:
    """How a loop's roles rotate, which are live and which are written."""
    common = loop.common_halos is not None
    return Rotation(loop.rotation, live_arguments(loop), written_arguments(loop), common)
