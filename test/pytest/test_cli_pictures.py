"""
Pictures of `timetile run --plot`: start and end, the colours of written cells, and NaN in a
separate colour.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from xdsl.dialects.stencil import StencilBoundsAttr

from support.command_line import COLUMNS, ROWS, K, inputs, run
from timetile.runtime.cli import plotting
from timetile.runtime.cli import run as run_command
from timetile.runtime.cli.plotting import (
    Panel,
    check_picture,
    is_signed,
    limits,
    panels,
    plot,
    thinned,
    title_of,
)
from timetile.runtime.cli.usage import UsageError

pytestmark = pytest.mark.usefixtures("cache_of_file")


def bounds(*ends: tuple[int, int]) -> StencilBoundsAttr:
    return StencilBoundsAttr.from_bounds(ends)


def cell_field(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def drawn_by(line: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The fields that a command line passes to the drawing, by name and time, and the heading."""
    found: dict[str, Any] = {}

    def keep(fields: Any, path: Path, heading: str) -> None:
        found.update(fields=fields, heading=heading)

    monkeypatch.setattr(run_command, "plot", keep)
    assert run(line) == 0
    return found


@pytest.mark.parametrize(("steps", "name", "at_first"), [(3, "arg1 (%v)", 0), (4, "arg0 (%u)", 0)])
def test_start_and_last_time_level_are_drawn_without_the_halo(
    steps: int,
    name: str,
    at_first: int,
    heat: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    given = inputs(tmp_path)
    out = tmp_path / "out.npz"
    line = f"run {heat} --args {given} --set k={K} --steps {steps} --executor cpu --out {out}"
    found = drawn_by(f"{line} --plot {tmp_path / 'out.png'}", monkeypatch)
    assert found["heading"] == f"@heat, {steps} steps on the CPU"
    assert list(found["fields"]) == [name]
    times = found["fields"][name]
    assert list(times) == ["start", f"after {steps} steps"]
    with np.load(given) as before, np.load(out) as after:
        start, end = before["u"], after[name[:4]]
    for array, (panel,) in zip((start, end), times.values()):
        assert np.array_equal(panel.cells, array[1:-1, 1:-1])
        assert panel.ends == ((0, ROWS), (0, COLUMNS))


def test_a_picture_is_written(heat: Path, tmp_path: Path):
    picture = tmp_path / "out.png"
    line = f"run {heat} --init discs --set k={K} --steps 3 --plot {picture}"
    assert run(line) == 0
    height, width, _ = imread(picture).shape
    assert height > 300 and width > 600


@pytest.mark.parametrize(
    ("shape", "count", "rows"), [((9,), 1, 1), ((5, 7), 1, 1), ((4, 5, 6), 3, 2)]
)
def test_fields_of_any_rank_are_drawn(
    shape: tuple[int, ...], count: int, rows: int, tmp_path: Path
):
    around = bounds(*((0, size) for size in shape))
    found = panels(cell_field(*shape), around)
    assert len(found) == count
    assert all(panel.cells.ndim == min(2, len(shape)) for panel in found)
    times = {"start": found, "after 1 steps": panels(-cell_field(*shape), around)}
    names = ["u", "v"] if rows == 1 else ["u"]
    plot(dict.fromkeys(names, times), tmp_path / "out.png")
    height = imread(tmp_path / "out.png").shape[0]
    assert height == pytest.approx((0.6 + 3.8 * rows * len(names)) * 110, abs=2)


def test_slices_go_through_the_middle_of_the_cells_inside():
    field = cell_field(6, 7, 8)
    inside = field[1:5, 1:6, 1:7]
    found = panels(field, bounds((-1, 5), (-1, 6), (-1, 7)), bounds((0, 4), (0, 5), (0, 6)))
    assert [panel.where for panel in found] == [
        "cell 2 of axis 0",
        "cell 2 of axis 1",
        "cell 3 of axis 2",
    ]
    assert [panel.axes for panel in found] == [(1, 2), (0, 2), (0, 1)]
    for axis, panel in enumerate(found):
        assert np.array_equal(panel.cells, inside.take(inside.shape[axis] // 2, axis))


def test_nan_is_drawn_and_counted(tmp_path: Path):
    field = np.zeros((20, 20))
    field[3:9, 3:9] = np.nan
    field[12, 12] = np.inf
    (panel,) = panels(field, bounds((0, 20), (0, 20)))
    assert title_of("after 2 steps", panel) == "after 2 steps, 37 cells NaN or infinite"
    plot({"u": {"after 2 steps": [panel]}}, tmp_path / "out.png")
    seen = np.round(imread(tmp_path / "out.png")[..., :3] * 255).astype(int).reshape(-1, 3)
    wild = [int(plotting.WILD[k : k + 2], 16) for k in (1, 3, 5)]
    assert (np.abs(seen - wild).max(axis=1) <= 2).sum() > 1000


def test_colours_are_around_zero_where_numbers_have_both_signs():
    signed, plain = [np.array([-1.0, 3.0])], [np.array([-1e-9, 3.0])]
    assert is_signed(signed) and not is_signed(plain)
    assert limits(signed, signed=True) == (-3, 3)
    assert limits(plain, signed=False) == (-1e-9, 3)
    assert limits([np.full(3, 2.0)], signed=False) == (1.5, 2.5)
    assert limits([np.full(3, np.nan)], signed=False) == (0, 1)


def test_cells_beyond_the_pictures_resolution_are_left_out():
    assert thinned(np.zeros((3000, 500))).shape == (1000, 500)
    assert thinned(np.zeros((3000, 500))).base is None


def test_a_field_without_an_earlier_time_is_drawn_alone(tmp_path: Path):
    panel = Panel("", np.arange(4.0), (0,), ((0, 4),), 0)
    plot({"u": {"after 1 steps": [panel]}}, tmp_path / "out.png", "@f")
    assert imread(tmp_path / "out.png").shape[0] > 300


def test_pictures_need_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    with pytest.raises(UsageError, match=r'pictures need matplotlib; .*"timetile\[plot\]"'):
        check_picture(tmp_path / "out.png")
