"""Columns of several heights, where steps on the rim of mirrored volumes are long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

import timetile
from support.placed import deepest
from support.schedules import Schedule, block_plane
from support.steps import noise
from timetile import Field
from timetile.dialects.tile import KernelOp
from timetile.passes.analysis.geometry.columns import Columns, launch
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.mixed_columns import mixed_columns
from timetile.passes.analysis.geometry.residency import Residency
from timetile.passes.targets.target import target_named
from timetile.passes.tiling.peel_boundaries import variants_of
from timetile.runtime.program.compiled_program import Executor


@timetile.stencil(boundary="mirror")
def step(u: Field):
    along = 0.2 * u[-1, 0, 0] + 0.1 * u[0, -1, 0] + 0.15 * u[0, 1, 0] + 0.11 * u[0, 0, -1]
    u.next = 0.3 * u[0, 0, 0] + along + 0.12 * u[0, 0, 1]


@dataclass(frozen=True)
class CutPass(ModulePass):
    """Columns on the rim in chunks, and columns inside in three heights."""

    name = "cut"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [each for each in op.ops if isinstance(each, KernelOp)]:
            rim = Geometry(kernel).edge_columns
            parts = [Columns(rim, 4, on_rim=True), Columns(2, 9), Columns(3, 3), Columns(1, 2)]
            kernel.variants = ArrayAttr(variants_of(kernel, parts, guards_all=False))


@pytest.mark.parametrize("executor", ["planes", "ptx"])
def test_columns_of_every_height_are_computed(executor: Executor):
    passes = Schedule("rows", block_plane((2, 1), (2, 1))).passes(1)
    module = step.module((9, 16, 132))
    program = timetile.compile(
        module, executor=executor, cache=False, halos="common", fp_contract="off",
        passes=(*passes[:-1], CutPass()),
    )  # fmt: skip
    kernel = deepest(program.kernels.tiled, 1)
    geometry = Geometry(kernel)
    assert [geometry.columns(each) for each in geometry.used_variants] == [14, 2, 3, 1]
    u = noise(9, 16, 132)
    found: list[Any] = [u.copy(), u.copy()]
    program(*found, 1)
    wanted = [u.copy(), u.copy()]
    timetile.compile(module, executor="numpy", cache=False, fp_contract="off")(*wanted, 1)
    assert all(map(np.array_equal, found, wanted))


def test_mixed_columns_end_earlier_than_whole_columns_and_leave_none_out():
    model = step.on(executor="ptx", cache=False, arch="h200", depth=4)
    kernel = deepest(model.program((512, 512, 512)).kernels.tiled, 4)
    geometry, residency = Geometry(kernel), Residency.of(kernel, target_named("h200"))
    rim = geometry.edge_columns
    made = list(mixed_columns(geometry, residency, rim, 1.3))
    for launched in made:
        edge, *inside = launched.columns
        assert edge.on_rim and edge.count == rim
        assert sum(part.count for part in inside) == geometry.plane_tiles - rim
    whole = (Columns(rim, 512, 1.3, on_rim=True), Columns(geometry.plane_tiles - rim, 512))
    assert min(each.steps for each in made) < 0.92 * launch(geometry, residency, *whole).steps
    assert not list(mixed_columns(geometry, residency, 0, 1.3))
