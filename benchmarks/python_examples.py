"""
Measure examples/python: cells updated per second on the GPU, on the processor, and by a copy of the
fields.

    python benchmarks/python_examples.py --out benchmarks/results/h100-examples.json

The state lies in GPU memory, as arrays of CuPy or PyTorch, and `advance` is timed from the first
launch to the end of the last. The processor runs the same steps on the same domain with all
threads. The bound is the time of a device copy with one read and one write of each field a step;
several time steps a launch may beat the bound.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from math import prod
from pathlib import Path

import numpy as np
from check_python import EXAMPLES, ways
from reports import write_report
from rich.console import Console
from rich.table import Table
from timing import copy_bandwidth

from timetile.runtime.device.gpu import Device, device


@dataclass
class Row:
    """
    One example: cells of the domain updated per second, in 1e9, on the GPU, by the cost model for
    the only time loop, by copying, and on the processor.
    """

    example: str
    dtype: str
    domain: tuple[int, ...]
    fields: int
    gpu_steps: int
    gpu_gcells_per_s: float
    steps_a_launch: int
    predicted_gcells_per_s: float
    copy_gcells_per_s: float
    cpu_steps: int
    cpu_gcells_per_s: float


def seconds(
    run: Callable[[int], object], wait: Callable[[], object], least: float
) -> tuple[int, float]:
    """
    How many steps were timed, and seconds a step: as many steps as take `least` seconds. Each
    number of steps runs twice, and the second run counts: the first may compile kernels for the
    last steps.
    """
    steps = 20
    while True:
        run(steps)
        wait()
        begin = time.perf_counter()
        run(steps)
        wait()
        taken = time.perf_counter() - begin
        if taken >= least:
            return steps, taken / steps
        steps *= max(2, min(50, int(1.2 * least / taken)))


def measure(name: str, dtype: str, size: int, on: Device, bandwidth: float) -> Row:
    """Time an example."""
    example = import_module(name)
    model, numbers = getattr(example, name), example.NUMBERS
    state = {key: array.astype(dtype) for key, array in example.start(size).items()}
    there = next(to_gpu for library, to_gpu, *_ in ways() if library != "NumPy")
    on_gpu, on_cpu = model.on(executor="gpu"), model.on(executor="cpu")
    given = {key: there(array) for key, array in state.items()}
    with on.current():
        gpu_steps, gpu = seconds(
            lambda n: on_gpu.advance(given, steps=n, **numbers), lambda: on.synchronize(0), 0.3
        )
    cpu_steps, cpu = seconds(lambda n: on_cpu.advance(state, steps=n, **numbers), lambda: None, 0.3)
    domain = next(iter(state.values())).shape
    cells = prod(domain)
    written = len(model.step.written)
    copied = (len(state) + written) * cells * np.dtype(dtype).itemsize / (bandwidth * 1e12)
    (loop,) = on_gpu.explain().loops
    return Row(
        name, dtype, domain, len(state), gpu_steps, cells / gpu / 1e9, loop.depth,
        loop.gcells_per_second, cells / copied / 1e9, cpu_steps, cells / cpu / 1e9,
    )  # fmt: skip


def main() -> None:
    """Measure, print a table, and write a file."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("examples", nargs="*")
    options.add_argument("--size", type=int, default=4096, help="cells along the first axis")
    options.add_argument("--out", type=Path)
    options.add_argument("--commit", default="")
    chosen = options.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    names = chosen.examples or sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem != "draw")
    gpu = device(0)
    with gpu.current():
        bandwidth = copy_bandwidth(gpu)
    heads = ("example", "type", "domain", "GPU", "steps a launch", "predicted", "copy", "CPU")
    table = Table(*heads, title="1e9 cells a second")
    rows: list[Row] = []
    for name in names:
        for dtype in ("float32", "float64"):
            row = measure(name, dtype, chosen.size, gpu, bandwidth)
            rows.append(row)
            table.add_row(
                name, dtype, " x ".join(map(str, row.domain)), f"{row.gpu_gcells_per_s:.1f}",
                str(row.steps_a_launch), f"{row.predicted_gcells_per_s:.1f}",
                f"{row.copy_gcells_per_s:.1f}", f"{row.cpu_gcells_per_s:.2f}",
            )  # fmt: skip
    Console().print(table)
    if chosen.out:
        about = {
            "command": "python benchmarks/python_examples.py",
            "device": gpu.name,
            "copy_tb_per_s": bandwidth,
            "processor_threads": len(os.sched_getaffinity(0)),
            "commit": chosen.commit,
        }
        write_report(chosen.out, about, map(asdict, rows))


if __name__ == "__main__":
    main()
