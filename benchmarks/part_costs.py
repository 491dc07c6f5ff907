"""
What a part of two costs on one GPU, without any other part: which share of the time is whose.

    python benchmarks/part_costs.py --out build/part-costs.json
    python benchmarks/part_costs.py --arch h200

A domain of two GPUs is cut for two, and one GPU runs the first part; the second has memory of the
GPU and no launches. Runs go in rounds, on fields placed once, and each is as long as the domain of
one GPU takes:

- `alone`: the domain of one GPU, without cuts;
- `part`: the part with its ghosts, by whole launches and without any exchange;
- `rims`: the part as chosen, with rims stored or copied to the second part, and no meeting;
- `met`: with meetings, of the GPU with itself: launches and counts, without a link and without
  delays of a neighbour.

An entry has the microseconds of a step and of the deepest launch in each way, and blocks and rounds
of blocks of the deepest launch. Parts with copied rims have no run `rims`: the kernel that meets
copies. Cells are right in the run `alone` only: nobody computes the second part.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from measure import commit
from placed_runs import PlacedRun, Run, prepared
from profile_several_gpus import way
from rows import described
from scaling_cases import DOMAINS, Timed, depth_of, exchange_of

from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.explain.figures import occupancy
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks.gpu_meetings import GpuSide, LoadedKernels, Neighbours, words_for
from timetile.runtime.ranks.gpu_sites import GpuSite
from timetile.runtime.ranks.moved_rims import MovedRims
from timetile.runtime.ranks.rims import BoxCopy
from timetile.runtime.ranks.sites import Pull


class OwnMeetings:
    """Meetings of the first part with itself; others have none."""

    def __init__(self, gpu: Device, stream: int):
        self.gpu, size = gpu, words_for(1)
        with gpu.current():
            self.words = gpu.allocate(size)
            gpu.upload(self.words, np.zeros(size, np.uint8))
            gpu.synchronize(0)
        self.kernels = LoadedKernels(gpu)
        self.side = GpuSide(self.kernels, stream, 0, [self.words])
        with gpu.current():
            self.side.meet((0,))
            self.side.exchange((0,), ())
            gpu.synchronize(stream)

    def exchange(self, neighbours: Neighbours, pulls: Mapping[int, Sequence[Pull]]) -> None:
        """Meet, copy the rims of the first part, and meet again."""
        self.side.exchange((0,), pulls.get(0, ()))

    def meet(self, neighbours: Neighbours) -> None:
        """Meet."""
        self.side.meet((0,))

    def close(self) -> None:
        """Give back all."""
        self.side.close()
        self.kernels.close()
        with self.gpu.current():
            self.gpu.free(self.words)


class FirstSite(GpuSite):
    """The place of the part that runs."""

    def meetings(self, sites: Sequence[GpuSite]) -> Any:
        return OwnMeetings(self.device, self.stream)


class SilentSite(GpuSite):
    """The place of a part that has memory, and no work."""

    def launch(self, *_: Any, **__: Any) -> None:
        pass

    def pull(self, source: DeviceBuffer, target: DeviceBuffer, copy: BoxCopy) -> None:
        pass


def nothing(*_: Any, **__: Any) -> None:
    """No work."""


@contextmanager
def parts_run(name: str) -> Generator[None]:
    """Run in a way inside."""
    with ExitStack() as patched:
        if name == "part":
            patched.enter_context(way("no exchange"))
        if name == "rims":
            patched.enter_context(patch.object(MovedRims, "meet", nothing))
        yield


def runs_of(program: str, dtype: str, size: str) -> tuple[Run, Run]:
    """The domain of one GPU, and the domain of two in two parts of one GPU."""
    planes, *others = DOMAINS[program][size]
    alone = Run(program, dtype, (planes, *others), 1)
    return alone, Run(program, dtype, (2 * planes, *others), 1, per_gpu=2)


def launch_facts(kernels: ProgramKernels) -> dict[str, Any]:
    """Blocks and rounds of blocks of the deepest launch."""
    facts = [fact for each in kernels.facts for fact in each]
    kernel = kernels.kernel(max(facts, key=lambda fact: fact.steps).name)
    target = kernels.options.target
    resident = occupancy(kernel, target).blocks * target.multiprocessors
    return {
        "blocks": kernel.grid, "threads": kernel.block, "resident_blocks": resident,
        "rounds": round(kernel.grid / resident, 2),
    }  # fmt: skip


def measured(program: str, dtype: str, size: str, given: argparse.Namespace) -> dict[str, Any]:
    """The entry of a case."""
    alone, both = runs_of(program, dtype, size)
    parted = prepared(both)
    assert isinstance(parted, PartedProgram)
    one, part = (
        PlacedRun(alone, prepared(alone)),
        PlacedRun(both, parted, [FirstSite(device(0)), SilentSite(device(0))]),
    )
    exchange = exchange_of(parted)
    names = ["part", "rims", "met"] if exchange.get("rims") == "stored" else ["part", "met"]
    timed = {"alone": Timed([one], given.seconds)}
    for name in names:
        timed[name] = Timed([part], given.seconds)
    for name, each in timed.items():
        with parts_run(name):
            each.prepare()
    micros: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(given.rounds):
        for name, each in timed.items():
            run, steps = each.runs[0], each.steps[0]
            with parts_run(name):
                micros[name].append(1e6 * run.run(steps)[0] / steps)
    depths = {"alone": depth_of(one)} | dict.fromkeys(names, depth_of(part))
    steps = {name: round(median(each), 3) for name, each in micros.items()}
    found = {
        "program": program, "dtype": dtype, "size": size, "domain": list(alone.domain),
        "device": device(0).name, "devices": 1, **exchange,
        "steps_of_launch": {name: depths[name] for name in ("alone", "part")},
        "us_of_a_step": steps,
        "us_of_a_launch": {name: round(each * depths[name], 2) for name, each in steps.items()},
        "of_alone": {name: round(steps["alone"] / each, 3) for name, each in steps.items()},
        "alone": launch_facts(one.program.kernels),
        "part": launch_facts(parted.parts.of_parts(common=False)[0]),
    }  # fmt: skip
    for each in (part, one):
        each.close()
    return found


def made(run: Run, arch: str) -> str:
    """Make the kernels of a run, in a process. Returns an error's text."""
    try:
        prepared(run, arch)
    except Exception as error:
        return described(error)
    return ""


def main() -> None:
    """Compile in processes, and measure case by case."""
    parser = argparse.ArgumentParser(description="What a part costs on one GPU.")
    parser.add_argument("--only", nargs="*", default=[], metavar="PROGRAM[:TYPE]")
    parser.add_argument("--sizes", nargs="*", default=["small"])
    parser.add_argument("--seconds", type=float, default=0.05, help="least time of a run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--arch", default="", help="compile for a part, and run nothing")
    parser.add_argument("--compiling", type=int, default=max(2, (os.cpu_count() or 2) * 3 // 4))
    parser.add_argument("--commit", default=commit())
    parser.add_argument("--out", type=Path, default=Path("build/part-costs.json"))
    given = parser.parse_args()
    cases = [
        (program, dtype, size)
        for size in given.sizes
        for dtype in ("f32", "f64")
        for program in DOMAINS
        if not given.only or program in given.only or f"{program}:{dtype}" in given.only
    ]
    found: list[dict[str, Any]] = []
    with ProcessPoolExecutor(given.compiling, mp_context=get_context("spawn")) as pool:
        waiting = {
            case: [pool.submit(made, run, given.arch) for run in runs_of(*case)] for case in cases
        }
        for case, futures in waiting.items():
            problem = next(filter(None, (future.result() for future in futures)), "")
            if given.arch:
                print(*case, problem or "compiled", flush=True)
                continue
            try:
                entry = {"error": problem} if problem else measured(*case, given)
            except Exception as error:
                entry = {"error": described(error)}
            found.append(dict(zip(("program", "dtype", "size"), case)) | entry)
            print(json.dumps(found[-1]), flush=True)
            given.out.parent.mkdir(parents=True, exist_ok=True)
            told = {"commit": given.commit, "rows": found}
            given.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
