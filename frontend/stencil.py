"""`timetile.stencil`: makes a model of a Python function of one time step."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast, overload

from timetile.frontend.boundaries import Boundary, check_boundary
from timetile.frontend.errors import StencilError, error
from timetile.frontend.methods import MethodStep, is_method
from timetile.frontend.model import Model
from timetile.frontend.tracing import traced
from timetile.runtime.machine.floating_point import standard_modes

StepFunction = Callable[..., None]


def check_options(boundary: object, reach: object) -> None:
    """Raise StencilError for an unknown boundary, or a reach that is no number of cells."""
    check_boundary(boundary)
    known = reach is None or (isinstance(reach, int) and not isinstance(reach, bool) and reach >= 0)
    if not known:
        raise error(
            f"the reach is a number of cells, got {reach!r}; write reach=1, or leave it out"
        )


@overload
def stencil(function: StepFunction, /) -> Model: ...


@overload
def stencil(
    *, boundary: Boundary = "keep", reach: int | None = None
) -> Callable[[StepFunction], Model]: ...


def stencil(
    function: StepFunction | None = None,
    /,
    *,
    boundary: Boundary = "keep",
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

    `boundary` decides about reads outside the arrays. `"keep"`: cells with such reads keep their
    values. `"periodic"`: reads go on at the other end. `"mirror"` and `"reflect"`: reads come back,
    about the face of the last cell and about the last cell. `"clamp"`: reads give the nearest cell
    of the array. `timetile.value(x)`: reads give a
    number, or the scalar argument named `x`. A tuple has a boundary for each axis, in it a pair for
    two sides; a dict has boundaries by field. Along an axis without `"keep"` all cells get new
    values. `reach` is the largest distance, in cells, of a read; with `reach`, a rim of this width
    is kept on all kept sides.

    In a class body, the step is a method, and an object's step is a model, as in
    `plate.step.advance(...)`. The numbers of the object are constants of the model, and other
    numbers make another model.

    Raises StencilError, a CompileError with file, line and the underlined expression, for a
    function that is no step.
    """
    check_options(boundary, reach)

    def made(step: StepFunction) -> Model:
        return model_of(step, reach, boundary)

    def of_function(step: StepFunction) -> Model:
        if not is_method(step):
            return made(step)
        # An object's attribute is the model: the descriptor has the type of what it gives.
        return cast("Model", MethodStep(step, made))

    return of_function if function is None else of_function(function)


def model_of(function: StepFunction, reach: int | None, boundary: Boundary) -> Model:
    """
    The model of a function. The traceback of an error ends here, as the message has the place in
    the function.
    """
    try:
        with standard_modes():
            return Model(traced(function, reach, boundary), function.__doc__)
    except StencilError as problem:
        raise problem.with_traceback(None) from None
