"""Runs ended by a GPU: the host's part, with a loop on the processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import pytest

import timetile
from support.gpu_here import GpuHere
from timetile import Field
from timetile.dialects.temporal.reduce import IDENTITY
from timetile.frontend import checked_pieces, unattended
from timetile.frontend.checked_pieces import CheckedPiece
from timetile.frontend.checked_programs import Launches
from timetile.frontend.numbers import NumberProgram
from timetile.frontend.placed_runs import PlacedRun
from timetile.frontend.runs import StateRun
from timetile.runtime.arithmetic.reductions import reduced
from timetile.runtime.executors.homes import MarkedCells
from timetile.runtime.executors.runners import PlanesRunner
from timetile.runtime.kernels.assembler import assemble, assembles
from timetile.runtime.kernels.loop_ends import Comparison, begin_text, check_text
from timetile.runtime.program import checked_turns
from timetile.runtime.program.checked_turns import NumbersOfWarps
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.program.pieces import Span
from timetile.runtime.program.ranked_gpu_program import RankedGpuProgram


class LoopHere:
    """A loop in place of a graph's: every launch makes its checks at once."""

    made = 0

    def __init__(
        self,
        gpu: object,
        stream: object,
        work: Callable[[], Sequence[tuple[Any, Any]]],
        types: Sequence[np.dtype[Any]],
        comparisons: Sequence[Comparison],
    ):
        self.work, self.numbers, self.comparisons = work, len(types), comparisons
        self.ended, self.under_way = False, list[tuple[Any, bool]]()
        LoopHere.made += 1

    @property
    def is_full(self) -> bool:
        return len(self.under_way) == 2

    @property
    def is_under_way(self) -> bool:
        return bool(self.under_way)

    def launch(self, most: int) -> None:
        """Check until an outcome changes."""
        rows: list[list[Any]] = []
        while len(rows) < most and not self.ended:
            rows.append([np.asarray(number).item() for number, _ in self.work()])
            self.ended = any(each.outcome(rows[-1]) != each.holds for each in self.comparisons)
        self.under_way.append((np.array(rows).reshape(-1, self.numbers), self.ended))

    def taken(self) -> tuple[Any, bool]:
        """The first launch."""
        return self.under_way.pop(0)

    def close(self) -> None:
        """Nothing is held."""


class NowherePlaced:
    """No run has a GPU."""

    @classmethod
    def of(cls, run: StateRun) -> None:
        """The host checks the condition."""


class PlacedHere:
    """A run in place, as if on a GPU."""

    gpu = GpuHere(is_fast=True)
    stream = 0

    def __init__(self, run: StateRun):
        self.run = run

    @classmethod
    def of(cls, run: StateRun) -> PlacedHere | None:
        """The run, as if on a GPU."""
        return cls(run)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        """Nothing is copied."""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops run on the processor."""

    def noted(self: NumberProgram, arrays: Sequence[Any], run: StateRun) -> list[Any]:
        return [(self.run(arrays, run.scalars, None), self.dtype)]

    LoopHere.made = 0
    monkeypatch.setattr(unattended, "GraphLoop", LoopHere)
    monkeypatch.setattr(unattended, "PlacedRun", PlacedHere)
    monkeypatch.setattr(NumberProgram, "noted", noted)


@timetile.stencil
def jacobi(u: Field):
    u.next = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def change(u: Field) -> Any:
    """The greatest change of a cell."""
    return timetile.maximum(abs(u.next[0, 0] - u[0, 0]))


def never(u: Field) -> object:
    """Holds never."""
    return change(u) < 0


def tolerance(seen: list[Any]) -> Callable[..., object]:
    """Compares one number, and keeps the number."""

    def until(u: Field) -> object:
        seen.append(change(u))
        return seen[-1] < 2e-2

    return until


def counting(seen: list[Any]) -> Callable[..., object]:
    """Ends a run by the count of calls."""

    def until(u: Field) -> object:
        seen.append(change(u))
        return seen[-1] < 0 or len(seen) == 9

    return until


def two_outcomes(seen: list[Any]) -> Callable[..., object]:
    """Asks for a second number before the end."""

    def until(u: Field) -> object:
        most = change(u)
        seen.append(most)
        if most < 1.5e-2:
            seen.append(timetile.minimum(u.next[0, 0]))
        return most < 5e-3

    return until


def unlike(seen: list[Any]) -> Callable[..., object]:
    """Asks for another number at the sixth check."""

    def until(u: Field) -> object:
        seen.append(change(u) if len(seen) != 5 else timetile.total(u.next[0, 0]))
        return seen[-1] < 2e-2

    return until


def uncompared(seen: list[Any]) -> Callable[..., object]:
    """Compares a half of a number."""

    def until(u: Field) -> object:
        seen.append(change(u))
        return seen[-1] / 2 < 1e-2

    return until


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("condition", "loops"),
    [(tolerance, 1), (counting, 1), (two_outcomes, 2), (unlike, 1), (uncompared, 0)],
)
def test_a_run_ends_at_the_step_and_with_the_bits_of_one_checked_by_the_host(
    monkeypatch: pytest.MonkeyPatch,
    here: None,
    condition: Callable[[list[Any]], Callable[..., object]],
    loops: int,
    dtype: str,
):
    plate = np.zeros((12, 17), dtype)
    plate[0] = 1
    model, found = jacobi.on(executor="cpu", cache=False), list[tuple[Any, ...]]()
    for placed in (PlacedHere, NowherePlaced):
        monkeypatch.setattr(unattended, "PlacedRun", placed)
        seen: list[Any] = []
        ended = model.advance({"u": plate}, 403, every=4, until=condition(seen))
        found.append((ended.steps, ended.stopped, ended["u"].tobytes(), seen))
    (*one, seen), (*other, wanted) = found
    assert one == other and one[1] and LoopHere.made == loops
    assert seen[: len(wanted)] == wanted and len(seen) <= len(wanted) + 1


def test_a_run_without_an_end_makes_all_steps(monkeypatch: pytest.MonkeyPatch, here: None):
    model, seen = jacobi.on(executor="cpu", cache=False), list[Any]()
    ended = model.advance({"u": np.ones((9, 9))}, 43, every=4, until=tolerance(seen))
    assert (ended.steps, ended.stopped) == (4, True)
    # Inside of the condition of a run led by the host passes make the numbers.
    monkeypatch.setattr(PlacedHere.gpu, "led", 1)
    monkeypatch.setattr(checked_pieces, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(unattended, "CheckedPiece", None)
    ended = model.advance({"u": np.eye(9)}, 43, every=4, until=never)
    assert (ended.steps, ended.stopped, LoopHere.made) == (43, False, 1)


SHAPE = (12, 43)
"""The cells of a run in pieces."""


class LaunchesHere:
    """Launches, plane by plane."""

    def __init__(self, launches: Launches):
        self.launches, self.runner = launches, PlanesRunner(launches.program.kernels)
        (loop,) = launches.program.kernels.loops
        self.runner.plans[loop, launches.steps, False] = launches.function

    def give(self, buffers: Sequence[Any], scalars: Sequence[Any]) -> None:
        """Give the launches to the stream."""
        given = [*buffers, *scalars, self.launches.steps]
        program = self.launches.program
        PlacedHere.gpu.give(0, lambda: program.run_host(self.runner, given, Span()))


class NumbersHere:
    """The numbers of a program."""

    def __init__(self, program: CompiledProgram):
        self.program = program

    def give(self, buffers: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """Give the work to the stream: where the numbers lie."""
        found = self.program(*(each.data for each in buffers), *scalars).returned
        return [(number, number.dtype) for number in found]


class PieceHere(CheckedPiece):
    """The work between two checks, plane by plane."""

    def alternating(self, launches: Launches) -> LaunchesHere:
        return LaunchesHere(launches)

    def reducing(self, program: CompiledProgram) -> NumbersHere:
        return NumbersHere(program)

    def buffer_of(self, array: Any) -> MarkedCells:
        return MarkedCells.of(array, known=True)

    def memory(self, number: NumberProgram, count: int) -> MarkedCells:
        # Kernels write the first numbers of a field that takes numbers.
        return self.buffer_of(np.full(SHAPE, IDENTITY[number.kind], number.dtype))

    def fill(self, room: MarkedCells, number: NumberProgram, found: Sequence[Any]) -> None:
        places = room.data.reshape(-1)
        places[len(places) - len(found) :] = [each for each, _ in found]

    def in_room(self, room: MarkedCells, number: NumberProgram) -> NumbersOfWarps:
        return NumbersOfWarps(room.data, number.dtype, room.data.size, number.kind)

    def reduced(self) -> list[Any]:
        made: list[Any] = []
        for number, room in zip(self.numbers, self.rooms):
            found = np.zeros(1, number.dtype)
            made.append((found, number.dtype))
            PlacedHere.gpu.give(0, partial(reduce_room, number, room.data, found))
        return made


def reduce_room(number: NumberProgram, cells: Any, found: Any) -> None:
    """Reduce the numbers of a room."""
    found[0] = reduced(number.kind, cells)


def spread(seen: list[Any]) -> Callable[..., object]:
    """Compares two numbers, whose greatest and least cells move, and lie at an edge at first."""

    def until(u: Field) -> object:
        seen.append(timetile.maximum(u.next[0, 0] * u[0, 0]))
        seen.append(timetile.minimum(u.next[0, 0] - 2 * u[0, 0]))
        return seen[-2] < 0.4 or seen[-1] > 0

    return until


@timetile.stencil
def beside(u: Field, around: Field):
    u.next = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    around.next = u[-1, 0] + u[1, 0] - u[0, -1] - u[0, 1]


@timetile.stencil
def swept(u: Field):
    """A step without a time loop: each row is a sweep's."""
    with timetile.sweep(0):
        u.next = 0.5 * u[0, 0] + 0.4 * u.next[-1, 0]


@pytest.mark.parametrize(
    ("step", "condition", "every", "steps", "is_together"),
    [
        (jacobi, tolerance, 10, 113, True),
        (jacobi, spread, 8, 91, True),
        # Launches of several steps store no field without later readers.
        (beside, tolerance, 10, 50, False),
        (swept, tolerance, 4, 28, False),
    ],
)
def test_the_last_launch_before_a_check_makes_the_numbers_of_a_pass(
    monkeypatch: pytest.MonkeyPatch,
    here: None,
    step: timetile.Model,
    condition: Callable[[list[Any]], Callable[..., object]],
    every: int,
    steps: int,
    is_together: bool,
):
    start = np.random.default_rng(4).uniform(-1, 1, SHAPE)
    model, found = step.on(executor="planes", depth=3), list[tuple[Any, ...]]()
    made: list[CheckedPiece] = []

    def piece(*given: Any) -> CheckedPiece:
        made.append(PieceHere(*given))
        return made[-1]

    monkeypatch.setattr(unattended, "CheckedPiece", piece)
    monkeypatch.setattr(checked_pieces, "PREPARED_SECONDS", 0.0)
    monkeypatch.setattr(checked_turns, "MOST_LATE", 2)
    fast, slow = (GpuHere(is_fast=is_fast) for is_fast in (True, False))
    # The second run of a GPU has the work of the first.
    for worth, gpu in ((float("inf"), slow), (0.0, fast), (0.0, slow), (float("inf"), slow)):
        monkeypatch.setattr(PlacedHere, "gpu", gpu)
        monkeypatch.setattr(checked_pieces, "WORTH_SECONDS", worth)
        seen: list[Any] = []
        fields = dict.fromkeys(step.step.fields, start)
        ended = model.advance(fields, steps, every=every, until=condition(seen))
        cells = [ended[name].tobytes() for name in fields]
        found.append((ended.steps, ended.stopped, cells, seen))
        assert PlacedHere.gpu.is_done
    assert all(each == found[0] for each in found)
    # Passes, and a GPU that waits for the host at two checks, make a loop in a graph.
    assert (len(made), LoopHere.made) == (2, 2) if is_together else not made


@pytest.mark.skipif(not assembles("sm_90"), reason="needs an assembler")
def test_the_kernels_of_a_loop_assemble():
    types = [np.dtype("float64"), np.dtype("float32")]
    comparisons = [Comparison(0, "lt", 1e-6, False, False), Comparison(1, "ne", 0, True, True)]
    for text in (begin_text("sm_90"), check_text(types, comparisons, "sm_90")):
        assert assemble(text, "sm_90").spill_bytes == 0


@pytest.mark.parametrize("kind", [PartedProgram, RankedGpuProgram])
def test_runs_in_parts_are_placed_on_no_gpu(kind: type[CompiledProgram]):
    run, program = object.__new__(StateRun), object.__new__(kind)
    run.program, program.executor = program, "gpu"
    assert PlacedRun.of(run) is None
