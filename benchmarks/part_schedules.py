"""
Time steps that read memory at given schedules, beside the model's predictions.

    python benchmarks/part_schedules.py "tti8 f32 4,2,1 2,4,1 1" "yee3 f32 1,1,4 1,8,1 2"

Each argument is a program of `real_programs.py`, its element, the cells of a thread, the warps of a
block, the blocks of a multiprocessor, and the cuts of the step, if any. The lines are samples for
`reading` of the cost model.
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
from timing import events

import timetile
from timetile.lowering.pipelines import tile_passes
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device
from timetile.runtime.program.compiled_program import CompiledProgram


def schedule_of(cells: str, warps: str, blocks: str, cuts: str = "") -> str:
    """The text of a schedule's attribute."""
    rank = len(cells.split(","))
    lanes = ", ".join(["1"] * (rank - 1) + ["32"])
    end = f", cuts [{cuts}]" if cuts else ""
    return (
        f"#tile.schedule<tile block, cells [{cells}], lanes [{lanes}], warps [{warps}], pack 1, "
        f"ahead 0, occupancy {blocks}, resident, reads_memory{end}>"
    )


def compiled(text: str) -> CompiledProgram:
    """The program of an argument, with kernels from a cache."""
    name, element, *decisions = text.split()
    pinned = PinnedSchedule(schedule_of(*decisions), 1)
    passes = tuple(
        pinned if isinstance(each, ChooseSchedulePass) else each for each in tile_passes()
    )
    module = model_of(name).module(domain_of(name, element), DTYPES[element])
    cache = Cache(Path("build/part-schedules-cache"))
    return timetile.compile(module, executor="gpu", halos="common", passes=passes, cache=cache)


def prepared(text: str) -> dict[str, Any]:
    """Compile a program into the cache, and describe it."""
    try:
        program = compiled(text)
        kernels = program.kernels
        found = [kernels.kernel(each.name) for each in kernels.facts[0]]
        seconds = sum(predicted(program, each.name).seconds for each in kernels.facts[0])
    except Exception as error:
        return {"row": text, "error": described(error)}
    cells = prod(domain_of(*text.split()[:2]))
    return {
        "row": text,
        "registers": max(kernel.registers for kernel in found),
        "spilled": max(kernel.spill_bytes for kernel in found),
        "predicted": round(cells / seconds / 1e9, 1),
    }


def measured(text: str, gpu: Device, copy: float) -> dict[str, float]:
    """The best of three timed runs, in GPts/s, and its share of a copy's speed."""
    cupy: Any = import_module("cupy")
    program, (name, element) = compiled(text), text.split()[:2]
    arrays = [
        first_cells(name_of(p.name), p.shape, DTYPES[element], library=cupy)
        for p in program.parameters[:-1]
    ]

    def run(steps: int) -> None:
        program(*arrays, steps=steps)

    run(2)
    spent = min(events(gpu, lambda: run(2), 2))
    steps = max(2, int(SECONDS * 2e3 / max(spent, 1e-3)))
    best = min(events(gpu, lambda: run(steps), 3))
    program.close()
    speed = prod(domain_of(name, element)) * steps / best / 1e6
    share = speed * bytes_of_step(program) / copy / 1e3
    return {"gpts_per_s": round(speed, 1), "share": round(share, 3)}


if __name__ == "__main__":
    print_rows(__doc__ or "", "program element cells warps blocks [cuts]", prepared, measured)
