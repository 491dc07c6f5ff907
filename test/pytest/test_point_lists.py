"""Lists of points as kernels read them: cuts by planes, and runs of planes with points."""

from __future__ import annotations

import numpy as np
import pytest

from timetile.dialects.point_lists import GAPS, PointLayout
from timetile.runtime.arithmetic.points import packed_list


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


def test_runs_of_planes_end_where_a_gap_begins():
    cells = np.array([[row, 5] for row in (3, 4, 20, 60)])
    layout = PointLayout((100, 64), 8)
    found, _ = packed_list(layout, cells, np.zeros(4, int))
    places = {gap: found[layout.run_ends(gap) :][[0, 3, 5, 21, 61]] for gap in range(len(GAPS))}
    assert list(places[0]) == [5, 5, 21, 61, 100]
    assert list(places[1]) == [21, 21, 21, 61, 100]
    assert list(places[len(GAPS) - 1]) == [61, 61, 61, 61, 100]
    assert list(found[layout.runs(0) :][[0, 4, 20, 21, 100]]) == [0, 1, 1, 2, 3]
