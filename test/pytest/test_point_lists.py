"""Lists of points as kernels read them: cuts by planes, and runs of planes with points."""

from __future__ import annotations

import numpy as np
import pytest

from timetile.dialects.point_lists import GAPS, PointLayout
from timetile.dialects.temporal import PointKind
from timetile.runtime.arithmetic.points import cells_of_steps, packed_list


@pytest.mark.parametrize("used", [[], [0], [40], [3, 4, 90], [99], list(range(0, 100, 7))])
def test_cuts_never_fall_and_keep_both_ends(used: list[int]):
    cells = np.array([[row, 5] for row in used], int).reshape(-1, 2)
    layout = PointLayout((100, 64), 16)
    found, _ = packed_list(layout, cells, np.zeros(len(used), int))
    for gap in range(len(GAPS)):
        cuts = found[layout.cuts(gap) : layout.cuts(gap) + 101]
        assert cuts[0] == 0 and cuts[100] == 100
        assert (np.diff(cuts) >= 0).all()
        assert used or np.array_equal(cuts, np.arange(101))


def test_a_list_knows_the_runs_of_each_stack_of_buckets():
    cells = np.array([[row, 5] for row in (3, 4, 20, 60)] + [[59, 64], [40, 130]])
    layout = PointLayout((100, 140), 8)
    found, _ = packed_list(layout, cells, np.zeros(6, int))
    parts = [
        found[start : start + 101 * layout.stacks].reshape(101, layout.stacks)
        for start in (layout.following, layout.run_ends)
    ]
    rows = [0, 3, 5, 21, 61, 100]
    assert [part[rows, 0].tolist() for part in parts] == [
        [3, 3, 20, 60, 100, 100],
        [5, 5, 21, 61, 100, 100],
    ]
    assert [part[[0, 41], 2].tolist() for part in parts] == [[40, 100], [41, 100]]


def test_a_list_knows_the_lines_of_cells_if_there_are_few():
    layout = PointLayout((100, 9, 140), 64)
    line = [[row, 3, column] for row in range(0, 90, 4) for column in (6, 70)]
    for cells, count in ((line, 2), (line[:12], 0), ([[k, k % 9, k] for k in range(60)], 0)):
        found, _ = packed_list(layout, np.array(cells), np.zeros(len(cells), int))
        assert found[layout.line_count] == count
        assert len(cells_of_steps(layout, PointKind.INJECT, np.array(cells))) == len(cells)
        left = cells_of_steps(layout, PointKind.SAMPLE, np.array(cells))
        assert len(left) == (0 if count else len(cells))
    found, _ = packed_list(layout, np.array(line), np.zeros(len(line), int))
    places = [found[layout.line(axis) : layout.line(axis) + 2].tolist() for axis in (1, 2)]
    assert places == [[3, 3], [6, 70]]


def test_a_list_of_a_plate_knows_the_spot_of_cells_near_each_other():
    layout, near = PointLayout((100, 64), 16), [[40, 7], [41, 7], [55, 22]]
    for cells, spot in ((near, [40, 56, 7, 23]), ([*near, [56, 7]], [0] * 4), ([], [0] * 4)):
        found, _ = packed_list(layout, np.array(cells, int).reshape(-1, 2), np.zeros(len(cells)))
        assert found[layout.spot : layout.spot + 4].tolist() == spot
