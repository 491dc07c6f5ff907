"""
Pictures of fields at the start and at the end: curves in 1D, images in 2D, three slices through the
middle in 3D.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.stencil import StencilBoundsAttr

from timetile.runtime.cli.outputs import written
from timetile.runtime.cli.usage import UsageError
from timetile.runtime.program.finite import wild_cells

Array = NDArray[Any]

MOST_CELLS = 1024
"""Most cells of a picture along an axis; of longer axes every second, third and so on is drawn."""

SIGNED, PLAIN, WILD = "RdBu_r", "inferno", "#00e5ff"
"""Colours: around zero, from low to high, and where a cell is NaN or infinite."""

LEAST_OF_OTHER_SIGN = 0.02
"""The share of the largest number that both signs must reach for a field to count as signed."""


@dataclass(frozen=True)
class Panel:
    """
    A drawn part of a field: a curve, an image or one slice; the place of the slice, the shown axes,
    the first cell and the end along each axis, and the number of NaN or infinite cells of the
    field.
    """

    where: str
    cells: Array
    axes: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]
    wild: int


def panels(
    field: Array, bounds: StencilBoundsAttr, inside: StencilBoundsAttr | None = None
) -> list[Panel]:
    """The drawn parts of a field with an array of these bounds: the cells inside, or all."""
    shown = bounds if inside is None else inside
    ends = tuple(zip(shown.lb, shown.ub))
    parts = [slice(first - low, end - low) for (first, end), low in zip(ends, bounds.lb)]
    cells = field[tuple(parts)].astype(np.float64, copy=False)
    wild = wild_cells(cells)
    if cells.ndim < 3:
        return [Panel("", thinned(cells), tuple(range(cells.ndim)), ends, wild)]
    found: list[Panel] = []
    for axis, size in enumerate(cells.shape):
        middle: Array = np.take(cells, size // 2, axis)
        others = tuple(k for k in range(cells.ndim) if k != axis)
        where = f"cell {ends[axis][0] + size // 2} of axis {axis}"
        sides = tuple(ends[k] for k in others)
        found.append(Panel(where, thinned(middle), others, sides, wild))
    return found


def thinned(cells: Array) -> Array:
    """A copy of the cells shown by a picture."""
    return cells[tuple(slice(None, None, -(-size // MOST_CELLS)) for size in cells.shape)].copy()


def check_picture(path: Path) -> None:
    """Raise UsageError without matplotlib, or for a file name of no picture format."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise UsageError(
            'pictures need matplotlib; install it with pip install "timetile[plot]"'
        ) from error
    if path.suffix.removeprefix(".").lower() not in FigureCanvasBase.get_supported_filetypes():
        raise UsageError(f"{path} is of no known kind of picture; give a name with the ending .png")


def span_of(cells: Sequence[Array]) -> tuple[float, float]:
    """The least and the greatest finite number; 0 and 1 if there is none."""
    finite = np.concatenate([part[np.isfinite(part)] for part in cells])
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def is_signed(cells: Sequence[Array]) -> bool:
    """The numbers lie on both sides of zero."""
    low, high = span_of(cells)
    return min(-low, high) > LEAST_OF_OTHER_SIGN * max(-low, high)


def limits(cells: Sequence[Array], *, signed: bool) -> tuple[float, float]:
    """The numbers of the first and the last colour, around zero where the field is signed."""
    low, high = span_of(cells)
    if signed:
        low, high = -max(-low, high), max(-low, high)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def title_of(time: str, panel: Panel) -> str:
    """The title of a panel."""
    parts = [time, panel.where, f"{panel.wild} cells NaN or infinite" if panel.wild else ""]
    return ", ".join(filter(None, parts))


def draw_curves(figure: Any, place: Any, name: str, times: Mapping[str, Sequence[Panel]]) -> None:
    """Draw a field of one axis: a curve for each time."""
    axis = figure.add_subplot(place)
    for number, (time, (panel, *_)) in enumerate(times.items()):
        first, end = panel.ends[0]
        along = np.linspace(first, end, len(panel.cells), endpoint=False)
        finite = np.where(np.isfinite(panel.cells), panel.cells, np.nan)
        axis.plot(along, finite, color=f"C{number}", label=title_of(time, panel))
    axis.set(title=name, xlabel="axis 0 (cells)", ylabel=name)
    axis.legend()


def draw_images(
    figure: Any, places: Any, name: str, times: Mapping[str, Sequence[Panel]], *, signed: bool
) -> None:
    """Draw a 2D field, or slices of a 3D field, with a scale of colours for each time."""
    from matplotlib import colormaps

    colours = colormaps[SIGNED if signed else PLAIN].with_extremes(bad=WILD)
    number = 0
    for time, drawn in times.items():
        low, high = limits([panel.cells for panel in drawn], signed=signed)
        axes: list[Any] = []
        for panel in drawn:
            axis = figure.add_subplot(places[number])
            number += 1
            (top, bottom), (left, right) = panel.ends
            image = axis.imshow(
                np.ma.masked_invalid(panel.cells),
                cmap=colours,
                vmin=low,
                vmax=high,
                extent=(left - 0.5, right - 0.5, bottom - 0.5, top - 0.5),
                interpolation="nearest",
            )
            axis.set_title(title_of(time, panel), fontsize="medium")
            axis.set(xlabel=f"axis {panel.axes[1]} (cells)", ylabel=f"axis {panel.axes[0]} (cells)")
            axes.append(axis)
            if panel is drawn[-1]:
                figure.colorbar(image, ax=axes, shrink=0.85, label=name)


def plot(
    fields: Mapping[str, Mapping[str, Sequence[Panel]]], path: Path, heading: str = ""
) -> None:
    """
    Draw fields by name, each at some times, and save the picture: a row for a field, or for a time
    of a volume.
    """
    from matplotlib.figure import Figure

    rows: list[tuple[str, Mapping[str, Sequence[Panel]]]] = []
    for name, times in fields.items():
        volume = max(map(len, times.values())) > 1
        rows += (
            [(name, {time: drawn}) for time, drawn in times.items()] if volume else [(name, times)]
        )
    columns = max(sum(map(len, times.values())) for _, times in rows)
    # pyplot would look for a screen. Many parts of matplotlib have unknown types: Any.
    figure: Any = Figure(figsize=(1 + 4.2 * columns, 0.6 + 3.8 * len(rows)), layout="constrained")
    grid = figure.add_gridspec(len(rows), columns)
    for number, (name, times) in enumerate(rows):
        first = next(iter(times.values()))[0]
        if len(first.axes) == 1:
            draw_curves(figure, grid[number, :], name, times)
        else:
            cells = [panel.cells for drawn in fields[name].values() for panel in drawn]
            places = [grid[number, k] for k in range(columns)]
            draw_images(figure, places, name, times, signed=is_signed(cells))
    if heading:
        figure.suptitle(heading)
    with written(path) as file:
        figure.savefig(file, format=path.suffix.removeprefix(".").lower(), dpi=110)
