"""
Measure kernels on a GPU: one launch of T steps, timed with events after a warm-up.

    python benchmarks/measure.py --out benchmarks/results/h200-2d.json j2d5pt:f64:8352x8352 ...

Before timing, every row is checked against the unfused program on equal data; a device copy in the
same run stands beside the figures. `docs/make_performance.py` makes the tables and plots.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import numpy as np
from bounds import fma_bound
from fields import Cells, Fields, View
from peers import PEERS
from rich.console import Console
from rich.table import Table
from rows import (
    Terms,
    assemble_rows,
    described,
    fused_program,
    parse_row,
    public_program,
    source,
    unfused_program,
)
from timing import copy_bandwidth, events, launch_times

import timetile
from timetile.dialects.tile import KernelOp
from timetile.passes.cells.simplify_cells import FpDivision
from timetile.passes.cost.launch import predict
from timetile.passes.cost.terms import Cost
from timetile.passes.targets.target import Target
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.explain.figures import copy_bound, occupancy
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.compiled_program import CompiledProgram


@dataclass
class Bench:
    """
    Shared data of rows: the fields of the last shape, and the fields after the unfused program.
    """

    gpu: Device
    terms: Terms = field(default_factory=Terms)
    key: tuple[Any, ...] = ()
    fields: Fields | None = None
    cells: Cells = field(default_factory=Cells)
    expected: dict[int, list[np.ndarray[Any, Any]]] = field(
        default_factory=dict[int, list[np.ndarray[Any, Any]]]
    )

    def prepare(self, name: str, element: str, domain: tuple[int, ...]) -> Fields:
        """Random fields for a program, made once for successive rows with equal fields."""
        if self.fields is None or self.key != (name, element, domain):
            if self.fields is not None:
                self.fields.free()
            _, halo, count = source(name, domain, element)
            shape = tuple(n + 2 * halo for n in domain)
            common = halo if self.terms.halos == "common" else 0
            self.fields = Fields(self.gpu, self.cells.fields(shape, element, count, common))
            self.key, self.expected = (name, element, domain), {}
        return self.fields

    def unfused(self, text: str, steps: int) -> list[np.ndarray[Any, Any]]:
        """The fields after the program with kernels of one step."""
        assert self.fields is not None
        if steps not in self.expected:
            single = unfused_program(text, self.terms)
            self.expected = {steps: run_on(single, self.fields, steps)}
            single.runner(0).close()
        return self.expected[steps]


def run_on(compiled: CompiledProgram, fields: Fields, steps: int) -> list[np.ndarray[Any, Any]]:
    """Run a program on the fields and return the fields after the run."""
    fields.reset()
    views = [View(p, a) for p, a in zip(fields.pointers, fields.host)]
    compiled(*views, steps, steps=steps)
    fields.gpu.synchronize(0)
    return fields.read()


def time_of_run(compiled: CompiledProgram, fields: Fields, steps: int) -> float:
    """The least milliseconds of two runs of a program after a first run."""
    views = [View(p, a) for p, a in zip(fields.pointers, fields.host)]
    for _ in range(2):
        # From the third time on a run repeats the launches, as a graph if short.
        compiled(*views, steps, steps=steps)
    spent = events(fields.gpu, lambda: compiled(*views, steps, steps=steps), 2)
    compiled.runner(0).close()
    return min(spent)


def measure(
    bench: Bench,
    name: str,
    element: str,
    domain: tuple[int, ...],
    depth: int | None,
    changes: dict[str, Any],
    repeats: int,
    steps_of_run: int,
) -> dict[str, Any]:
    """One row: a check against the unfused program, then the times of one launch and of a run."""
    text, _, _ = source(name, domain, element)
    fields = bench.prepare(name, element, domain)
    fused = fused_program(text, depth, changes, bench.terms)
    loop = next(iter(fused.kernels.facts_of(loop) for loop in loops_of(fused.kernels.source)))
    deepest = loop[0]
    steps = 2 * deepest.steps + 3
    same = all(
        np.array_equal(a, b)
        for a, b in zip(run_on(fused, fields, steps), bench.unfused(text, steps))
    )
    kernel = fused.kernels.kernel(deepest.name)
    target = fused.kernels.options.target
    cost = predicted(fused, deepest.name)
    runner = fused.runner(0)
    cells = int(np.prod(domain))
    times = launch_times(fused, deepest, fields, repeats)
    run: dict[str, float] = {}
    if steps_of_run:
        # Hand-made schedules are for a single kind of halos.
        public = fused if changes else public_program(text, depth, bench.terms)
        rate = cells * steps_of_run / time_of_run(public, fields, steps_of_run) / 1e6
        run = {f"gcells_per_s_{steps_of_run}_steps": round(rate, 1)}
    runner.close()
    return {
        "stencil": name,
        "changes": changes,
        "dtype": element,
        "domain": list(domain),
        "halos": bench.terms.halos,
        "fp_division": bench.terms.fp_division,
        "depth": deepest.steps,
        "gcells_per_s": round(cells * deepest.steps / np.median(times) / 1e6, 1),
        "gcells_per_s_peak": round(cells * deepest.steps / min(times) / 1e6, 1),
        **run,
        "bitwise_equal_to_unfused": same,
        "gcells_per_s_predicted": round(cost.gcells_per_second, 1),
        "limit_predicted": cost.limit,
        "fma_bound": fma_bound(fused, element),
        "copy_bound": round(copy_bound(loops_of(fused.module)[0], target), 1),
        "best_peer": PEERS.get((name, element)),
        "schedule": schedule_of(fused),
        **facts_of(kernel, target),
    }


def facts_of(kernel: Kernel, target: Target) -> dict[str, int]:
    """The resources of a kernel, and the launch."""
    return {
        "registers": kernel.registers,
        "warps_per_multiprocessor": kernel.block // 32 * occupancy(kernel, target).blocks,
        "spill_bytes": kernel.spill_bytes,
        "shared_bytes": kernel.shared_bytes,
        "grid": kernel.grid,
        "block": kernel.block,
    }


def schedule_of(compiled: CompiledProgram) -> str:
    """The schedule of the first loop, as text."""
    return str(loops_of(compiled.kernels.tiled)[0].schedule)


def predicted(compiled: CompiledProgram, name: str) -> Cost:
    """The cost model's predictions for a kernel."""
    module = compiled.kernels.tiled
    placed = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    return predict(placed[name], module, compiled.kernels.options.target)


def commit() -> str:
    """The measured commit."""
    result = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return result.stdout.strip() or "unknown"


def parsed() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+", help="stencil:dtype:domain[:depth]")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--halos", choices=("common", "apart"), default="common")
    parser.add_argument("--fp-division", choices=get_args(FpDivision), default="exact")
    parser.add_argument("--run", type=int, default=1000, help="steps of the whole run, 0 for none")
    return parser.parse_args()


def table_of(rows: Sequence[dict[str, Any]], steps: int) -> Table:
    """The measured rows, with the figures of a run of `steps` steps."""
    table = Table(
        "stencil",
        "dtype",
        "domain",
        "T",
        "changes",
        "GCells/s",
        "peak",
        "run",
        "equal",
        "registers",
        "spill",
    )
    for row in rows:
        if "error" in row:
            continue
        table.add_row(
            row["stencil"],
            row["dtype"],
            "x".join(map(str, row["domain"])),
            str(row["depth"]),
            str(row["changes"] or ""),
            f"{row['gcells_per_s']:.0f}",
            f"{row['gcells_per_s_peak']:.0f}",
            f"{row.get(f'gcells_per_s_{steps}_steps', 0):.0f}",
            str(row["bitwise_equal_to_unfused"]),
            str(row["registers"]),
            str(row["spill_bytes"]),
        )
    return table


def main() -> None:
    options = parsed()
    terms = Terms(options.halos, options.fp_division)
    failures = assemble_rows(options.rows, terms)
    gpu = device()
    console = Console(width=160)
    rows: list[dict[str, Any]] = []
    bench = Bench(gpu, terms)
    with gpu.current():
        bandwidth = copy_bandwidth(gpu)
        for text, failure in zip(options.rows, failures):
            if failure is None:
                try:
                    rows.append(measure(bench, *parse_row(text), options.repeats, options.run))
                except Exception as error:
                    failure = described(error)
            if failure is not None:
                rows.append({"row": text, "error": failure})
            console.print(json.dumps(rows[-1]))
    console.print(table_of(rows, options.run))
    console.print(f"device copy: {bandwidth:.2f} TB/s")
    run = {
        "commit": options.commit or commit(),
        "device": gpu.name,
        "driver": int(checked(gpu.cuda.cuDriverGetVersion())),
        "versions": {n: version(n) for n in ("xdsl", "cuda-bindings", "numpy")}
        | {"nvjitlink": assembler_version()},
        "python": platform.python_version(),
        "timetile": timetile.__version__,
        "command": f"benchmarks/measure.py {' '.join(options.rows)}",
        "copy_tb_per_s": round(bandwidth, 3),
    }
    if options.out is not None:
        options.out.write_text(json.dumps([row | run for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
