"""
Where the time of a run on several GPUs goes: launches, pulls and waits of each GPU, by events.

    python benchmarks/profile_several_gpus.py --gpus 2 j3d7pt:f32:fill

Each case is run in several ways, on fields placed once: each GPU alone, on the domain of one GPU,
and all at once, each for itself; and all GPUs in parts, by turns:

- `no exchange`, `the first GPU only`: whole launches, with wrong cells;
- `rims first`, `rims stored`: as runs with an exchange each launch may be;
- `rims first, no meeting`, `rims stored, no meeting`: no part waits for another;
- `rims stored at home`: kernels store rims to memory of the own GPU, and no part waits;
- `copies`, `whole launches`: rims are copied, by launches in pieces and by whole launches.

Launches have rims first whatever their pipelines take, and on few blocks, too. Further ways are
`launch by launch`, without graphs, and `rims that wait` for a free multiprocessor.
`host` is the time until all work is on the streams. Events around launches, pulls and waits, the
last way, make a run a little slower.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import numpy as np
from placed_runs import PlacedRun, Run, make_further_kernels, prepared
from rows import described
from scaling_cases import Case, depth_of

from timetile.dialects.tile import LaunchOp
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu import Device
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks import part_kernels
from timetile.runtime.ranks.gpu_sites import GpuSite, opened
from timetile.runtime.ranks.moved_rims import MovedRims
from timetile.runtime.ranks.parts_runner import PartsRunner
from timetile.runtime.ranks.rims import BoxCopy
from timetile.runtime.ranks.sites import Beside

SECONDS = 0.08
"""Of a timed run."""

WAYS = (
    "no exchange", "rims first", "rims first, no meeting", "rims stored", "rims stored, no meeting",
    "rims stored at home", "copies",
)  # fmt: skip


class WatchedSite(GpuSite):
    """A site that notes events around all work while `is_watching`."""

    is_watching = is_even = is_first_only = is_at_home = False

    def __init__(self, on: Device, *, is_urgent: bool = False):
        super().__init__(on, is_urgent=is_urgent and not WatchedSite.is_even)
        self.noted: list[tuple[str, Any, Any]] = []
        self.home_buffer: DeviceBuffer | None = None

    def at_home(self, beside: Beside) -> Beside:
        """A place on the own GPU for a rim of another."""
        copy = beside.copy
        if self.home_buffer is None:
            self.home_buffer = self.new((4 * copy.bytes,), np.dtype(np.uint8))
        target = replace(copy.target, first=0)
        return Beside(self.home_buffer, replace(copy, target=target))

    def event(self) -> Any:
        """An event with a time, behind all work so far."""
        self.device.enter()
        event = checked(self.device.cuda.cuEventCreate(0))
        checked(self.device.cuda.cuEventRecord(event, self.stream))
        return event

    def watched(self, name: str, work: Callable[[], None]) -> None:
        """Put work on the stream, between events."""
        if not WatchedSite.is_watching:
            work()
            return
        before = self.event()
        work()
        self.noted.append((name, before, self.event()))

    def launch(
        self,
        kernels: ProgramKernels,
        op: LaunchOp,
        operands: Sequence[Any],
        beside: Sequence[Beside] = (),
    ) -> None:
        if WatchedSite.is_first_only and self.home:
            return
        if WatchedSite.is_at_home:
            beside = [self.at_home(each) for each in beside]
        kernel = kernels.kernel(op.kernel.string_value())
        name = f"{kernel.name} ({kernel.grid} blocks of {kernel.block}, {len(beside)} beside)"
        self.watched(name, lambda: super(WatchedSite, self).launch(kernels, op, operands, beside))

    def pull(self, source: DeviceBuffer, target: DeviceBuffer, copy: BoxCopy) -> None:
        name = f"pull of {copy.bytes} bytes"
        self.watched(name, lambda: super(WatchedSite, self).pull(source, target, copy))

    def wait(self, mark: Any) -> None:
        self.watched("wait", lambda: super(WatchedSite, self).wait(mark))

    def table(self) -> str:
        """The times of all kinds of work, in milliseconds."""
        total, count = Counter[str](), Counter[str]()
        for kind, before, after in self.noted:
            total[kind] += checked(self.device.cuda.cuEventElapsedTime(before, after))
            count[kind] += 1
        lines = [f"    {kind}: {total[kind]:.3f} ms in {count[kind]}" for kind in total]
        return "\n".join(lines)


def nothing(*_: Any, **__: Any) -> None:
    """No work."""


def lies_of_ages(*_: Any) -> tuple[int, list[Any]]:
    """Ghosts are said to be fresh."""
    return 0, []


@contextmanager
def way(name: str) -> Generator[None]:
    """Run in another way inside."""
    with ExitStack() as patched:

        def replaced(owner: Any, member: str, new: Any) -> None:
            patched.enter_context(patch.object(owner, member, new))

        is_apart = name in ("no exchange", "the first GPU only")
        copies = name in ("copies", "whole launches", "rims that wait")
        if is_apart or copies or name.startswith("rims stored"):
            replaced(PartsRunner, "first_of", nothing)
        if is_apart or copies or name.startswith("rims first"):
            replaced(PartsRunner, "beside_of", nothing)
        if name == "whole launches":
            replaced(PartsRunner, "pieces_of", nothing)
        if name == "launch by launch":
            replaced(PartsRunner, "can_record", False)
        if is_apart:
            replaced(PartsRunner, "ages_of", lies_of_ages)
        if name.endswith(("no meeting", "at home")):
            replaced(MovedRims, "meet", nothing)
        replaced(WatchedSite, "is_even", name == "rims that wait")
        replaced(WatchedSite, "is_first_only", name == "the first GPU only")
        replaced(WatchedSite, "is_at_home", name == "rims stored at home")
        yield


def timed(run: PlacedRun, label: str) -> int:
    """Print the speed of the best of three runs of whole launches, and return the steps."""
    unit = 2 * depth_of(run)
    steps = 8 * unit
    run.run(steps)
    seconds, _ = run.run(steps)
    steps = unit * max(8, int(SECONDS / max(seconds, 1e-5) * 8))
    run.run(steps)
    seconds, host = min(run.run(steps) for _ in range(5))
    speed = run.gpts_per_s(steps, seconds)
    print(
        f"  {label}: {speed:.1f} GPts/s, {steps} steps in {seconds * 1e3:.3f} ms, host "
        f"{host * 1e3:.3f} ms",
        flush=True,
    )
    return steps


@contextmanager
def any_way() -> Generator[None]:
    """Launches may have rims first whatever they take longer."""
    with patch.object(part_kernels, "MOST_LONGER", 1.0):
        yield


def prepared_for_all(run: Run) -> PartedProgram:
    """A program in parts, with the kernels of all ways; no way is the chosen one."""
    program = prepared(run)
    assert isinstance(program, PartedProgram)
    print(f"  {program.exchange}", flush=True)
    program.parts.exchange = None
    make_further_kernels(program, of_all_ways=True)
    return program


def made_kernels(run: Run) -> str:
    """Make the kernels of a run in all ways, in a process. Returns an error's text."""
    try:
        with any_way():
            (prepared if run.gpus == 1 else prepared_for_all)(run)
    except Exception as error:
        return described(error)
    return ""


def profile(case: Case) -> None:
    """Profile a case."""
    alone, every = case.run(1, 1), case.run(2, case.gpus[0])
    lone = [case.run(1, 1, number) for number in range(case.gpus[0])]
    runs = [PlacedRun(each, prepared(each)) for each in lone]
    for number, run in enumerate(runs):
        timed(run, f"GPU {number} alone, {alone.domain}")
    with ThreadPoolExecutor(len(runs)) as pool:
        labels = [f"GPU {number}, all at once" for number in range(len(runs))]
        list(pool.map(timed, runs, labels))
    for run in runs:
        run.close()
    program = prepared_for_all(every)
    sites = [WatchedSite(each) for each in opened(every.homes)]
    several = PlacedRun(every, program, sites)
    print(
        f"  exchange every {program.exchange_every}, zones of {program.parts.zone_steps} steps, "
        f"schedules {program.parts.schedules}",
        flush=True,
    )
    steps = 0
    for name in WAYS:
        several.runner.seconds = []
        with way(name):
            steps = timed(several, name)
    with way("launch by launch"):
        watch(several, sites, steps)
    several.close()


def watch(several: PlacedRun, sites: Sequence[WatchedSite], steps: int) -> None:
    """Print the times of all kinds of work in a run."""
    WatchedSite.is_watching = True
    try:
        seconds, host = several.run(steps)
    finally:
        WatchedSite.is_watching = False
    print(f"  with events: {steps} steps in {seconds * 1e3:.3f} ms, host {host * 1e3:.3f} ms")
    for number, site in enumerate(sites):
        print(f"   part {number} on GPU {site.home}\n{site.table()}", flush=True)
        for other in site.others:
            if isinstance(other, WatchedSite):
                print(f"    beside, on a second stream:\n{other.table()}", flush=True)


def main() -> None:
    """Profile cases, compiled in processes."""
    parser = argparse.ArgumentParser(description="Where the time of a run on several GPUs goes.")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--per-gpu", type=int, default=1)
    parser.add_argument("--every", type=int, help="steps between two exchanges")
    parser.add_argument("--ring", action="store_true", help="let each part have two neighbours")
    parser.add_argument("cases", nargs="+", metavar="PROGRAM:TYPE:SIZE")
    given = parser.parse_args()
    wanted = [text.split(":") for text in given.cases]
    more = (given.gpus,), given.per_gpu, given.every, given.ring
    cases = [Case(name, dtype, size, *more) for name, dtype, size in wanted]
    spawn = get_context("spawn")
    with ProcessPoolExecutor(14, mp_context=spawn) as pool, any_way():
        runs = [run for case in cases for run in case.runs]
        made = {run: pool.submit(made_kernels, run) for run in dict.fromkeys(runs)}
        for case in cases:
            start = time.perf_counter()
            for run in case.runs:
                made[run].result()
            print(f"{case}, {time.perf_counter() - start:.1f} s for kernels", flush=True)
            try:
                profile(case)
            except Exception:
                traceback.print_exc()
            print(f"  {time.perf_counter() - start:.1f} s in all", flush=True)


if __name__ == "__main__":
    main()
