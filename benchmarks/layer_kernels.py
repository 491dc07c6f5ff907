"""
Time each kernel of steps with absorbing layers, alone and together.

    python benchmarks/layer_kernels.py iso_regions yee3_cpml --out layers.jsonl

A row has a kernel's box, its cells, the bytes of its fields, the time of a launch, and the share of
a copy's speed. The last row of a program has the time of a step: of launches one after the other,
and in a graph, where launches without common cells run side by side. `--ways whole` keeps a step's
boxes, `regions` splits a step with layers into regions, `chosen` is the model's choice.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pinned_programs import fields_in_cupy
from rows import described
from small_domains import DTYPES, domain_of, model_of
from timing import copy_bandwidth, events

import timetile
from timetile.dialects.tile import KernelOp
from timetile.lowering.pipelines import tile_passes
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.actions import Prepared, Repeated
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.explain.figures import traffic
from timetile.runtime.program.compiled_program import CompiledProgram

WAYS = {"chosen": None, "whole": False, "regions": True}
"""Whether a step is split into regions, by the name of a way; None for the model's choice."""

LAUNCHES = 10
"""Launches of one kernel between two events."""

STEPS = 64
"""Steps of a timed run: so many launches that the run is a graph."""


@dataclass(frozen=True)
class Case:
    """A program, its element type, and a way to cut its step."""

    program: str
    element: str
    way: str


def compiled(case: Case, folder: Path) -> CompiledProgram:
    """The program of a case."""
    module = model_of(case.program).module(
        domain_of(case.program, case.element), DTYPES[case.element]
    )
    choosing = ChooseSchedulePass(regions=WAYS[case.way], reads_memory=True)
    passes = tuple(
        choosing if isinstance(each, ChooseSchedulePass) else each for each in tile_passes()
    )
    given = None if case.way == "chosen" else passes
    return timetile.compile(
        module, executor="gpu", halos="common", passes=given, cache=Cache(folder)
    )


def assembled(case: Case, folder: Path) -> str:
    """Assemble all kernels of a case; what went wrong, if anything."""
    try:
        program = compiled(case, folder)
        for each in [fact for facts in program.kernels.facts for fact in facts]:
            program.kernels.kernel(each.name)
    except Exception as error:
        return described(error)
    return ""


def launched(program: CompiledProgram) -> list[Prepared]:
    """The launches of the last run of each loop, each kernel once."""
    runner = program.runners.of(0)
    found: dict[str, Prepared] = {}
    for run in runner.runs.values():
        for action in run.actions:
            if isinstance(action, Repeated):
                for each in action.launches:
                    found.setdefault(each.kernel.name, each)
    return list(found.values())


def kernel_rows(program: CompiledProgram, gpu: Device, copy: float) -> list[dict[str, Any]]:
    """A row for each kernel of a step."""
    rows: list[dict[str, Any]] = []
    known = {op.sym_name.data: op for op in program.kernels.tiled.ops if isinstance(op, KernelOp)}
    for each in launched(program):
        op, kernel = known[each.kernel.name], each.kernel

        def run(launch: Prepared = each) -> None:
            for _ in range(LAUNCHES):
                gpu.launch(launch.kernel, launch.arguments, 0)

        seconds = min(events(gpu, run, 2, queued=True)) * 1e-3 / LAUNCHES
        sizes = [high - low for low, high in zip(op.bounds.lb, op.bounds.ub)]
        moved = traffic(op) * prod(sizes)
        rows.append({
            "kernel": kernel.name, "from": list(op.bounds.lb), "sizes": sizes,
            "layout": str(op.layout), "blocks": kernel.grid, "registers": kernel.registers,
            "mcells": round(prod(sizes) / 1e6, 3), "bytes": traffic(op),
            "us": round(seconds * 1e6, 2), "share": round(moved / seconds / 1e12 / copy, 3),
        })  # fmt: skip
    return rows


def timed(case: Case, gpu: Device, copy: float, folder: Path) -> list[dict[str, Any]]:
    """The rows of a case."""
    program = compiled(case, folder)
    arrays = fields_in_cupy(program, DTYPES[case.element])
    program(*arrays, steps=8)
    rows = kernel_rows(program, gpu, copy)
    milliseconds = min(events(gpu, lambda: program(*arrays, steps=STEPS), 2))
    program.close()
    cells = prod(domain_of(case.program, case.element))
    alone = sum(row["us"] for row in rows)
    rows.append({
        "kernels": len(rows), "alone_us": round(alone, 1),
        "us": round(milliseconds * 1e3 / STEPS, 1),
        "gpts_per_s": round(cells * STEPS / milliseconds / 1e6, 1),
    })  # fmt: skip
    return [{"program": case.program, "dtype": case.element, "way": case.way} | r for r in rows]


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--elements", nargs="+", choices=tuple(DTYPES), default=["f32"])
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=["chosen"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=Path("build/layer-kernels-cache"))
    return parser.parse_args()


def main() -> None:
    options, began = arguments(), time.perf_counter()
    cases = [Case(*c) for c in product(options.programs, options.elements, options.ways)]
    with ProcessPoolExecutor(os.cpu_count()) as pool, options.out.open("w") as out:
        waiting = [(case, pool.submit(assembled, case, options.folder)) for case in cases]
        gpu = device()
        with gpu.current():
            copy = copy_bandwidth(gpu)
            for case, failed in waiting:
                rows: list[dict[str, Any]] = [{"case": str(case), "error": failed.result()}]
                if not rows[0]["error"]:
                    try:
                        rows = timed(case, gpu, copy, options.folder)
                    except Exception as error:
                        rows = [{"case": str(case), "error": described(error)}]
                import_module("cupy").get_default_memory_pool().free_all_blocks()
                for row in rows:
                    out.write(json.dumps(row) + "\n")
                out.flush()
                last = json.dumps(rows[-1])
                print(f"{time.perf_counter() - began:.0f} s, copy {copy:.3f}: {last}", flush=True)


if __name__ == "__main__":
    main()
