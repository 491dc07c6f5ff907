"""
The layout of planes and edges in shared memory: every cell has a separate place, and rows begin
with a vector.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute

import timetile
from support.catalogue import entry
from support.description import Program
from support.generate import programs, schedules
from support.programs import program_text
from support.schedules import Schedule, device_plane
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.simt import SHARED_SPACE, SharedOp, buffer_type
from timetile.dialects.tile import AxisLayout, KernelOp, Published, Sync
from timetile.passes.analysis.block_memory import BlockMemory
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.shared_layout import EdgeLayout, PaddedPlane
from timetile.passes.cost.facts import facts_of
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.shared_memory import shared_bytes
from timetile.passes.diagnostics import CompileError
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass
from timetile.runtime.kernels.lowered import launch_facts
from timetile.runtime.program.compiled_program import CompiledProgram


@given(
    sides=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), min_size=1, max_size=3),
    element=st.sampled_from([f32, f64]),
)
def test_every_cell_of_a_padded_plane_has_its_place(
    sides: list[tuple[int, int]], element: Attribute
):
    extents, reach = zip(*sides)
    plane = PaddedPlane(element, extents, reach)
    around = (range(-pad, size + pad) for size, pad in zip(extents, plane.pads))
    places = [
        plane.first + sum(at * stride for at, stride in zip(cell, plane.strides))
        for cell in product(*around)
    ]
    assert len(set(places)) == len(places)
    assert min(places) >= 0 and max(places) < plane.cells
    assert all(pad >= far for pad, far in zip(plane.pads, reach))
    assert plane.pitch * CELL_BYTES[element] % 16 == 0


@pytest.mark.parametrize(
    ("warps", "cells", "edges", "expected"),
    [
        # Rows of 32 lanes with two cells each, between eight warps: two edges of one row for
        # each, and for both ends.
        ((8, 1), (4, 2), (1, 1), 10 * 2 * 64),
        # Columns between four warps: single cells.
        ((1, 4), (4, 2), (1, 3), 6 * 2 * 3),
    ],
)
def test_edges_take_a_place_for_every_warp_and_for_both_ends(
    warps: tuple[int, ...], cells: tuple[int, ...], edges: tuple[int, ...], expected: int
):
    axes = [AxisLayout(n, lanes, w, 1) for n, lanes, w in zip(cells, (1, 32), warps)]
    layout = EdgeLayout.of(axes, edges)
    assert layout is not None and layout.cells == expected
    assert EdgeLayout.of([AxisLayout(4, 32, 1, 1)], (1,)) is None


def placed_kernels(program: Program, schedule: Schedule, depth: int) -> CompiledProgram:
    """A program with the kernels of a schedule; kernels too large for small tiles are left out."""
    try:
        compiled = timetile.compile(
            program_text(program),
            executor="simt",
            depth=depth,
            passes=schedule.passes(depth),
            cache=False,
        )
        assert compiled.kernels.tiled
    except CompileError as error:
        assert "taps reach further than the tile is wide" in str(error)
        reject()
    return compiled


@given(data=st.data(), depth=st.integers(1, 3))
def test_a_kernel_allocates_the_slices_of_its_layout(data: st.DataObject, depth: int):
    """Slices follow each other, and each buffer in the code of threads is a slice."""
    program = data.draw(programs())
    kernels = placed_kernels(program, data.draw(schedules(program.rank)), depth).kernels
    for kernel in (op for op in kernels.tiled.ops if isinstance(op, KernelOp)):
        memory = BlockMemory.of(Geometry(kernel))
        ends = [0, *(part.end for part in memory.slices)]
        assert all(part.at == end for part, end in zip(memory.slices, ends))
        assert all(
            part.at + part.cells * CELL_BYTES[part.element] <= part.end for part in memory.slices
        )
        lowered = kernels.threads(kernel.sym_name.data)
        buffers = {
            (op.at.value.data, op.result.type) for op in lowered.walk() if isinstance(op, SharedOp)
        }
        assert buffers == {
            (part.at, buffer_type(part.element, part.cells, SHARED_SPACE)) for part in memory.slices
        }
        assert launch_facts(lowered).shared_bytes.data == memory.bytes


@given(data=st.data(), depth=st.integers(1, 3))
def test_the_cost_model_counts_the_bytes_of_the_layout(data: st.DataObject, depth: int):
    """
    Before homes are chosen, for planes in registers: all bytes of a streamed kernel, and enough for
    others.
    """
    program = data.draw(programs())
    registers = schedules(program.rank).filter(lambda schedule: schedule.streaming is not None)
    counts_as_laid_out(placed_kernels(program, data.draw(registers), depth))


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("what", [Published.EDGES, Published.PLANE])
def test_blocks_with_barriers_of_the_grid_take_the_counted_bytes(what: Published, every: int):
    """A barrier in several steps needs more slots, in numbers that keep the loop short."""
    program = entry("heat-3d").make((19, 23, 64))
    streaming = RegisterStreamingPass(what=what, sync=Sync.GRID, every=every)
    tiling = device_plane((3, 2), 2, 3)
    schedule = Schedule("batches", tiling, MultiQueueBufferingPass(ahead=2), streaming)
    counts_as_laid_out(placed_kernels(program, schedule, 2))


def counts_as_laid_out(compiled: CompiledProgram) -> None:
    """The cost model counts the bytes taken by the kernels of a program."""
    tiled = compiled.kernels.tiled
    for kernel in (op for op in tiled.ops if isinstance(op, KernelOp)):
        geometry, facts = Geometry(kernel), facts_of(kernel, tiled)
        counted = shared_bytes(facts, Setting.of_kernel(kernel), geometry, geometry.ahead)
        taken = BlockMemory.of(geometry).bytes
        assert counted == taken if facts.shape.streams else counted >= taken
