"""
Real programs at given schedules, beside timetile's own choice, in GPts/s.

    python benchmarks/program_schedules.py "wave_3d_so4 f64" \
        "wave_3d_so4 f64 2 4,2 8,1 ahead=2 sync=mbarrier" \
        "elastic_2d_so4 f32 4 2 1 tile=warp pack=8 ahead=2"

Each argument is a program of `real_programs.py` and its element, and, unless the schedule is
timetile's own, the depth, the cells of a thread, the warps of a block and other parts of a
schedule. `bits` is a sum over the words of all arrays after the first twelve steps: rows of one
program and element have equal sums.
"""

from __future__ import annotations

from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

from measure import predicted
from printed_rows import print_rows
from real_programs import (
    DTYPES,
    SECONDS,
    PinnedSchedule,
    bytes_of_step,
    domain_of,
    model_of,
    name_of,
)
from real_steps import first_cells
from rows import described
from storage_schedules import schedule_of
from timing import events

import timetile
from timetile.lowering.pipelines import tile_passes
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

BITS_STEPS = 12
"""Steps before the sum of bits: a multiple of all usual depths."""


def compiled(text: str, executor: Executor = "gpu") -> CompiledProgram:
    """The program of an argument, with kernels from a cache."""
    name, element, *pinned = text.split()
    module = model_of(name).module(domain_of(name, element), DTYPES[element])
    cache = Cache(Path("build/program-schedules-cache"))
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
        facts = program.kernels.facts[0]
        depth = max(fact.steps for fact in facts)
        deepest = [fact for fact in facts if fact.steps == depth]
        found = [program.kernels.kernel(fact.name) for fact in facts]
        registers = [kernel.registers for kernel in found]
        spilled = [kernel.spill_bytes for kernel in found]
        cost = sum(predicted(program, fact.name).seconds for fact in deepest) / depth
    except Exception as error:
        return {"row": text, "error": described(error)}
    return {
        "row": text,
        "depth": depth,
        "registers": registers,
        "spilled": spilled,
        "predicted": round(prod(domain_of(*text.split()[:2])) / cost / 1e9, 1),
    }


def measured(text: str, gpu: Device, copy: float) -> dict[str, float]:
    """The best of three timed runs, its share of a copy's speed for one step, and a sum of bits."""
    cupy: Any = import_module("cupy")
    program, (name, element) = compiled(text), text.split()[:2]
    arrays = [
        first_cells(name_of(p.name), p.shape, DTYPES[element], library=cupy)
        for p in program.parameters[:-1]
    ]

    def run(steps: int) -> None:
        program(*arrays, steps=steps)

    run(BITS_STEPS)
    bits = sum(int(array.view(cupy.uint32).sum(dtype=cupy.uint64)) for array in arrays)
    spent = min(events(gpu, lambda: run(BITS_STEPS), 1)) / BITS_STEPS
    steps = BITS_STEPS * max(1, int(SECONDS * 1e3 / max(spent, 1e-3) / BITS_STEPS))
    best = min(events(gpu, lambda: run(steps), 3))
    program.close()
    speed = prod(domain_of(name, element)) * steps / best / 1e6
    share = speed * bytes_of_step(program) / copy / 1e3
    return {"gpts_per_s": round(speed, 1), "share": round(share, 3), "bits": bits}


if __name__ == "__main__":
    print_rows(__doc__ or "", "program element [depth cells warps parts]", prepared, measured)
