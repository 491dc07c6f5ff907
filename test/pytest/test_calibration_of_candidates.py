"""
The calibration of the considered schedules: depths and widths that follow from the present fit of
the cost model and the present assembler. A new fit may change the numbers; a change without a new
fit may not.
"""

from __future__ import annotations

import pytest

from support.candidates import considered
from support.catalogue import star, sum_program
from support.programs import program_text


@pytest.mark.parametrize(("radius", "cells"), [(1, {4, 6, 8}), (2, {4, 6})])
def test_rows_of_eight_words_are_for_neighbours_one_cell_away(radius: int, cells: set[int]):
    text = program_text(sum_program("f32", list(star(2, radius)))((8192, 8192)))
    found = considered(text)
    assert {c.schedule.cells[-1] for c in found if c.schedule.tile == "warp"} == cells


@pytest.mark.parametrize(("radius", "depth"), [(1, 12), (2, 7), (3, 4), (4, 3)])
def test_neighbours_farther_away_take_registers(radius: int, depth: int):
    """
    The deepest considered FP32 stars in strips of eight warps: a further level spills (assembled).
    """
    text = program_text(sum_program("f32", list(star(2, radius)))((16384, 16384)))
    cells = 8 if radius == 1 else 6
    strips = [c for c in considered(text) if c.schedule.cells == (cells,) and c.schedule.pack == 8]
    assert max(c.depth for c in strips) == depth


def test_six_cells_of_a_single_step_are_slower_where_rows_begin_within_sectors():
    """Rows of 8196 words begin within sectors of eight words, and rows of 8192 with sectors."""

    def of_four(cells: int) -> float:
        """Seconds of moving six cells of a lane, by those for four cells."""
        text = program_text(sum_program("f32", list(star(2, 2)))((8192, cells)))
        seconds = {
            each.schedule.cells: each.cost.memory_seconds
            for each in considered(text, 1)
            if each.schedule.pack == 8
        }
        return seconds[6,] / seconds[4,]

    assert of_four(8192) > 1.05 * of_four(8188)
