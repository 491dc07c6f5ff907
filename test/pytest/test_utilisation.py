"""
The model of AN5D's sections 5 and 6.3, and the classes of a real kernel's cells counted one by one.
"""

from __future__ import annotations

from itertools import product
from math import ceil

import pytest
from xdsl.dialects.builtin import ModuleOp

from support.catalogue import box, star, sum_program
from support.programs import program_text
from timetile.dialects.tile import KernelOp
from timetile.lowering.pipelines import temporal_passes, tile_passes
from timetile.passes.analysis.geometry.axis_tiling import AxisTiling
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.papers.an5d import (
    alu_utilisation,
    fits,
    multiprocessor_utilisation,
    registers,
    thread_reads,
)
from timetile.passes.targets.target import target_named
from timetile.runtime.explain.utilisation import CellClasses, classify
from timetile.runtime.kernels.options import run_passes
from timetile.runtime.loading.modules import load

pytestmark = pytest.mark.covering


@pytest.mark.parametrize("radius", [1, 2, 3, 4])
@pytest.mark.parametrize("rank", [2, 3])
def test_reads_of_shared_memory_are_those_of_table_2(rank: int, radius: int):
    beside = 2 * radius * (rank - 1)
    side = 2 * radius + 1
    around = box((-radius,) * rank, (radius,) * rank)
    for cached in (False, True):
        assert thread_reads(star(rank, radius), 0, cached=cached) == beside
    assert thread_reads(around, 0, cached=False) == side**rank - side
    assert thread_reads(around, 0, cached=True) == side ** (rank - 1) - 1


def test_arithmetic_units_are_full_of_fused_operations_only():
    assert alu_utilisation(10, 0) == 1.0
    assert alu_utilisation(0, 3) == 0.5
    # j2d5pt: one product, four fused multiply-adds.
    assert alu_utilisation(4, 1) == 0.9
    assert alu_utilisation(0, 0) == 1.0


def test_multiprocessors_are_idle_in_the_last_wave():
    assert multiprocessor_utilisation(528, 264) == 1.0
    assert multiprocessor_utilisation(66, 264) == 0.25
    assert multiprocessor_utilisation(265, 264) == pytest.approx(265 / 528)


def test_registers_prune_the_papers_configurations():
    assert registers(10, 1, 4) == 10 * 3 + 10 + 20
    assert registers(10, 1, 8) == 2 * 10 * 3 + 10 + 30
    arch = target_named("sm_90")
    assert fits(10, 1, 8, 512, arch)
    # 100 registers for each of 1024 threads are more than a multiprocessor has.
    assert not fits(10, 1, 8, 1024, arch)
    assert not fits(16, 4, 8, 32, arch)


def kernels(domain: tuple[int, ...], radius: int, depth: int) -> list[KernelOp]:
    """The placed kernels of a star."""
    module = load(program_text(sum_program("f64", star(len(domain), radius))(domain)))
    assert isinstance(module, ModuleOp)
    run_passes((*temporal_passes(), *tile_passes(depth)), module)
    return [op for op in module.ops if isinstance(op, KernelOp)]


def stores(axis: AxisTiling, tile: int, cell: int) -> bool:
    """
    A tile stores the cells inside the bounds along an axis: tiles do not overlap beyond the bounds.
    """
    first = axis.origin + axis.overlap_low + tile * axis.useful
    begins = tile == 0 or first <= cell
    return begins and (tile == axis.count - 1 or cell < first + axis.useful)


@pytest.mark.parametrize("radius", [1, 2, 4])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize(
    "domain", [*((20, n) for n in (*range(120, 131), 509, 512, 777)), (9, 70, 131), (9, 133, 64)]
)
def test_tiles_cover_the_bounds_and_the_outermost_alone_touch_them(
    domain: tuple[int, ...], radius: int, depth: int
):
    for kernel in kernels(domain, radius, depth):
        geometry = Geometry(kernel)
        for axis, pad in zip(geometry.axes, geometry.margins):
            size, extent = domain[axis.axis], axis.layout.extent
            starts = [axis.origin + n * axis.useful for n in range(axis.count)]
            # Cells outside, read by cells inside, are held as well.
            assert starts[0] <= -geometry.outside.low[axis.axis]
            assert starts[-1] + extent >= size + geometry.outside.high[axis.axis]
            assert all(start >= pad for start in starts[1:])
            assert all(start + extent + pad <= size for start in starts[:-1])
            # One tile fewer would leave cells out.
            held = starts[-1] + extent - starts[0]
            assert axis.count == 1 or held - axis.useful < axis.span
            # The overlap is dealt to the tiles, less the stored part of the outermost tiles'
            # overlap.
            inner = axis.inner_cells
            assert len(inner) == axis.count * axis.useful
            assert inner.start - axis.origin == axis.overlap_low
        # Stored rows begin with a whole vector, or within a vector of two cells to save a tile.
        last = geometry.axes[-1]
        if (last.origin + last.overlap_low + radius) % geometry.vector:
            assert geometry.vector == 2
            assert last.count < 1 + ceil((last.span - last.layout.extent) / (last.useful - 2))


@pytest.mark.parametrize("size", range(8184, 8216, 4))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_stores_begin_with_a_sector_where_rows_are_whole_ones(size: int, depth: int):
    """Rows of `size` cells and a halo of 4 on both sides, of 8 bytes each: sectors have 4 cells."""
    for kernel in kernels((2100, size), 4, depth):
        geometry = Geometry(kernel)
        axis = geometry.axes[-1]
        assert (axis.origin + axis.overlap_low + 4) % geometry.sector == 0


@pytest.mark.parametrize(
    ("domain", "radius", "depth"),
    [((37, 500), 1, 3), ((20, 301), 2, 2), ((9, 50, 70), 1, 2), ((64, 7), 1, 1)],
)
def test_classes_are_what_counting_gives(domain: tuple[int, ...], radius: int, depth: int):
    for kernel in kernels(domain, radius, depth):
        geometry = Geometry(kernel)
        found = dict.fromkeys(("valid", "redundant", "boundary", "out_of_bound"), 0)
        counts = [axis.count for axis in geometry.axes]
        for tile in product(*map(range, counts)):
            places = [
                [axis.origin + number * axis.useful + n for n in range(axis.layout.extent)]
                for axis, number in zip(geometry.axes, tile)
            ]
            for cell in product(*places):
                sizes = [domain[axis.axis] for axis in geometry.axes]
                owned = all(
                    0 <= x < size and stores(axis, n, x)
                    for x, size, axis, n in zip(cell, sizes, geometry.axes, tile)
                )
                if owned:
                    found["valid"] += 1
                elif all(0 <= x < size for x, size in zip(cell, sizes)):
                    found["redundant"] += 1
                elif all(-radius <= x < size + radius for x, size in zip(cell, sizes)):
                    found["boundary"] += 1
                else:
                    found["out_of_bound"] += 1
        assert classify(geometry) == CellClasses(**found)
