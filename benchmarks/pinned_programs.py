"""Programs at a schedule and depth of the command line, compiled and timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

from kept import with_cache
from real_programs import SECONDS
from real_steps import first_cells
from small_domains import PinnedSchedule, name_of
from timing import events
from xdsl.dialects.builtin import ModuleOp

import timetile
from timetile.dialects.tile.schedule import Schedule
from timetile.lowering.pipelines import tile_passes
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.gpu import Device
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


def schedule_of(cells: str, warps: str, *parts: str) -> str:
    """The text of a schedule's attribute."""
    lanes = ", ".join(["1"] * cells.count(",") + ["32"])
    given = {name: number for name, _, number in (part.partition("=") for part in parts)}
    made = {"tile": "block", "cells": f"[{cells}]", "lanes": f"[{lanes}]", "warps": f"[{warps}]"}
    made |= {"pack": "1", "occupancy": "1"} | given
    order = [part.name for part in fields(Schedule) if part.name in made]
    return f"#tile.schedule<{', '.join(f'{name} {made[name]}'.strip() for name in order)}>"


def compiled_at(
    module: ModuleOp, pinned: Sequence[str], cache: Cache, executor: Executor
) -> CompiledProgram:
    """
    A program at a depth and a schedule, the words of `schedule_of`; without any, at timetile's own.
    `reassoc` before the depth allows another order of terms.
    """
    fp_reassoc = "on" if pinned[:1] == ["reassoc"] else "flags"
    decisions = pinned[fp_reassoc == "on" :]
    passes = None
    if decisions:
        depth, *others = decisions
        made = PinnedSchedule(schedule_of(*others), int(depth))
        passes = tuple(
            made if isinstance(each, ChooseSchedulePass) else each for each in tile_passes()
        )
    made = timetile.compile(
        module, executor=executor, halos="common", passes=passes, cache=cache, fp_reassoc=fp_reassoc
    )
    return with_cache(made, cache)


def fields_in_cupy(program: CompiledProgram, dtype: str) -> list[Any]:
    """The first cells of a program's fields, in GPU memory."""
    cupy: Any = import_module("cupy")
    return [
        first_cells(name_of(p.name), p.shape, dtype, library=cupy)
        for p in program.parameters
        if p.is_field
    ]


def best_speed(
    program: CompiledProgram,
    arrays: Sequence[Any],
    cells: int,
    gpu: Device,
    multiple: int,
) -> float:
    """
    The best of three timed runs of a multiple of so many steps, in GPts/s. Closes the program.
    """

    def run(steps: int) -> None:
        program(*arrays, steps=steps)

    spent = min(events(gpu, lambda: run(multiple), 1)) / multiple
    steps = multiple * max(1, int(SECONDS * 1e3 / max(spent, 1e-3) / multiple))
    best = min(events(gpu, lambda: run(steps), 3))
    program.close()
    return round(cells * steps / best / 1e6, 1)
