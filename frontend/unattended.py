"""Runs that end early, on a GPU that checks the condition itself.

The condition is a function of the caller's, called after every so many steps. Its first call notes
how numbers of all cells are compared. A loop in a graph of the GPU repeats steps, numbers and
comparisons for as long as the outcomes stay. Where the last steps before a check make its numbers,
the host repeats them, and the GPU is a launch ahead (`CheckedTurns`). Meanwhile the host calls the
function with the numbers of each check, in order: the function sees the same numbers, a little
later. If the function ends the run where the GPU went on, as functions do that look at other
things, the run begins again, and makes the known number of steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from timetile.frontend import checked_pieces
from timetile.frontend.checked_pieces import CheckedPiece, kept_piece
from timetile.frontend.checked_programs import NotTogetherError
from timetile.frontend.numbers import NumberProgram
from timetile.frontend.placed_runs import PlacedRun
from timetile.frontend.runs import StateRun
from timetile.frontend.stopping import EndCondition, OtherNumbersError, advanced_in_pieces
from timetile.passes.diagnostics import LOGGER, CompileError
from timetile.runtime.kernels.loop_ends import Comparison
from timetile.runtime.program.checked_turns import MOST_NUMBERS, CheckedTurns, NumbersOfWarps
from timetile.runtime.program.graph_loop import MOST_CHECKS, GraphLoop, PlacedNumber

FEWEST_CHECKS = 4
"""The fewest checks to come for which a loop is made."""

FIRST_CHECKS = 8
"""Checks of the first launch of a loop."""

LAUNCH_SECONDS = 0.1
"""Seconds of a launch of the loop: the condition's function sees numbers at most this late."""

MOST_LED = 32
"""
Most launches between two checks that the host leads. On an H200 turns of 8 and 10 launches were
faster than in a graph in every row measured, and turns of 77 and 100 in five rows of eight.
"""

MOST_LOOPS = 4
"""The most loops of a run: another outcome of a comparison takes another loop."""


class AstrayError(Exception):
    """
    The GPU went on where the condition's function ends the run (`ends`), or asks for other numbers.
    """

    def __init__(self, *, ends: bool):
        self.ends = ends


class OddStepsError(Exception):
    """After the steps between two checks, arrays have changed places."""


class UnattendedRun:
    """A run of at most `steps` steps, placed on a GPU, with a check after every `every` steps."""

    def __init__(self, placed: PlacedRun, steps: int, every: int, condition: EndCondition):
        self.placed, self.run = placed, placed.run
        self.steps, self.every, self.condition = steps, every, condition
        self.loops, self.leads = 0, True
        """The loops made, and whether the host comes in time to lead one."""
        self.together: CheckedPiece | None = None
        """The work between two checks with the numbers made by its last launch, if it can be."""

    def advance(self) -> bool:
        """Advance until the end. Returns whether the condition ended the run."""
        run, condition = self.run, self.condition
        run.go(self.every)
        condition.watches = True
        if condition.holds():
            return True
        while self.checks_left >= FEWEST_CHECKS and self.loops < MOST_LOOPS:
            if not condition.is_watched:
                break
            ended = self.advance_by_loop()
            if ended is not None:
                return ended
        return advanced_in_pieces(run, self.steps, self.every, condition, lambda: None)

    @property
    def checks_left(self) -> int:
        """The checks to come."""
        return (self.steps - self.run.done) // self.every

    def advance_by_loop(self) -> bool | None:
        """
        Whether the condition ended the run; None if the host goes on with the next check. Without
        work kept from an earlier run the GPU makes the steps up to the next check meanwhile.
        """
        condition = self.condition
        self.loops += 1
        comparisons, used = list(condition.watch.comparisons), list(condition.used)
        self.together = None if self.placed.gpu.led else kept_piece(self.placed, self.every, used)
        is_kept = self.together is not None
        if not is_kept:
            self.run.go(self.every)
            self.together = self.checked_piece(used)
        try:
            loop = self.loop(comparisons, used)
        except (RuntimeError, OddStepsError) as error:
            LOGGER.info("the host checks whether the run ends: %s", error)
            self.loops = MOST_LOOPS
            self.give_back()
            return True if not is_kept and condition.holds() else None
        try:
            if not is_kept:
                if condition.holds():
                    return True
                if (condition.watch.comparisons, condition.used) != (comparisons, used):
                    return None
            return self.follow_turns(loop) if isinstance(loop, CheckedTurns) else self.follow(loop)
        finally:
            loop.close()
            self.give_back()

    def loop(
        self, comparisons: Sequence[Comparison], used: Sequence[NumberProgram]
    ) -> CheckedTurns | GraphLoop:
        """The loop of the checks to come, led by the host where it comes in time."""
        gpu, stream, together = self.placed.gpu, self.placed.stream, self.together
        leads = self.leads and len(used) <= MOST_NUMBERS
        if together is not None:
            leads = leads and together.programs.launches <= MOST_LED
            together.prepare(self.run, reduces=not leads)
            if leads:
                return CheckedTurns(gpu, stream, self.begin, self.end, comparisons)
        return GraphLoop(gpu, stream, self.piece, [each.dtype for each in used], comparisons)

    def checked_piece(self, used: Sequence[NumberProgram]) -> CheckedPiece | None:
        """The work between two checks with the numbers made by its last launch, if worth it."""
        # A run led by the host copies numbers beside the stream: the kernels of a run inside of its
        # condition would overwrite them.
        if self.placed.gpu.led or not self.is_worth_programs(used):
            return None
        try:
            return CheckedPiece(self.placed, self.every, used, self.condition.options)
        except (NotTogetherError, CompileError, RuntimeError) as error:
            LOGGER.info("a pass makes the numbers of a check: %s", error)
            return None

    def is_worth_programs(self, used: Sequence[NumberProgram]) -> bool:
        """
        Whether runs with these checks took long enough for programs of their own, and the checks to
        come save enough.
        """
        if not used or used[0].past.seconds < checked_pieces.WORTH_SECONDS:
            return False
        past, saved = used[0].past, self.checks_left * checked_pieces.CHECK_STEPS
        return past.seconds * saved >= checked_pieces.PREPARED_SECONDS * past.steps

    def give_back(self) -> None:
        """Keep the work between two checks for later runs: all launches are done."""
        together, self.together = self.together, None
        if together is not None:
            together.keep()

    def begin(self) -> None:
        """Give the first launch between two checks to the stream."""
        assert self.together is not None
        self.together.begin(self.run)

    def end(self) -> Sequence[NumbersOfWarps]:
        """Give the other launches to the stream; the numbers of the check."""
        assert self.together is not None
        self.together.end(self.run)
        return self.together.of_warps()

    def piece(self) -> Sequence[PlacedNumber]:
        """Give the work between two checks to the stream; the numbers of the check."""
        run = self.run
        if self.together is not None:
            self.together.begin(run)
            self.together.end(run)
            return self.together.reduced()
        done, arrays = run.done, run.arrays
        try:
            run.go(self.every)
            if any(run.arrays[name] is not array for name, array in arrays.items()):
                raise OddStepsError("arrays change places between two checks")
            return [
                number
                for program in self.condition.used
                for number in program.noted([run.before(*b) for b in program.buffers], run)
            ]
        finally:
            # Nothing has run yet.
            run.done, run.arrays = done, arrays

    def follow_turns(self, turns: CheckedTurns) -> bool | None:
        """Give turns to the GPU, and call the condition's function for each check meanwhile."""
        run, left, before = self.run, self.checks_left, time.perf_counter()
        turns.begin(more=left > 1)
        while left:
            row, left = turns.row(), left - 1
            goes_on = turns.goes_on(row)
            if turns.is_late:
                LOGGER.info("the GPU waits for the host at each check, and checks itself")
                self.leads, left = False, min(left, 1)
            if goes_on and left:
                turns.go_on(more=left > 1)
            run.done += self.every
            now = time.perf_counter()
            self.note(1, now - before)
            before = now
            if not goes_on:
                return True if self.ends(row) else None
            if self.ends(row):
                raise AstrayError(ends=True)
        return None

    def note(self, checks: int, seconds: float) -> None:
        """Note the time of some checks, for runs to come."""
        for program in self.condition.used[:1]:
            program.past.steps += checks * self.every
            program.past.seconds += seconds

    def follow(self, loop: GraphLoop) -> bool | None:
        """Give launches of a loop to the GPU, and call the condition's function for each check."""
        run, given, most = self.run, 0, FIRST_CHECKS
        left, before, used = self.checks_left, time.perf_counter(), self.condition.used
        was_worth = self.is_worth_programs(used)
        while True:
            if not was_worth and self.is_worth_programs(used):
                left = given
            while given < left and not loop.is_full:
                count = min(most, left - given)
                loop.launch(count)
                given += count
            if not loop.is_under_way:
                return None
            rows, ended = loop.taken()
            now = time.perf_counter()
            most = launched_checks(len(rows), now - before, most)
            self.note(len(rows), now - before)
            before = now
            for place, row in enumerate(rows):
                run.done += self.every
                if ended and place == len(rows) - 1:
                    return True if self.ends_here(row) else None
                if self.ends(row):
                    raise AstrayError(ends=True)

    def ends_here(self, row: Sequence[float]) -> bool:
        """
        Whether the condition's function ends the run where the GPU has ended it. Values a step
        earlier may be gone.
        """
        return self.condition.holds() if self.together is None else self.ends(row)

    def ends(self, row: Sequence[float]) -> bool:
        """Whether the condition's function ends the run by the numbers of a check."""
        try:
            return self.condition.holds(row)
        except OtherNumbersError as error:
            raise AstrayError(ends=False) from error


def launched_checks(made: int, seconds: float, most: int) -> int:
    """The checks of the next launch, after one of at most `most` that made so many in a time."""
    if not made:
        return most
    wanted = int(LAUNCH_SECONDS / max(seconds / made, 1e-7))
    return max(1, min(wanted, 4 * most, MOST_CHECKS))


def advanced_alone(
    run: StateRun,
    steps: int,
    every: int,
    condition: EndCondition,
    again: Callable[[], StateRun],
) -> tuple[StateRun, bool]:
    """
    Advance a run until its condition ends it: on a GPU that checks the condition where possible.
    `again` begins the run again. Returns the run, and whether the condition ended it.
    """
    placed = PlacedRun.of(run)
    if placed is None or run.series or steps < every:
        return run, advanced_in_pieces(run, steps, every, condition, lambda: None)
    try:
        with placed:
            return run, UnattendedRun(placed, steps, every, condition).advance()
    except AstrayError as astray:
        LOGGER.info(
            "the condition looks at other things at step %d: the run begins again", run.done
        )
        ends = astray.ends
    other = again()
    other.go(run.done)
    condition.run, condition.watches = other, False
    if ends or condition.holds():
        return other, True
    return other, advanced_in_pieces(other, steps, every, condition, lambda: None)
