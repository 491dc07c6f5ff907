"""
Real programs at given schedules, beside timetile's own choice, in GPts/s.

    python benchmarks/program_schedules.py "wave_3d_so4 f64" \
        "wave_3d_so4 f64 2 4,2 8,1 ahead=2 sync=mbarrier" \
        "elastic_2d_so4 f32 4 2 1 tile=warp pack=8 ahead=2"

An argument names a program of `real_programs.py` and its element. For another schedule than
timetile's own, depth, cells a thread, warps a block and other parts follow.

`bits` is a sum over the words of all arrays after the first twelve steps: rows of one
program and element have equal sums.
"""

from __future__ import annotations

from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

from kept import kept
from measure import predicted
from pinned_programs import best_speed, compiled_at, fields_in_cupy
from printed_rows import print_rows
from real_rows import bytes_of_step
from rows import described
from small_domains import DTYPES, domain_of, model_of
from xdsl.dialects.builtin import ModuleOp

from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

BITS_STEPS = 12
"""Steps before the sum of bits: a multiple of all usual depths."""


FOLDER = Cache(Path("build/program-schedules-cache"))
"""Kernels and descriptions of rows."""


def module_of(text: str) -> ModuleOp:
    """The program of an argument."""
    name, element, *_ = text.split()
    return model_of(name).module(domain_of(name, element), DTYPES[element])


def compiled(text: str, executor: Executor = "gpu") -> CompiledProgram:
    """The program of an argument at its schedule, with kernels from a cache."""
    return compiled_at(module_of(text), text.split()[2:], FOLDER, executor)


def prepared(text: str) -> dict[str, Any]:
    """Compile a program into the cache, and describe it."""
    try:
        return kept(FOLDER, lambda: description(text), text, module_of(text))
    except Exception as error:
        return {"row": text, "error": described(error)}


def description(text: str) -> dict[str, Any]:
    """What a row says about a program's kernels."""
    program = compiled(text, "planes")
    facts = program.kernels.facts[0]
    depth = max(fact.steps for fact in facts)
    deepest = [fact for fact in facts if fact.steps == depth]
    found = [program.kernels.kernel(fact.name) for fact in facts]
    cost = sum(predicted(program, fact.name).seconds for fact in deepest) / depth
    return {
        "row": text,
        "depth": depth,
        "registers": [kernel.registers for kernel in found],
        "spilled": [kernel.spill_bytes for kernel in found],
        "predicted": round(prod(domain_of(*text.split()[:2])) / cost / 1e9, 1),
        "bytes_of_step": bytes_of_step(program),
    }


def measured(text: str, gpu: Device) -> dict[str, float]:
    """The best of three timed runs, and a sum of bits."""
    cupy: Any = import_module("cupy")
    program, (name, element) = compiled(text), text.split()[:2]
    arrays = fields_in_cupy(program, DTYPES[element])
    program(*arrays, steps=BITS_STEPS)
    bits = sum(int(array.view(cupy.uint32).sum(dtype=cupy.uint64)) for array in arrays)
    cells = prod(domain_of(name, element))
    return {"gpts_per_s": best_speed(program, arrays, cells, gpu, BITS_STEPS), "bits": bits}


if __name__ == "__main__":
    print_rows(__doc__ or "", "program element [depth cells warps parts]", prepared, measured)
