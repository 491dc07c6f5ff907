"""
Measure the time to a first result, from an empty cache and from a full one.

    python benchmarks/first_result.py --cores 4 --lanes 3 --out benchmarks/results/first-result.json
    python benchmarks/first_result.py "elastic_3d_so4 f32" --executor cpu
    python benchmarks/first_result.py "heat3 f32" --executor gpu --steps 20000 --wait 0 1

Programs of `first_programs.py`: docs/programs.md, examples, operators of Devito where Devito is
installed, elastic waves in 3D and a solver of 159 levels; with `--others`, steps of other
benchmarks. A process runs a program, with timetile imported and arrays made, on a few cores. A
second process has the cache of the first. Seconds of a row, from text, step or equations on:

- `wall_s`: a call, its arrays included, from an empty cache; `cached_s`: from a full one;
- `again_s`: a further call of the compiled program, mostly copies of arrays; `ready_s`: `cached_s`
  without `again_s`;
- `cached_cpu_s`: CPU time of a first call from a full cache;
- `chosen_s`: until the schedule is chosen beside, and `cpu_s` all work until then;
- `devito_s`: Devito's own work for the operator, part of `wall_s` and `cached_s`;
- `lowering_s`: the part of `cached_s` in Devito's own lowering, and `ours_s`, the rest without
  `again_s`: the seconds of timetile.

With `--wait 1` the run waits for the schedule; `bits` is a digest of the arrays. The executor
`kernels`, for a machine without GPU, compiles and assembles all kernels of a call and runs none.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from first_programs import (
    LOWERING,
    Way,
    devito_seconds,
    make_of,
    operators,
    other_cases,
    usual_cases,
)
from measure import commit
from reports import write_report

from timetile.runtime.device.gpu import device
from timetile.runtime.kernels.beside import VARIABLE
from timetile.runtime.kernels.choosing_process import wait_for_schedules
from timetile.runtime.kernels.rivals import TRIALS
from timetile.runtime.machine.driver import gpu_is_available

LONGEST = 90
"""Seconds after which a process is given up."""


def cpu_seconds() -> float:
    """CPU time of this process and of its children that ended, in seconds."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def digest(found: Any) -> str:
    """
    A digest of the bits of arrays, in a mapping or a sequence; of nothing for None, the value of an
    unused argument.
    """
    made = hashlib.sha256()
    for array in found.values() if hasattr(found, "values") else found or ():
        if array is not None:
            made.update(np.ascontiguousarray(array).data)
    return made.hexdigest()[:16]


def timed(name: str, way: Way) -> dict[str, Any]:
    """The times of a program's calls in this process."""
    logging.getLogger("timetile").setLevel(logging.ERROR)
    make = make_of(name, way)
    if way.executor == "gpu":
        # The driver's own start is paid once a process, before or after the first program.
        device(0)
    cpu, start = cpu_seconds(), time.perf_counter()
    run = make()
    result = run()
    wall, lowering = time.perf_counter() - start, sum(LOWERING)
    wait_for_schedules()
    chosen, bits = time.perf_counter() - start, digest(result)
    used = cpu_seconds() - cpu
    start = time.perf_counter()
    run()
    again = time.perf_counter() - start
    found = {"cpu_s": used, "wall_s": wall, "chosen_s": chosen, "again_s": again, "bits": bits}
    return found | ({"lowering_s": lowering} if name in operators() else {})


def in_process(name: str, way: Way, environment: dict[str, str], *parts: str) -> dict[str, Any]:
    """The numbers that a process prints about a program."""
    command = [sys.executable, __file__, name, "--executor", way.executor, *parts]
    for option, value in (("--steps", way.steps), ("--cells", way.cells)):
        command += [] if value is None else [option, str(value)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no result in {LONGEST} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no word"])[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


def with_compiled_files(folder: str) -> dict[str, str]:
    """An environment in which Python keeps compiled files in a folder, as an installation does."""
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**own, "PYTHONPYCACHEPREFIX": folder}


def in_processes(
    name: str, way: Way, cores: list[int], kept: dict[str, str], *, waits: bool
) -> dict[str, Any]:
    """A row: two processes on some cores, the second with a full cache, in an environment."""
    # Processes inherit the cores of their thread.
    os.sched_setaffinity(0, cores)
    row: dict[str, Any] = {"program": name, "executor": way.executor, "cores": len(cores)}
    if way.steps is not None:
        row |= {"steps": way.steps, "cells": way.cells, "waits": waits}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        own = {**kept, "TIMETILE_CACHE_DIR": folder, VARIABLE: str(int(waits)), TRIALS: "0"}
        cold = in_process(name, way, own, "--here")
        warm = cold if "error" in cold else in_process(name, way, own, "--here")
        if "error" in warm:
            return {**row, **warm}
        if cold["bits"] != warm["bits"]:
            return {**row, "error": "the second process ends with other bits"}
        if name in operators():
            own = in_process(name, way, own, "--devito")
            row |= {"devito_s": round(own.get("devito_s", 0.0), 3)}
    row |= {key: round(cold[key], 3) for key in ("cpu_s", "wall_s", "chosen_s")}
    row |= {"cached_s": round(warm["wall_s"], 4), "again_s": round(warm["again_s"], 4)}
    row |= {"ready_s": round(max(0.0, warm["wall_s"] - warm["again_s"]), 4)}
    row |= {"cached_cpu_s": round(warm["cpu_s"], 4)}
    if "lowering_s" in warm:
        row |= {"lowering_s": round(warm["lowering_s"], 4)}
        row |= {"ours_s": round(max(0.0, row["ready_s"] - warm["lowering_s"]), 4)}
    return {**row, "bits": cold["bits"]}


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="programs; all usual ones without one")
    parser.add_argument("--others", action="store_true", help="programs of other benchmarks")
    parser.add_argument("--executor", nargs="*", help="cpu, gpu, kernels")
    parser.add_argument("--cores", type=int, default=4, help="how many cores a process may use")
    parser.add_argument("--lanes", type=int, default=1, help="programs measured at one time")
    parser.add_argument("--steps", type=int, help="steps of a call")
    parser.add_argument("--cells", type=int, help="cells along each axis, for steps and operators")
    parser.add_argument("--wait", type=int, nargs="*", default=[0], help="1: wait for the schedule")
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), help="K N: the K-th of N")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--here", action="store_true", help="time one program in this process")
    parser.add_argument("--devito", action="store_true", help="time Devito's own work for it")
    return parser.parse_args()


def measured(options: argparse.Namespace) -> None:
    """Measure programs in lanes, and write row by row."""
    asked = options.executor or ["cpu", "gpu" if gpu_is_available() else "kernels"]
    usual = other_cases() if options.others else usual_cases()
    # Long ones go first.
    names = options.names or sorted((name for name, _ in usual), key=is_short)
    share, shares = options.share
    own = sorted(os.sched_getaffinity(0))
    lanes: SimpleQueue[list[int]] = SimpleQueue()
    cores = min(options.cores, len(own))
    count = max(1, min(options.lanes, len(own) // cores))
    for lane in range(count):
        lanes.put(own[lane * cores : (lane + 1) * cores])

    def row(name: str, executor: str, waits: int) -> dict[str, Any]:
        lane = lanes.get()
        try:
            way = Way(executor, options.steps, options.cells)
            return in_processes(name, way, lane, kept, waits=bool(waits))
        finally:
            lanes.put(lane)

    about = {"machine": " ".join(os.uname()[1:5:3]), "command": " ".join(["python", *sys.argv])}
    if gpu_is_available():
        about["device"] = device(0).name
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(count) as pool:
        kept = with_compiled_files(folder)
        # The first runs of all make Python's compiled files.
        for executor in asked:
            row("heat2d.mlir", executor, 0)
        waiting: list[Future[dict[str, Any]]] = [
            pool.submit(row, name, executor, waits)
            for name in names[share::shares]
            for executor in asked
            for waits in options.wait
        ]
        for done in as_completed(waiting):
            rows.append({**done.result(), "commit": options.commit or commit()})
            print(rows[-1], flush=True)
            if options.out is not None:
                write_report(options.out, about, rows)


def is_short(name: str) -> bool:
    """Whether a program takes few seconds of a core."""
    return not name.startswith(("Devito", "elastic", "159"))


def main() -> None:
    options = arguments()
    way = Way(options.executor[0], options.steps, options.cells) if options.executor else Way("cpu")
    if options.here:
        print(json.dumps(timed(options.names[0], way)))
    elif options.devito:
        seconds = devito_seconds(operators()[options.names[0]], way)
        print(json.dumps({"devito_s": seconds}))
    else:
        measured(options)


if __name__ == "__main__":
    main()
