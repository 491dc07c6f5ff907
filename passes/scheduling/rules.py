"""The rules of `choose-schedule` for leaving out a schedule at a depth, each with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from timetile.dialects.tile.kinds import Form
from timetile.passes.analysis.geometry.axis_tiling import ceil_div
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.scheduling.reasons import (
    DIVIDES_IN_PLACE,
    EXCHANGES_PLANES,
    LOOKS_BEYOND,
    NO_ADDRESSES,
    NO_REGISTERS,
    NO_SHARED_MEMORY,
    WAITS_WITHIN,
    Reason,
)
from timetile.passes.scheduling.trial import Trial

Rule = Callable[[Trial], Reason | None]
"""A rule gives the reason for leaving out a schedule at a depth; None if the schedule passes."""


def divides_in_place(trial: Trial) -> Reason | None:
    """
    Leaves out resident tiles with quotients or roots: their registers are unknown (two similar
    kernels took 150 and 255, assembled).
    """
    if trial.schedule.resident and trial.facts.dividing:
        return Reason(DIVIDES_IN_PLACE)
    return None


def looks_beyond_the_next(trial: Trial) -> Reason | None:
    """Leaves out threads with fewer rows than the radius: taps would reach beyond the next warp."""
    cells, far = trial.schedule.cells, trial.kernels.far
    if trial.shape.has_rows and trial.depth > 1 and cells[0] < far[-trial.shape.axes]:
        return Reason(LOOKS_BEYOND)
    return None


def exchanges_three_planes(trial: Trial) -> Reason | None:
    """
    Leaves out whole sums over boxes: whole sums exchange three planes of every level, and sums by
    rows exchange a single plane.
    """
    schedule, kernels = trial.schedule, trial.kernels
    if trial.depth == 1 or schedule.form is not Form.NONE:
        return None
    is_box = trial.shape is TileShape.PENCIL and kernels.several_planes
    if is_box and kernels.facts(trial.depth, replace(schedule, form=Form.ROWS)) is not None:
        return Reason(EXCHANGES_PLANES)
    return None


def spanning_blocks(trial: Trial) -> int | None:
    """
    Blocks for a tile as long as the plane's first axis. A resident tile has at most the schedule's
    blocks. None if one block suffices, or if the device holds fewer.
    """
    geometry, schedule = trial.geometry, trial.schedule
    if geometry is None:
        return None
    tiling = geometry.axes[0]
    blocks = ceil_div(tiling.span, tiling.layout.block_extent)
    most = trial.target.resident_blocks(schedule.occupancy)
    if schedule.resident:
        if blocks < schedule.blocks[0] < most:
            # With `blocks` blocks the schedule of the most blocks spans the axis, too: the two
            # schedules are equal.
            return None
        blocks = min(blocks, schedule.blocks[0])
    return blocks if 1 < blocks <= most else None


def waits_within_a_step(trial: Trial) -> Reason | None:
    """
    Leaves out tiles of several blocks with an exchange of delay 0: a delay would raise the lag.
    """
    late = trial.schedule.resident or all(exchange.delay for exchange in trial.facts.exchanges)
    if trial.schedule.blocks and not late:
        return Reason(WAITS_WITHIN)
    return None


def spills(trial: Trial) -> Reason | None:
    """Leaves out planes that need, with guards, more registers than a thread has."""
    room = trial.room(trial.spare)
    if trial.least_registers > room:
        return Reason(NO_REGISTERS, trial.least_registers, room)
    return Reason(NO_REGISTERS, trial.registers, room) if trial.registers > room else None


def exceeds_shared_memory(trial: Trial, geometry: Geometry) -> Reason:
    """The reason for leaving out planes and edges larger than the shared memory."""
    least = trial.shared_bytes(geometry, min(trial.schedule.ahead, 1))
    return Reason(NO_SHARED_MEMORY, least, trial.shared_room)


def is_short_of_addresses(trial: Trial) -> Reason | None:
    """
    Leaves out rows of narrow accesses with few registers left: more accesses have more addresses
    and masks, and the steady loop would spill.
    """
    if trial.is_scarce and trial.geometry is not None and trial.geometry.has_narrow_accesses:
        return Reason(NO_ADDRESSES)
    return None


SHAPE_RULES: tuple[Rule, ...] = (divides_in_place, looks_beyond_the_next, exchanges_three_planes)
"""Rules about the shape of a thread's cells; tried first."""
