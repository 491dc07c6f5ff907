"""Kernels compiled in processes of their own, side by side.

A process gets a program, its options and its schedules on standard input, and leaves the kernels in
the cache for the caller. A failing process leaves nothing: the caller then compiles, and reports
the error.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.measured import ChosenSchedules
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.options import Options
from timetile.runtime.kernels.planning import launched_by, planned_function
from timetile.runtime.loading.modules import load

LAUNCHES = 2
"""Launches of the deepest kernel in the plan whose kernels are compiled."""

MODULE = "timetile.runtime.kernels.workers"


@dataclass(frozen=True)
class CompileJob:
    """The kernels of a program to compile."""

    source: str
    options: Options
    cache: Cache
    given: ChosenSchedules


def launched(kernels: ProgramKernels) -> list[str]:
    """The kernels launched by runs whose steps are a multiple of each loop's deepest depth."""
    names: dict[str, None] = {}
    for loop in kernels.loops:
        facts = kernels.facts_of(loop)
        plan = planned_function(loop, facts, LAUNCHES * max(fact.steps for fact in facts))
        names.update(dict.fromkeys(launched_by(plan)))
    return list(names)


def compile_job(job: CompileJob) -> None:
    """Compile the kernels of a job into its cache."""
    module = load(job.source)
    kernels = ProgramKernels(module, job.options, job.cache, given=job.given)
    names = launched(kernels)
    kernels.begin(names)
    for name in names:
        kernels.kernel(name)


Process = subprocess.Popen[bytes]


def begun_process() -> Process:
    """A Python that loads the compiler, and waits for a job."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip


class Workers:
    """
    Processes that compile kernels side by side. Some begin at once, and load the compiler while
    other work goes on; none is left behind the block of a `with` statement.
    """

    def __init__(self, early: int):
        self.most = os.cpu_count() or 1
        self.waiting = [begun_process() for _ in range(min(early, self.most - 1))]
        self.running: set[Process] = set()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.waiting, *self.running):
            process.kill()
            process.wait()

    def run_job(self, kernels: ProgramKernels) -> None:
        """Compile kernels in a process, noted while the process runs."""
        assert kernels.cache is not None and kernels.given is not None
        job = CompileJob(str(kernels.source), kernels.options, kernels.cache, kernels.given)
        try:
            process = self.waiting.pop()
        except IndexError:
            process = begun_process()
        self.running.add(process)
        try:
            process.communicate(pickle.dumps(job))
        finally:
            self.running.discard(process)

    def made(self, kernels: list[ProgramKernels]) -> Iterator[ProgramKernels]:
        """
        Kernels in the order of their completion, compiled side by side on all cores. Without a
        cache, and alone, kernels are compiled at first use.
        """
        if not kernels or any(each.cache is None for each in kernels) or len(kernels) == 1:
            yield from kernels
            return
        with ThreadPoolExecutor(min(len(kernels), self.most)) as pool:
            waiting: dict[Future[None], ProgramKernels] = {
                pool.submit(self.run_job, each): each for each in kernels
            }
            try:
                while waiting:
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for each in sorted(done, key=list(waiting).index):
                        yield waiting.pop(each)
            finally:
                for each in waiting:
                    each.cancel()
                for process in list(self.running):
                    process.kill()


def main() -> None:
    """Compile the job on standard input."""
    job: CompileJob = pickle.load(sys.stdin.buffer)
    compile_job(job)


if __name__ == "__main__":
    main()
