"""Finds NaN or infinities in fields, and warns of runs with new NaN or infinities."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timetile.runtime.host.parameters import Parameter
from timetile.runtime.machine.side_by_side import by_parts

Array = NDArray[Any]


def is_finite(array: Array) -> bool:
    """
    Whether no cell is NaN or infinite. A sum tells, in one pass without a copy, unless the sum
    is beyond all numbers.
    """
    if array.dtype.kind != "f":
        return True

    def finite(part: slice) -> bool:
        cells = array[part] if array.ndim else array
        with np.errstate(all="ignore"):
            return bool(np.isfinite(cells.sum())) or bool(np.isfinite(cells).all())

    return all(by_parts(array, finite))


def wild_cells(array: Array) -> int:
    """How many cells are NaN or infinite."""
    return array.size - int(np.count_nonzero(np.isfinite(array)))


def blow_up(fields: Mapping[str, Array], when: str, way_out: str) -> str | None:
    """
    A warning about fields finite before a run: the number of wild cells of each, the time of the
    check (`when`), and a way out. None if all are finite.
    """
    found = {name: wild_cells(array) for name, array in fields.items() if not is_finite(array)}
    if not found:
        return None
    counts = ", ".join(
        f"{name} has {count} of {fields[name].size} cells that are NaN or infinite"
        for name, count in found.items()
    )
    return f"{counts} {when}, and none at the start; {way_out}"


def warn(text: str) -> None:
    """Give a RuntimeWarning, at the running line outside of timetile."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("timetile."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, RuntimeWarning, stacklevel=level)


WAY_OUT = "take smaller coefficients or a smaller time step"


def warn_of_blow_up(
    parameters: Sequence[Parameter], arguments: Sequence[Any], given: Sequence[Array], when: str
) -> None:
    """Give a RuntimeWarning for arrays finite before a run (`given`) and not afterwards."""
    fields = {
        f"argument {parameter.label}": value
        for parameter, value in zip(parameters, arguments)
        if any(value is array for array in given)
    }
    text = blow_up(fields, when, WAY_OUT)
    if text is not None:
        warn(text)
