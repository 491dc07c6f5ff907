"""
Measure the time to a first result, from an empty cache and from a full one.

    python benchmarks/first_result.py --cores 4 --out benchmarks/results/first-result.json
    python benchmarks/first_result.py "yee3 f32" --executor cpu
    python benchmarks/first_result.py "heat3 f32" --executor gpu --steps 20000 --wait 0 1

Programs are those of docs/programs.md, of examples/ and of test/programs, the steps of
`choice_models.py`, `real_steps.py` and `coupled_programs.py` in FP32, and operators of Devito where
Devito is installed, with Devito's own work.
Each runs in a process of its own, with timetile imported and arrays made, on a few cores. Times are
from the program's text, step or equations to its arrays after one call; `chosen_s` is the time
until its schedule is chosen beside, and `cpu_s` all work until then. With `--wait 1` the run waits
for the schedule; `bits` is a digest of the arrays. The executor `kernels`, for a machine without
GPU, compiles and assembles all kernels of a call and runs none of them.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from check_programs import programs, values_of
from measure import commit
from reports import write_report

import timetile
from timetile.frontend.model import Model
from timetile.runtime.device.gpu import device
from timetile.runtime.kernels.beside import VARIABLE
from timetile.runtime.kernels.choosing_process import wait_for_schedules
from timetile.runtime.kernels.rivals import TRIALS
from timetile.runtime.machine.driver import gpu_is_available

DOMAINS = {2: (2048, 2048), 3: (256, 256, 256)}
"""The domains of steps in Python, by the number of axes."""

SMALL_DOMAINS = {2: (512, 512), 3: (64, 64, 64)}
"""The domains on the executor `cpu`, whose machine code does not depend on the domain."""

STEPS = 20
"""Steps of a call, unless asked for."""

STEPS_OF_TEXTS = 16
"""Steps of a call of a program's text: values for points are given for so many."""

Call = Callable[[], object]
"""Makes a call, and returns its arrays."""


@dataclass(frozen=True)
class Way:
    """How a program runs: the executor, the steps of a call, and cells along each axis."""

    executor: Any
    steps: int | None = None
    cells: int | None = None


def kernels_of(program: timetile.CompiledProgram) -> None:
    """Compile and assemble all kernels of a program."""
    names = [fact.name for facts in program.kernels.facts for fact in facts]
    program.kernels.begin(names)
    for name in names:
        program.kernels.kernel(name)


def call_of_text(text: str, way: Way) -> Call:
    """Compile and run a program in IR."""
    values = values_of(timetile.compile(text, executor="cpu", cache=False), 3)
    steps = way.steps or STEPS_OF_TEXTS

    def call() -> object:
        if way.executor == "kernels":
            return kernels_of(timetile.compile(text, executor="cpu"))
        timetile.compile(text, executor=way.executor)(*values, steps=steps)
        return values

    return call


def call_of_step(
    model: Model, cells: Callable[[str, tuple[int, ...]], Any], numbers: dict[str, float], way: Way
) -> Call:
    """Compile and run a step in Python."""
    shape = (SMALL_DOMAINS if way.executor == "cpu" else DOMAINS)[model.step.rank]
    shape = shape if way.cells is None else (way.cells,) * model.step.rank
    arrays = {name: cells(name, shape) for name in model.step.fields}

    def call() -> object:
        if way.executor == "kernels":
            return kernels_of(timetile.compile(model.module(shape, "float32"), executor="cpu"))
        return model.on(executor=way.executor).advance(arrays, way.steps or STEPS, **numbers)

    return call


def call_of_operator(make: Callable[[tuple[int, ...]], Any], way: Way) -> Call:
    """Compile and run an operator of Devito."""
    from devito_operators import operator_of

    model = make((way.cells or 128,) * 3)
    if way.executor == "kernels":
        raise ValueError("Devito makes kernels of an operator in a run: give cpu or gpu")

    def call() -> object:
        operator = operator_of(model, way.executor)
        operator.apply(time_m=1, time_M=way.steps or STEPS, dt=model.dt)
        return [function.data for function in model.changed]

    return call


def cases() -> Iterator[tuple[str, Callable[[Way], Call]]]:
    """The programs by name, each with what makes a call."""
    for name, text in programs([]).items():
        yield name, partial(call_of_text, text)
    from choice_models import MODELS, start
    from coupled_programs import SYSTEMS
    from real_steps import PROGRAMS, first_cells

    for name, model in MODELS.items():
        cells = partial(start, dtype="float32")
        yield f"{name} f32", partial(call_of_step, model.step, cells, dict(model.numbers))
    systems = {name: system.step for name, system in SYSTEMS.items()}
    for name, step in (PROGRAMS | systems).items():
        if name not in MODELS:
            cells = partial(first_cells, dtype="float32")
            yield f"{name} f32", partial(call_of_step, step, cells, {})
    if find_spec("devito") is not None:
        from devito_operators import MODELS as OPERATORS
        from devito_waves import MODELS as WAVES

        for name, make in ({name: make for name, (make, _) in OPERATORS.items()} | WAVES).items():
            yield f"Devito {name}", partial(call_of_operator, make)


def call_of(name: str, way: Way) -> Call:
    """The call of a program. Programs behind it, and their packages, are not even imported."""
    return next(make for each, make in cases() if each == name)(way)


def cpu_seconds() -> float:
    """CPU time of this process and of its children that ended, in seconds."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def digest(found: Any) -> str:
    """A digest of the bits of arrays, in a mapping or a sequence; of nothing for None."""
    made = hashlib.sha256()
    for array in found.values() if hasattr(found, "values") else found or ():
        made.update(np.ascontiguousarray(array).tobytes())
    return made.hexdigest()[:16]


def timed(name: str, way: Way) -> dict[str, Any]:
    """The times of a program's call in this process, with the cache as it is."""
    logging.getLogger("timetile").setLevel(logging.ERROR)
    call = call_of(name, way)
    if way.executor == "gpu":
        # The driver's own start is paid once a process, before or after the first program.
        device(0)
    cpu, start = cpu_seconds(), time.perf_counter()
    found = call()
    wall = time.perf_counter() - start
    wait_for_schedules()
    chosen, bits = time.perf_counter() - start, digest(found)
    used = cpu_seconds() - cpu
    return {"cpu_s": used, "wall_s": wall, "chosen_s": chosen, "bits": bits}


def in_processes(name: str, way: Way, cores: int, *, waits: bool) -> dict[str, Any]:
    """
    A row: two processes on the first `cores` cores, the second with the cache of the
    first.
    """
    row: dict[str, Any] = {"program": name, "executor": way.executor, "cores": cores}
    if way.steps is not None:
        row |= {"steps": way.steps, "cells": way.cells, "waits": waits}
    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, "TIMETILE_CACHE_DIR": folder, VARIABLE: str(int(waits)), TRIALS: "0"}
        command = [sys.executable, __file__, name, "--executor", way.executor, "--here"]
        for option, value in (("--steps", way.steps), ("--cells", way.cells)):
            command += [] if value is None else [option, str(value)]
        limited = partial(os.sched_setaffinity, 0, sorted(os.sched_getaffinity(0))[:cores])
        runs: list[dict[str, Any]] = []
        for _ in range(2):
            done = subprocess.run(
                command, env=own, capture_output=True, text=True, check=False, preexec_fn=limited
            )
            if done.returncode:
                said = (done.stderr.strip().splitlines() or ["no word"])[-1]
                return {**row, "error": said[:200]}
            runs.append(json.loads(done.stdout.splitlines()[-1]))
    cold, warm = runs
    if cold["bits"] != warm["bits"]:
        return {**row, "error": "the second process ends with other bits"}
    row |= {key: round(cold[key], 3) for key in ("cpu_s", "wall_s", "chosen_s")}
    row |= {"cached_s": round(warm["wall_s"], 4), "bits": cold["bits"]}
    return {**row, "commit": commit()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="programs; all without one")
    parser.add_argument("--executor", nargs="*", help="cpu, gpu, kernels")
    parser.add_argument("--cores", type=int, default=4, help="how many cores a process may use")
    parser.add_argument("--steps", type=int, help="steps of a call")
    parser.add_argument("--cells", type=int, help="cells along each axis, for steps and operators")
    parser.add_argument("--wait", type=int, nargs="*", default=[0], help="1: wait for the schedule")
    parser.add_argument(
        "--share",
        type=int,
        nargs=2,
        default=(0, 1),
        help="K N: of N shares of the programs, the K-th",
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", action="store_true", help="time one program in this process")
    options = parser.parse_args()
    if options.here:
        way = Way(options.executor[0], options.steps, options.cells)
        print(json.dumps(timed(options.names[0], way)))
        return
    asked = options.executor or ["cpu", "gpu" if gpu_is_available() else "kernels"]
    cores = min(options.cores, len(os.sched_getaffinity(0)))
    about = {"machine": " ".join(os.uname()[1:5:3]), "command": " ".join(["python", *sys.argv])}
    rows: list[dict[str, Any]] = []
    share, shares = options.share
    for name in (options.names or [name for name, _ in cases()])[share::shares]:
        for executor in asked:
            for waits in options.wait:
                way = Way(executor, options.steps, options.cells)
                rows.append(in_processes(name, way, cores, waits=bool(waits)))
                print(rows[-1], flush=True)
                if options.out is not None:
                    write_report(options.out, about, rows)


if __name__ == "__main__":
    main()
