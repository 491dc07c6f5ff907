"""The formulas of SSAM, DTB and the semi-stencil give the numbers of their papers."""

from __future__ import annotations

from itertools import product
from math import inf

import pytest

from timetile.passes.cost.papers import dtb, semi_stencil, ssam

P100 = ssam.Latencies(multiply_add=6, shuffle=33, shared_read=33)
"""Cycles of a warp (table 2)."""


def test_a_thread_caches_the_rows_of_its_outputs():
    """Equation 3 and section 4.4, for the filter of 3 x 3 and four outputs of figure 2."""
    assert ssam.cached_cells(3) == 6
    assert ssam.valid_outputs(3) == 30


@pytest.mark.parametrize("cycles", [P100, ssam.V100])
@pytest.mark.parametrize(("columns", "rows"), list(product((2, 3, 9, 20), repeat=2)))
def test_sums_in_registers_take_fewer_cycles(columns: int, rows: int, cycles: ssam.Latencies):
    """Equation 5, which is positive from 2 x 2 on."""
    saved = columns * rows * cycles.shared_read - (columns - 1) * cycles.shuffle
    assert ssam.gain(columns, rows, cycles) == saved > 0


def test_the_gain_of_a_filter_is_the_equations():
    assert ssam.shuffles_of_sum(3) == 2
    assert ssam.gain(3, 3, ssam.V100) == 9 * 33 - 2 * 22
    assert ssam.latency_in_registers(3, 3, ssam.V100) == 9 * (4 + 33) + 2 * 22


def test_halos_are_below_the_papers_bound():
    """Section 5.3: the share is below (S N + C M) / (S C)."""
    for columns, rows in product(range(2, 21), repeat=2):
        cached = ssam.cached_cells(rows)
        bound = (32 * rows + cached * columns) / (32 * cached)
        assert 0 < ssam.halo_share(columns, rows) < bound


@pytest.mark.parametrize(
    ("across", "down", "printed"),
    [
        (8, 8, [10240, 12288, 14336, 16384, 18432]),
        (16, 8, [15360, 18432, 21504, 24576, 27648]),
        (16, 16, [23040, 27648, 32256, 36864, 41472]),
        (32, 16, [38400, 46080, 53760, 61440, 69120]),
        (32, 32, [64000, 76800, 89600, 102400, 115200]),
    ],
)
def test_shared_memory_is_that_of_table_v(across: int, down: int, printed: list[int]):
    block = (down, across)
    found = [semi_stencil.bytes_of_planes(block, 4, n, 4, fields=2) for n in range(5, 10)]
    assert found == printed


def test_a_semi_stencil_keeps_one_plane_more_than_its_radius():
    """Section III: R + 1, one more with the next plane, R + 3 for two planes a step."""
    assert semi_stencil.whole_planes(4) == 9
    assert semi_stencil.planes(4) == 5
    assert semi_stencil.planes(4, buffered=True) == 6
    assert semi_stencil.planes(4, folded=2) == 7
    assert semi_stencil.partial_sums(4) == 4
    assert semi_stencil.BLOCK == (16, 32)


def test_tiles_take_the_fewest_turns_of_the_device():
    tiles = dtb.Tiles((8592, 8328), (64, 128), 132, 1)
    chosen = tiles.blocks(8)
    assert tiles.turns(chosen, 8) == min(tiles.turns(blocks, 8) for blocks in range(1, 133))
    assert tiles.turns(1, 32) == inf
    assert tiles.turns(1, 64) == inf
    # One tile of all blocks: as many turns as tiles.
    assert dtb.Tiles((100, 100), (64, 128), 1, 1).turns(1, 4) == 2


def test_deeper_launches_pay_until_the_overlap_is_too_wide():
    tiles = dtb.Tiles((8592, 8328), (64, 128), 132, 1)
    deep = dtb.best_depth(tiles, 8, 2, 4, (4.23e12, 32e12))
    shallow = dtb.best_depth(tiles, 8, 2, 4, (42.3e12, 32e12))
    assert 1 <= shallow < deep <= dtb.DEEPEST
