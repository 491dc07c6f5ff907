"""
Fields without an index: a step function has no arrays, and refuses NumPy's functions of arrays,
conditions, and `+=`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from timetile.frontend.errors import error

OF_NEIGHBOURS = {
    "roll": "u[-1] for np.roll(u, 1)",
    "diff": "u[1] - u[0] for np.diff(u)",
    "gradient": "(u[1] - u[-1]) / 2 for np.gradient(u)",
    "pad": "nothing: cells at the rim keep their values",
    "convolve": "the sum of weights times u[-1], u[0] and so on",
}
"""Corrections for NumPy's functions that combine neighbours."""

OF_ALL_CELLS = frozenset(
    [
        "all",
        "any",
        "argmax",
        "argmin",
        "average",
        "count_nonzero",
        "max",
        "mean",
        "median",
        "min",
        "nanmax",
        "nanmean",
        "nanmin",
        "nansum",
        "prod",
        "ptp",
        "std",
        "sum",
        "var",
    ]
)
"""NumPy's functions with a result from all cells together."""


def refuse_function(name: str) -> NoReturn:
    """Raise StencilError about a function of NumPy on arrays."""
    if name in OF_NEIGHBOURS:
        raise error(
            f"np.{name} combines cells of an array, and a step reads them; write "
            f"{OF_NEIGHBOURS[name]}"
        )
    if name in OF_ALL_CELLS:
        raise error(
            f"np.{name} is of all cells together, and a step computes one; call it on the arrays "
            "between two calls of advance, or write timetile.maximum, minimum or total in until="
        )
    raise error(
        f"np.{name} takes arrays, and a step computes one cell; write the step with the values "
        "around the cell, as u[-1] and u[0]"
    )


class WholeField:
    """A field without an index, and so without a value in a step."""

    __slots__ = ()
    # Python would otherwise iterate over indices 0, 1, and on.
    __iter__ = None

    def __bool__(self) -> bool:
        raise error(
            "a field has no truth value; write timetile.where(condition, a, b), with a condition "
            "of a cell as u[0] > 0"
        )

    def __eq__(self, other: object) -> Any:
        # Python's own answer, of objects, would be one truth value for all cells.
        raise error(
            "a field has a value at each cell, and is not compared; compare the cell's, as "
            "u[0, 0] > 1, or, in until=, a number of all cells: timetile.maximum(u[0, 0]) > 1"
        )

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __hash__(self) -> int:
        return id(self)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> NoReturn:
        raise error(
            f"np.{ufunc.__name__} takes the values of a cell, and a field has a value at each "
            "cell; write the cell, as u[0, 0] for the cell's own"
        )

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, options: Any
    ) -> NoReturn:
        refuse_function(function.__name__)

    # Hidden from type checkers: a type checker then refuses `+=` without running.
    if not TYPE_CHECKING:

        def __iadd__(self, other: object) -> NoReturn:
            raise error(
                "new values are assigned once, not changed; add all to the value first, then "
                "write u.next = value"
            )

        __isub__ = __imul__ = __itruediv__ = __ipow__ = __iadd__
