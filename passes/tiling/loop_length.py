"""
Loops over a stream that would take long to compile: a period given by hand, slots at fixed places
with a large common multiple, steps of many operations. A shorter loop is made where one is
possible, with a remark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.kinds import Addressing
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.unrolling import operations_of_step, unrolled_steps
from timetile.passes.analysis.queues.storage import MOST_STEPS, chosen_period
from timetile.passes.diagnostics import remark

MOST_OPERATIONS = 9_000
"""Most taps and operations of a thread in a turn: compiling 8,784 takes 3 s (measured)."""

GiveHomes = Callable[[KernelOp, Schedule], None]
"""Gives every queue of a kernel a home, by a schedule."""


def is_too_long(steps: int, operations: int) -> bool:
    """Whether a turn of several steps, each of several operations, takes long to compile."""
    return steps > 1 and (steps > MOST_STEPS or steps * operations > MOST_OPERATIONS)


def given_period(schedule: Schedule, asked: int | None) -> Schedule:
    """The schedule with the period of a pass's option: 0 asks for as many steps as planes need."""
    return schedule if asked is None else replace(schedule, period=asked or None)


def bounded_period(kernel: KernelOp, module: ModuleOp, schedule: Schedule) -> Schedule:
    """The schedule; with a remark and without its period if the period is too long."""
    if kernel.stream_axis is None or schedule.period is None:
        return schedule
    operations, chosen = operations_of_step(kernel, module), chosen_period(kernel)
    if schedule.period <= chosen or not is_too_long(schedule.period, operations):
        return schedule
    most = max(chosen, min(MOST_STEPS, MOST_OPERATIONS // max(1, operations)))
    remark(
        kernel,
        f"period={schedule.period} is left out: the loop would be unrolled {schedule.period} "
        f"times, with {operations} operations of a thread in each step; give at most period={most}",
    )
    return replace(schedule, period=None)


def place_in_bounds(
    kernel: KernelOp, module: ModuleOp, schedule: Schedule, place: GiveHomes
) -> None:
    """
    Place the queues of a kernel; with a remark and slots that are shifted if slots at fixed places
    make the loop too long.
    """
    place(kernel, schedule)
    steps, operations = unrolled_steps(kernel), operations_of_step(kernel, module)
    if schedule.addressing is not Addressing.FIXED or not is_too_long(steps, operations):
        return
    place(kernel, replace(schedule, addressing=Addressing.SHIFTING))
    if unrolled_steps(kernel) == steps:
        # Planes in registers require equally many copies of the body: shifted slots would gain
        # nothing.
        place(kernel, schedule)
        return
    remark(
        kernel,
        f"a loop with slots at fixed places would be unrolled {steps} times, until all slots are "
        f"back at the first place, with {operations} operations of a thread in each step: slots "
        "are shifted; use addressing=computed for rings of a power of two",
    )


def check_step(kernel: KernelOp, module: ModuleOp) -> None:
    """Remark on a step of many operations."""
    if (operations := operations_of_step(kernel, module)) > MOST_OPERATIONS:
        remark(
            kernel,
            f"a thread makes {operations} taps and operations in a step, and compiling them takes "
            "long; give device-tiling fewer cells, or a smaller depth",
        )
