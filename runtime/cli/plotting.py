"""Pictures of fields: curves in 1D, images in 2D, three slices through the middle in 3D."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from timetile.runtime.cli.outputs import written
from timetile.runtime.cli.usage import UsageError

Array = NDArray[Any]

AXES = "zyx"
"""The names of the axes, slowest first, the last of which every field has."""


def panels(title: str, field: Array) -> Iterator[tuple[str, Array]]:
    """What is drawn of a field, each with a title."""
    if field.ndim < 3:
        yield title, field
        return
    for axis, size in enumerate(field.shape):
        yield f"{title}, middle {AXES[axis]}", field.take(size // 2, axis)


def check_picture(path: Path) -> None:
    """UsageError without matplotlib, or where it knows no pictures with such a name."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise UsageError(
            'pictures need matplotlib; install it with pip install "timetile[plot]"'
        ) from error
    if path.suffix.removeprefix(".").lower() not in FigureCanvasBase.get_supported_filetypes():
        raise UsageError(
            f"{path} is of no kind of picture that is known; give it a name that ends in .png"
        )


def plot(fields: Mapping[str, Array], path: Path) -> None:
    """Draw fields by title, one row each, and save the picture."""
    from matplotlib.figure import Figure

    rows = [list(panels(title, field)) for title, field in fields.items()]
    columns = max(len(row) for row in rows)
    # No pyplot: it would look for a screen. Of matplotlib's types many parts are unknown: Any.
    figure: Any = Figure(figsize=(4.5 * columns, 4 * len(rows)), layout="constrained")
    for number, row in enumerate(rows):
        for position, (title, data) in enumerate(row):
            axis = figure.add_subplot(len(rows), columns, number * columns + position + 1)
            axis.set_title(title)
            if data.ndim == 1:
                axis.plot(data)
            else:
                image = axis.imshow(data, cmap="viridis")
                figure.colorbar(image, ax=axis, shrink=0.8)
    with written(path) as file:
        figure.savefig(file, format=path.suffix.removeprefix(".").lower())
