"""Kernels of boxes that share no cell store together what the kernel of all cells stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import gpu

from support.catalogue import entry
from support.programs import program_text
from support.simulated import on_simulated
from timetile.dialects.boxes import CellBox
from timetile.dialects.syntax import field_bounds
from timetile.dialects.tile import KernelOp, RoleKind
from timetile.runtime.executors.homes import MarkedCells
from timetile.runtime.executors.planes import PlanesLaunch
from timetile.runtime.executors.simt.interpreter import SimtLaunch
from timetile.runtime.executors.simt.memory import Buffer
from timetile.runtime.kernels.lowered import launch_facts
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.ranks.split_kernels import with_store_box

pytestmark = pytest.mark.usefixtures("printed_alone")


def kernels_of(name: str, shape: tuple[int, ...], depth: int) -> tuple[ProgramKernels, str]:
    """The kernels of a part of a program on two devices, and the name of the deepest."""
    text = program_text(entry(name).make(shape))
    program, _ = on_simulated(text, 2, depth=depth, halos="common")
    kernels = program.parts.of_parts(common=False)[0]
    return kernels, kernels.facts[0][0].name


def tiled(kernels: ProgramKernels, name: str) -> KernelOp:
    """A kernel at tile level."""
    return next(op for op in kernels.kernel_module(name).ops if isinstance(op, KernelOp))


def arrays_of(kernel: KernelOp) -> list[Any]:
    """Arrays for the fields of a kernel; those but the target have equal cells."""
    made: list[Any] = []
    for argument, role in zip(kernel.body.block.args, kernel.roles):
        box = CellBox.of(field_bounds(argument))
        shape = tuple(high - low for low, high in zip(box.lower, box.upper))
        kind = np.float32 if "f32" in str(argument.type) else np.float64
        cells = np.random.default_rng(1).random(shape).astype(kind)
        made.append(np.zeros_like(cells) if role.role[0] is RoleKind.TARGET else cells)
    return made


def run_planes(kernels: ProgramKernels, name: str, arrays: Sequence[Any]) -> None:
    """Launch a kernel plane by plane."""
    marked = [MarkedCells.of(cells, known=True) for cells in arrays]
    PlanesLaunch(tiled(kernels, name), marked).run()
    for cells, made in zip(arrays, marked):
        cells[...] = made.data


def run_threads(kernels: ProgramKernels, name: str, arrays: Sequence[Any]) -> None:
    """Launch a kernel thread by thread."""
    module = kernels.threads(name)
    function, facts = module.body.block.first_op, launch_facts(module)
    assert isinstance(function, gpu.FuncOp)
    buffers = [Buffer(cells.reshape(-1).copy(), unset=False) for cells in arrays]
    SimtLaunch(function, facts.grid.data, facts.block.data, buffers, facts.cluster.data).run()
    for cells, buffer in zip(arrays, buffers):
        cells[...] = buffer.data.reshape(cells.shape)


@pytest.mark.covering
@pytest.mark.parametrize("run", [run_planes, run_threads])
@pytest.mark.parametrize(
    "name, shape, depth",
    [("heat-3d", (26, 9, 35), 2), ("heat-2d", (44, 67), 3), ("two-boxes-2d", (46, 67), 2)],
)
def test_boxes_together_store_what_a_whole_launch_stores(
    name: str, shape: tuple[int, ...], depth: int, run: Any
):
    kernels, kernel_name = kernels_of(name, shape, depth)
    whole = tiled(kernels, kernel_name)
    expected, own = arrays_of(whole), arrays_of(whole)
    run(kernels, kernel_name, expected)
    bounds = CellBox.of(whole.bounds)
    low, high = bounds.lower[0], bounds.upper[0]
    cuts = [low, low + 5, high - 8, high]
    for first, last in ((cuts[2], cuts[3]), (cuts[0], cuts[1]), (cuts[1], cuts[2])):
        box = CellBox((first, *bounds.lower[1:]), (last, *bounds.upper[1:]))
        made = with_store_box(kernels, box)
        assert made is not None
        run(made, kernel_name, own)
    assert all(np.array_equal(one, other) for one, other in zip(expected, own))


def test_a_box_inside_a_plane_narrows_the_bounds():
    kernels, name = kernels_of("heat-2d", (90, 131), 2)
    made = with_store_box(kernels, CellBox((9, 40), (20, 60)))
    assert made is not None
    kernel = tiled(made, name)
    assert (CellBox.of(kernel.bounds).lower[1], CellBox.of(kernel.bounds).upper[1]) == (38, 62)
    whole, own = arrays_of(kernel), arrays_of(kernel)
    run_planes(kernels, name, whole)
    run_planes(made, name, own)
    target = next(k for k, role in enumerate(kernel.roles) if role.role[0] is RoleKind.TARGET)
    assert np.array_equal(own[target][9:20, 40:60], whole[target][9:20, 40:60])
    own[target][9:20, 40:60] = 0
    assert not own[target].any()
