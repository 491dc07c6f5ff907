"""
Hardware counters of the defaults in the table of systems, by Nsight Compute: how full each part of
the GPU is.

    python benchmarks/system_counters.py an5d:gradient2d:f64 ssam:conv13x13:f64 --out counters.json

Rows are named by their beginnings, as for `systems.py`; programs compiled by `systems.py` for the
`--target`, in the `--folder`, are not compiled again. One process under `ncu` launches the deepest
kernel of each row, after launches that are not counted; the row has the first, the deepest launch.
Shares are of a part's peak over the whole launch, `active` of the time in which multiprocessors
have warps.
"""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from counters import number
from measure import commit
from reports import write_report
from system_compiling import Job, compile_alone, make
from system_rows import SystemCase, system_cases
from system_timing import DeviceFields, depth_of, program_of, run, shapes_of

from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import checked

SHARES = {
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_elapsed",
    "fp64": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "fma": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "integers": "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "shared": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
}
"""The counter of each part of the GPU, in percent of its peak."""

DURATION, CYCLES = "gpu__time_duration.sum", "sm__cycles_elapsed.max"
ACTIVE, EXECUTED = "sm__cycles_active.avg", "smsp__inst_executed.sum"
STALLED, OF_AN_ISSUE = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
"""What a warp waits for, in warps for each issued instruction."""

LEAST_STALLED = 0.15
"""Waits shorter than this are left out of a row."""

DEPTHS_OF_RUN = 2
"""The steps of a row's run, in depths: shorter runs begin with other kernels."""


def cases_of(names: list[str]) -> list[SystemCase]:
    """The first row with each beginning."""
    every = system_cases()
    return [next(case for case in every if case.key.startswith(name)) for name in names]


def launch(cases: list[SystemCase], target: str, folder: Path) -> None:
    """Launch the deepest kernel of each case, the last launches with counters."""
    gpu = device()
    with gpu.current():
        for case in cases:
            with program_of(Job(case, False), target, folder) as program:
                fields = DeviceFields(gpu, shapes_of(program), case.dtype)
                fields.fill()
                steps = DEPTHS_OF_RUN * depth_of(program)
                run(program, fields, steps)
                gpu.synchronize(0)
                checked(gpu.cuda.cuProfilerStart())
                run(program, fields, steps)
                gpu.synchronize(0)
                checked(gpu.cuda.cuProfilerStop())
                fields.free()


def counted(command: list[str]) -> list[dict[str, str]]:
    """The counters of all launches of a command, in order."""
    metrics = [DURATION, CYCLES, ACTIVE, EXECUTED, *SHARES.values()]
    asked = ["ncu", "--csv", "--page", "raw", "--clock-control", "none", "--profile-from-start"]
    asked += ["off", "--section", "WarpStateStats", "--metrics", ",".join(metrics)]
    done = subprocess.run([*asked, *command], capture_output=True, text=True, check=False)
    rows = list(csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')))
    if not rows:
        raise ValueError("no counters: " + (done.stdout + done.stderr).strip()[-400:])
    # The first row has the units.
    return rows[1:]


def steps_of(launched: dict[str, str]) -> int:
    """The steps of a launch, by the kernel's name."""
    _, _, depth = launched["Kernel Name"].rpartition("_d")
    return int(depth) if depth.isdigit() else 1


def first_launches(launches: list[dict[str, str]], depths: list[int]) -> list[dict[str, str]]:
    """
    The first launch of each row's run, of all launches in order. Raises ValueError for launches of
    other steps.
    """
    found, left = list[dict[str, str]](), list(launches)
    for depth in depths:
        if not left or steps_of(left[0]) != depth:
            raise ValueError(f"no launch of {depth} steps begins a run")
        found.append(left[0])
        steps = 0
        while left and steps < DEPTHS_OF_RUN * depth:
            steps += steps_of(left.pop(0))
    return found


def described(counters: dict[str, str]) -> dict[str, Any]:
    """What a row says of a launch."""
    nanoseconds, cycles = number(counters[DURATION]), number(counters[CYCLES])
    stalls = {
        name.removeprefix(STALLED).removesuffix(OF_AN_ISSUE): round(number(value), 2)
        for name, value in counters.items()
        if name.startswith(STALLED) and name.endswith(OF_AN_ISSUE)
    }
    return {
        "kernel": counters["Kernel Name"],
        "microseconds": round(nanoseconds / 1e3, 1),
        "gigahertz": round(cycles / nanoseconds, 3),
        "active": round(number(counters[ACTIVE]) / cycles, 3),
        "instructions": number(counters[EXECUTED]),
        "shares": {part: round(number(counters[name]) / 100, 3) for part, name in SHARES.items()},
        "stalls": {name: value for name, value in stalls.items() if value >= LEAST_STALLED},
    }


def main() -> None:
    """Compile what is missing, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+", help="system:program:dtype")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--folder", type=Path, default=Path("build/systems-cache"))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--commit", default=None)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", action="store_true", help="launch the kernels, for ncu")
    given = parser.parse_args()
    cases = cases_of(given.rows)
    if given.here:
        launch(cases, given.target, given.folder)
        return
    compile_alone()
    with ProcessPoolExecutor(given.processes) as pool:
        begun = [pool.submit(make, Job(c, False), given.target, given.folder) for c in cases]
        made = [each.result() for each in begun]
    here = ["--here", "--target", given.target, "--folder", str(given.folder)]
    found = counted([sys.executable, __file__, *given.rows, *here])
    rows: list[dict[str, Any]] = []
    for case, known, first in zip(cases, made, first_launches(found, [m.depth for m in made])):
        about = {"program": case.program, "dtype": case.dtype, "domain": list(case.domain)}
        kernel = {"depth": known.depth, "schedule": known.schedule, "registers": known.registers}
        rows.append({**about, **kernel, **described(first)})
        print(rows[-1], flush=True)
    if given.out is not None:
        said = {"device": device().name, "commit": given.commit or commit()}
        command = shlex.join(["python", "benchmarks/system_counters.py", *given.rows])
        write_report(given.out, {**said, "command": command}, rows)


if __name__ == "__main__":
    main()
