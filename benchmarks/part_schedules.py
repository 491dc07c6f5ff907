"""
Time steps that read memory at given schedules, beside the model's predictions.

    python benchmarks/part_schedules.py "tti8 f32 4,2,1 2,4,1 1" "yee3 f32 1,1,4 1,8,1 2"

An argument names a program of `real_programs.py` and its element, then gives cells a thread, warps
a block, blocks a multiprocessor, and cuts of the step, if any. The lines are samples for
`reading` of the cost model.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

from measure import predicted
from pinned_programs import best_speed, compiled_at, fields_in_cupy
from printed_rows import print_rows
from real_rows import bytes_of_step
from rows import described
from small_domains import DTYPES, domain_of, model_of

from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


def compiled(text: str, executor: Executor = "gpu") -> CompiledProgram:
    """The program of an argument, with kernels from a cache."""
    name, element, cells, warps, blocks, *cuts = text.split()
    parts = ["ahead=0", f"occupancy={blocks}", "resident", "reads_memory"]
    pinned = ["1", cells, warps, *parts, *(f"cuts=[{each}]" for each in cuts)]
    module = model_of(name).module(domain_of(name, element), DTYPES[element])
    return compiled_at(module, pinned, Cache(Path("build/part-schedules-cache")), executor)


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
        "bytes_of_step": bytes_of_step(program),
    }


def measured(text: str, gpu: Device) -> dict[str, float]:
    """The best of three timed runs, in GPts/s."""
    program, (name, element) = compiled(text), text.split()[:2]
    arrays = fields_in_cupy(program, DTYPES[element])
    program(*arrays, steps=2)
    return {"gpts_per_s": best_speed(program, arrays, prod(domain_of(name, element)), gpu, 2)}


if __name__ == "__main__":
    print_rows(__doc__ or "", "program element cells warps blocks [cuts]", prepared, measured)
