"""
Where the time of a run on several GPUs goes: ways to run in turn, and launches, pulls and waits.

    python benchmarks/profile_several_gpus.py --gpus 2 j3d7pt:f32:fill

Each case is run in several ways, on fields placed once, in rounds: each GPU alone, on the domain of
one GPU, and all at once, each for itself; and all GPUs in parts:

- `no exchange`, `the first GPU only`: whole launches, with wrong cells;
- `rims first`, `rims stored`: as runs with an exchange each launch may be;
- `..., no meeting`: no part waits for another; `..., events`: parts wait by events, in one graph;
- `rims stored at home`: kernels store rims to memory of the own GPU, and no part waits;
- `copies`, `whole launches`: rims are copied, by launches in pieces and by whole launches.

Before each run all GPUs work for `--heat` seconds: clocks depend on the work before. A line has a
way's median speed, the clocks of all GPUs, and the slowest GPU's cells a clock. Launches may
have rims first whatever they take longer. With `--stamps` each way has the times of launches and
waits in graphs (`stamps.py`), and with `--events` a run launch by launch follows, with events
around launches, pulls and waits, on each stream.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from gpu_clocks import GpuClocks, Span, sampled
from placed_runs import PlacedRun, Run, make_further_kernels, prepared
from rows import described
from scaling_cases import Case, Timed
from stamps import Stamps, keep_raw, lines_of, meet_itself, meet_themselves, stamped_kernels

from timetile.dialects.tile import LaunchOp
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu import Device
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks import part_kernels
from timetile.runtime.ranks.gpu_meetings import GpuMeetings
from timetile.runtime.ranks.gpu_sites import GpuSite, opened
from timetile.runtime.ranks.moved_rims import MovedRims
from timetile.runtime.ranks.parts_runner import PartsRunner
from timetile.runtime.ranks.rims import BoxCopy
from timetile.runtime.ranks.sites import Beside

WAYS = (
    "no exchange", "rims first", "rims first, no meeting", "rims stored", "rims stored, events",
    "rims stored, no meeting", "rims stored at home", "copies",
)  # fmt: skip
"""The ways of all GPUs in parts, unless given."""


class WatchedSite(GpuSite):
    """A site that notes events around all work while `is_watching`."""

    is_watching = is_even = is_first_only = is_at_home = meets_itself = False
    rims: MovedRims | None = None

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
        if WatchedSite.meets_itself and WatchedSite.rims is not None:
            meet_itself(WatchedSite.rims, self.home)

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
            replaced(MovedRims, "meet", meet_themselves if WatchedSite.rims else nothing)
        if name.endswith("events"):
            replaced(MovedRims, "can_count", False)
        replaced(WatchedSite, "meets_itself", is_apart)
        replaced(WatchedSite, "is_even", name == "rims that wait")
        replaced(WatchedSite, "is_first_only", name == "the first GPU only")
        replaced(WatchedSite, "is_at_home", name == "rims stored at home")
        yield


@contextmanager
def any_way() -> Generator[None]:
    """Launches may have rims first whatever they take longer."""
    with patch.object(part_kernels, "MOST_LONGER", 1.0):
        yield


def profiled_runs(case: Case) -> list[Run]:
    """Each GPU alone, and all in parts."""
    return [*case.alone, case.run(max(case.gpus), max(case.gpus))]


def prepared_for_all(run: Run, arch: str = "") -> PartedProgram:
    """A program in parts, with the kernels of all ways; no way is the chosen one."""
    program = prepared(run, arch)
    assert isinstance(program, PartedProgram)
    print(f"  {program.exchange}", flush=True)
    program.parts.exchange = None
    make_further_kernels(program.parts, of_all_ways=True)
    return program


def made_kernels(run: Run, arch: str = "") -> str:
    """Make the kernels of a run in all ways, in a process. Returns an error's text."""
    try:
        with any_way():
            (prepared if run.gpus == 1 else prepared_for_all)(run, arch)
    except Exception as error:
        return described(error)
    return ""


@dataclass
class Tried:
    """A way to run, with the speeds of all rounds."""

    name: str
    run: Callable[[], list[float]]
    """Runs once; the speeds of all runs at once."""
    speeds: list[float] = field(default_factory=list[float])
    spans: list[Span] = field(default_factory=list[Span])
    noted: list[Any] = field(default_factory=list[Any])
    """The times of the meetings of each GPU in the last round."""

    def note(self) -> None:
        """Run once."""
        start = time.monotonic()
        self.speeds.append(min(self.run()))
        self.spans.append((start, time.monotonic()))

    def line(self, clocks: GpuClocks) -> str:
        """The median of the speeds, and the clocks."""
        speed, found = median(self.speeds), clocks.during(self.spans)
        slowest = min((each.megahertz for each in found.values()), default=0.0)
        said = ", ".join(f"{each.megahertz:.0f} MHz {each.watts:.0f} W" for each in found.values())
        return f"  {self.name}: {speed:.1f} GPts/s, {speed / max(slowest, 1):.4f} a clock; {said}"


def in_way(name: str, timed: Timed) -> Tried:
    """A way of all GPUs in parts."""

    def run() -> list[float]:
        with way(name):
            return timed.once()

    return Tried(name, run)


def profile(case: Case, given: argparse.Namespace) -> None:
    """Profile a case."""
    every = case.run(max(case.gpus), max(case.gpus))
    runs = [PlacedRun(each, prepared(each)) for each in case.alone]
    program = prepared_for_all(every)
    sites = [WatchedSite(each) for each in opened(every.homes)]
    several = PlacedRun(every, program, sites)
    if given.stamps:
        WatchedSite.rims = several.runner.rims
    print(f"  zones of {program.parts.zone_steps} steps, {program.parts.schedules}", flush=True)
    alone = [Timed([run], given.seconds) for run in runs]
    apart, heat = Timed(runs, given.seconds), Timed(runs, given.heat)
    together = Timed([several], given.seconds)
    for each in (*alone, apart, heat, together):
        each.prepare()
    tried = [Tried(f"GPU {number} alone", each.once) for number, each in enumerate(alone)]
    tried += [Tried("each GPU, all at once", apart.once)]
    tried += [in_way(name, together) for name in given.ways]
    for each in tried:
        each.run()
    meetings = several.runner.rims.meetings
    stamps = Stamps(meetings) if isinstance(meetings, GpuMeetings) and given.stamps else None
    with sampled() as clocks:
        for _ in range(given.rounds):
            for each in tried:
                heat.once()
                if stamps is not None:
                    stamps.clear()
                each.note()
                each.noted = stamps.noted() if stamps is not None else []
    for each in tried:
        print(each.line(clocks), flush=True)
        if any(len(times) for times in each.noted):
            print("\n".join(lines_of(each.noted)), flush=True)
            keep_raw(given.raw, f"{case.program} {case.dtype} {case.size}: {each.name}", each.noted)
    if given.events:
        with way("launch by launch"):
            watch(several, sites, together.steps[0])
    for run in (several, *runs):
        run.close()


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
    parser.add_argument("--ways", nargs="+", default=WAYS)
    parser.add_argument("--seconds", type=float, default=0.08, help="of a run")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--heat", type=float, default=0.1, help="seconds of work before each run")
    parser.add_argument("--stamps", action="store_true", help="note the times of all launches")
    parser.add_argument("--raw", type=Path, help="a file for the times of the first meetings")
    parser.add_argument("--arch", default="", help="compile for a part, and run nothing")
    parser.add_argument("--events", action="store_true", help="watch a run launch by launch, too")
    parser.add_argument("cases", nargs="+", metavar="PROGRAM:TYPE:SIZE")
    given = parser.parse_args()
    wanted = [text.split(":") for text in given.cases]
    more = (given.gpus,), given.per_gpu, given.every, given.ring
    cases = [Case(name, dtype, size, *more) for name, dtype, size in wanted]
    spawn = get_context("spawn")
    with ProcessPoolExecutor(14, mp_context=spawn) as pool, any_way():
        wanted_runs = dict.fromkeys(run for case in cases for run in profiled_runs(case))
        made = {run: pool.submit(made_kernels, run, given.arch) for run in wanted_runs}
        if given.arch:
            print([each.result() or "compiled" for each in made.values()], flush=True)
            return
        for case in cases:
            start = time.perf_counter()
            for run in profiled_runs(case):
                made[run].result()
            print(f"{case}, {time.perf_counter() - start:.1f} s for kernels", flush=True)
            try:
                with stamped_kernels() if given.stamps else nullcontext():
                    profile(case, given)
            except Exception:
                traceback.print_exc()
            print(f"  {time.perf_counter() - start:.1f} s in all", flush=True)


if __name__ == "__main__":
    main()
