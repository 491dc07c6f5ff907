r"""
Fields of 16 bits beside fields of FP32 at given schedules, in GPts/s.

    python benchmarks/storage_schedules.py "star25 f16" \
        "star25 f16 1 4,4 8,1 ahead=2 sync=mbarrier" \
        "wave_3d_so8 f16 1 1,1,4 1,8,1 resident reads_memory"

An argument names a program of `storage_types.py` and its storage. For another schedule than
timetile's own, depth, cells a thread, warps a block and other parts follow.

`bits` is a sum over the words of all arrays after the first two
steps: rows of one program and storage have equal sums.
"""

from __future__ import annotations

from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from measure import predicted
from pinned_programs import best_speed, compiled_at
from printed_rows import print_rows
from real_rows import bytes_of_step
from real_steps import first_cells
from rows import described
from small_domains import name_of
from storage_types import STEPS, STORAGE, TypeRow, domain_of, started

from timetile.dialects.cell_types import FIELD_DTYPES
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


def compiled(text: str, executor: Executor) -> CompiledProgram:
    """The program of an argument, with kernels from a cache."""
    name, storage, *pinned = text.split()
    module = STEPS[name].module(domain_of(name), STORAGE[storage])
    return compiled_at(module, pinned, Cache(Path("build/storage-schedules-cache")), executor)


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
        "bytes_of_step": bytes_of_step(program),
    }


def measured(text: str, gpu: Device) -> dict[str, float]:
    """
    The best of three timed runs, and a sum of bits. CuPy has no bfloat16: arrays of NumPy are
    copied, and the time is that of the launches.
    """
    program, (name, storage) = compiled(text, "gpu"), text.split()[:2]
    if storage == "bf16":
        arrays = started(program, TypeRow(name, storage, domain_of(name)), domain_of(name))
    else:
        kind, library = dtype_of(FIELD_DTYPES[STORAGE[storage]]), import_module("cupy")
        arrays = [
            first_cells(name_of(p.name), p.shape, "float32", library=library).astype(kind)
            for p in program.parameters[:-1]
        ]
    program(*arrays, steps=2)
    bits = sum(int(array.view(np.uint16).sum(dtype=np.uint64)) for array in arrays)
    cells = prod(domain_of(name))
    if storage != "bf16":
        return {"gpts_per_s": best_speed(program, arrays, cells, gpu, 12), "bits": bits}
    spent = min(program(*arrays, steps=240).seconds for _ in range(3))
    program.close()
    return {"gpts_per_s": round(240 * cells / spent / 1e9, 1), "bits": bits}


if __name__ == "__main__":
    print_rows(__doc__ or "", "program storage [depth cells warps parts]", prepared, measured)
