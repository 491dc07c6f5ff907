"""AN5D's model gives the predictions printed in its paper."""

from __future__ import annotations

from math import prod

import pytest

from timetile.passes.cost.papers.an5d import (
    BLOCKS,
    DEPTHS,
    HEIGHTS,
    Configuration,
    Peaks,
    Workload,
    alu_utilisation,
    blocks_of,
    configurations,
    covered,
    double_buffer_bytes,
    gflops,
    peaks_of,
    ranked,
    threads_at,
    useful_sides,
)
from timetile.passes.targets.target import target_named

V100 = {
    4: Peaks(15.7e12, 791e9, 10_650e9, 80),
    8: Peaks(7.85e12, 805e9, 12_750e9, 80),
}
"""The V100 of table 4, by bytes of a cell."""


def star(radius: int, cell_bytes: int) -> Workload:
    """A star of section 6.1 on the domain of the paper: all products but one are fused."""
    fused = 4 * radius
    alu = alu_utilisation(fused, 1)
    return Workload((16384, 16384), radius, cell_bytes, 2 * radius, 8 * radius + 1, alu)


@pytest.mark.parametrize(
    ("radius", "cell_bytes", "chosen", "printed"),
    [
        (1, 4, Configuration(10, (256,), 256), 7330),
        (2, 4, Configuration(10, (512,), 256), 8172),
        (3, 4, Configuration(7, (512,), 256), 8627),
        (4, 4, Configuration(5, (512,), 256), 8954),
        (1, 8, Configuration(10, (256,), 256), 4177),
    ],
)
def test_predictions_are_those_of_table_5(
    radius: int, cell_bytes: int, chosen: Configuration, printed: float
):
    predicted = gflops(star(radius, cell_bytes), chosen, V100[cell_bytes])
    assert predicted == pytest.approx(printed, rel=0.015)


def test_two_planes_are_shared_whatever_the_depth():
    """Table 1: 2 x nthr x nword words of 4 bytes."""
    assert double_buffer_bytes(256, 4) == 2 * 256 * 4
    assert double_buffer_bytes(1024, 8) == 2 * 1024 * 2 * 4


def test_the_search_has_the_papers_configurations():
    """Section 6.3: 144 configurations of 2D stencils; 64 of 3D stencils with blocks of 16 x 16."""
    sizes = {rank: DEPTHS[rank] * len(BLOCKS[rank]) * len(HEIGHTS[rank]) for rank in (2, 3)}
    assert sizes == {2: 144, 3: 64 * 3 // 4}


def test_threads_are_those_of_a_count_cell_by_cell():
    program = Workload((20, 30), 1, 4, 2, 9, 1.0)
    chosen = Configuration(2, (12,), 7)
    assert useful_sides(program, chosen) == (8,)
    assert blocks_of(program, chosen) == 3 * 4
    for level in range(3):
        reach, halo = 2 - level, level == 0
        count = 0
        for first in range(0, 20, 7):
            rows = range(first - reach, first + 7 + reach)
            for left in range(0, 30, 8):
                columns = range(left - reach, left + 8 + reach)
                count += sum(-halo <= y < 20 + halo for y in rows) * sum(
                    -halo <= x < 30 + halo for x in columns
                )
        assert threads_at(program, chosen, level) == count
    assert threads_at(program, Configuration(1, (32,), 20), 1) == prod(program.domain)


def test_a_tile_ends_with_the_axis():
    assert covered(10, 4, 0, 0) == 10
    assert covered(10, 4, 2, 0) == (6 + 8 + 4)


def test_configurations_are_ranked_with_enough_registers_and_a_compute_region():
    target = target_named("sm_90")
    wide = Workload((4096, 4096), 4, 8, 8, 33, 0.9)
    found = ranked(wide, target)
    assert set(found) <= set(configurations(wide, target))
    assert len({(each.depth, each.block) for each in found}) == len(found)
    speeds = [gflops(wide, each, peaks_of(target, 8)) for each in found]
    assert speeds == sorted(speeds, reverse=True) and speeds
    assert ranked(wide, target, [32]) == []
    narrow = ranked(wide, target, [2], [(128,)])
    assert [(each.block, each.depth) for each in narrow] == [((128,), 2)]
