"""Turns of the loop over stream steps: one step or several, and the planes fetched for a turn."""

from __future__ import annotations

from timetile.dialects.tile import LANES
from timetile.dialects.tile.kinds import Form
from timetile.dialects.tile.schedule import Schedule
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.cost.spills import issue_slots
from timetile.passes.cost.step import step_cycles
from timetile.passes.cost.terms import Cost
from timetile.passes.cost.turn import loop_period, period_of, taps_of_thread
from timetile.passes.scheduling.trial import Trial
from timetile.passes.targets.hardware import CACHED_INSTRUCTIONS, SCHEDULERS

WORTH_MOVING = 0.97
"""The share of issue slots below which turns of one stream step are taken."""


def warps_of(schedule: Schedule) -> int:
    """Warps of a multiprocessor."""
    return schedule.layout().threads * schedule.occupancy // LANES


def instructions_of(cost: Cost) -> float:
    """The instructions of a thread in a stream step."""
    return cost.cycles.issue * SCHEDULERS


def turns_twice(trial: Trial) -> bool:
    """
    Whether two steps of a loop with sums of one axis fit the registers side by side, in short code.
    """
    facts, setting, schedule = trial.facts, trial.setting, trial.schedule
    keeps_sums = trial.shape is TileShape.STRIP and schedule.form is Form.ROWS
    if not keeps_sums or period_of(facts, setting) > 1:
        return False
    parameters = trial.target.parameters
    if facts.long_constants > parameters.computing.constants_at_hand:
        # Each of the two steps would rebuild the constants, or keep the constants in registers.
        return False
    # Levels of both steps are alive at once, with a few addresses each. With columns alone, the
    # loop of inner tiles keeps its registers, however much the guarded loops spill.
    more = parameters.registers.turns_level * facts.steps
    if not schedule.columns_alone:
        more += parameters.registers.turns
    fits = trial.registers + more <= trial.room(parameters.spare.turns)
    short = 2 * taps_of_thread(facts, setting) <= parameters.worth.turns_taps[4 * facts.words]
    return fits and short and two_exact_sides_are_cached(trial)


def two_exact_sides_are_cached(trial: Trial) -> bool:
    """
    Whether two steps of a loop with quotients fit the instruction cache. The loop holds both sides
    of the branches for quotients, though one runs (measured: means of nine in FP64 at six levels,
    2324 instructions of two steps 733 GCells/s, 1161 of one step 773; at five levels 1920 of two
    steps 768, 965 of one step 730).
    """
    facts, setting = trial.facts, trial.setting
    if not facts.quotients:
        return True
    exact = trial.target.parameters.computing.exact_side[4 * facts.words]
    own = step_cycles(facts, setting, trial.target).issue * SCHEDULERS
    step = own + exact * facts.quotients * setting.thread_cells
    return 2 * step <= CACHED_INSTRUCTIONS


def slots_of_step(trial: Trial) -> float:
    """The issue slots of a stream step, with those lost in a loop beyond the instruction cache."""
    cycles = step_cycles(trial.facts, trial.setting, trial.target)
    count, steps = cycles.issue * SCHEDULERS, loop_period(trial.facts, trial.setting)
    return issue_slots(count, steps * count, cycles, warps_of(trial.schedule), trial.target)


def in_short_turns(trial: Trial) -> Trial:
    """
    The trial, or where it is faster, the same with turns of one stream step. Such turns end with
    moves of planes between registers, and fit the instruction cache (measured in 3D, FP32:
    Gray-Scott with turns of 5242 instructions 298 GCells/s, of 1856 436; heat 992 and 1132).
    """
    warps_alone = trial.shape is TileShape.STRIP and not trial.facts.exchanges
    if period_of(trial.facts, trial.setting) == 1 or warps_alone:
        return trial
    short = trial.with_schedule(trial.schedule.but(period=1))
    return short if slots_of_step(short) < WORTH_MOVING * slots_of_step(trial) else trial


def fetched_evenly(trial: Trial, geometry: Geometry, ahead: int) -> int:
    """
    An even number of planes ahead for a loop of two turns, if possible: both turns fetch into one
    group of slots, found once (measured: 2%; in FP64 only for columns alone, as others spill).
    """
    alone = trial.schedule.columns_alone
    if not alone and trial.facts.words > 1:
        return ahead
    even = ahead + ahead % 2
    return even if trial.fits_shared(geometry, even) else ahead
