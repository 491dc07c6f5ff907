"""
Fields of 16 bits and of 8 in kernels whose neighbours read a load's copies: the copies keep the
bytes of memory, and all executors leave the bits of NumPy.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import timetile
from timetile import Field
from timetile.dialects.tile import ExchangeOp, KernelOp, LoadOp, Published
from timetile.frontend.field_types import ARRAY_DTYPES, DType
from timetile.frontend.model import Model
from timetile.passes.analysis.block_memory import BlockMemory
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.facts import facts_of
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.traffic import moved_bytes
from timetile.passes.targets.target import target_named
from timetile.runtime.arithmetic.cells import dtype_of
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


@timetile.stencil
def wide(u: Field, k: Field):
    """A star of radius 2 beside a weight."""
    along = u[-2, 0, 0] + u[2, 0, 0] + u[-1, 0, 0] + u[1, 0, 0]
    across = u[0, -2, 0] + u[0, 2, 0] + u[0, 0, -2] + u[0, 0, 2] + u[0, 0, -1] + u[0, 0, 1]
    u.next = u[0, 0, 0] * 0.5 + k[0, 0, 0] * (along + across)


@timetile.stencil
def counted(u: Field):
    """The number of neighbours with an odd number."""
    odd = (u[0, -1, 0] & 1) + (u[0, 1, 0] & 1) + (u[0, 0, -1] & 1) + (u[1, 0, 0] & 1)
    u.next = u[0, 0, 0] + odd


def pipeline(depth: int, cells: str, warps: int, ahead: int) -> str:
    """A pipeline of tiles of two axes, held by a block."""
    return (
        f"temporal-fusion{{depths={depth}}},"
        f"device-tiling{{tile=block cells={cells} lanes=1,32 warps={warps},1}},"
        f"multi-queue-buffering{{ahead={ahead}}},register-streaming,carry-halos,peel-boundaries"
    )


def compiled(
    model: Model, shape: tuple[int, ...], dtype: DType, executor: Executor, passes: str | None
) -> CompiledProgram:
    module = model.module(shape, dtype)
    return timetile.compile(module, executor=executor, halos="common", cache=False, passes=passes)


def ended(program: CompiledProgram, dtype: DType, shape: tuple[int, ...]) -> list[Any]:
    """The buffers after three steps from drawn cells."""
    rng, made = np.random.default_rng(7), dict[str, Any]()
    for name in ("u", "k"):
        cells = rng.random(shape) * (100 if dtype.startswith("int") else 0.1)
        made[name] = cells.astype(dtype_of(ARRAY_DTYPES[dtype]))
    names = [(each.name or "").removesuffix("_next") for each in program.parameters[:-1]]
    arrays = [made[name].copy() for name in names]
    program(*arrays, steps=3)
    return arrays


def copied(program: CompiledProgram) -> list[ExchangeOp]:
    """The exchanges that copies of a load serve."""
    stages = (op for op in program.kernels.tiled.walk() if isinstance(op, ExchangeOp))
    return [stage for stage in stages if stage.what.data is Published.COPIES]


CASES: list[tuple[Model, DType, int, str, int]] = [
    (wide, "float16", 1, "3,4", 150), (wide, "bfloat16", 1, "2,2", 142),
    (wide, "bfloat16", 2, "4,4", 144), (wide, "float16", 2, "4,2", 138),
    (wide, "float16", 1, "4,4", 144),
    (counted, "int16", 2, "2,4", 148), (counted, "int8", 1, "3,4", 148),
]  # fmt: skip


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
@pytest.mark.parametrize(("model", "dtype", "depth", "cells", "row"), CASES)
def test_neighbours_read_the_copies_of_narrow_fields(
    model: Model, dtype: DType, depth: int, cells: str, row: int, executor: Executor
):
    shape = (7, 11, row)
    program = compiled(model, shape, dtype, executor, pipeline(depth, cells, 2, 2))
    assert {each.element for each in copied(program)} == {ARRAY_DTYPES[dtype]}
    expected = ended(compiled(model, shape, dtype, "numpy", None), dtype, shape)
    for found, wanted in zip(ended(program, dtype, shape), expected, strict=True):
        assert found.tobytes() == wanted.tobytes()


def test_a_warp_copies_several_rows_of_16_bits_by_16_bytes():
    for row, sizes in ((144, {"16"}), (148, {"8"})):
        program = compiled(counted, (5, 17, row), "int16", "planes", pipeline(1, "4,4", 2, 2))
        kernel = program.kernels.kernel(program.kernels.facts[0][0].name)
        found = re.findall(r"cp\.async\S+ \[[^]]*\], \[[^]]*\], (\d+)", kernel.ptx)
        assert set(found) == sizes


def test_rows_without_whole_words_are_not_copied():
    program = compiled(wide, (11, 17, 143), "float16", "planes", pipeline(1, "4,4", 3, 2))
    assert not copied(program)
    loads = [op for op in program.kernels.tiled.walk() if isinstance(op, LoadOp)]
    assert loads and not any(load.planes_ahead for load in loads)


def test_narrow_planes_take_half_the_shared_memory_and_half_the_traffic():
    passes, taken, moved = pipeline(1, "2,4", 4, 2), list[int](), list[float]()
    waits: list[bool] = []
    for dtype in ("float32", "float16"):
        program = compiled(wide, (64, 64, 264), dtype, "planes", passes)
        kernel = next(op for op in program.kernels.tiled.ops if isinstance(op, KernelOp))
        geometry, target = Geometry(kernel), target_named("sm_90")
        taken.append(BlockMemory.of(geometry).bytes)
        facts = facts_of(kernel, program.kernels.tiled)
        waits.append(facts.copies_are_narrow)
        moved.append(sum(moved_bytes(facts, Setting.of_kernel(kernel), geometry, target)))
    assert taken[1] < 0.6 * taken[0] and moved[1] < 0.6 * moved[0]
    assert waits == [False, True]
