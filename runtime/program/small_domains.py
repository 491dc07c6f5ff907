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
from timetile.runtime.kernels.of_program import ProgramKernels
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
    if not chooses_freely(gpus, parts, exchange_every) or not has_short_launches(several):
        return several
    single = alone()
    why = why_on_one(several, single)
    if why is None:
        single.close()
        return several
    several.close()
    remark(several.function, why)
    return single


def has_short_launches(program: PartedProgram) -> bool:
    """Whether launches are predicted to be so short that an exchange may take as long."""
    choice = program.exchange
    return choice is not None and choice.chosen.launch_seconds <= LONGEST_LAUNCH


def why_on_one(program: PartedProgram, single: CompiledProgram) -> str | None:
    """
    Why a single GPU takes less time than several, by the model; None where several take less, or
    without a prediction. `single`: the program of a single GPU.
    """
    choice, speed = program.exchange, speed_of(single.kernels)
    if choice is None or not speed:
        return None
    several, alone = choice.step_seconds, cells_in(program.parts.domain.box) / speed / 1e9
    if several < alone:
        return None
    return (
        f"the domain is too small for {program.decomposition.count} GPUs: a step takes "
        f"{several * 1e6:.2f} us there and {alone * 1e6:.2f} us on one, as predicted, and one GPU "
        "runs the program; give parts to use all"
    )


def speed_of(kernels: ProgramKernels) -> float:
    """The predicted speed of the deepest kernel, in GCells/s; 0 without a prediction."""
    if kernels.options.halos == "compared":
        kernels = kernels.common
    if kernels.chosen is not None:
        # A measured schedule has no prediction.
        kernels = ProgramKernels(kernels.source, kernels.options, kernels.cache)
    found = schedules_of(kernels)
    deepest = deepest_of(found)
    return max((each.gcells_per_second for each in found if deepest in each.depths), default=0.0)
