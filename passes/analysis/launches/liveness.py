"""Liveness of a time loop's buffers: buffers with data for a later step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from xdsl.dialects.stencil import StencilBoundsAttr
from xdsl.ir import SSAValue

from timetile.dialects.boxes import CellBox, sizes_of
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import LoopOp, ScratchOp, UpdateOp
from timetile.passes.analysis.launches.rotation import Rotation


def written_bounds(loop: LoopOp) -> StencilBoundsAttr:
    """The smallest box holding every cell written by a step."""
    return box_around(loop.updates)


def box_around(updates: Iterable[UpdateOp]) -> StencilBoundsAttr:
    """The smallest box holding every cell written by some updates, at least one."""
    return reduce(CellBox.__or__, (CellBox.of(update.box) for update in updates)).bounds()


def is_own_scratch(loop: LoopOp, role: int) -> bool:
    """Whether the buffer of a role is scratch of the loop, with no reader outside."""
    buffer = loop.buffers[role]
    return (
        isinstance(buffer.owner, ScratchOp)
        and loop.rotation[role] == role
        and loop.res[role].first_use is None
        and all(use.operation is loop for use in buffer.uses)
    )


def overwrites(update: UpdateOp, bounds: StencilBoundsAttr) -> bool:
    """Whether an update overwrites all cells of its targets inside the written bounds."""
    whole, box = CellBox.of(bounds), CellBox.of(update.box)
    return all(whole & CellBox.of(field_bounds(target)) in box for target in update.targets)


@dataclass(frozen=True)
class RoleAccess:
    """
    The roles read and written by an update. `whole`: the update writes every cell of its targets
    inside the written bounds.
    """

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    whole: bool


def live_roles(rotate: Sequence[int], updates: Sequence[RoleAccess]) -> tuple[bool, ...]:
    """
    For each role, whether this or a later step reads the data of the role's buffer before an
    overwrite. An update other than `whole` leaves a part of its target, and counts as a reader.
    """
    count = len(rotate)
    read, overwritten = [False] * count, [False] * count
    for update in updates:
        for role in (*update.sources, *(() if update.whole else update.targets)):
            read[role] |= not overwritten[role]
        for role in update.targets:
            overwritten[role] |= update.whole
    successor = {source: k for k, source in enumerate(rotate)}
    live = [False] * count
    while True:
        new = [read[k] or (not overwritten[k] and live[successor[k]]) for k in range(count)]
        if new == live:
            return tuple(live)
        live = new


def cycle_bounds(loop: LoopOp, cycle: Sequence[int]) -> StencilBoundsAttr:
    """
    The smallest box holding every cell written by a step to buffers of a cycle of the rotation; the
    loop's bounds for a cycle without writes.
    """
    targets = {loop.body.block.args[role] for role in cycle}
    writers = [update for update in loop.updates if not targets.isdisjoint(update.targets)]
    return box_around(writers or loop.updates)


def rotation_of(loop: LoopOp, live: Sequence[bool], *, common: bool) -> Rotation:
    """The rotation of a loop's buffers, with given live roles."""
    return Rotation(loop.rotation, tuple(live), written_arguments(loop), common)


def bounds_of_cycles(loop: LoopOp, rotation: Rotation) -> dict[SSAValue, StencilBoundsAttr]:
    """For each buffer that takes turns with others, the box of what a step writes to them."""
    found: dict[SSAValue, StencilBoundsAttr] = {}
    for role, buffer in enumerate(loop.body.block.args):
        cycle = rotation.cycle_of(role)
        if len(cycle) > 1 and buffer not in found:
            bounds = cycle_bounds(loop, cycle)
            found.update((loop.body.block.args[each], bounds) for each in cycle)
    return found


def role_accesses(loop: LoopOp, whole: Collection[UpdateOp]) -> list[RoleAccess]:
    """The roles read and written by the updates of a loop; `whole` lists the whole ones."""
    positions: dict[SSAValue, int] = {arg: k for k, arg in enumerate(loop.body.block.args)}
    whole = set(whole)
    return [
        RoleAccess(
            tuple(positions[source] for source in update.sources if source in positions),
            tuple(positions[target] for target in update.targets),
            update in whole,
        )
        for update in loop.updates
    ]


def updates_of_all(loop: LoopOp) -> list[UpdateOp]:
    """The updates that overwrite all cells of their targets inside the loop's bounds."""
    bounds = written_bounds(loop)
    return [update for update in loop.updates if overwrites(update, bounds)]


def updates_of_cycles(loop: LoopOp) -> list[UpdateOp]:
    """
    The updates that leave cells of their targets inside the loop's bounds, all with the values of a
    live version if halos are common: no step writes these cells of the buffers that take turns.
    """
    of_all, rotation = updates_of_all(loop), rotation_of(loop, written_arguments(loop), common=True)
    bounds, known = bounds_of_cycles(loop, rotation), set(of_all)
    found = [
        update
        for update in loop.updates
        if update not in known
        and all(
            target in bounds and overwrites(update, bounds[target]) for target in update.targets
        )
    ]
    live = live_roles(loop.rotation, role_accesses(loop, of_all + found))
    args = loop.body.block.args
    return [
        update
        for update in found
        if all(
            any(live[role] for role in rotation.cycle_of(args.index(target)))
            for target in update.targets
        )
    ]


def live_arguments(loop: LoopOp, *, common: bool | None = None) -> tuple[bool, ...]:
    """
    For each argument of the loop, whether this or a later step reads the argument's data. `common`:
    with common halos or without, in place of the loop's own promise.
    """
    whole = updates_of_all(loop)
    if loop.common_halos is not None if common is None else common:
        whole += updates_of_cycles(loop)
    return live_roles(loop.rotation, role_accesses(loop, whole))


def written_arguments(loop: LoopOp) -> tuple[bool, ...]:
    """For each argument of the loop, whether a step writes the argument."""
    targets = {target for update in loop.updates for target in update.targets}
    return tuple(arg in targets for arg in loop.body.block.args)


def written_cells(loop: LoopOp) -> int:
    """The number of cells of the box around all cells written by a step."""
    bounds = written_bounds(loop)
    return prod(sizes_of(bounds))


def loop_rotation(loop: LoopOp) -> Rotation:
    """The rotation of a loop's buffers, with live and written roles."""
    common = loop.common_halos is not None
    return rotation_of(loop, live_arguments(loop), common=common)


def cycles_in_turn(loop: LoopOp) -> tuple[tuple[int, ...], ...]:
    """The cycles for which kernels of several steps gain by common halos, promised or not."""
    return rotation_of(loop, live_arguments(loop, common=True), common=True).turns
