"""`timetile.stencil`: makes a model of a Python function of one time step."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from timetile.dialects.temporal.boundary import Kind
from timetile.frontend.errors import StencilError, error
from timetile.frontend.model import Model
from timetile.frontend.tracing import traced

BUILT: tuple[str, ...] = ("keep",)
"""The boundaries of Python."""

OF_THE_IR = ("value", *(str(kind) for kind in Kind if kind not in BUILT))
"""The boundaries of `temporal.update` only, written by hand."""

StepFunction = Callable[..., None]


def check_options(boundary: object, reach: object) -> None:
    """Raise StencilError for an unknown boundary, or a reach that is no number of cells."""
    if boundary in OF_THE_IR:
        raise error(
            f"the boundary {boundary!r} exists only in temporal IR, written by hand; use 'keep', "
            "and give cells at the rim values by regions, as u.next[0:1, :] = u[1, 0]"
        )
    if boundary not in BUILT:
        raise error(f"unknown boundary {boundary!r}; use 'keep'")
    known = reach is None or (isinstance(reach, int) and not isinstance(reach, bool) and reach >= 0)
    if not known:
        raise error(
            f"the reach is a number of cells, got {reach!r}; write reach=1, or leave it out"
        )


@overload
def stencil(function: StepFunction, /) -> Model: ...


@overload
def stencil(
    *, boundary: str = "keep", reach: int | None = None
) -> Callable[[StepFunction], Model]: ...


def stencil(
    function: StepFunction | None = None,
    /,
    *,
    boundary: str = "keep",
    reach: int | None = None,
) -> Model | Callable[[StepFunction], Model]:
    """
    Make a model of a function of one time step.

    ```
    @timetile.stencil
    def heat(u: timetile.Field, k: timetile.Scalar):
        u.next = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])

    state = heat.advance({"u": np.random.rand(64, 64)}, steps=1000, k=0.2)
    ```

    The function is called once, at its decoration, with symbols that record operations; Python
    loops over numbers unroll. Arguments are fields of 1 to 3 axes, and scalars. `u[-1, 0]` is the
    value of the neighbour before the cell along axis 0 at the beginning of the step, `u.prev[0, 0]`
    the value a step earlier, `u.next = value` the cell's new value, and `u.next[-1, 0]` reads a new
    value assigned before. `u.next[0:1, :] = value` assigns to a region of the array.

    `boundary` decides about cells with reads outside the arrays: with `keep` such cells keep their
    values. `reach` is the largest distance, in cells, of a read; with `reach`, a rim of this width
    is kept on all sides.

    Raises StencilError, a CompileError with file, line and the underlined expression, for a
    function that is no step.
    """
    check_options(boundary, reach)
    if function is None:
        return lambda step: model_of(step, reach)
    return model_of(function, reach)


def model_of(function: StepFunction, reach: int | None) -> Model:
    """
    The model of a function. The traceback of an error ends here, as the message has the place in
    the function.
    """
    try:
        return Model(traced(function, reach), function.__doc__)
    except StencilError as problem:
        raise problem.with_traceback(None) from None
