"""Runs on simulated devices, beside runs on one device."""

from __future__ import annotations

from typing import Any

import numpy as np

import timetile
from support.ranks import copies
from support.simulated import SimulatedSite, World, on_simulated
from timetile.runtime.executors.homes import PlaneError
from timetile.runtime.program.parted_program import PartedProgram


def arguments_of(text: str, steps: int) -> list[Any]:
    """Fields of equal halos, and a number of steps."""
    program = timetile.compile(text, executor="numpy", cache=False)
    field = next(each for each in program.parameters if each.is_field)
    kind = np.float32 if "f32" in text else np.float64
    shared = np.random.default_rng(1).random(field.shape).astype(kind)
    return [shared.copy() if p.is_field else steps for p in program.parameters]


def run_beside_one(
    text: str, arguments: list[Any], count: int, seed: int, every: int = 2, **options: Any
) -> tuple[bool, World, PartedProgram]:
    """Whether a run on several devices ends with the bits of one, the streams, and the program."""
    expected, own = copies(arguments), copies(arguments)
    timetile.compile(text, executor="numpy", fp_contract="off", cache=False)(*expected)
    program, world = on_simulated(text, count, seed, None, every, halos="common", **options)
    try:
        program(*own)
    except PlaneError:
        # A cell was read before any was there; the rest of the work is dropped.
        program.placed.present = None
        return False, world, program
    return all(np.array_equal(a, b) for a, b in zip(own, expected)), world, program


def waits_of_some_streams() -> dict[bool, Any]:
    """
    Faulty waits of sites: without those of the first two streams (False), and without those of all
    others (True).
    """
    wait = SimulatedSite.wait

    def only(second: bool) -> Any:
        def some(site: SimulatedSite, mark: Any) -> None:
            if (site.number >= 2) is not second:
                wait(site, mark)

        return some

    return {second: only(second) for second in (False, True)}


def ends_as_one(
    text: str, arguments: list[Any], count: int, seed: int, every: int = 2, **options: Any
) -> tuple[bool, World]:
    """Whether a run on several devices ends with the bits of one, and the streams."""
    same, world, program = run_beside_one(text, arguments, count, seed, every, **options)
    if program.placed.present is not None:
        program.close()
    return same, world
