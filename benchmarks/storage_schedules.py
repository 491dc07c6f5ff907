r"""
Fields of 16 bits beside fields of FP32 at given schedules, in GPts/s.

    python benchmarks/storage_schedules.py "star25 f16" \
        "star25 f16 1 4,4 8,1 ahead=2 sync=mbarrier" \
        "wave_3d_so8 f16 1 1,1,4 1,8,1 resident reads_memory"

Each argument is a program of `storage_types.py` and its storage, and, unless the schedule is
timetile's own, the depth, the cells of a thread, the warps of a block and other parts of a
schedule. `bits` is a sum over the words of all arrays after the first two
steps: rows of one program and storage have equal sums.
"""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

from measure import predicted
from printed_rows import print_rows
from real_programs import PinnedSchedule, bytes_of_step, name_of
from real_steps import first_cells
from rows import described
from storage_types import STEPS, STORAGE, domain_of
from timing import events

import timetile
from timetile.dialects.tile.schedule import Schedule
from timetile.lowering.pipelines import tile_passes
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

SECONDS = 0.1
"""The least time of a timed run."""


def schedule_of(cells: str, warps: str, *parts: str) -> str:
    """The text of a schedule's attribute."""
    lanes = ", ".join(["1"] * cells.count(",") + ["32"])
    given = {name: number for name, _, number in (part.partition("=") for part in parts)}
    made = {"tile": "block", "cells": f"[{cells}]", "lanes": f"[{lanes}]", "warps": f"[{warps}]"}
    made |= {"pack": "1", "occupancy": "1"} | given
    order = [part.name for part in fields(Schedule) if part.name in made]
    return f"#tile.schedule<{', '.join(f'{name} {made[name]}'.strip() for name in order)}>"


def compiled(text: str, executor: Executor) -> CompiledProgram:
    """The program of an argument, with kernels from a cache."""
    name, storage, *pinned = text.split()
    module = STEPS[name].module(domain_of(name), STORAGE[storage])
    cache = Cache(Path("build/storage-schedules-cache"))
    if not pinned:
        return timetile.compile(module, executor=executor, halos="common", cache=cache)
    depth, *decisions = pinned
    made = PinnedSchedule(schedule_of(*decisions), int(depth))
    passes = tuple(made if isinstance(each, ChooseSchedulePass) else each for each in tile_passes())
    return timetile.compile(module, executor=executor, halos="common", passes=passes, cache=cache)


def prepared(text: str) -> dict[str, Any]:
    """Compile a program into the cache, and describe it."""
    try:
        program = compiled(text, "planes")
        facts = [fact for loop in program.kernels.facts for fact in loop]
        found = [program.kernels.kernel(fact.name) for fact in facts]
        cost = sum(predicted(program, fact.name).seconds / fact.steps for fact in facts)
    except Exception as error:
        return {"row": text, "error": described(error)}
    return {
        "row": text,
        "steps": max(fact.steps for fact in facts),
        "registers": max(kernel.registers for kernel in found),
        "spilled": max(kernel.spill_bytes for kernel in found),
        "predicted": round(prod(domain_of(text.split()[0])) / cost / 1e9, 1),
    }


def measured(text: str, gpu: Device, copy: float) -> dict[str, float]:
    """The best of three timed runs, its share of a copy's speed, and a sum of bits."""
    cupy: Any = import_module("cupy")
    program, (name, storage) = compiled(text, "gpu"), text.split()[:2]
    arrays = [
        first_cells(name_of(p.name), p.shape, STORAGE[storage], library=cupy)
        for p in program.parameters[:-1]
    ]

    def run(steps: int) -> None:
        program(*arrays, steps=steps)

    run(2)
    bits = sum(int(array.view(cupy.uint16).sum(dtype=cupy.uint64)) for array in arrays)
    spent = min(events(gpu, lambda: run(12), 1)) / 12
    steps = 12 * max(1, int(SECONDS * 1e3 / max(spent, 1e-3) / 12))
    best = min(events(gpu, lambda: run(steps), 3))
    program.close()
    speed = prod(domain_of(name)) * steps / best / 1e6
    share = speed * bytes_of_step(program) / copy / 1e3
    return {"gpts_per_s": round(speed, 1), "share": round(share, 3), "bits": bits}


if __name__ == "__main__":
    print_rows(__doc__ or "", "program storage [depth cells warps parts]", prepared, measured)
