"""
Domains too small for several GPUs: a single GPU runs such programs.

A launch on few cells takes as long as a launch on half of the cells, and several GPUs wait for each
other besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import SupportsIndex

from timetile.dialects.decomposition import Decomposition
from timetile.passes.diagnostics import remark
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.parted_program import PartedProgram, compiled_on_gpus, gpu_numbers
from timetile.runtime.ranks.layout import cells_in
from timetile.runtime.ranks.loop_schedules import deepest_of, schedules_of

LONGEST_LAUNCH = 200e-6
"""Seconds of a launch from which on exchanges are small: several GPUs are always faster."""


def chooses_freely(gpus: object, parts: object, exchange_every: object) -> bool:
    """Whether a program may run on fewer GPUs: a number of GPUs is all that is given."""
    return isinstance(gpus, SupportsIndex) and parts is None and exchange_every is None


def on_gpus(
    gpus: object,
    made: CompiledProgram,
    parts: Sequence[int] | Decomposition | None,
    exchange_every: int | None,
    alone: Callable[[], CompiledProgram],
) -> CompiledProgram:
    """
    A program compiled for a single GPU, made ready for several; or `alone`, with a remark, where a
    single GPU is as fast and the number of GPUs is all that is given.
    """
    several = compiled_on_gpus(gpu_numbers(gpus), made, parts, exchange_every)
    why = why_on_one(several) if chooses_freely(gpus, parts, exchange_every) else None
    if why is None:
        return several
    remark(several.function, why)
    return alone()


def why_on_one(program: PartedProgram) -> str | None:
    """Why a single GPU takes less time than several, by the model; None where several take less."""
    choice = program.exchange
    if choice is None or choice.chosen.launch_seconds > LONGEST_LAUNCH:
        return None
    parts = program.parts
    common = parts.options.halos == "compared"
    kernels = parts.choices.program(program.module, parts.options, common=common)
    found = schedules_of(kernels)
    deepest = deepest_of(found)
    speeds = [each.gcells_per_second for each in found if deepest in each.depths]
    speed, several = max(speeds, default=0.0), choice.step_seconds
    alone = cells_in(parts.domain.box) / speed / 1e9 if speed else several
    if several < alone:
        return None
    return (
        f"the domain is too small for {program.decomposition.count} GPUs: a step takes "
        f"{several * 1e6:.2f} us there and {alone * 1e6:.2f} us on one, as predicted, and one GPU "
        "runs the program; give parts to use all"
    )
