"""Work on the parts of large arrays by several threads."""

from __future__ import annotations

import numpy as np
import pytest

from timetile.runtime.machine import side_by_side
from timetile.runtime.machine.side_by_side import by_parts, copy_in_rows
from timetile.runtime.program.finite import is_finite


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a few bytes, for four threads."""
    monkeypatch.setattr(side_by_side, "PART_BYTES", 64)
    monkeypatch.setenv("TIMETILE_NUM_THREADS", "4")


def test_parts_cover_an_array_once_and_in_order():
    array = np.zeros((37, 5))
    assert [(each.start, each.stop) for each in by_parts(array, lambda part: part)] == [
        (0, 9), (9, 18), (18, 27), (27, 37)
    ]  # fmt: skip
    assert len(by_parts(np.zeros((3, 500)), lambda part: part)) == 3
    assert len(by_parts(np.zeros(7), lambda part: part)) == 1


def test_a_copy_has_the_cells_in_rows():
    columns = np.asfortranarray(np.random.default_rng(1).random((40, 6)))
    for array in (columns, columns[::-1, ::2], np.array(2.5), np.zeros((0, 3))):
        made = copy_in_rows(array)
        assert made.flags.c_contiguous and type(made) is np.ndarray
        assert made.dtype == array.dtype and np.array_equal(made, array)
        assert not np.shares_memory(made, array)


def test_a_wild_cell_in_any_part_is_found():
    cells = np.full((40, 8), 1e308)
    assert is_finite(cells)
    for row in (0, 15, 39):
        wild = cells.copy()
        wild[row, 3] = np.nan
        assert not is_finite(wild)
