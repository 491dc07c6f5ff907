"""
Drawn programs on processes of MPI end with the bits of an evaluation with NumPy, whatever the
number of processes and the layout.

    mpiexec -n 8 python test/ranks_of_mpi.py --programs 12
    mpiexec -n 8 python test/ranks_of_mpi.py --programs 12 --executor gpu

The processes are eight ranks, then six and two, then four, three and one. Each group runs programs
of the round's families, steps with sweeps in every round, on the executors cpu and numpy in turn,
or on GPUs, with a drawn layout. Few programs still are of all families in three rounds. Processes
take the GPUs of the machine in turn. Programs are drawn by the number of a seed, equal on all
processes. A process with a wrong cell says so, and all end with the exit status 1.
"""

from __future__ import annotations

import argparse
import logging
import operator
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from random import Random
from typing import Literal, cast

from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).parent / "pytest"))

from fuzz import differences, is_refusal, reason

import timetile
from support import reference
from support.compare import assert_same_bits
from support.description import Inputs, Program, random_inputs
from support.drawn_fields import CannotJudge
from support.drawn_models import Drawn, DrawnModel, How, SweptAssignments
from support.pairs import Family, Pair, batch
from support.plain_classes import ask_by_bases
from support.programs import program_text
from support.quick_ir import answer_quickly
from support.ranks import copies
from timetile.passes.diagnostics import CompileError
from timetile.runtime.machine import llvm
from timetile.runtime.ranks.layout import factorizations

SUMMARY = "Run drawn programs on groups of MPI's processes."

GROUPS = ((8,), (6, 2), (4, 3, 1))
"""The sizes of the groups of eight processes that run at once."""

FAMILIES: tuple[Family, ...] = (
    "sweeps", "programs", "points", "stops", "sums", "bounds", "sequences", "models", "stored",
    "roles", "batches", "places",
)  # fmt: skip

RankExecutor = Literal["cpu", "numpy", "gpu"]


@dataclass(frozen=True)
class Case:
    """A pair, with the extents of the domain of a program that is data."""

    pair: Pair
    extents: tuple[int, ...] = ()

    @staticmethod
    def of(pair: Pair) -> Case:
        """The case of a pair."""
        if not isinstance(pair.program, Program):
            return Case(pair)
        boxes = [store.box for update in pair.program.updates for store in update.stores]
        lower = [min(cells) for cells in zip(*(box.lower for box in boxes))]
        upper = [max(cells) for cells in zip(*(box.upper for box in boxes))]
        return Case(pair, tuple(high - low for low, high in zip(lower, upper)))

    def layouts(self, count: int) -> list[tuple[int, ...] | None]:
        """The numbers of parts along the axes, for a number of ranks; None: as timetile chooses."""
        if not self.extents:
            return [None]
        found = factorizations(count, len(self.extents))
        return [parts for parts in found if all(map(operator.le, parts, self.extents))]


@dataclass(frozen=True)
class Place:
    """Where and how a case runs."""

    group: MPI.Intracomm
    executor: RankExecutor
    parts: tuple[int, ...] | None
    every: int | None

    @staticmethod
    def of(case: Case, number: int, group: MPI.Intracomm, executor: str | None) -> Place:
        """The place of a case by number, on an executor, or on cpu and numpy in turn."""
        random, in_turn = Random(number), ("cpu", "numpy")[number % 2]
        parts = random.choice([None, *case.layouts(group.size)])
        chosen = cast(RankExecutor, executor or in_turn)
        return Place(group, chosen, parts, random.choice([None, 1, 2, 3]))


def leaves_an_axis(case: Case) -> bool:
    """Whether an axis that no sweep goes along has cells for all ranks: lines are never cut."""
    model = case.pair.program
    if not isinstance(model, DrawnModel):
        return True
    swept = {each.axis for each in model.statements if isinstance(each, SweptAssignments)}
    most, free = max(map(sum, GROUPS)), set(range(len(model.fields.shape))) - swept
    return not swept or any(model.fields.shape[axis] >= most for axis in free)


def families_of(turn: int) -> list[int]:
    """The numbers of the families of a round: sweeps first, then others than the round before."""
    others = list(range(1, len(FAMILIES)))
    first = 3 * turn % len(others)
    return [0, *others[first:], *others[:first]]


def fitting(number: int, count: int) -> list[Case]:
    """Programs of a family with a layout for every number of ranks: of few drawn or of more."""
    numbers = {size for sizes in GROUPS for size in sizes}
    found: list[Case] = []
    for times in (2, 16):
        cases = map(Case.of, batch(number, times * count, FAMILIES))
        judged = (case for case in cases if all(map(case.layouts, numbers)))
        found = list(islice(filter(leaves_an_axis, judged), count))
        if len(found) == count:
            break
    return found


def drawn(first: int, count: int, turn: int) -> list[Case]:
    """Programs of a round's families in turn."""
    each = -(-count // len(FAMILIES))
    families = families_of(turn)[:count]
    found = [fitting(first * len(FAMILIES) + number, each) for number in families]
    return [case for cases in zip_longest(*found) for case in cases if case is not None][:count]


def end_of(case: Case, place: Place) -> str:
    """
    How a case ends on the ranks of a group: with equal bits, refused, or not judged. Raises
    AssertionError for wrong bits.
    """
    try:
        if isinstance(case.pair.program, Program):
            check_program(case.pair.program, case.pair.steps, place)
        else:
            check_model(cast(Drawn, case.pair.program), case.pair, place)
    except CompileError as error:
        return f"refused: {reason(str(error))}"
    except (TypeError, ValueError) as error:
        if not is_refusal(error):
            raise
        return f"refused: {reason(str(error))}"
    except CannotJudge:
        return "not judged"
    return "equal bits"


def check_model(drawn: Drawn, pair: Pair, place: Place) -> None:
    """Run a step in Python. Raises AssertionError for wrong bits."""
    places = {"comm": place.group, "parts": place.parts, "exchange_every": place.every}
    how = How(place.executor, pair.depth, pair.steps, places=places)
    wrong = list(differences(drawn.found(how), drawn.expected(how)))
    assert not wrong, f"{place.group.size} ranks, {place.every}: {wrong}"


def check_program(program: Program, steps: int, place: Place) -> None:
    """Run a program that is data. Raises AssertionError for wrong bits."""
    text, inputs = program_text(program), random_inputs(program, seed=steps)
    executor = place.executor
    expected = inputs.copy()
    reference.run(program, expected, steps)
    own = copies(inputs.arguments(program, steps))
    made = timetile.compile(
        text, executor=executor, fp_contract="off", cache=False, comm=place.group,
        parts=place.parts, exchange_every=place.every,
    )  # fmt: skip
    with made:
        made(*own)
    names = [buffer.name for buffer in program.buffers]
    found = Inputs(dict(zip(names, own)))
    assert_same_bits(program, expected, found, f"{place.group.size} ranks, {place}")


def main() -> None:
    """Run all programs on all groups, and print how many had equal bits."""
    parser = argparse.ArgumentParser(description=SUMMARY)
    parser.add_argument("--programs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--executor", choices=("gpu",), help="cpu and numpy in turn unless given")
    given = parser.parse_args()
    logging.getLogger("timetile").setLevel(logging.ERROR)
    # As in pytest: eight processes compile each program.
    ask_by_bases()
    answer_quickly()
    llvm.SPEED = 0
    world = MPI.COMM_WORLD
    if world.size != max(map(sum, GROUPS)):
        parser.error(f"run on {max(map(sum, GROUPS))} processes: mpiexec -n 8 python {sys.argv[0]}")
    ends = Counter[str]()
    for turn, sizes in enumerate(GROUPS):
        cases = drawn(given.seed, given.programs, turn)
        color = next(k for k in range(len(sizes)) if world.rank < sum(sizes[: k + 1]))
        group = cast(MPI.Intracomm, world.Split(color))
        for number, case in enumerate(cases):
            try:
                end = end_of(case, Place.of(case, number, group, given.executor))
            except BaseException as error:
                said = f"[{group.rank} of {group.size}] program {number}: {error!r}\n{case}\n"
                sys.stderr.write(said)
                sys.stderr.flush()
                world.Abort(1)
                raise
            if group.rank == 0:
                sys.stdout.write(f"{group.size} ranks, {number} {case.pair.family}: {end}\n")
                sys.stdout.flush()
                ends[f"{group.size} ranks, {end}"] += 1
                ends[f"{case.pair.family}, {end}"] += 1
    for end, count in sorted(sum(world.gather(ends) or [], Counter[str]()).items()):
        print(f"{end}: {count}")


if __name__ == "__main__":
    main()
