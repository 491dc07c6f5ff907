"""
Measure the time to a first result, from an empty cache and from a full one.

    python benchmarks/first_result.py --cores 4 --out benchmarks/results/first-result.json
    python benchmarks/first_result.py "yee3 f32" --executor cpu

Programs are those of docs/programs.md, of examples/ and of test/programs, the steps of
`choice_models.py` and `real_steps.py` in FP32, and operators of Devito where Devito is installed.
Each runs in a process of its own, with timetile imported and arrays made, on a few cores. Times are
from the program's text, step or equations to its arrays after one call. The executor `kernels`, for
a machine without GPU, compiles and assembles all kernels of a call and runs none of them.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from check_programs import programs, values_of
from measure import commit
from reports import write_report

import timetile
from timetile.frontend.model import Model
from timetile.runtime.device.gpu import device
from timetile.runtime.machine.driver import gpu_is_available

DOMAINS = {2: (2048, 2048), 3: (256, 256, 256)}
"""The domains of steps in Python, by the number of axes."""

SMALL_DOMAINS = {2: (512, 512), 3: (64, 64, 64)}
"""The domains on the executor `cpu`, whose machine code does not depend on the domain."""

STEPS = 20
"""Steps of a call."""

Call = Callable[[], object]


def kernels_of(program: timetile.CompiledProgram) -> None:
    """Compile and assemble all kernels of a program."""
    names = [fact.name for facts in program.kernels.facts for fact in facts]
    program.kernels.begin(names)
    for name in names:
        program.kernels.kernel(name)


def call_of_text(text: str, executor: Any) -> Call:
    """Compile and run a program in IR."""
    values = values_of(timetile.compile(text, executor="cpu", cache=False), 3)

    def call() -> None:
        if executor == "kernels":
            kernels_of(timetile.compile(text, executor="cpu"))
        else:
            timetile.compile(text, executor=executor)(*values, steps=STEPS)

    return call


def call_of_step(
    model: Model, cells: Callable[[str, tuple[int, ...]], Any], numbers: dict[str, float], at: Any
) -> Call:
    """Compile and run a step in Python. `at` is the executor."""
    shape = (SMALL_DOMAINS if at == "cpu" else DOMAINS)[model.step.rank]
    arrays = {name: cells(name, shape) for name in model.step.fields}

    def call() -> None:
        if at == "kernels":
            kernels_of(timetile.compile(model.module(shape, "float32"), executor="cpu"))
        else:
            model.on(executor=at).advance(arrays, STEPS, **numbers)

    return call


def call_of_operator(name: str, executor: Any) -> Call:
    """Compile and run an operator of Devito."""
    from devito_operators import MODELS, operator_of

    make, _ = MODELS[name]
    model = make((128, 128, 128))
    if executor == "kernels":
        raise ValueError("Devito makes kernels of an operator in a run: give cpu or gpu")
    return lambda: operator_of(model, executor).apply(time_m=1, time_M=STEPS, dt=model.dt)


def cases() -> Iterator[tuple[str, Callable[[Any], Call]]]:
    """The programs by name, each with what makes a call for an executor."""
    for name, text in programs([]).items():
        yield name, partial(call_of_text, text)
    from choice_models import MODELS, start
    from real_steps import PROGRAMS, first_cells

    for name, model in MODELS.items():
        cells = partial(start, dtype="float32")
        yield f"{name} f32", partial(call_of_step, model.step, cells, dict(model.numbers))
    for name, step in PROGRAMS.items():
        if name not in MODELS:
            cells = partial(first_cells, dtype="float32")
            yield f"{name} f32", partial(call_of_step, step, cells, {})
    if find_spec("devito") is not None:
        from devito_operators import MODELS as OPERATORS

        for name in OPERATORS:
            yield f"Devito {name}", partial(call_of_operator, name)


def cpu_seconds() -> float:
    """CPU time of this process and of its children that ended, in seconds."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def timed(name: str, executor: Any) -> dict[str, Any]:
    """The times of a program's call in this process, with the cache as it is."""
    logging.getLogger("timetile").setLevel(logging.ERROR)
    call = dict(cases())[name](executor)
    if executor == "gpu":
        # The driver's own start is paid once a process, before or after the first program.
        device(0)
    cpu, start = cpu_seconds(), time.perf_counter()
    call()
    wall = time.perf_counter() - start
    return {"program": name, "executor": executor, "cpu_s": cpu_seconds() - cpu, "wall_s": wall}


def in_processes(name: str, executor: Any, cores: int) -> dict[str, Any]:
    """
    A row: two processes on the first `cores` cores, the second with the cache of the
    first.
    """
    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, "TIMETILE_CACHE_DIR": folder}
        command = [sys.executable, __file__, name, "--executor", executor, "--here"]
        limited = partial(os.sched_setaffinity, 0, sorted(os.sched_getaffinity(0))[:cores])
        runs: list[dict[str, Any]] = []
        for _ in range(2):
            done = subprocess.run(
                command, env=own, capture_output=True, text=True, check=False, preexec_fn=limited
            )
            if done.returncode:
                said = (done.stderr.strip().splitlines() or ["no word"])[-1]
                return {"program": name, "executor": executor, "cores": cores, "error": said[:200]}
            runs.append(json.loads(done.stdout.splitlines()[-1]))
    cold, warm = runs
    seconds = {key: round(cold[key], 3) for key in ("cpu_s", "wall_s")}
    row = {"program": name, "executor": executor, **seconds, "cached_s": round(warm["wall_s"], 4)}
    return {**row, "cores": cores, "commit": commit()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="programs; all without one")
    parser.add_argument("--executor", nargs="*", help="cpu, gpu, kernels")
    parser.add_argument("--cores", type=int, default=4, help="how many cores a process may use")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", action="store_true", help="time one program in this process")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(timed(options.names[0], options.executor[0])))
        return
    asked = options.executor or ["cpu", "gpu" if gpu_is_available() else "kernels"]
    cores = min(options.cores, len(os.sched_getaffinity(0)))
    rows: list[dict[str, Any]] = []
    for name in options.names or [name for name, _ in cases()]:
        for executor in asked:
            rows.append(in_processes(name, executor, cores))
            print(rows[-1], flush=True)
    if options.out is not None:
        about = {"machine": " ".join(os.uname()[1:5:3]), "command": " ".join(["python", *sys.argv])}
        write_report(options.out, about, rows)


if __name__ == "__main__":
    main()
