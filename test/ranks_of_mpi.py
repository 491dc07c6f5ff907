"""
Drawn programs on processes of MPI end with the bits of an evaluation with NumPy, whatever the
number of processes and the layout.

    mpiexec -n 8 python test/ranks_of_mpi.py --programs 12
    mpiexec -n 8 python test/ranks_of_mpi.py --programs 12 --executor gpu

The processes are eight ranks, then six and two, then four, three and one, and each group runs all
programs, on the executors cpu and numpy in turn, or on GPUs, with a drawn layout. Processes take
the GPUs of the machine in turn. Programs are drawn by the number of a seed, equal on all processes.
A process with a wrong cell says so, and all end with the exit status 1.
"""

from __future__ import annotations

import argparse
import operator
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal, cast

from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).parent / "pytest"))

import timetile
from support import reference
from support.compare import assert_same_bits
from support.description import Inputs, Program, random_inputs
from support.pairs import Family, Pair, batch
from support.programs import program_text
from support.ranks import copies
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.ranked_gpu_program import RankedGpuProgram
from timetile.runtime.program.ranked_program import RankedProgram, on_ranks
from timetile.runtime.ranks.layout import factorizations
from timetile.runtime.ranks.mpi import MpiPeers

SUMMARY = "Run drawn programs on groups of MPI's processes."

GROUPS = ((8,), (6, 2), (4, 3, 1))
"""The sizes of the groups of eight processes that run at once."""

FAMILIES: tuple[Family, ...] = ("programs", "bounds", "roles")

RankExecutor = Literal["cpu", "numpy", "gpu"]

TIMEOUT = 60.0
"""Seconds for a rank to wait for another."""


@dataclass(frozen=True)
class Case:
    """A drawn program, and the extents of its domain."""

    pair: Pair
    program: Program
    extents: tuple[int, ...]

    @staticmethod
    def of(pair: Pair) -> Case:
        """The case of a pair."""
        assert isinstance(pair.program, Program)
        boxes = [store.box for update in pair.program.updates for store in update.stores]
        lower = [min(cells) for cells in zip(*(box.lower for box in boxes))]
        upper = [max(cells) for cells in zip(*(box.upper for box in boxes))]
        return Case(pair, pair.program, tuple(high - low for low, high in zip(lower, upper)))

    def layouts(self, count: int) -> list[tuple[int, ...]]:
        """The numbers of parts along the axes, for a number of ranks."""
        found = factorizations(count, self.program.rank)
        return [parts for parts in found if all(map(operator.le, parts, self.extents))]


def drawn(first: int, count: int) -> list[Case]:
    """Programs of all families, each with a layout for every number of ranks."""
    found: list[Case] = []
    numbers = {size for sizes in GROUPS for size in sizes}
    each = -(-count // len(FAMILIES))
    for number in range(len(FAMILIES)):
        cases = map(Case.of, batch(first * len(FAMILIES) + number, 8 * each, FAMILIES))
        found += islice((case for case in cases if all(map(case.layouts, numbers))), each)
    return found


def check(case: Case, number: int, group: MPI.Intracomm, executor: RankExecutor) -> None:
    """Run a case on the ranks of a group. Raises AssertionError for wrong bits."""
    program, steps, random = case.program, case.pair.steps, Random(number)
    text, inputs = program_text(program), random_inputs(program, seed=steps)
    expected = inputs.copy()
    reference.run(program, expected, steps)
    own = copies(inputs.arguments(program, steps))
    threads = 1 if executor == "cpu" else None
    gpu = MPI.COMM_WORLD.rank % count_of_gpus() if executor == "gpu" else 0
    alone = partial(
        timetile.compile, text, executor=executor, fp_contract="off", cache=False,
        threads=threads, gpu=gpu,
    )  # fmt: skip
    make = RankedGpuProgram if executor == "gpu" else RankedProgram
    parts, every = random.choice([None, *case.layouts(group.size)]), random.choice([None, 1, 2, 3])
    on_ranks(MpiPeers(group, TIMEOUT), alone, parts, every, make=make)(*own)
    names = [buffer.name for buffer in program.buffers]
    found = Inputs(dict(zip(names, own)))
    assert_same_bits(program, expected, found, f"{group.size} ranks, {parts}, {every}")


def count_of_gpus() -> int:
    """The GPUs of the machine."""
    return int(checked(device(0).cuda.cuDeviceGetCount()))


def main() -> None:
    """Run all programs on all groups, and print how many had equal bits."""
    parser = argparse.ArgumentParser(description=SUMMARY)
    parser.add_argument("--programs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--executor", choices=("gpu",), help="cpu and numpy in turn unless given")
    given = parser.parse_args()
    world = MPI.COMM_WORLD
    if world.size != max(map(sum, GROUPS)):
        parser.error(f"run on {max(map(sum, GROUPS))} processes: mpiexec -n 8 python {sys.argv[0]}")
    ends = Counter[int]()
    cases = drawn(given.seed, given.programs)
    for sizes in GROUPS:
        color = next(k for k in range(len(sizes)) if world.rank < sum(sizes[: k + 1]))
        group = cast(MPI.Intracomm, world.Split(color))
        for number, case in enumerate(cases):
            try:
                check(case, number, group, given.executor or ("cpu", "numpy")[number % 2])
            except BaseException as error:
                said = f"[{group.rank} of {group.size}] program {number}: {error!r}\n{case}\n"
                sys.stderr.write(said)
                sys.stderr.flush()
                world.Abort(1)
                raise
            ends[group.size] += group.rank == 0
    for size, count in sorted(sum(world.gather(ends) or [], Counter[int]()).items()):
        print(f"{size} ranks: {count} programs with equal bits")


if __name__ == "__main__":
    main()
