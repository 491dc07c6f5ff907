"""
Fields of a step with boxes of their own: halos are common around each field's box, a kernel then
loads and stores each field once, and rows of many fields keep sectors of memory whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import timetile
from support.executors import kernel_executors
from support.schedules import Schedule, block_plane
from support.simulated import on_simulated
from timetile import CompiledProgram, Field, Model
from timetile.dialects.tile import KernelOp, LoadOp, StoreOp
from timetile.frontend.field_types import DType
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.runtime.program.compiled_program import Executor

SHAPE = (19, 41)


@timetile.stencil
def staggered(e: Field, h: Field):
    """A field that ends a cell before the other, as in Yee's scheme."""
    h.next = h[0, 0] - 0.3 * (e[0, 1] - e[0, 0])
    e.next[1:-1, 1:-1] = e[0, 0] + 0.3 * (h.next[0, 0] - h.next[0, -1])


@timetile.stencil
def halves(u: Field, v: Field):
    """No update writes all cells that a step writes to `u`."""
    v.next = v[0, 0] + 0.25 * (u[-1, 0] + u[1, 0])
    u.next[2:9, 1:-1] = 0.5 * (v[0, 1] + v[0, -1])
    u.next[9:-2, 1:-1] = 0.25 * (v[0, 1] + u[0, -1])


def arrays(count: int, seed: int = 3) -> list[np.ndarray[Any, Any]]:
    """Buffers for fields that take turns, two each with equal cells."""
    drawn = np.random.default_rng(seed)
    fields = [drawn.random(SHAPE) + 0.5 for _ in range(count)]
    return [cells.copy() for cells in fields for _ in range(2)]


def compiled_for(model: Model, executor: Executor, **how: Any) -> CompiledProgram:
    module = model.module(SHAPE, "float64")
    return timetile.compile(module, executor=executor, cache=False, **how)


def used_common(program: CompiledProgram) -> bool:
    return "common_once" in vars(program.kernels)


def assert_as_judged(
    model: Model, program: CompiledProgram, given: Sequence[np.ndarray[Any, Any]], steps: int
) -> None:
    """Buffers end with the bits of the unfused program."""
    expected, found = ([cells.copy() for cells in given] for _ in range(2))
    compiled_for(model, "numpy")(*expected, steps=steps)
    program(*found, steps=steps)
    for a, b in zip(expected, found, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize("depth", [2, 3])
def test_halos_are_common_around_the_box_of_each_field(executor: Executor, depth: int):
    program = compiled_for(staggered, executor, depth=depth)
    for steps in (depth, 2 * depth + 1):
        assert_as_judged(staggered, program, arrays(2), steps)
    assert used_common(program) and "tiled" not in vars(program.kernels)


@pytest.mark.parametrize("at", [(0, 5), (7, 0), (18, 40)])
def test_a_difference_beside_the_box_of_one_field_counts(at: tuple[int, int]):
    """The cell lies in the box of the other field, and so in the bounds of the step."""
    given = arrays(2)
    given[1][at] += 1.0
    program = compiled_for(staggered, "planes", depth=3)
    assert_as_judged(staggered, program, given, 7)
    assert not used_common(program)


def test_a_kernel_with_common_halos_loads_and_stores_each_field_once():
    def counts(halos: str) -> tuple[int, int]:
        program = compiled_for(staggered, "planes", depth=3, halos=halos)
        kernels = [op for op in program.kernels.tiled.ops if isinstance(op, KernelOp)]
        deepest = max(kernels, key=lambda kernel: kernel.steps.data)
        loads = {stage.data for stage in deepest.stages if isinstance(stage, LoadOp)}
        return len(loads - {None}), sum(isinstance(stage, StoreOp) for stage in deepest.stages)

    assert counts("common") == (2, 2)
    # The box of `h` is the step's: a whole update, with or without.
    assert counts("apart") == (3, 3)


@pytest.mark.parametrize("halos", ["compared", "common"])
def test_a_field_written_in_parts_keeps_its_older_version(halos: str):
    program = compiled_for(halves, "planes", depth=2, halos=halos)
    given = arrays(2)
    assert_as_judged(halves, program, given, 5)
    if halos == "compared":
        given[1][10, 7] += 1.0
        assert_as_judged(halves, program, given, 5)


@timetile.stencil
def apart(u: Field, v: Field):
    """The first part of a cut domain has one of the boxes of `u`."""
    v.next = v[0, 0] + 0.25 * u[0, 1]
    u.next[1:4, 1:-1] = 0.5 * (v[0, 1] + v[0, -1])
    u.next[15:-1, 1:-1] = 0.25 * (v[0, 1] + u[0, -1])


@pytest.mark.parametrize("parts", [(4, 1), (2, 2)])
def test_a_part_with_one_box_of_several_keeps_cells_of_older_versions(parts: tuple[int, int]):
    given = arrays(2)
    given[1][0, 7] += 1.0
    given[1][6, 7] += 1.0
    expected, found = ([cells.copy() for cells in given] for _ in range(2))
    compiled_for(apart, "numpy")(*expected, steps=7)
    program, _ = on_simulated(str(apart.module(SHAPE, "float64")), 4, 1, parts, depth=2)
    program(*found, 7)
    program.close()
    for a, b in zip(expected, found, strict=True):
        assert a.tobytes() == b.tobytes()


def mixed(field: Field, other: Field) -> Any:
    return 0.5 * field[0, 0, 0] + 0.25 * (other[0, 0, -1] + other[1, 0, 0])


@timetile.stencil
def three_fields(a: Field, b: Field, c: Field):
    a.next, b.next, c.next = mixed(a, c), mixed(b, a), mixed(c, b)


@timetile.stencil
def four_fields(a: Field, b: Field, c: Field, d: Field):
    a.next, b.next, c.next, d.next = mixed(a, d), mixed(b, a), mixed(c, b), mixed(d, c)


@pytest.mark.parametrize("element", ["float32", "float64"])
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(("model", "whole"), [(three_fields, False), (four_fields, True)])
def test_rows_of_many_fields_end_with_sectors_of_memory(
    model: Model, whole: bool, depth: int, element: DType
):
    """Of 32 cells a row, three levels leave 26: 24 are three sectors in FP32."""
    passes = Schedule("plane", block_plane((3, 1), (8, 1)), planes=5).passes(depth)
    program = timetile.compile(
        model.module((7, 41, 141), element), executor="planes", passes=passes, cache=False
    )
    kernels = [op for op in program.kernels.tiled.ops if isinstance(op, KernelOp)]
    geometry = Geometry(max(kernels, key=lambda kernel: kernel.steps.data))
    last = geometry.axes[-1]
    begin = last.origin + last.overlap_low
    assert last.count > 1
    assert geometry.stores_whole_sectors == whole
    assert (begin % geometry.sector == last.useful % geometry.sector == 0) == whole
