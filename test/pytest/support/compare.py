"""Comparing the buffers after two runs, bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.passes import ModulePass

import timetile
from support import reference
from support.description import Array, Inputs, Program, random_inputs
from support.programs import program_text
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


def bits_of(array: Array) -> Array:
    """The bits of floats as integers: equal for equal bits, unlike zeros and NaN."""
    return array.view({4: np.uint32, 8: np.uint64}[array.dtype.itemsize])


def assert_same_bits(program: Program, expected: Inputs, found: Inputs, what: str) -> None:
    """
    Every buffer is equal after two runs, halos included; a failure names the first different cell.
    """
    for buffer in program.buffers:
        a, b = expected.arrays[buffer.name], found.arrays[buffer.name]
        differs = np.argwhere(bits_of(a) != bits_of(b))
        if differs.size:
            at = tuple(int(x) for x in differs[0])
            cell = [x + low for x, low in zip(at, buffer.own_bounds.lower, strict=True)]
            raise AssertionError(
                f"{what}: {len(differs)} of {a.size} cells of {buffer.name} differ, "
                f"the first is {cell}: expected {a[at]!r}, found {b[at]!r}"
            )


def assert_as_unfused(
    compiled: Callable[..., object],
    program: Program,
    inputs: Inputs,
    steps: int,
    what: str = "a run",
) -> None:
    """A run ends like the unfused program, and keeps its inputs."""
    expected, found = inputs.copy(), inputs.copy()
    reference.run(program, expected, steps)
    compiled(*found.arguments(program, steps))
    assert_same_bits(program, expected, found, f"{what}, {steps} steps")


def check_compiled(
    program: Program,
    executor: Executor,
    depth: int,
    steps: int,
    passes: tuple[ModulePass, ...] | None = None,
    *,
    common: bool = False,
) -> CompiledProgram:
    """The compiled program, after a run that ends like the unfused program."""
    compiled = timetile.compile(
        program_text(program),
        executor=executor,
        depth=depth,
        passes=passes,
        fp_contract="off",
        cache=False,
    )
    inputs = random_inputs(program, seed=steps, common_halos=common)
    assert_as_unfused(compiled, program, inputs, steps, executor)
    return compiled


def assert_close(program: Program, expected: Inputs, found: Inputs, ulps: int, what: str) -> None:
    """Every buffer is the same up to some units of the largest value's last place."""
    for buffer in program.buffers:
        a, b = expected.arrays[buffer.name], found.arrays[buffer.name]
        unit = np.finfo(a.dtype).eps * max(1.0, float(np.abs(a).max()))
        worst = float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())
        if not worst <= ulps * unit:
            raise AssertionError(f"{what}: {buffer.name} differs by {worst / unit:.1f} units")
